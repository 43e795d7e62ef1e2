// Shared by all reference ops: values are read and summed as doubles and rounded once, when stored.
#pragma once

#include "harness/core/error.h"
#include "workloads/ops/backend.h"

#include <type_traits>

namespace assay::ops::reference {

// Specialised for every op, one source per op group.
template <typename Op>
Made<Op> make_reference(const typename Op::Desc& desc);

inline double widen(double value) { return value; }
inline double widen(float value) { return static_cast<double>(value); }
// The harness's own types, which convert to and from float.
template <typename T>
requires requires(T value) { value.bits; }
double widen(T value) { return static_cast<double>(static_cast<float>(value)); }

template <typename T>
T narrow(double value) {
  if constexpr (requires(T stored) { stored.bits; })
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// Type of statistics, norm parameters and rotary tables: f64 for f64, else f32.
template <typename T>
using Statistic = std::conditional_t<std::is_same_v<T, double>, double, float>;

// An array whose type is known only at run time.
class Array {
 public:
  Array(const void* data, DType dtype) : data_(const_cast<void*>(data)), dtype_(dtype) {}

  double operator[](std::int64_t i) const {
    switch (dtype_) {
      case DType::f64: return static_cast<const double*>(data_)[i];
      case DType::f32:
      case DType::tf32: return widen(static_cast<const float*>(data_)[i]);
      case DType::bf16: return widen(static_cast<const bf16*>(data_)[i]);
      case DType::fp16: return widen(static_cast<const fp16*>(data_)[i]);
      case DType::fp8_e4m3: return widen(static_cast<const fp8_e4m3*>(data_)[i]);
      case DType::fp8_e5m2: return widen(static_cast<const fp8_e5m2*>(data_)[i]);
      default: throw Error(fmt::format("the reference has no arrays of {}", name_of(dtype_)));
    }
  }

  void set(std::int64_t i, double value) const {
    switch (dtype_) {
      case DType::f64: static_cast<double*>(data_)[i] = value; break;
      case DType::f32:
      case DType::tf32: static_cast<float*>(data_)[i] = narrow<float>(value); break;
      case DType::bf16: static_cast<bf16*>(data_)[i] = narrow<bf16>(value); break;
      case DType::fp16: static_cast<fp16*>(data_)[i] = narrow<fp16>(value); break;
      case DType::fp8_e4m3: static_cast<fp8_e4m3*>(data_)[i] = narrow<fp8_e4m3>(value); break;
      case DType::fp8_e5m2: static_cast<fp8_e5m2*>(data_)[i] = narrow<fp8_e5m2>(value); break;
      default: throw Error(fmt::format("the reference has no arrays of {}", name_of(dtype_)));
    }
  }

  // Writes the value, or adds it to the element.
  void put(std::int64_t i, double value, bool accumulate) const { set(i, accumulate ? (*this)[i] + value : value); }

 private:
  void* data_;
  DType dtype_;
};

// The same for a type known at compile time.
template <typename T>
void put(T& to, double value, bool accumulate) {
  to = narrow<T>(accumulate ? widen(to) + value : value);
}

inline bool is_float(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::fp16;
}

template <typename Interface>
Made<Interface> no_type(DType dtype) {
  return Made<Interface>::no(fmt::format("the reference has f64, f32, bf16 and fp16, not {}", name_of(dtype)));
}

template <typename Interface>
class ReferenceOp : public Interface {
 public:
  explicit ReferenceOp(const typename Interface::Desc& desc) : d_(desc) {}
  std::string implementation() const override { return "reference"; }
  std::string isa() const override { return "scalar"; }

 protected:
  typename Interface::Desc d_;
};

// Implementation<T> for the element type of `dtype`.
template <typename Interface, template <typename> class Implementation, typename Desc>
Made<Interface> by_type(DType dtype, const Desc& desc) {
  switch (dtype) {
    case DType::f64: return std::unique_ptr<Interface>(std::make_unique<Implementation<double>>(desc));
    case DType::f32: return std::unique_ptr<Interface>(std::make_unique<Implementation<float>>(desc));
    case DType::bf16: return std::unique_ptr<Interface>(std::make_unique<Implementation<bf16>>(desc));
    case DType::fp16: return std::unique_ptr<Interface>(std::make_unique<Implementation<fp16>>(desc));
    default: return no_type<Interface>(dtype);
  }
}

}  // namespace assay::ops::reference

// The op interface: an op is built from a descriptor, then run. Building chooses an implementation or gives a reason
// for having none; run() never allocates, searches or synchronises.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace assay::ops {

// An op, or the reason the device has none.
template <typename Op>
class Made {
 public:
  Made(std::unique_ptr<Op> op) : value_(std::move(op)) {}
  static Made no(std::string reason) { return Made(std::move(reason)); }

  explicit operator bool() const { return value_.index() == 0; }
  std::unique_ptr<Op> take() { return std::move(std::get<0>(value_)); }
  const std::string& reason() const { return std::get<1>(value_); }

 private:
  explicit Made(std::string reason) : value_(std::move(reason)) {}

  std::variant<std::unique_ptr<Op>, std::string> value_;
};

// The common part of all ops.
class Op {
 public:
  virtual ~Op() = default;
  // The library's name for the kernel ("brg_matmul:avx512_core_bf16") and its instruction set, as recorded. Must not
  // change from run to run on one machine: records are compared only if these match. Versions are in libraries().
  virtual std::string implementation() const = 0;
  virtual std::string isa() const = 0;
  // The outcome of a timed trial between implementations, which may differ in the next run; empty if there was none.
  virtual std::string choice() const { return {}; }
  // Whether the same operands always give the same bits. False if the order of sums depends on thread timing.
  virtual bool repeats() const { return true; }
  virtual std::size_t workspace_bytes() const { return 0; }  // scratch that the caller provides for each run
  virtual std::size_t saved_bytes() const { return 0; }      // kept from forward to backward
};

// An op that is built from a `D`.
template <typename D>
class OpOf : public Op {
 public:
  using Desc = D;
};

}  // namespace assay::ops

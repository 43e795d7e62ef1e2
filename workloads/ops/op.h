// The op interface: an op is built from a descriptor, then run. Building chooses an implementation or says why not;
// run() never allocates, searches or synchronises.
#pragma once

#include "harness/core/dtype.h"
#include "harness/device/device.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>

namespace assay::ops {

// An op, or the reason why the device has none.
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

// What every op can say of itself.
class Op {
 public:
  virtual ~Op() = default;
  // The library's name for what it runs ("brg_matmul:avx512_core_bf16") and its instruction set, as recorded: the same
  // from run to run on a machine, for only records of equal ones are compared. Versions are the backend's libraries().
  virtual std::string implementation() const = 0;
  virtual std::string isa() const = 0;
  // What was chosen among several ways by how long they took, which may be another one the next time; or nothing.
  virtual std::string choice() const { return {}; }
  // Whether the same operands give the same bits again. Not where sums are in the order in which threads come.
  virtual bool repeats() const { return true; }
  virtual std::size_t workspace_bytes() const { return 0; }  // scratch that the caller lends to each run
  virtual std::size_t saved_bytes() const { return 0; }      // kept from forward to backward
};

}  // namespace assay::ops

// A small mutator with a fixed seed, for builds without libFuzzer.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace assay::fuzz {

// The mutation of that number: it depends on the seeds and the number alone. At most 1 MB.
std::string mutated(std::span<const std::string> seeds, std::uint64_t number);

}  // namespace assay::fuzz

// Configuration of LBNL's Node Health Check, read as what a machine should have.
#pragma once

#include "harness/machine/expectation.h"

#include <string>
#include <string_view>

namespace assay {

// Whether the text is such a file: its first line that is no comment has "||".
bool is_nhc(std::string_view text);
// Takes over check_hw_cpuinfo, check_hw_physmem, check_hw_swap, check_hw_ib, check_hw_eth, check_gpu_count and
// check_fs_mount with its forms, on lines for all hosts or for a pattern that `hostname` matches. Every other line, and
// every part of a check that is not taken over, is named in `left_out`.
Expectation read_nhc(std::string_view text, const std::string& source, const std::string& hostname);

}  // namespace assay

// quantization_config: how many bits a stored weight takes, with its share of scales and zero points.
#include "harness/core/text.h"
#include "workloads/architecture/readers.h"

#include <fmt/format.h>

namespace assay::architecture {

namespace {

struct Group {
  double bits = 4;
  std::int64_t size = 128;  // weights that share a scale; not above 0: a row, whose share is left out
};

// A scale of 16 bits, and a zero point of as many bits as a weight, for each group.
double grouped(const Group& group) {
  return group.size > 0 ? group.bits + (16 + group.bits) / static_cast<double>(group.size) : group.bits;
}

// compressed-tensors nests both: config_groups.group_0.weights.
void read_group(const Cursor& config, const char* bits, Group& group) {
  if (const auto member = config.find(bits); member && !member->json().is_null())
    group.bits = member->number(1, 16).value_or(4);
  if (const auto member = config.find("group_size"); member && !member->json().is_null())
    group.size = member->integer(-1, 1 << 20).value_or(128);
}

double bits_of_bitsandbytes(Members& members) {
  if (members.flag_or("load_in_8bit", false)) return 8;
  // Blocks of 64 share 32 bits; double quantisation stores these in 8 bits, with 32 more for 256 of them (QLoRA, arXiv
  // 2305.14314).
  const bool twice = members.flag_or("bnb_4bit_use_double_quant", false);
  return twice ? 4 + 8.0 / 64 + 32.0 / (64 * 256) : 4 + 32.0 / 64;
}

double bits_of_compressed_tensors(const Cursor& config) {
  const auto groups = config.find("config_groups");
  Group group{.bits = 8, .size = 0};
  if (groups && groups->object())
    for (const auto& [name, each] : groups->members())
      if (const auto weights = each.find("weights"); weights && weights->json().is_object()) {
        read_group(*weights, "num_bits", group);
        return grouped(group);
      }
  return grouped(group);
}

}  // namespace

std::optional<Quantization> read_quantization(const Cursor& config, Architecture& model) {
  if (!config.object()) return std::nullopt;
  Members members(config);
  const auto method = members.given("quant_method");
  Quantization read;
  read.method = method ? method->text().value_or("") : "bitsandbytes";
  const auto blocks = members.sizes("weight_block_size");
  if (read.method == "awq" || read.method == "gptq") {
    Group group;
    read_group(config, "bits", group);
    read.linear_bits = grouped(group);
  } else if (read.method == "bitsandbytes") {
    read.linear_bits = bits_of_bitsandbytes(members);
  } else if (read.method == "fp8" || read.method == "fbgemm_fp8") {
    const bool blocked = blocks && blocks->size() == 2 && blocks->at(0) > 0 && blocks->at(1) > 0;
    read.linear_bits =
        8 + (blocked ? 32 / (static_cast<double>(blocks->at(0)) * static_cast<double>(blocks->at(1))) : 0);
  } else if (read.method == "mxfp4") {
    read.linear_bits = 4 + 8.0 / 32;  // blocks of 32 share 8 bits (OCP Microscaling Formats 1.0)
    read.experts_only = true;
  } else if (read.method == "compressed-tensors") {
    read.linear_bits = bits_of_compressed_tensors(config);
  } else {
    (method ? *method : config)
        .error(fmt::format("{} is not a known quantisation; known: awq, bitsandbytes, compressed-tensors, fbgemm_fp8, "
                           "fp8, gptq, mxfp4",
                           in_quotes(read.method)));
    return std::nullopt;
  }
  for (const char* name : {"modules_to_not_convert", "llm_int8_skip_modules", "ignore"})
    for (const std::string& module : members.texts(name).value_or(std::vector<std::string>()))
      read.kept.push_back(module);
  model.notes.push_back(
      fmt::format("weights are stored by {}: {:.4g} bits each in the layers' matrices", read.method, read.linear_bits));
  return read;
}

}  // namespace assay::architecture

#include "tests/emulation/symbols.h"

#include "tests/emulation/block.h"

#include <fmt/format.h>

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::emulation {

namespace {

struct Range {
  std::byte* start;
  std::size_t bytes;
};

struct Symbols {
  std::uintptr_t base = 0;  // load address of the file
  std::vector<Range> shared;
  std::map<std::uintptr_t, std::string> functions;  // by address within the file
};

template <typename T>
std::span<const T> table(const std::vector<char>& file, std::size_t at, std::size_t bytes) {
  if (at + bytes > file.size()) return {};
  return {reinterpret_cast<const T*>(file.data() + at), bytes / sizeof(T)};
}

std::string demangled(const char* name) {
  int status = 0;
  char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  const std::string text = plain ? plain : name;
  std::free(plain);
  return text;
}

Symbols read_symbols() {
  Symbols symbols;
  Dl_info self{};
  static const char here = 0;
  if (dladdr(&here, &self) == 0) return symbols;
  symbols.base = reinterpret_cast<std::uintptr_t>(self.dli_fbase);
  std::ifstream in(self.dli_fname, std::ios::binary);
  const std::vector<char> file((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto header = table<Elf64_Ehdr>(file, 0, sizeof(Elf64_Ehdr));
  if (header.empty()) return symbols;
  if (header[0].e_type == ET_EXEC) symbols.base = 0;
  const auto sections = table<Elf64_Shdr>(file, header[0].e_shoff, std::size_t{header[0].e_shnum} * sizeof(Elf64_Shdr));
  if (sections.empty()) return symbols;
  const char* names = file.data() + sections[header[0].e_shstrndx].sh_offset;
  for (const Elf64_Shdr& section : sections) {
    if (std::strncmp(names + section.sh_name, "assay_shared_", 13) == 0)
      symbols.shared.push_back({reinterpret_cast<std::byte*>(symbols.base + section.sh_addr), section.sh_size});
    if (section.sh_type != SHT_SYMTAB) continue;
    const char* words = file.data() + sections[section.sh_link].sh_offset;
    for (const Elf64_Sym& symbol : table<Elf64_Sym>(file, section.sh_offset, section.sh_size))
      if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0)
        symbols.functions.emplace(symbol.st_value, words + symbol.st_name);
  }
  return symbols;
}

// The start of the parameters: the first parenthesis that belongs neither to a template nor to an anonymous namespace.
std::size_t end_of_name(std::string_view name) {
  constexpr std::string_view anonymous = "(anonymous namespace)";
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.substr(i).starts_with(anonymous)) {
      i += anonymous.size() - 1;
      continue;
    }
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth == 0) return i;
  }
  return name.size();
}

const Symbols& symbols() {
  static const Symbols& only = *new Symbols(read_symbols());
  return only;
}

}  // namespace

void fill_shared_arrays(std::byte value) {
  for (const Range& range : symbols().shared) std::memset(range.start, static_cast<int>(value), range.bytes);
}

const char* kernel_name(const void* kernel) {
  static std::mutex mutex;
  static auto& names = *new std::map<const void*, std::string>;
  const std::lock_guard lock(mutex);
  std::string& name = names[kernel];
  if (name.empty()) {
    const auto& functions = symbols().functions;
    const auto found = functions.find(reinterpret_cast<std::uintptr_t>(kernel) - symbols().base);
    name = found == functions.end() ? fmt::format("at {}", kernel) : demangled(found->second.c_str());
    name.resize(end_of_name(name));
  }
  return name.c_str();
}

}  // namespace assay::emulation

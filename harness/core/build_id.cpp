// Reads the .note.gnu.build-id note from the running program's loaded segments.
#include "harness/core/build_id.h"

#include <fmt/core.h>
#include <link.h>

#include <cstring>

namespace assay {

namespace {

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

std::string id_in(const char* notes, std::size_t bytes) {
  while (bytes >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes, sizeof note);
    const std::size_t name = sizeof note, content = name + padded(note.n_namesz);
    const std::size_t end = content + padded(note.n_descsz);
    if (end > bytes) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0) {
      std::string text;
      for (std::size_t i = 0; i < note.n_descsz; ++i)
        text += fmt::format("{:02x}", static_cast<unsigned char>(notes[content + i]));
      return text;
    }
    notes += end;
    bytes -= end;
  }
  return {};
}

// The first object is the program itself.
int find_id(dl_phdr_info* object, std::size_t, void* found) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader reports addresses as integers
    const std::string id = id_in(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz);
    if (id.empty()) continue;
    *static_cast<std::string*>(found) = id;
    break;
  }
  return 1;
}

}  // namespace

const std::string& build_id() {
  static const std::string id = [] {
    std::string found;
    dl_iterate_phdr(find_id, &found);
    return found;
  }();
  return id;
}

}  // namespace assay

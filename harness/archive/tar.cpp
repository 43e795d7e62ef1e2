#include "harness/archive/tar.h"

#include "harness/core/error.h"
#include "harness/core/text.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

namespace assay {

namespace {

constexpr std::size_t block = 512;          // of headers; contents are padded to it
constexpr std::size_t record = 20 * block;  // the archive is
constexpr std::size_t type_offset = 156;    // in a header
constexpr std::size_t magic_offset = 257;   // "ustar"

struct Closer {
  void operator()(archive* open) const { archive_free(open); }
};
using Archive = std::unique_ptr<archive, Closer>;

std::string reason_of(archive* from) {
  const char* text = archive_error_string(from);
  return text ? one_line(text) : "unknown error";
}

// Why a name must not be in an archive; nothing if it may.
std::optional<std::string> problem_of_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.front() == '/') return "is absolute";
  if (!is_utf8(name)) return "is not UTF-8";
  if (std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f || c == '\\'; }))
    return "has a control character or a backslash";
  while (!name.empty()) {
    const std::string_view part = name.substr(0, name.find('/'));
    if (part.empty() || part == "." || part == "..") return "has an empty part, \".\" or \"..\"";
    name.remove_prefix(part.size());
    if (name.empty()) break;
    name.remove_prefix(1);
    if (name.empty()) return "ends in a slash";
  }
  return std::nullopt;
}

std::size_t whole_blocks(std::size_t bytes) { return (bytes + block - 1) / block * block; }

// POSIX.1-1988's header of a file, or nothing if name or size do not fit. Written here and not by libarchive, whose
// versions may write it differently: packs are compared byte for byte.
std::optional<std::string> header_of(const TarMember& member) {
  constexpr std::size_t max_name = 100, max_prefix = 155;
  std::string name = member.name, prefix;
  if (name.size() > max_name) {
    const std::size_t slash = name.find('/', name.size() - max_name - 1);
    if (slash == name.npos || slash > max_prefix) return std::nullopt;
    prefix = name.substr(0, slash);
    name.erase(0, slash + 1);
  }
  const std::string size = fmt::format("{:011o} ", member.bytes.size());
  if (size.size() > 12) return std::nullopt;
  std::string header(block, '\0');
  const auto put = [&](std::size_t at, std::string_view text) { header.replace(at, text.size(), text); };
  put(0, name);
  put(100, "000644 ");       // mode
  put(108, "000000 ");       // owner
  put(116, "000000 ");       // group
  put(124, size);            // in bytes
  put(136, "00000000000 ");  // time
  put(148, "        ");      // the checksum counts as blanks
  put(type_offset, "0");
  put(magic_offset, std::string_view("ustar\00000", 8));
  put(329, "000000 ");  // device
  put(337, "000000 ");
  put(345, prefix);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

bool all_zero(std::string_view bytes) { return bytes.find_first_not_of('\0') == bytes.npos; }

}  // namespace

std::string tar_bytes(std::vector<TarMember> members) {
  std::ranges::sort(members, {}, &TarMember::name);
  std::string bytes;
  const std::string* before = nullptr;
  for (const TarMember& member : members) {
    const auto refuse = [&](const std::string& why) {
      throw Error(fmt::format("{} cannot be put into a tar archive: {}", in_quotes(member.name, 400), why));
    };
    if (const auto problem = problem_of_name(member.name)) refuse("its name " + *problem);
    if (before && *before == member.name) refuse("two files have this name");
    before = &member.name;
    const std::optional<std::string> header = header_of(member);
    if (!header) refuse("its name is too long, or the file is");
    bytes += *header + member.bytes;
    bytes.resize(whole_blocks(bytes.size()));
  }
  bytes.resize((bytes.size() + 2 * block + record - 1) / record * record);
  return bytes;
}

bool is_tar(std::string_view bytes) {
  // Any header counts, so that one that is damaged does not hide the others.
  for (std::size_t at = 0; at + block <= bytes.size(); at += block)
    if (bytes.substr(at + magic_offset, 5) == "ustar") return true;
  return false;
}

std::vector<TarMember> parse_tar(std::string_view bytes, const std::string& name, const TarLimits& limits) {
  const auto fail = [&](const std::string& what) { throw Error(fmt::format("{}: {}", name, what)); };
  if (bytes.size() > limits.bytes) fail(fmt::format("larger than {} bytes", limits.bytes));
  if (bytes.size() % block != 0 || bytes.size() < 2 * block || !all_zero(bytes.substr(bytes.size() - 2 * block)))
    fail(fmt::format("cut short after {} bytes, or damaged at its end", bytes.size()));
  const Archive in(archive_read_new());
  ASSAY_CHECK(in && archive_read_support_format_tar(in.get()) == ARCHIVE_OK);
  const auto damaged = [&] { fail("damaged: " + reason_of(in.get())); };
  if (archive_read_open_memory(in.get(), bytes.data(), bytes.size()) != ARCHIVE_OK) damaged();
  std::vector<TarMember> members;
  std::set<std::string> names;
  std::size_t end = 0;  // of the last member, in the archive
  archive_entry* entry = nullptr;
  for (int result; (result = archive_read_next_header(in.get(), &entry)) != ARCHIVE_EOF;) {
    if (result != ARCHIVE_OK) damaged();
    if (members.size() == limits.members) fail(fmt::format("more than {} files", limits.members));
    const char* path = archive_entry_pathname(entry);
    TarMember member{path ? path : "", {}};
    const auto refuse = [&](const std::string& what) { fail(fmt::format("{} {}", in_quotes(member.name, 400), what)); };
    const auto header = static_cast<std::size_t>(archive_read_header_position(in.get()));
    const char type = bytes[header + type_offset];
    const bool folder = type == '5';
    if (folder && member.name.ends_with('/')) member.name.pop_back();
    if (const auto problem = problem_of_name(member.name)) refuse("is refused: its name " + *problem);
    // Extended headers are refused too: tar_bytes() writes none, and they can say anything.
    if (!folder && type != '0' && type != '\0') refuse("is refused: neither a file nor a folder");
    const la_int64_t size = archive_entry_size(entry);
    if (size < 0 || static_cast<std::uintmax_t>(size) > bytes.size() || (folder && size > 0))
      refuse("is longer than the archive");
    end = header + block + whole_blocks(static_cast<std::size_t>(size));
    if (folder) continue;
    if (!names.insert(member.name).second) refuse("is there twice");
    member.bytes.resize(static_cast<std::size_t>(size));
    for (std::size_t read = 0; read < member.bytes.size();) {
      const la_ssize_t got = archive_read_data(in.get(), member.bytes.data() + read, member.bytes.size() - read);
      if (got <= 0) refuse(got == 0 ? "is shorter than its header says" : "is damaged: " + reason_of(in.get()));
      read += static_cast<std::size_t>(got);
    }
    members.push_back(std::move(member));
  }
  // The reader takes the end of the file, or one block of zeros, for the end of the archive.
  if (end + 2 * block > bytes.size()) fail(fmt::format("cut short after {} bytes", bytes.size()));
  if (!all_zero(bytes.substr(end))) fail(fmt::format("damaged: something follows its end at byte {}", end));
  return members;
}

}  // namespace assay

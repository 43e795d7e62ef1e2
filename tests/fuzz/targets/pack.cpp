// Packs of `assay check`: what is read is written again byte for byte, and judged. Input that is no tar archive is the
// members of one, each behind a line "== NAME", to which their sums are added, so that the code after that check is
// reached.
#include "harness/fitness/floors/pack.h"

#include "harness/archive/tar.h"
#include "harness/core/sha256.h"
#include "reports/acceptance/document.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

namespace {

std::string archive_of(std::string_view text) {
  constexpr std::string_view mark = "== ";
  std::vector<TarMember> members;
  while (text.starts_with(mark)) {
    const std::size_t line = std::min(text.find('\n'), text.size());
    const std::string name(text.substr(mark.size(), line - mark.size()));
    text.remove_prefix(std::min(line + 1, text.size()));
    const std::size_t end = std::min(text.find("\n== "), text.size());
    members.push_back({name, std::string(text.substr(0, end))});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  std::ranges::sort(members, {}, &TarMember::name);
  std::string sums;
  for (const TarMember& member : members) sums += sha256_hex(member.bytes) + "  " + member.name + "\n";
  members.push_back({"SHA256SUMS", sums});
  return tar_bytes(members);
}

}  // namespace

void pack(std::string_view input) {
  std::string made;
  if (!is_tar(input) && accepts("", [&] { made = archive_of(input); })) input = made;
  if (is_tar(input))
    accepts("p.tar: ", [&] {
      const std::vector<TarMember> members = parse_tar(input, "p.tar");
      for (const TarMember& member : members)
        expect(!member.name.starts_with('/') && member.bytes.size() <= input.size(), "an unsafe member");
      (void)tar_bytes(members);  // takes all names that were read
    });
  fitness::Pack read;
  if (!accepts("p.tar", [&] { read = fitness::parse_pack(input, "p.tar"); })) return;
  expect(fitness::pack_bytes(read) == input, "a pack that is written otherwise than it was read");
  accepts("p.tar", [&] {
    const fitness::Floors floors = fitness::parse_floors(read.floors, "p.tar/floors");
    const RunSet runs(fitness::runs_of(read, "p.tar"));
    const fitness::CheckResult result = fitness::check(runs, floors, {}, fitness::rules_of(read.schema));
    try {
      (void)fitness::recompute(result);
    } catch (const Error& error) {
      expect_message(error.what(), "");
    }
    fitness::require_same_verdict(read, report::verdict_files(result), read.judge, "p.tar");
  });
}

}  // namespace assay::fuzz

// Packs of `assay check`: what is read is written again byte for byte, and judged.
#include "reports/acceptance/pack.h"

#include "harness/archive/tar.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void pack(std::string_view input) {
  if (is_tar(input))
    accepts("p.tar: ", [&] {
      const std::vector<TarMember> members = parse_tar(input, "p.tar");
      for (const TarMember& member : members)
        expect(!member.name.starts_with('/') && member.bytes.size() <= input.size(), "an unsafe member");
      (void)tar_bytes(members);  // takes all names that were read
    });
  report::Pack read;
  if (!accepts("p.tar", [&] { read = report::parse_pack(input, "p.tar"); })) return;
  expect(report::pack_bytes(read) == input, "a pack that is written otherwise than it was read");
  accepts("p.tar", [&] {
    const report::Floors floors = report::parse_floors(read.floors, "p.tar/floors");
    const RunSet runs(report::runs_of(read, "p.tar"));
    const report::CheckResult result = report::check(runs, floors, {});
    (void)report::verdict_files(result);
    try {
      (void)report::recompute(result);
    } catch (const Error& error) {
      expect_message(error.what(), "");
    }
  });
}

}  // namespace assay::fuzz

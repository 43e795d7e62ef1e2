// Packs of `assay check`: what is read is written again byte for byte, and judged.
#include "harness/fitness/floors/pack.h"

#include "harness/archive/tar.h"
#include "reports/acceptance/document.h"
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
  fitness::Pack read;
  if (!accepts("p.tar", [&] { read = fitness::parse_pack(input, "p.tar"); })) return;
  expect(fitness::pack_bytes(read) == input, "a pack that is written otherwise than it was read");
  accepts("p.tar", [&] {
    const fitness::Floors floors = fitness::parse_floors(read.floors, "p.tar/floors");
    const RunSet runs(fitness::runs_of(read, "p.tar"));
    const fitness::CheckResult result = fitness::check(runs, floors, {});
    (void)report::verdict_files(result);
    try {
      (void)fitness::recompute(result);
    } catch (const Error& error) {
      expect_message(error.what(), "");
    }
  });
}

}  // namespace assay::fuzz

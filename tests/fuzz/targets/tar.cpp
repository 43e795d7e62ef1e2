// Tar archives: their index, and the set of images in them.
#include "tests/fuzz/fuzz.h"
#include "workloads/data/image_set.h"
#include "workloads/data/tar_reader.h"

namespace assay::fuzz {

void tar(std::string_view input) {
  static const MemoryFile file(folder() / "shard.tar");
  file.write(input);
  const data::TarIndex index = data::read_tar_index(file.path());
  for (const data::TarMember& member : index.members)
    expect(member.offset <= input.size() && member.bytes <= input.size() - member.offset, "a member outside the file");
  if (!index.problem.empty()) expect(index.problem.find(" at byte ") != std::string::npos, "damage without a location");
  accepts(file.path(), [&] {
    const data::ImageSet set = data::ImageSet::open(file.path());
    data::ImageReader reader(set, false);
    for (std::size_t i = 0; i < set.size(); ++i) {
      (void)set.name(i);
      expect(reader.read(i).has_value(), "an image that cannot be read");
    }
  });
}

}  // namespace assay::fuzz

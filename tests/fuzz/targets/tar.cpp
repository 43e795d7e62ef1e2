// Tar archives: their index, and the set of images in them, by the file's name and by its folder's.
#include "tests/fuzz/fuzz.h"
#include "workloads/data/image_set.h"
#include "workloads/data/tar_reader.h"

namespace assay::fuzz {

void tar(std::string_view input) {
  static const MemoryFile file(folder() / "shards" / "shard.tar");
  file.write(input);
  const data::TarIndex index = data::read_tar_index(file.path());
  for (const data::TarMember& member : index.members)
    expect(member.offset <= input.size() && member.bytes <= input.size() - member.offset, "a member outside the file");
  if (!index.problem.empty()) expect(index.problem.find(" at byte ") != std::string::npos, "damage without a location");
  const std::string whole = folder() / "shards";
  std::size_t images = 0;
  const bool as_folder = accepts(whole, [&] { images = data::ImageSet::open(whole).size(); });
  expect(as_folder == data::ImageSet::problem_with(whole).empty(), "a folder that opens and has a problem");
  accepts(file.path(), [&] {
    const data::ImageSet set = data::ImageSet::open(file.path());
    expect(as_folder && set.size() == images, "another number of images by the folder's name");
    data::ImageReader reader(set, false);
    for (std::size_t i = 0; i < set.size(); ++i) {
      (void)set.name(i);
      expect(reader.read(i).has_value(), "an image that cannot be read");
    }
  });
}

}  // namespace assay::fuzz

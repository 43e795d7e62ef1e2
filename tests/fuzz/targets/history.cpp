// The packed bytes of a run in the history.
#include "harness/history/store/packed.h"
#include "tests/fuzz/fuzz.h"

namespace assay::fuzz {

void history(std::string_view input) {
  const auto read = [](auto unpack) {
    try {
      unpack();
    } catch (const Error&) {
    }
  };
  read([&] {
    std::vector<store::PackedPoint> points, again;
    store::unpack_points(input, points);
    const std::string bytes = store::pack_points(points);
    store::unpack_points(bytes, again);
    expect(store::pack_points(again) == bytes, "points do not come back");
  });
  read([&] {
    const auto cases = store::unpack_cases(input);
    expect(store::unpack_cases(store::pack_cases(cases)) == cases, "cases do not come back");
  });
  read([&] {
    const auto broken = store::unpack_broken(input);
    const auto again = store::unpack_broken(store::pack_broken(broken));
    expect(again.size() == broken.size(), "broken cases do not come back");
    for (std::size_t i = 0; i < broken.size(); ++i)
      expect(again[i].benchmark == broken[i].benchmark && again[i].text == broken[i].text,
             "a broken case does not come back");
  });
}

}  // namespace assay::fuzz

// Moments as other programs write them.
#include "harness/core/moment.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

std::string utc(std::string_view text) {
  const auto moment = read_moment(text);
  return moment ? moment->utc + (moment->zone ? "" : "?") : "none";
}

TEST(Moment, OffsetsBecomeUtc) {
  EXPECT_EQ(utc("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00Z");
  EXPECT_EQ(utc("2026-01-31T12:00:00+02:00"), "2026-01-31T10:00:00Z");
  EXPECT_EQ(utc("2026-01-31 12:00:00.123456-0130"), "2026-01-31T13:30:00Z");
  EXPECT_EQ(utc("2026-01-31T12:00:00,5+01"), "2026-01-31T11:00:00Z");
  EXPECT_EQ(utc("2026-01-31 12:00:00 UTC"), "2026-01-31T12:00:00Z");
  EXPECT_EQ(utc("2026-01-31 12:00:00 +0000"), "2026-01-31T12:00:00Z");
  EXPECT_EQ(utc("2026-03-01T00:30:00+01:00"), "2026-02-28T23:30:00Z");
}

TEST(Moment, WithoutAZoneItIsSaid) {
  EXPECT_EQ(utc("2026-01-31T12:00:00"), "2026-01-31T12:00:00Z?");
  EXPECT_EQ(utc("2026-01-31 12:00"), "2026-01-31T12:00:00Z?");
  EXPECT_EQ(utc("2026/01/31"), "2026-01-31T00:00:00Z?");
}

TEST(Moment, SecondsAndMillisecondsSince1970) {
  EXPECT_EQ(utc("1767225600"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(utc("1767225600123"), "2026-01-01T00:00:00Z");
}

TEST(Moment, OtherTextsAreNone) {
  for (const char* text : {"", "yesterday", "2026-02-30T00:00:00Z", "2026-13-01", "2026-01-31T25:00:00Z", "2026-1-31",
                           "2026-01-31T12:00:00X", "2026-01-31T12", "12345", "2026-01-31T12:00:00+99:00",
                           "2026-01-31T12:00:00Z and more", "31/01/2026"})
    EXPECT_EQ(utc(text), "none") << text;
}

}  // namespace
}  // namespace assay

// Reading the kernel's small files: absent files give no value, a number may be followed by text.
#include "tests/unit/machine/fake_root.h"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Root, ReadsTrimmedTextAndNumbers) {
  FakeRoot fake;
  fake.file("sys/a", "  performance \n").file("sys/n", "2600000").file("sys/w", "x16").file("sys/u", "16.0 GT/s PCIe");
  const auto root = fake.root();
  EXPECT_EQ(root.text("sys/a"), "performance");
  EXPECT_EQ(root.integer("sys/n"), 2600000);
  EXPECT_EQ(root.integer("sys/w"), std::nullopt);
  EXPECT_EQ(root.integer("sys/u"), 16);
}

TEST(Root, AbsentFilesGiveNothing) {
  FakeRoot fake;
  fake.file("sys/folder/file", "1");
  EXPECT_EQ(fake.root().text("sys/none"), std::nullopt);
  EXPECT_EQ(fake.root().text("sys/folder"), std::nullopt);
  EXPECT_EQ(fake.root().integer("sys/none"), std::nullopt);
  EXPECT_TRUE(fake.root().list("sys/none").empty());
  EXPECT_FALSE(fake.root().write("sys/none", "5"));
  EXPECT_EQ(fake.root().link_name("sys/folder/file"), std::nullopt);
}

TEST(Root, ListsInNumericOrder) {
  FakeRoot fake;
  for (const auto* name : {"cpu10", "cpu2", "cpu0", "cpufreq"}) fake.file(std::string("cpu/") + name, "");
  EXPECT_EQ(fake.root().list("cpu"), (std::vector<std::string>{"cpu0", "cpu2", "cpu10", "cpufreq"}));
}

TEST(Field, MatchesTheWholeName) {
  const std::string text = "VmHWMx:\t1 kB\nVmHWM:\t  2048 kB\nCpus_allowed_list:\t0-1";
  EXPECT_EQ(kilobytes_field(text, "VmHWM"), 2048u * 1024);
  EXPECT_EQ(field(text, "Cpus_allowed_list"), "0-1");
  EXPECT_EQ(field(text, "Cpus"), std::nullopt);
  EXPECT_EQ(kilobytes_field(text, "Cpus_allowed_list"), 0u);
  EXPECT_EQ(kilobytes_field("A: -1 kB", "A"), std::nullopt);
}

}  // namespace
}  // namespace assay

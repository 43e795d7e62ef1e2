#include "harness/core/text.h"

#include "harness/core/plain_text.h"
#include "harness/core/words.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace assay {
namespace {

TEST(Text, OneIsSingular) {
  EXPECT_EQ(plural(1, "case"), "1 case");
  EXPECT_EQ(plural(0, "case"), "0 cases");
  EXPECT_EQ(plural(2, "case"), "2 cases");
}

TEST(Text, NamesTheFirstFew) {
  EXPECT_EQ(first_few({}, 2), "");
  EXPECT_EQ(first_few({"a", "b"}, 2), "a, b");
  EXPECT_EQ(first_few({"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(first_few({"a", "b", "c", "d"}), "a, b, c and 1 more");
  EXPECT_EQ(first_few({"a", "b", "c"}, 2, "; "), "a; b and 1 more");
  EXPECT_EQ(and_more(2, 2), "");
  EXPECT_EQ(and_more(5, 2), " and 3 more");
}

TEST(Text, FirstLine) {
  EXPECT_EQ(first_line("a\nb\n"), "a");
  EXPECT_EQ(first_line("a"), "a");
  EXPECT_EQ(first_line(""), "");
}

TEST(Text, TrimsAndLowers) {
  EXPECT_EQ(trim(" \ta b\n"), "a b");
  EXPECT_EQ(trim(" \t"), "");
  EXPECT_EQ(lower_case("GPU-5fD4"), "gpu-5fd4");
}

TEST(Text, Joins) {
  EXPECT_EQ(joined(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(joined(std::vector<int>{1, 2, 4}, "+"), "1+2+4");
  EXPECT_EQ(joined(std::vector<std::string>{}), "");
}

TEST(Text, ForeignTextIsHarmless) {
  EXPECT_EQ(one_line("a\x1b[31m\n\t\x7f"), "a\\x1b[31m\\x0a\\x09\\x7f");
  EXPECT_EQ(one_line("\xC2\x9B|\xE2\x80\xAE|\xD8\x9C"), "\\xc2\\x9b|\\xe2\\x80\\xae|\\xd8\\x9c") << "C1 and bidi marks";
  EXPECT_EQ(one_line("\x80é漢"), "\\x80é漢");
  EXPECT_EQ(one_line("éé", 3), "é...");
  EXPECT_EQ(plain_lines("a\x07\nb\n"), "a\\x07\nb\n");
  EXPECT_EQ(plain_lines(std::string(5000, 'x') + "\ny").size(), 4000u + 3 + 2);
  for (const char* bad : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x80"})
    EXPECT_FALSE(is_utf8(bad)) << one_line(bad);
  EXPECT_TRUE(is_utf8("a\nß漢😀"));
}

TEST(Text, AHundredProblemsAreTenAndACount) {
  const std::vector<std::string> all(100, "bad");
  const std::vector<std::string> lines = first_ten(all, "run");
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines.front(), "run: bad");
  EXPECT_EQ(lines.back(), "run: and 90 more");
  EXPECT_EQ(first_ten(all, "").back(), "and 90 more");
  EXPECT_EQ(first_ten({"a", "b"}, "run", "/"), (std::vector<std::string>{"run/a", "run/b"}));
}

TEST(Text, ExceptionsOfLibrariesAreSaidInWords) {
  const auto error = std::make_error_code(std::errc::no_space_on_device);
  EXPECT_EQ(reason_of(std::filesystem::filesystem_error("cannot copy", "/a/b", error)),
            "/a/b: No space left on device");
  EXPECT_EQ(reason_of(std::system_error(error, "write")), "No space left on device");
  EXPECT_EQ(reason_of(std::bad_alloc()), "out of memory");
  EXPECT_EQ(reason_of(Error("a: b")), "a: b");
  EXPECT_EQ(reason_of(std::runtime_error("[json.exception.type_error.316] invalid UTF-8 byte")), "invalid UTF-8 byte");
  EXPECT_EQ(reason_of(std::out_of_range("basic_string::substr")).find("basic_string"), std::string::npos);
  EXPECT_EQ(code_of_unwritten("cannot write x: No space left on device"), ExitCode::broken);
  EXPECT_EQ(code_of_unwritten("cannot write x: Permission denied"), ExitCode::usage);
}

TEST(Text, AShellReadsOneWord) {
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(short_shell_word("--case=a/b:c,d@1%+"), "--case=a/b:c,d@1%+");
  for (const char* text : {"", "a b", "$HOME", "~", "a;b", "*", "\xc3\xa9"})
    EXPECT_EQ(short_shell_word(text), shell_word(text)) << text;
  EXPECT_EQ(shell_in_folder("/a b", "x\n# y"), "cd '/a b' && { x\n# y\n}");
}

enum class Colour { red, green };
constexpr auto words(Colour) { return std::to_array<std::string_view>({"red", "green"}); }

TEST(Words, GoBothWays) {
  EXPECT_EQ(name_of(Colour::green), "green");
  EXPECT_EQ(from_word<Colour>("green"), Colour::green);
  EXPECT_FALSE(from_word<Colour>("blue"));
  EXPECT_FALSE(from_word<Colour>(""));
}

}  // namespace
}  // namespace assay

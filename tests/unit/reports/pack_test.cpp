// Packs: equal bytes from equal packs, every change found, and figures computed again from samples.
#include "reports/acceptance/packed_check.h"

#include "reports/acceptance/document.h"

#include "harness/archive/tar.h"
#include "harness/core/files.h"
#include "harness/core/sha256.h"
#include "harness/json/json.h"
#include "tests/support/refusal.h"
#include "tests/support/temporary_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

namespace assay::report {
namespace {

using namespace fitness;

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* floors_text = R"({"schema": 1, "floors": [{"key": "gemm/*", "metric": "throughput",
  "unit": "FLOP/s", "at_least": 1e12, "protocol": {}, "source": "a test", "required": true}]})";
const Judge judge{"1.0", "abc", "00ff"};

// Samples of 2 s with work of 4e12: 2e12 FLOP/s. Ten equal samples have an interval of no width.
Json record_json(double value = 2e12, Json work = 4e12) {
  return {{"schema", 2},
          {"key", "gemm/m=1"},
          {"family", "gemm"},
          {"status", "ok"},
          {"samples", {{"values", std::vector<double>(10, 2.0)}}},
          {"metrics",
           {{{"name", "throughput"}, {"value", value}, {"unit", "FLOP/s"}, {"ci95", {value, value}}, {"work", work}}}}};
}

PackedRun run_with(const Json& record, const std::string& name = "r") {
  return {name,
          {{"run.json", R"({"schema": 2, "id": "i", "version": "0.9", "build_id": "abc"})"},
           {"records.jsonl", dump_line(record) + "\n"}}};
}

Judged judged(const Pack& pack) {
  return {runs_of(pack, "p.tar"), parse_floors(pack.floors, pack.floors_name), pack.injected, {}};
}

Pack pack_with(const Json& record) {
  Pack pack;
  pack.runs = {run_with(record)};
  pack.floors_name = "f.json";
  pack.floors = floors_text;
  pack.judge = judge;
  pack.verdict = verdict_files(judged(pack).result);
  return pack;
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::broken);
    return error.what();
  }
  return "no error";
}

std::string error_of_bytes(const std::string& bytes) {
  const std::string error = error_of([&] { (void)parse_pack(bytes, "p.tar"); });
  EXPECT_THAT(error, StartsWith("p.tar: "));
  return error;
}

std::vector<TarMember> members_of(const Pack& pack) { return parse_tar(pack_bytes(pack), "p.tar"); }

// The archive of these members, with the sums that fit them.
std::string with_sums(std::vector<TarMember> members) {
  std::erase_if(members, [](const TarMember& member) { return member.name == "SHA256SUMS"; });
  std::sort(members.begin(), members.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string sums;
  for (const TarMember& member : members) sums += sha256_hex(member.bytes) + "  " + member.name + "\n";
  members.push_back({"SHA256SUMS", sums});
  return tar_bytes(members);
}

TarMember& named(std::vector<TarMember>& members, const std::string& name) {
  return *std::find_if(members.begin(), members.end(), [&](const TarMember& member) { return member.name == name; });
}

TEST(Pack, IsReadAsItWasWritten) {
  const Pack pack = pack_with(record_json());
  const std::string bytes = pack_bytes(pack);
  EXPECT_EQ(pack_bytes(pack), bytes);
  const Pack read = parse_pack(bytes, "p.tar");
  EXPECT_EQ(read.runs.front().name, "r");
  EXPECT_EQ(read.runs.front().files, pack.runs.front().files);
  EXPECT_EQ(read.floors, floors_text);
  EXPECT_EQ(read.judge.version, "1.0");
  EXPECT_EQ(read.verdict.code, ExitCode::ok);
  const Judged again = judged(read);
  EXPECT_EQ(error_of([&] { require_same_verdict(read, verdict_files(again.result), judge, "p.tar"); }), "no error");
  EXPECT_EQ(again.result.results.front().records.front().entry.place(), "r/records.jsonl line 1");
}

TEST(Pack, SaysWhoMeasuredAndWhoJudged) {
  std::vector<TarMember> members = members_of(pack_with(record_json()));
  const Json manifest = parse_untrusted(named(members, "manifest.json").bytes);
  EXPECT_EQ(manifest["judged_by"]["sha256"], "00ff");
  EXPECT_EQ(manifest["runs"][0]["folder"], "runs/1/r");
  EXPECT_EQ(manifest["runs"][0]["version"], "0.9");
  EXPECT_EQ(manifest["runs"][0]["sha256"], "00ff");  // the same build
  Pack other = pack_with(record_json());
  other.judge.build_id = "def";
  members = members_of(other);
  EXPECT_TRUE(parse_untrusted(named(members, "manifest.json").bytes)["runs"][0]["sha256"].is_null());
}

TEST(Pack, RunsKeepTheirOrderInAFolder) {
  Pack pack = pack_with(record_json());
  for (int i = 0; i < 11; ++i) pack.runs.push_back(run_with(record_json(), "r" + std::to_string(20 - i)));
  const Pack read = parse_pack(pack_bytes(pack), "p.tar");
  ASSERT_EQ(read.runs.size(), 12u);
  for (std::size_t i = 0; i < read.runs.size(); ++i) EXPECT_EQ(read.runs[i].name, pack.runs[i].name);
  const std::vector<TarMember> members = members_of(pack);
  EXPECT_TRUE(std::any_of(members.begin(), members.end(),
                          [](const TarMember& one) { return one.name == "runs/02/r20/run.json"; }));
}

TEST(Pack, FindsEveryChangedByte) {
  const std::string bytes = pack_bytes(pack_with(record_json()));
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    error_of_bytes(changed);
  }
  for (std::size_t size = 0; size < bytes.size(); size += 512)
    if (is_tar(bytes.substr(0, size))) error_of_bytes(bytes.substr(0, size));
  error_of_bytes(bytes + std::string(512, '\0'));
}

TEST(Pack, NamesAChangedFile) {
  for (const TarMember& member : members_of(pack_with(record_json()))) {
    if (member.name == "SHA256SUMS") continue;
    std::vector<TarMember> members = members_of(pack_with(record_json()));
    named(members, member.name).bytes += " ";
    EXPECT_THAT(error_of_bytes(tar_bytes(members)), HasSubstr("\"" + member.name + "\" is not the file"));
  }
}

TEST(Pack, RefusesWhatFitsItsSumsButIsNoPack) {
  const auto changed = [](const std::function<void(std::vector<TarMember>&)>& change) {
    std::vector<TarMember> members = members_of(pack_with(record_json()));
    change(members);
    return error_of_bytes(with_sums(std::move(members)));
  };
  const auto without = [&](const std::string& name) {
    return changed([&](auto& members) { std::erase_if(members, [&](const auto& one) { return one.name == name; }); });
  };
  EXPECT_THAT(changed([](auto& members) { members.push_back({"more.txt", "x"}); }), HasSubstr("byte "));
  EXPECT_THAT(changed([](auto& members) { named(members, "manifest.json").bytes += " "; }), HasSubstr("byte "));
  for (const char* name :
       {"verdict.json", "verdict.txt", "verdict.xml", "floors/f.json", "runs/1/r/run.json", "runs/1/r/records.jsonl"})
    EXPECT_THAT(without(name), HasSubstr(std::string("\"") + name + "\" is missing"));
  for (const char* text : {"", "{}", "[]", "{", R"({"schema": 2})"})
    EXPECT_THAT(changed([&](auto& members) { named(members, "manifest.json").bytes = text; }), StartsWith("p.tar: "));
  EXPECT_THAT(changed([&](auto& members) { named(members, "runs/1/r/run.json").bytes = "{"; }), HasSubstr("not JSON"));
  std::vector<TarMember> members = members_of(pack_with(record_json()));
  std::erase_if(members, [](const auto& one) { return one.name == "SHA256SUMS"; });
  EXPECT_THAT(error_of_bytes(tar_bytes(members)), HasSubstr("SHA256SUMS is missing"));
}

TEST(Pack, OtherFilesAreAUsageError) {
  for (const std::string& bytes :
       {std::string(), std::string("text"), std::string(2048, '\0'), tar_bytes({{"a", "x"}})})
    EXPECT_THROW((void)parse_pack(bytes, "p.tar"), UsageError);
}

Recomputed recomputed(const Json& record) { return recompute(judged(pack_with(record)).result); }
std::string error_of_record(const Json& record) {
  return error_of([&] { (void)recomputed(record); });
}

TEST(Recompute, TakesFiguresWithWorkFromTheirSamples) {
  const Recomputed all = recomputed(record_json());
  EXPECT_EQ(all.judged, 1u);
  EXPECT_EQ(all.from_samples, 1u);
  EXPECT_TRUE(all.others.empty());
  const Recomputed none = recomputed(record_json(2e12, nullptr));
  EXPECT_EQ(none.judged, 1u);
  EXPECT_EQ(none.from_samples, 0u);
  EXPECT_EQ(none.others, std::set<std::string>{"throughput"});
}

TEST(Recompute, NamesAFigureThatItsSamplesDoNotGive) {
  EXPECT_THAT(error_of_record(record_json(2.1e12)),
              StartsWith("r/records.jsonl line 1: throughput is 2100000000000 [2100000000000, 2100000000000], but its "
                         "samples give 2000000000000 [2000000000000, 2000000000000]"));
  Json wide = record_json();
  wide["metrics"][0]["ci95"] = {1.9e12, 2.1e12};
  EXPECT_THAT(error_of_record(wide), HasSubstr("but its samples give 2000000000000"));
  Json unsure = record_json();
  unsure["metrics"][0]["ci95"] = nullptr;
  EXPECT_THAT(error_of_record(unsure), HasSubstr("but its samples give"));
  Json other_samples = record_json();
  other_samples["samples"]["values"][0] = 1.0;
  other_samples["samples"]["values"][1] = 1.0;
  EXPECT_THAT(error_of_record(other_samples), HasSubstr("but its samples give"));
  Json no_samples = record_json();
  no_samples["samples"]["values"] = Json::array();
  EXPECT_THAT(error_of_record(no_samples), HasSubstr("but its samples give unknown"));
  Json no_numbers = record_json();
  no_numbers["samples"]["values"][3] = nullptr;
  EXPECT_THAT(error_of_record(no_numbers), HasSubstr("but its samples give unknown"));
}

TEST(Recompute, ATimeIsTheMedianOverTheCalls) {
  Json record = record_json();
  record["metrics"] = {
      {{"name", "latency"}, {"value", 0.5}, {"unit", "s"}, {"ci95", {0.5, 0.5}}, {"better", "lower"}, {"work", 4}},
      record["metrics"][0]};
  EXPECT_EQ(recomputed(record).from_samples, 1u);  // of those that a floor judges
  record["metrics"][0]["value"] = 0.4;
  EXPECT_THAT(error_of_record(record), HasSubstr("latency is 0.4"));
}

TEST(Recompute, ReadsLongListsOfSamplesFromTheirFile) {
  Json record = record_json();
  record["samples"] = {{"series", "series/x.json"}, {"count", 300}, {"values", Json::array()}};
  const Json series = {{"schema", 2}, {"values", std::vector<double>(300, 2.0)}, {"at", Json::array()}};
  Pack pack = pack_with(record_json());
  pack.runs.front().files["records.jsonl"] = dump_line(record) + "\n";
  EXPECT_THAT(error_of([&] { (void)judged(pack); }), HasSubstr("\"series/x.json\" is missing"));
  pack.runs.front().files["series/x.json"] = dump_line(series);
  EXPECT_EQ(recompute(judged(pack).result).from_samples, 1u);
  EXPECT_EQ(parse_pack(pack_bytes(pack), "p.tar").runs.front().files, pack.runs.front().files);
  record["samples"]["series"] = "../../../etc/passwd";
  pack.runs.front().files["records.jsonl"] = dump_line(record) + "\n";
  EXPECT_THAT(error_of([&] { (void)judged(pack); }), HasSubstr("outside the run"));
}

TEST(Pack, AnotherVerdictIsNamedWithBothPrograms) {
  const Pack pack = pack_with(record_json());
  VerdictFiles now = pack.verdict;
  now.json += " ";
  const auto error = [&](const Judge& other) {
    return error_of([&] { require_same_verdict(pack, now, other, "p.tar"); });
  };
  EXPECT_EQ(error(judge), "p.tar: verdict.json is not what its runs and floors give");
  EXPECT_EQ(error({"2.0", "def", ""}),
            "p.tar: Assay 1.0 (build abc) judged it, and this one, 2.0 (build def), judges otherwise: verdict.json "
            "differs");
  now = pack.verdict;
  now.code = ExitCode::failed;
  EXPECT_THAT(error(judge), HasSubstr("the exit code"));
}

// A run directory and a floors file, which a pack keeps.
struct Files : test::TemporaryFolder {
  Files() {
    std::filesystem::create_directory(run);
    const PackedRun packed = run_with(record_json());
    for (const auto& [name, text] : packed.files) replace_file(run / name, text);
    replace_file(floors, floors_text);
  }
  std::unique_ptr<const Judged> pack_up() const {
    return check_into_pack({run}, floors, false, judge, file.string(), {});
  }
  std::filesystem::path run = path() / "r", floors = path() / "f.json", file = path() / "p.tar";
};

TEST(PackedCheck, TheVerdictOfThePackIsThatOfTheRuns) {
  const Files files;
  require_place_for_pack(files.file);
  EXPECT_EQ(files.pack_up()->result.code(), ExitCode::ok);
  require_place_for_pack(files.file);  // a pack may be replaced
  const PackCheck again = check_pack(files.file.string(), std::nullopt, false, judge, {});
  EXPECT_EQ(again.judged->result.code(), ExitCode::ok);
  EXPECT_EQ(again.text(),
            "every byte as packed; 1 of 1 judged figures computed again from their samples; the same verdict");
}

TEST(PackedCheck, OtherFloorsAreOtherTerms) {
  const Files files;
  (void)files.pack_up();
  std::string higher = floors_text;
  higher.replace(higher.find("1e12"), 4, "1e13");
  const PackCheck other = check_pack(files.file.string(), parse_floors(higher, "higher.json"), false, judge, {});
  EXPECT_EQ(other.judged->result.code(), ExitCode::failed);
  EXPECT_FALSE(other.as_packed);
  EXPECT_THAT(other.text(), testing::EndsWith("judged by other terms than the packed verdict, which is not compared"));
  EXPECT_FALSE(check_pack(files.file.string(), std::nullopt, true, judge, {}).as_packed);
}

TEST(PackedCheck, OnlyAPackIsReplaced) {
  const Files files;
  for (const auto& [place, says] : {std::pair<std::filesystem::path, const char*>{"-", "not standard output"},
                                    {files.path() / "none" / "p.tar", "no folder"},
                                    {files.floors, "no whole pack"},
                                    {files.run, "no whole pack"}})
    EXPECT_THAT(test::refusal([&, where = place] { require_place_for_pack(where); }), HasSubstr(says)) << place;
  EXPECT_THROW(check_pack(files.floors.string(), std::nullopt, false, judge, {}), UsageError);
}

}  // namespace
}  // namespace assay::report

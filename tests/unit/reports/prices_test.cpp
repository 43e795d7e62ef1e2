// Price files and catalogues: small hand-made samples in each cloud's form.
#include "harness/runs/csv.h"
#include "reports/cost/match.h"
#include "tests/unit/reports/cost_fixtures.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace assay::report {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Csv, ACellIsNoFormula) {
  for (const char* text : {"=1+1", "+1", "-x", "@SUM(A1)", " =1", "＝1"}) {
    const std::string cell = csv_cell(text);
    EXPECT_EQ(cell, std::string("'") + text);
    EXPECT_EQ(csv_value(cell), text);
  }
  EXPECT_EQ(csv_cell("=a,\"b\""), "\"'=a,\"\"b\"\"\"");
  EXPECT_EQ(csv_cell("\t=1\r\n\x1b"), "\"\\x09=1\\x0d\n\\x1b\"") << "it begins with no tab";
  EXPECT_EQ(csv_cell("a-b"), "a-b");
  EXPECT_EQ(csv_value("'tis"), "'tis");
}

// The catalogue's date is in its name: 2026-01-01, nine days before the runs.
constexpr const char* catalogue_name = "vms-2026-01-01.csv";

constexpr const char* aws =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,"
    "Arch\n"
    "c5.large,,,2.0,4.0,,0.085,0.03,us-east-1,use1-az1,x86_64\n"
    "p9.8xlarge,X100,8.0,192.0,2048.0,\"{'Gpus': [{'Name': 'X100', 'Count': 8.0}], 'TotalGpuMemoryInMiB': 655360}\","
    "33.61,10.0,us-east-1,use1-az1,x86_64\n"
    "p9.8xlarge,X100,8.0,192.0,2048.0,\"{'Gpus': [{'Name': 'X100', 'Count': "
    "8.0}]}\",33.61,14.0,us-east-1,use1-az2,x86_64\n"
    "p9.8xlarge,X100,8.0,192.0,2048.0,\"{'Gpus': [{'Name': 'X100', 'Count': 8.0}]}\",78.37,,sa-east-1,sae1-az1,x86_64\n"
    "g9f.large,Y4,0.125,2.0,8.0,,0.25,0.1,us-east-1,use1-az1,x86_64\n";

constexpr const char* azure =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Generation\n"
    "Standard_NX96_v9,X100,8.0,96.0,1900,\"{'Gpus': [{'Name': 'X100'}]}\",98.32,34.5,eastus,\"V1,V2\"\n"
    "Standard_B2ms,,,2.0,8,,0.083,,eastus,\"V1,V2\"\n"
    "Standard_NX6_v9,X100,,6.0,56,,3.06,,eastus,V2\n";

// Hosts without accelerators, accelerators without hosts; 700.0 for unknown prices.
constexpr const char* gcp =
    "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,Price,SpotPrice\n"
    "a3-highgpu-8g,208.0,1872.0,,,,us-east4,us-east4-a,9.46,2.16\n"
    "a3-highgpu-8g,208.0,1872.0,,,,us-west1,us-west1-a,9.50,2.20\n"
    "a3-highgpu-8g,208.0,1872.0,,,,asia-east1,asia-east1-c,10.95,2.74\n"
    "n1-standard-8,8.0,30.0,,,,us-east4,us-east4-a,0.38,0.08\n"
    ",,,H100,8.0,H100,us-east4,us-east4-a,78.37,18.00\n"
    ",,,H100,1.0,H100,us-east4,us-east4-a,9.80,2.25\n"
    ",,,H100,8.0,H100,us-west1,us-west1-a,700.0,700.0\n"
    ",,,T4,2.0,T4,us-east4,us-east4-a,0.70,0.22\n"
    ",,,tpu-v9,1,tpu-v9,us-east4,us-east4-a,345.6,150\n";

constexpr const char* lambda =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
    "cpu_4x_general,,,4.0,16.0,0.2,us-east-1,,\n"
    "gpu_8x_x100,X100,8.0,92.0,448.0,6.32,us-east-1,\"{'Gpus': [{'Name': 'X100'}]}\",\n"
    "gpu_8x_x100,X100,8.0,92.0,448.0,6.32,us-west-1,\"{'Gpus': [{'Name': 'X100'}]}\",\n";

constexpr const char* nebius =
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
    "cpu-d3_4vcpu-16gb,,0,4,16,0.0992,eu-north1,,\n"
    "gpu-x100_8gpu-128vcpu-1600gb,X100,8,128,1600,23.60,eu-north1,\"{'Gpus': []}\",10.00\n";

class Catalogue : public testing::Test {
 protected:
  MachinePrices prices(const std::string& text, const std::string& type, const std::string& region, int gpus = 0,
                       const std::string& gpu = "") {
    PriceSource source;
    source.files = {folder_.read(catalogue_name, text)};
    RunData run = run_on(type, {}, "n1", region);
    if (gpus > 0) add_gpus(run, gpus, gpu);
    return prices_of(run, source);
  }
  Folder folder_;
};

const HourlyPrice& offer(const MachinePrices& prices, Basis basis) {
  for (const HourlyPrice& price : prices.offers)
    if (price.basis == basis) return price;
  throw std::runtime_error("no such offer");
}

bool has(const MachinePrices& prices, Basis basis) {
  return std::any_of(prices.offers.begin(), prices.offers.end(), [&](const auto& p) { return p.basis == basis; });
}

TEST_F(Catalogue, AwsTakesTheMedianOfARegionsZones) {
  const MachinePrices found = prices(aws, "p9.8xlarge", "us-east-1", 8, "NVIDIA X100 80GB");
  EXPECT_DOUBLE_EQ(*offer(found, Basis::on_demand).usd, 33.61);
  EXPECT_FALSE(offer(found, Basis::on_demand).range);
  EXPECT_THAT(offer(found, Basis::on_demand).warnings, IsEmpty());
  EXPECT_EQ(offer(found, Basis::on_demand).date, "2026-01-01");
  EXPECT_EQ(offer(found, Basis::on_demand).source, "SkyPilot catalogue vms-2026-01-01.csv");
  EXPECT_DOUBLE_EQ(*offer(found, Basis::spot).usd, 12);  // of 10 and 14
  EXPECT_EQ(offer(found, Basis::spot).rule, "median of 2 rows of the region");
  EXPECT_DOUBLE_EQ(*offer(prices(aws, "P9.8XLARGE", "use1-az2", 8, "NVIDIA X100"), Basis::spot).usd, 14);
}

TEST_F(Catalogue, WithoutARegionTheRangeIsReported) {
  const MachinePrices found = prices(aws, "p9.8xlarge", "", 8, "NVIDIA X100");
  const HourlyPrice& price = offer(found, Basis::on_demand);
  EXPECT_DOUBLE_EQ(*price.usd, 55.99);  // (33.61 + 78.37) / 2
  EXPECT_DOUBLE_EQ(price.range->low, 33.61);
  EXPECT_DOUBLE_EQ(price.range->high, 78.37);
  EXPECT_EQ(price.region, "2 regions");
  EXPECT_THAT(price.warnings,
              ElementsAre("median of 2 regions, 33.61 USD (us-east-1) to 78.37 USD (sa-east-1): the run "
                          "names no region (--label region=)"));
}

TEST_F(Catalogue, ARegionWithoutAPriceIsReported) {
  const MachinePrices found = prices(aws, "p9.8xlarge", "mars-1", 8, "NVIDIA X100");
  EXPECT_THAT(offer(found, Basis::on_demand).warnings,
              Contains(HasSubstr("has no price for p9.8xlarge in region \"mars-1\"")));
}

TEST_F(Catalogue, FractionsOfAGpuAndMismatchedCounts) {
  EXPECT_THAT(offer(prices(aws, "g9f.large", "us-east-1", 1, "NVIDIA Y4"), Basis::on_demand).warnings, IsEmpty());
  EXPECT_THAT(offer(prices(aws, "p9.8xlarge", "us-east-1", 4, "NVIDIA X100"), Basis::on_demand).warnings,
              ElementsAre("the price is for 8 x X100, the machine has 4"));
  EXPECT_THAT(offer(prices(aws, "p9.8xlarge", "us-east-1", 8, "NVIDIA Z7"), Basis::on_demand).warnings,
              ElementsAre("the price is for X100, the machine has NVIDIA Z7"));
  EXPECT_THAT(offer(prices(aws, "c5.large", "us-east-1", 1, "NVIDIA Z7"), Basis::on_demand).warnings,
              ElementsAre("the price is for 0 x GPU, the machine has 1"));
}

TEST_F(Catalogue, AzureQuotesCommasAndOmitsPrices) {
  const MachinePrices found = prices(azure, "Standard_NX96_v9", "eastus", 8, "NVIDIA X100");
  EXPECT_DOUBLE_EQ(*offer(found, Basis::on_demand).usd, 98.32);
  EXPECT_DOUBLE_EQ(*offer(found, Basis::spot).usd, 34.5);
  EXPECT_FALSE(has(prices(azure, "standard_b2ms", "eastus"), Basis::spot));
}

TEST_F(Catalogue, GcpHostAndGpusAreAdded) {
  const MachinePrices found = prices(gcp, "a3-highgpu-8g", "us-east4", 8, "NVIDIA H100 80GB HBM3");
  EXPECT_NEAR(*offer(found, Basis::on_demand).usd, 87.83, 1e-9);  // 9.46 + 78.37
  EXPECT_NEAR(*offer(found, Basis::spot).usd, 20.16, 1e-9);       // 2.16 + 18.00
  EXPECT_THAT(offer(found, Basis::on_demand).warnings, IsEmpty());
  // N1 hosts have the GPUs that the run recorded.
  EXPECT_NEAR(*offer(prices(gcp, "n1-standard-8", "us-east4", 2, "Tesla T4"), Basis::on_demand).usd, 1.08, 1e-9);
  EXPECT_NEAR(*offer(prices(gcp, "n1-standard-8", "us-east4"), Basis::on_demand).usd, 0.38, 1e-9);
}

TEST_F(Catalogue, GcpPlaceholdersAreNotPrices) {
  const HourlyPrice price = offer(prices(gcp, "a3-highgpu-8g", "us-west1", 8, "NVIDIA H100"), Basis::on_demand);
  EXPECT_FALSE(price.usd) << "not 9.50 + 700";
  EXPECT_THAT(price.warnings, Contains("vms-2026-01-01.csv has the placeholder 700.0 instead of a price"));
}

TEST_F(Catalogue, AGcpHostWithoutItsGpusHasNoPrice) {
  const HourlyPrice price = offer(prices(gcp, "a3-highgpu-8g", "asia-east1", 8, "NVIDIA H100"), Basis::on_demand);
  EXPECT_FALSE(price.usd) << "not that of the host only";
  EXPECT_THAT(price.warnings, Contains(HasSubstr("no row for 8 x H100 in asia-east1-c")));
}

TEST_F(Catalogue, LambdaHasNoSpot) {
  const MachinePrices found = prices(lambda, "gpu_8x_x100", "", 8, "NVIDIA X100");
  EXPECT_DOUBLE_EQ(*offer(found, Basis::on_demand).usd, 6.32);
  EXPECT_THAT(offer(found, Basis::on_demand).warnings, IsEmpty()) << "all regions cost the same";
  EXPECT_FALSE(has(found, Basis::spot));
}

TEST_F(Catalogue, NebiusIsWrittenInWholeNumbers) {
  const MachinePrices found = prices(nebius, "gpu-x100_8gpu-128vcpu-1600gb", "eu-north1", 8, "NVIDIA X100");
  EXPECT_DOUBLE_EQ(*offer(found, Basis::on_demand).usd, 23.6);
  EXPECT_DOUBLE_EQ(*offer(found, Basis::spot).usd, 10);
}

TEST_F(Catalogue, ZeroAndNegativeArePlaceholdersToo) {
  const std::string text =
      "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\nfree,,,0.0,-1,r1\nmixed,,,0,,r1\nmixed,,,"
      "2.5,,r2\n";
  EXPECT_FALSE(offer(prices(text, "free", "r1"), Basis::on_demand).usd);
  EXPECT_FALSE(offer(prices(text, "free", "r1"), Basis::spot).usd);
  const HourlyPrice mixed = offer(prices(text, "mixed", ""), Basis::on_demand);
  EXPECT_DOUBLE_EQ(*mixed.usd, 2.5);
  EXPECT_THAT(mixed.warnings, Contains(HasSubstr("placeholder 0 instead of a price in some rows: left out")));
}

TEST_F(Catalogue, OrderOfRowsDoesNotMatter) {
  const auto described = [&](const std::string& text, const std::string& type) {
    std::string all;
    for (const HourlyPrice& price : prices(text, type, "", 8, "NVIDIA H100").offers)
      all += fmt::format("{} {} {} {} {}\n", name_of(price.basis), price.usd.value_or(-1), price.region, price.rule,
                         fmt::join(price.warnings, "; "));
    return all;
  };
  for (const auto& [text, type] : {std::pair(aws, "p9.8xlarge"), std::pair(gcp, "a3-highgpu-8g")}) {
    const std::string table = text;
    const std::size_t header = table.find('\n') + 1;
    std::vector<std::string> rows;
    for (std::size_t at = header; at < table.size(); at = table.find('\n', at) + 1)
      rows.push_back(table.substr(at, table.find('\n', at) + 1 - at));
    const std::string expected = described(text, type);
    EXPECT_THAT(expected, Not(HasSubstr(" -1 ")));
    for (int turn = 0; turn < 10; ++turn) {
      std::rotate(rows.begin(), rows.begin() + 1, rows.end());
      if (turn % 3 == 0) std::swap(rows[0], rows[2]);
      std::string turned = table.substr(0, header);
      for (const std::string& row : rows) turned += row;
      EXPECT_EQ(described(turned, type), expected);
    }
  }
}

TEST_F(Catalogue, WithoutADateTheAgeIsUnknown) {
  PriceSource source;
  source.files = {folder_.read("vms.csv", lambda)};
  EXPECT_THAT(prices_of(run_on("gpu_8x_x100", {}), source).offers.front().warnings,
              ElementsAre("the price is for 8 x X100, the run used none", "the price has no date: its age is unknown"));
}

TEST_F(Catalogue, APriceOfAnotherProviderIsNotLostSilently) {
  PriceSource source;
  source.asked = true;
  source.files = {folder_.read("own.csv", "InstanceType,Price,Source,Date,Provider\nbox,40,me,2026-01-01,Amazon\n"),
                  folder_.read("list.csv", "InstanceType,Price,Source,Date,Provider\nbox,55,list,2026-01-01,aws\n")};
  RunData run = run_on("box", {});
  run.run["labels"]["provider"] = "aws";
  const MachinePrices found = prices_of(run, source);
  EXPECT_DOUBLE_EQ(*offer(found, Basis::on_demand).usd, 55);
  EXPECT_THAT(offer(found, Basis::on_demand).warnings,
              Contains("own.csv has a price for box of provider \"Amazon\", not of \"aws\": not used"));
  source.files.pop_back();
  EXPECT_THAT(why_no_price(prices_of(run, source).machine, source), HasSubstr("of provider \"Amazon\""));
  EXPECT_EQ(unused_file(std::span(&run, 1), source), "own.csv has no price for box");
  run.run["labels"]["provider"] = "";
  EXPECT_EQ(unused_file(std::span(&run, 1), source), "");
}

TEST(Prices, GpusOfAKnownInstanceTypeComeFromTheShippedLists) {
  const auto price = [](const std::string& type, const std::string& gpu, std::optional<double> gpus) {
    Price made;
    made.instance_type = type;
    made.accelerator = gpu;
    made.accelerators = gpus;
    return made;
  };
  PriceFile own, list;
  own.prices = {price("P5", "", std::nullopt), price("p5", "H200", 4), price("box", "", std::nullopt)};
  list.prices = {price("p5", "H100", 8)};
  complete_gpus(own, std::vector{list});
  EXPECT_EQ(own.prices[0].accelerator, "H100");
  EXPECT_EQ(own.prices[0].accelerators, 8);
  EXPECT_EQ(own.prices[1].accelerator, "H200");  // the user knows better
  EXPECT_EQ(own.prices[1].accelerators, 4);
  EXPECT_FALSE(own.prices[2].accelerators);
}

TEST_F(Catalogue, HostileStringsArePlainText) {
  const std::string markup = "\x1b[2J<script>alert(1)</script>";
  const std::string text = "InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region\n\"" + markup +
                           "\",\"a,\"\"b\"\"\",1,2.5,,\"r\n1\"\n";
  const MachinePrices found = prices(text, markup, "");
  EXPECT_DOUBLE_EQ(*offer(found, Basis::on_demand).usd, 2.5);
  EXPECT_EQ(offer(found, Basis::on_demand).region, "r\n1");
}

TEST(Csv, QuotesCommasAndLineEnds) {
  const auto rows = parse_csv(
      "\xef\xbb\xbf"
      "a,b\r\n\"x,\"\"y\"\"\nz\",\r\n\n,1",
      "t.csv");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0].fields, ElementsAre("a", "b"));
  EXPECT_THAT(rows[1].fields, ElementsAre("x,\"y\"\nz", ""));
  EXPECT_EQ(rows[1].line, 2);
  EXPECT_THAT(rows[2].fields, ElementsAre("", "1"));
  EXPECT_EQ(rows[2].line, 5);
  EXPECT_THROW(parse_csv("a,\"b", "t.csv"), std::exception);
  EXPECT_THROW(parse_csv("\"a\"b,c", "t.csv"), std::exception);
}

TEST(Files, AllErrorsInATableAreReportedAtOnce) {
  const Folder folder;
  const std::string wrong = folder.refusal("own.csv",
                                           "InstanceType,Price,Source,Date,Currency\nbox,-3,quote,2026-01-01,USD\nbox,,"
                                           "quote,2026-01-01,\nbox,0,quote,2026-01-01,\n"
                                           "box,nan,quote,2026-01-01,\nbox,x,quote,2026-01-01,\nbox,1,,2026-01-01,"
                                           "\nbox,1,quote,2026-13-01,\nbox,1,quote,,EUR\n"
                                           ",1,quote,2026-01-01,\nbox,1,quote\n");
  for (const char* part :
       {"own.csv: line 2: Price: -3 is not above 0", "line 3: Price: is missing", "line 4: Price: 0 is not above 0",
        "line 5: Price: \"nan\"", "line 6: Price: \"x\"", "line 7: Source: is missing",
        "line 8: Date: \"2026-13-01\" is not a date", "line 9: Date: is missing", "line 9: Currency: \"EUR\"",
        "line 10: InstanceType: is empty", "line 11: 3 fields, the header has 5"})
    EXPECT_THAT(wrong, HasSubstr(part));
}

TEST(Files, TablesWithoutARequiredColumnAreRefused) {
  const Folder folder;
  EXPECT_THAT(folder.refusal("a.csv", "InstanceTyp,Price,Source,Date\nx,1,q,2026-01-01\n"),
              HasSubstr("no column \"InstanceType\"; is \"InstanceTyp\" meant?"));
  EXPECT_THAT(folder.refusal("a.csv", "InstanceType,Price\nx,1\n"), HasSubstr("no column \"Source\""));
  EXPECT_THAT(folder.refusal("a.csv", "InstanceType,Price,Source,Date,Regoin\nx,1,q,2026-01-01,r\n"),
              HasSubstr("did you mean \"Region\"?"));
  EXPECT_THAT(folder.refusal("a.csv", "InstanceType,Price,Source,Date\n"), HasSubstr("no row"));
  EXPECT_THAT(folder.refusal("a.csv", "\n\n"), HasSubstr("a.csv"));
  EXPECT_THAT(folder.refusal("a.csv", "InstanceType,AcceleratorName,Price,Currency\nx,,1,EUR\n"),
              HasSubstr("line 2: Currency: \"EUR\""));
  EXPECT_EQ(folder.refusal("a.csv", "InstanceType,vCPUs,AcceleratorName,Price,Source,Date\nx,4,,1,q,2026-01-01\n"), "");
  EXPECT_THAT(folder.refusal("a.csv", "InstanceType,AcceleratorName,Price\nx,,abc\n"),
              HasSubstr("line 2: Price: \"abc\""));
}

TEST(Files, JsonIsRead) {
  const Folder folder;
  const PriceFile file = folder.read("own.json", R"({"schema": 1, "source": "quote", "date": "2026-01-01",
    "prices": [{"instance_type": "box", "price": 12.3}, {"instance_type": "b", "price": 2, "spot_price": [0.5, 1]}],
    "owned": [{"hosts": ["n1"], "capex": 1000, "years": 3, "power_kw": 1, "pue": 1.2, "usd_per_kwh": 0.1}]})");
  ASSERT_EQ(file.prices.size(), 2u);
  EXPECT_EQ(file.prices[1].source, "quote");
  PriceSource source;
  source.files = {file};
  const MachinePrices found = prices_of(run_on("box", {}, "n1"), source);
  EXPECT_DOUBLE_EQ(*offer(found, Basis::on_demand).usd, 12.3);
  EXPECT_TRUE(has(found, Basis::owned));
  EXPECT_FALSE(has(prices_of(run_on("box", {}, "n2"), source), Basis::owned));
}

TEST(Files, AllErrorsInAJsonFileAreReportedAtOnce) {
  const Folder folder;
  const std::string wrong = folder.refusal("own.json", R"({"schema": 1, "prices": [
    {"instance_type": "a", "price": -1, "source": "q", "date": "2026-01-01"},
    {"instance_type": "a", "price": 0, "source": "q", "date": "2026-01-01"},
    {"instance_type": "a", "source": "q", "date": "2026-01-01"},
    {"instance_type": "a", "price": "12", "source": "q", "date": "2026-01-01"},
    {"instance_type": "a", "price": 1, "date": "2026-01-01"},
    {"instance_type": "a", "price": 1, "source": "q", "date": "January"},
    {"instance_type": "a", "price": 1, "source": "q", "date": "2026-01-01", "currency": "EUR"},
    {"instance_typ": "a", "price": 1, "source": "q", "date": "2026-01-01"},
    {"instance_type": "a", "price": 1, "spot_price": [2, 1], "source": "q", "date": "2026-01-01"}],
    "owned": [{"capex": 1, "years": 0, "power_kw": 1, "pue": 0.5, "usd_per_kwh": 1, "source": "q", "date": "2026-01-01"}]})");
  for (const char* part :
       {"/prices/0/price: -1 is not above 0", "/prices/1/price: 0 is not above 0", "/prices/2", "/prices/3/price",
        "/prices/4: has no \"source\"", "/prices/5/date: \"January\" is not a date", "/prices/6/currency: \"EUR\"",
        "did you mean \"instance_type\"?", "/prices/8/spot_price: the lowest", "/owned/0: describes no machine",
        "/owned/0/years", "/owned/0/pue"})
    EXPECT_THAT(wrong, HasSubstr(part));
  EXPECT_THAT(folder.refusal("b.json", R"({"schema": 2})"), HasSubstr("schema 2"));
  EXPECT_THAT(folder.refusal("b.json", R"({"schema": 1})"), HasSubstr("has no price"));
  EXPECT_THAT(folder.refusal("b.json", R"({"schema": 1, "source": "q", "date": "2026-01-01",
      "prices": [{"instance_type": "a", "price": 1}, {"instance_type": "b", "price": 1, "currency": "USD"},
                 {"instance_type": "c", "price": 1, "currency": "GBP"}]})"),
              HasSubstr("/prices/2/currency: \"GBP\": costs are in USD"));
}

TEST(Age, CountsToTheRunsStart) {
  Price price;
  price.instance_type = "box";
  price.on_demand = 1;
  price.source = "q";
  const auto warned = [&](const std::string& date, const std::string& started) {
    price.date = date;
    PriceFile file;
    file.prices = {price};
    PriceSource source;
    source.files = {file};
    RunData run = run_on("box", {});
    run.run["started"] = started;
    return prices_of(run, source).offers.front().warnings;
  };
  EXPECT_THAT(warned("2025-07-14", "2026-01-10T00:00:00Z"), IsEmpty());  // 180 days
  EXPECT_THAT(warned("2025-07-13", "2026-01-10T00:00:00Z"),              // 181
              ElementsAre("price of 2025-07-13: more than 180 days older than the run"));
  EXPECT_THAT(warned("2026-03-01", "2026-01-10T00:00:00Z"), IsEmpty());
  EXPECT_THAT(warned("2025-10-11", ""), ElementsAre(HasSubstr("the run has no start")));
}

TEST(Age, StandsBesideTheDate) {
  const auto run_day = day_of("2026-01-10T00:00:00Z");
  EXPECT_EQ(dated("2025-12-01", age_of("2025-12-01", run_day)), "2025-12-01, 40 days old");
  EXPECT_EQ(dated("2026-01-10", age_of("2026-01-10", run_day)), "2026-01-10, 0 days old");
  EXPECT_EQ(dated("2026-03-01", age_of("2026-03-01", run_day)), "2026-03-01") << "newer than the run";
  EXPECT_EQ(dated("2025-12-01", age_of("2025-12-01", std::nullopt)), "2025-12-01");
  EXPECT_EQ(dated("", age_of("", run_day)), "of unknown date");
}

TEST(Gpus, OfAnotherNameAreAMismatch) {
  const auto warned = [](const std::string& device, const std::string& kind) {
    Price price;
    price.instance_type = "box";
    price.on_demand = 1;
    price.source = "q";
    price.date = "2026-01-01";
    price.accelerator = kind;
    price.accelerators = 1;
    PriceFile file;
    file.prices = {price};
    PriceSource source;
    source.files = {file};
    RunData run = run_on("box", {});
    run.run["started"] = "2026-01-10T00:00:00Z";
    add_gpus(run, 1, device);
    return !prices_of(run, source).offers.front().warnings.empty();
  };
  for (const auto& [device, kind] : {std::pair{"NVIDIA A100-SXM4-80GB", "A100-80GB"},
                                     {"NVIDIA H100 80GB HBM3", "H100-MEGA"},
                                     {"NVIDIA GeForce RTX 4090", "RTX4090"},
                                     {"NVIDIA A10G", "A10G"},
                                     {"NVIDIA RTX 6000 Ada Generation", "RTX6000-Ada"}})
    EXPECT_FALSE(warned(device, kind)) << device << " priced as " << kind;
  for (const auto& [device, kind] : {std::pair{"NVIDIA A100-SXM4-80GB", "A10"},
                                     {"NVIDIA L40S", "L4"},
                                     {"NVIDIA A10G", "A10"},
                                     {"NVIDIA GB200", "B200"}})
    EXPECT_TRUE(warned(device, kind)) << device << " priced as " << kind;
}

TEST(Age, DatesAreDaysOfTheCalendar) {
  EXPECT_EQ(day_of("1970-01-02"), 1);
  EXPECT_EQ(day_of("2024-02-29T12:00:00Z"), 19782);  // 54 years of 365 days, 13 leap days, 59
  EXPECT_FALSE(day_of("2025-02-29"));
  EXPECT_FALSE(day_of("2025-2-3"));
  EXPECT_FALSE(day_of("+025-01-01"));
}

TEST(Providers, AreNotMixed) {
  Price price;
  price.provider = "aws";
  price.instance_type = "box";
  price.on_demand = 1;
  price.source = "q";
  price.date = "2026-01-01";
  PriceFile file;
  file.prices = {price};
  PriceSource source;
  source.files = {file};
  RunData run = run_on("box", {});
  EXPECT_EQ(prices_of(run, source).offers.size(), 1u);
  run.run["labels"]["provider"] = "gcp";
  EXPECT_EQ(prices_of(run, source).offers.size(), 0u);
}

}  // namespace
}  // namespace assay::report

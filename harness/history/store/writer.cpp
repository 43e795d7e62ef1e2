#include "harness/history/store/writer.h"

#include "harness/core/error.h"
#include "harness/history/store/facts.h"
#include "harness/record/content_hash.h"

#include <fmt/format.h>

#include <bit>

namespace assay::store {

namespace {

std::int64_t signed_hash(std::string_view text, std::uint64_t seed = 0) {
  return std::bit_cast<std::int64_t>(hash64(text, seed));
}

// Hashes a whole row, so that damage shows.
std::int64_t hash_of(const RunRow& row, std::string_view held, std::string_view broken, std::string_view points) {
  const std::string head =
      fmt::format("{} {} {} {} {} {}", row.machine, row.facts, row.records, row.finished, row.compacted, row.digest);
  std::uint64_t hash = hash64(head);
  for (const std::string_view part :
       {std::string_view(row.name), std::string_view(row.started), std::string_view(row.hardware),
        std::string_view(row.commit), std::string_view(row.branch), held, broken, points})
    hash = hash64(part, hash);
  return std::bit_cast<std::int64_t>(hash);
}

}  // namespace

RunRow run_row(const Statement& statement) {
  RunRow row;
  statement.read(0, row.id, row.name, row.started, row.machine, row.facts, row.hardware, row.commit, row.branch,
                 row.records, row.finished, row.compacted, row.digest);
  if (hash_of(row, statement.bytes(13), statement.bytes(14), statement.bytes(15)) != statement.integer(12))
    throw Error(fmt::format("run {} is not as it was written", row.id));
  row.held = unpack_cases(statement.bytes(13));
  row.broken = unpack_broken(statement.bytes(14));
  unpack_points(statement.bytes(15), row.points);
  return row;
}

std::int64_t Writer::machine(const std::string& name) {
  return id_of(machines_, name, find_machine_, add_machine_, std::tie(name));
}

std::int64_t Writer::benchmark(const std::string& key) {
  return id_of(benchmarks_, key, find_benchmark_, add_benchmark_, std::tie(key));
}

std::int64_t Writer::facts(const std::string& text) {
  return id_of(facts_, text, find_facts_, add_facts_, std::make_tuple(signed_hash(text), std::string_view(text)));
}

std::int64_t Writer::series(const SeriesIdentity& one, const std::string& name, const std::string& title) {
  return id_of(
      series_, name, find_series_, add_series_,
      std::make_tuple(machine(one.machine), benchmark(one.key), std::string_view(one.device), std::int64_t{one.ranks},
                      std::int64_t{one.nodes}, std::string_view(one.conditions), std::string_view(one.metric),
                      std::string_view(one.unit), std::int64_t{one.better == Better::higher},
                      std::string_view(one.protocol), std::string_view(one.family)),
      title);
}

RunRow Writer::row_of(const RunFigures& run) {
  RunRow row;
  row.name = run.name;
  row.started = run.started;
  row.machine = machine(run.machine);
  row.facts = facts(text_of(run.facts));
  row.hardware = run.hardware;
  row.commit = run.commit;
  row.branch = run.branch;
  row.records = run.records;
  row.finished = run.finished ? 1 : 0;
  row.digest = digest_of(run);
  for (const std::string& key : run.held) row.held.push_back(benchmark(key));
  for (const auto& [key, why] : run.broken) row.broken.push_back({benchmark(key), why});
  for (const Figure& figure : run.figures)
    row.points.push_back({series(figure.identity, figure.name, figure.title), figure.log, figure.within,
                          facts(figure.choices), figure.disturbed, false});
  return row;
}

RunRow Writer::version_of(const std::string& name) {
  RunRow row;
  if (!find_run_.with(name).row()) return row;
  find_run_.read(0, row.id, row.started, row.records, row.finished, row.compacted, row.digest);
  find_run_.with(name);  // done with the row: nothing stays open when the transaction ends
  return row;
}

void Writer::put(const RunRow& row) {
  const std::string held = pack_cases(row.held), broken = pack_broken(row.broken), points = pack_points(row.points);
  const auto blob = [](const std::string& bytes) { return Statement::Blob{bytes}; };
  put_run_.run(row.id, row.name, row.started, row.machine, row.facts, row.hardware, row.commit, row.branch, row.records,
               row.finished, row.compacted, row.digest, hash_of(row, held, broken, points), blob(held), blob(broken),
               blob(points));
  changed_.run();
  covered_.with().row();
  const std::int64_t covered = covered_.integer(0);
  covered_.with();
  if (row.id != 0 || history::night_of(row.started).value_or(0) <= covered) revised_.run();
}

}  // namespace assay::store

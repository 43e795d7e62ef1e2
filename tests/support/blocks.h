// Finds tables, figures and cells in a report's sections.
#pragma once

#include "reports/model/document.h"

#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace assay::test {

// The block of this type and id; null if there is none.
template <typename T>
const T* find_block(const report::Section& section, const std::string& id) {
  for (const report::Block& block : section.blocks)
    if (const T* found = std::get_if<T>(&block); found && found->id == id) return found;
  return nullptr;
}
template <typename T>
const T* find_block(const std::vector<report::Section>& sections, const std::string& id) {
  for (const report::Section& section : sections)
    if (const T* found = find_block<T>(section, id)) return found;
  return nullptr;
}

// Throws std::out_of_range.
inline const report::Table& table_of(const std::vector<report::Section>& sections, const std::string& id) {
  if (const auto* table = find_block<report::Table>(sections, id)) return *table;
  throw std::out_of_range("no table " + id);
}

inline const report::Cell& cell(const report::Table& table, std::size_t row, const std::string& column) {
  for (std::size_t c = 0; c < table.columns.size(); ++c)
    if (table.columns[c].id == column) return table.rows.at(row).at(c);
  throw std::out_of_range("no column " + column);
}

}  // namespace assay::test

// The printed tables.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fabricheck {

struct Column {
  std::string title;
  bool right;  ///< texts end at the right side of the column, as numbers do
};
inline Column left(const std::string& title) { return {title, false}; }
inline Column right(const std::string& title) { return {title, true}; }

struct Table {
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows{};  ///< each with a text for every column
};

/// Prints the titles of the columns, then a line for each row; columns are as wide as their texts.
void print_table(const Table& table, std::FILE* out);

/// Prints one line per series of a result document, units and bytes convention in the header.
void print_series(const nlohmann::json& document, std::FILE* out);

/// How a kernel differs from the default one (elements a thread, loads, grid); empty if it does
/// not.
std::string variant_of(const nlohmann::json& series);

/// A number in a format of printf, as "%.4g".
std::string formatted(const char* format, double value);

/// A whole number, "-" if there is none.
std::string number_or_dash(const nlohmann::json& value);

/// Numbers of a JSON array in short, "0-3,8"; "none" where there are none.
std::string spans_of(const nlohmann::json& numbers);

}  // namespace fabricheck

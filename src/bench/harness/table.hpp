// The table for people.
#pragma once

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fabricheck {

/// Prints one line per series of a result document, units and bytes convention in the header.
void print_table(const nlohmann::json& document, std::FILE* out);

/// Medians of one operation over two kinds of places.
struct Matrix {
  std::string title;
  std::set<int> rows, columns;
  std::map<std::pair<int, int>, std::string> cells;  ///< by row and column; none is a dash
};

/// The median of a series, marked where it is noisy (~) or holds wrong data (!).
std::string cell_of(const nlohmann::json& series);

/// The matrix of a title, a new one where there is none yet.
Matrix& matrix_of(std::vector<Matrix>& matrices, const std::string& title);

/// Numbers of a JSON array in short, "0-3,8"; "none" where there are none.
std::string spans_of(const nlohmann::json& numbers);

/// Prints matrices below a line that says what the document is; nothing when there is none.
void print_matrices(const nlohmann::json& document, const std::vector<Matrix>& matrices,
                    std::FILE* out);

}  // namespace fabricheck

// The printed tables.
#pragma once

#include <cstdio>
#include <map>
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

/// Medians of one operation over two kinds of places, or of several operations over one kind.
struct Matrix {
  std::string title;
  std::map<int, std::map<int, std::string>> rows;  ///< by row and column; an empty one is a dash
  std::map<int, std::string> names;                ///< of the rows; empty where numbers name them
};

/// The median of a series, marked where it is noisy (~) or holds wrong data (!).
std::string cell_of(const nlohmann::json& series);

/// Whether the data of a series is right: "verified", or the number of wrong words.
std::string data_of(const nlohmann::json& series);
/// How a kernel differs from the default one (elements a thread, loads, grid); empty if it does
/// not.
std::string variant_of(const nlohmann::json& series);

/// A number in a format of printf, as "%.4g".
std::string formatted(const char* format, double value);

/// A whole number, "-" if there is none.
std::string number_or_dash(const nlohmann::json& value);

/// The matrix of a title; a new one if there is none yet.
Matrix& matrix_of(std::vector<Matrix>& matrices, const std::string& title);

/// Numbers of a JSON array in short, "0-3,8"; "none" where there are none.
std::string spans_of(const nlohmann::json& numbers);

/// Prints a matrix below its title and an empty line.
void print_matrix(const Matrix& matrix, std::FILE* out);

/// Prints matrices below a line that describes the document; nothing when there are none.
void print_matrices(const nlohmann::json& document, const std::vector<Matrix>& matrices,
                    std::FILE* out);

}  // namespace fabricheck

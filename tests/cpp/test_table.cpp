#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "harness/table.hpp"

using namespace fabricheck;

namespace {

std::string printed(const std::function<void(std::FILE*)>& print) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  print(out);
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

}  // namespace

TEST_CASE("columns of a table are as wide as their texts") {
  Table table{{right("n"), left("memory"), right("GB/s"), left("data")}};
  const auto print = [&table](std::FILE* out) { print_table(table, out); };
  CHECK(printed(print) == "n memory GB/s data\n");
  table.rows = {{"7", "host-pinned", "9.5", ""}, {"1009", "device", "28.27", "3 WRONG"}};
  CHECK(printed(print) ==
        "   n memory       GB/s data\n"
        "   7 host-pinned   9.5\n"
        "1009 device      28.27 3 WRONG\n");
}

TEST_CASE("a kernel is told where it is not the default one") {
  nlohmann::json series{{"elements", 1}, {"loads", "plain"}, {"grid", nullptr}};
  CHECK(variant_of(series).empty());
  CHECK(variant_of({{"elements", nullptr}, {"loads", nullptr}, {"grid", nullptr}}).empty());
  series = {{"elements", 4}, {"loads", "streaming"}, {"grid", 8}};
  CHECK(variant_of(series) == "4 elements a thread, streaming loads, 8 blocks");
}

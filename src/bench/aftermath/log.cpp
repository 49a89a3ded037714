#include "aftermath/log.hpp"

#include <fcntl.h>
#include <regex.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "aftermath/lines.hpp"
#include "harness/device_reading.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr std::size_t kMostLines = 50;     ///< of one kind: a broken device logs thousands
constexpr std::size_t kLongestText = 300;  ///< bytes of a line

constexpr unsigned kPriorities = 8;  ///< of a record, below its facility
constexpr unsigned kError = 3;       ///< the priority of an error; lower ones are worse

/// By POSIX with GNU's \b, \s and \S: std::regex takes ten times as long to compile.
class Pattern {
 public:
  explicit Pattern(const char* text) {
    if (regcomp(&compiled_, text, REG_EXTENDED) != 0) {
      throw std::logic_error(std::string("no pattern: ") + text);
    }
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  ~Pattern() { regfree(&compiled_); }

  /// Whether the text has it; `parts` get the places of the whole and of its groups.
  bool find(const char* text, std::size_t count = 0, regmatch_t* parts = nullptr) const {
    return regexec(&compiled_, text, count, parts, 0) == 0;
  }

 private:
  regex_t compiled_;
};

/// A row of the table of lines (src/fabricheck/core/log_lines.json).
class Row {
 public:
  explicit Row(const json& row)
      : pattern_(row["pattern"].get<std::string>().c_str()),
        name_(row["name"]),
        kind_(row["kind"]),
        kind_of_accelerator_(row.value("of_accelerator", kind_)) {
    const auto registers = row.value("registers", json::object());
    for (const auto& [number, bits] : registers.items()) {
      std::uint64_t mask = 0;
      for (const auto& bit : bits) {
        mask |= std::uint64_t{1} << bit.get<int>();
      }
      masks_.emplace_back(std::stoul(number), mask);
    }
  }

  /// Whether a line has the pattern and, where the row names bits of registers, one of these.
  [[nodiscard]] bool matches(const std::string& line) const {
    if (!pattern_.find(line.c_str())) {
      return false;
    }
    if (masks_.empty()) {
      return true;
    }
    const auto registers = registers_in(line);
    return std::any_of(masks_.begin(), masks_.end(), [&registers](const auto& mask) {
      return mask.first <= registers.size() && (registers[mask.first - 1] & mask.second) != 0;
    });
  }
  [[nodiscard]] const std::string& name() const { return name_; }
  /// What the line says of a device, where it names an accelerator or not.
  [[nodiscard]] const std::string& kind(bool of_accelerator) const {
    return of_accelerator ? kind_of_accelerator_ : kind_;
  }

 private:
  /// The registers in a line, as in "link 4(0x100000, 0x0, 0x0)".
  static std::vector<std::uint64_t> registers_in(const std::string& line) {
    std::vector<std::uint64_t> values;
    const char* next = std::strstr(line.c_str(), "(0x");
    while (next != nullptr) {
      char* end = nullptr;
      values.push_back(std::strtoull(next + 1, &end, 16));
      next = *end == ',' ? end : nullptr;
    }
    return values;
  }

  Pattern pattern_;
  std::string name_;
  std::string kind_;
  std::string kind_of_accelerator_;
  /// The bits that count of each register that the row names, by its number from 1.
  std::vector<std::pair<std::size_t, std::uint64_t>> masks_;
};

/// The rows of one kind of log, "kernel" or "runtime".
class Rows {
 public:
  explicit Rows(const char* log) {
    const auto table = json::parse(kLogLines);
    for (const auto& row : table[log]) {
      rows_.emplace_back(row);
    }
  }

  /// The first row that a line matches; null if there is none.
  [[nodiscard]] const Row* find(const std::string& line) const {
    const auto row = std::find_if(rows_.begin(), rows_.end(),
                                  [&line](const Row& each) { return each.matches(line); });
    return row == rows_.end() ? nullptr : &*row;
  }

 private:
  std::list<Row> rows_;
};

/// The PCI addresses in a line, with their function; NVIDIA's driver leaves it out.
std::vector<std::string> addresses_in(const std::string& line) {
  static const Pattern address(R"(([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?)");
  std::vector<std::string> functions;
  regmatch_t part[3];
  for (const char* rest = line.c_str(); address.find(rest, 3, part); rest += part[0].rm_eo) {
    const auto text = [&](const regmatch_t& match) {
      return std::string(rest + match.rm_so, rest + match.rm_eo);
    };
    functions.push_back(text(part[1]) + (part[2].rm_so < 0 ? ".0" : text(part[2])));
  }
  return functions;
}

/// The lines of a log, at most so many of a kind.
class Lines {
 public:
  /// `row`: the name of the line's row in the table; empty if it has none.
  void add(const std::string& kind, const std::string& row,
           const std::optional<std::string>& address, const std::string& text) {
    auto& number = kind == log_kind::hardware ? hardware_ : others_;
    if (++number > kMostLines) {
      return;
    }
    json line{{"kind", kind},
              {"pci_address", address ? json(*address) : json(nullptr)},
              {"text", text.substr(0, kLongestText)}};
    if (!row.empty()) {
      line["row"] = row;
    }
    lines_.push_back(line);
  }
  [[nodiscard]] const json& json_lines() const { return lines_; }

 private:
  json lines_ = json::array();
  std::size_t hardware_ = 0;
  std::size_t others_ = 0;
};

/// The PCI address of a node of KFD; empty if /sys does not tell it.
std::optional<std::string> kfd_node_address(const std::string& sys, int node) {
  const auto text =
      file_text(sys + "/class/kfd/kfd/topology/nodes/" + std::to_string(node) + "/properties");
  std::istringstream properties(text.value_or(""));
  std::string name;
  unsigned long long value = 0;
  std::optional<unsigned long long> place;
  unsigned long long domain = 0;
  while (properties >> name >> value) {
    if (name == "location_id") {
      place = value;
    } else if (name == "domain") {
      domain = value;
    }
  }
  if (!place) {
    return std::nullopt;
  }
  char address[32];
  std::snprintf(address, sizeof address, "%04llx:%02llx:%02llx.%llx", domain, *place >> 8,
                *place >> 3 & 0x1f, *place & 7);
  return address;
}

}  // namespace

std::optional<std::string> kernel_records(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) {
    return std::nullopt;
  }
  std::string records;
  std::array<char, 16384> record{};
  for (;;) {
    const auto got = read(file, record.data(), record.size());
    if (got > 0) {
      records.append(record.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EPIPE) {  // EPIPE: newer records took the place of the next
      break;
    }
  }
  (void)close(file);
  return records;
}

std::int64_t last_record_us(const std::string& records) {
  std::int64_t last = -1;
  std::istringstream all(records);
  for (std::string record; std::getline(all, record);) {
    long long at = 0;
    if (std::sscanf(record.c_str(), "%*u,%*u,%lld,", &at) == 1) {
      last = std::max<std::int64_t>(last, at);
    }
  }
  return last;
}

json kernel_log(const std::string& records, std::int64_t since_us,
                const std::vector<std::string>& functions) {
  static const Rows rows("kernel");
  Lines lines;
  std::istringstream all(records);
  for (std::string record; std::getline(all, record);) {
    // "priority,number,microseconds,flags;text"; what belongs to it follows after a blank.
    unsigned priority = 0;
    long long at = 0;
    const auto text = record.find(';');
    if (text == std::string::npos ||
        std::sscanf(record.c_str(), "%u,%*u,%lld,", &priority, &at) != 2 || at < since_us) {
      continue;
    }
    const auto line = record.substr(text + 1);
    const auto named = addresses_in(line);
    const auto accelerator =
        std::find_if(named.begin(), named.end(), [&functions](const auto& address) {
          return std::find(functions.begin(), functions.end(), address) != functions.end();
        });
    const bool of_accelerator = accelerator != named.end();
    const auto shown = of_accelerator || named.empty() ? accelerator : named.begin();
    const auto address = shown == named.end() ? std::nullopt : std::optional(*shown);
    if (const auto* row = rows.find(line)) {
      lines.add(row->kind(of_accelerator), row->name(), address, line);
    } else if (of_accelerator && priority % kPriorities <= kError) {
      lines.add(log_kind::unclear, "", address, line);
    }
  }
  return lines.json_lines();
}

json runtime_log(const std::string& text, const std::string& sys) {
  static const Rows rows("runtime");
  Lines lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    const auto at = line.find(" by GPU node-");
    if (at == std::string::npos) {
      continue;
    }
    if (const auto* row = rows.find(line)) {
      const auto address = kfd_node_address(sys, std::atoi(line.c_str() + at + 13));
      lines.add(row->kind(false), row->name(), address, line);
    }
  }
  return lines.json_lines();
}

}  // namespace fabricheck

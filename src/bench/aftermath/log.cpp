#include "aftermath/log.hpp"

#include <regex.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "harness/device_reading.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

constexpr std::size_t kMostLines = 50;     ///< of one kind: a broken device logs thousands
constexpr std::size_t kLongestText = 300;  ///< bytes of a line

/// Lists live as long as the program, because a regex_t does not free what it holds.
using Patterns = std::vector<std::pair<regex_t, const char*>>;

/// By POSIX with GNU's \b, \s and \S: std::regex takes ten times as long to compile.
regex_t pattern_of(const char* text) {
  regex_t pattern;
  if (regcomp(&pattern, text, REG_EXTENDED) != 0) {
    throw std::logic_error(std::string("no pattern: ") + text);
  }
  return pattern;
}

/// The first that is found in a line decides.
const Patterns& kernel_patterns() {
  static const auto& all = *new Patterns([] {
    Patterns patterns;
    for (
        const auto& [text, kind] : {
            std::pair(R"(NVRM: Xid \([^)]*\): (48|64|74|79|94|95|140|171|172)\b)",
                      log_kind::hardware),
            std::pair(R"(NVRM: .*has fallen off the bus)", log_kind::hardware),
            std::pair(R"(NVRM: Xid )", log_kind::unclear),
            // A mere query of the counters logs totals, without "new", and their being zero.
            std::pair(R"(amdgpu.* [1-9][0-9]* new uncorrectable hardware errors? detected)",
                      log_kind::hardware),
            std::pair(R"(amdgpu.*(poison is consumed|RAS poison consumption))", log_kind::hardware),
            std::pair(R"(amdgpu.*ncorrectable hardware error ?\()", log_kind::hardware),
            std::pair(R"(amdgpu.*device lost from bus)", log_kind::hardware),
            std::pair(
                R"(amdgpu.*(page fault|ring \S+ timeout|GPU reset|[Rr]eset\b.*(begin|succe|fail)))",
                log_kind::unclear),
            std::pair(R"(amdgpu.* [1-9][0-9]* uncorrectable hardware errors? detected)",
                      log_kind::unclear),
            std::pair(R"(nvidia-nvswitch[0-9]+: SXid .*\bFatal)", log_kind::hardware),
            std::pair(
                R"(\[Hardware Error\].*(Machine Check Exception|Uncorrected( error|,)|System Fatal error))",
                log_kind::hardware),
            std::pair(R"(\[Hardware Error\].*event severity: fatal)", log_kind::hardware),
            std::pair(R"(\[Hardware Error\].*event severity: recoverable)", log_kind::unclear),
            std::pair(R"(EDAC \S+: [1-9][0-9]* UE\b)", log_kind::hardware),
            std::pair(R"((AER|PCIe Bus Error): .*Uncorrect(ed|able) \(Fatal\))", log_kind::unclear),
        }) {
      patterns.emplace_back(pattern_of(text), kind);
    }
    return patterns;
  }());
  return all;
}

/// Of ROCr, verified in its handlers of exceptions and of memory faults.
const Patterns& runtime_patterns() {
  static const auto& all = *new Patterns([] {
    Patterns patterns;
    for (const auto& [text, kind] : {
             std::pair(R"(HW Exception by GPU node-[0-9]+ .*reason ?:\s*ECC)", log_kind::hardware),
             std::pair(R"(Memory access fault by GPU node-[0-9]+ .*Reason: [DS]RAM ECC failure)",
                       log_kind::hardware),
             std::pair(R"((HW Exception|Memory access fault) by GPU node-[0-9]+)",
                       log_kind::unclear),
         }) {
      patterns.emplace_back(pattern_of(text), kind);
    }
    return patterns;
  }());
  return all;
}

const char* kind_of(const std::string& line, const Patterns& patterns) {
  for (const auto& [pattern, kind] : patterns) {
    if (regexec(&pattern, line.c_str(), 0, nullptr, 0) == 0) {
      return kind;
    }
  }
  return nullptr;
}

/// The PCI addresses in a line, with their function; NVIDIA's driver leaves it out.
std::vector<std::string> addresses_in(const std::string& line) {
  static const regex_t address = pattern_of(R"(([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})(\.[0-7])?)");
  std::vector<std::string> found;
  regmatch_t part[3];
  for (const char* rest = line.c_str(); regexec(&address, rest, 3, part, 0) == 0;
       rest += part[0].rm_eo) {
    const auto text = [&](const regmatch_t& one) {
      return std::string(rest + one.rm_so, rest + one.rm_eo);
    };
    found.push_back(text(part[1]) + (part[2].rm_so < 0 ? ".0" : text(part[2])));
  }
  return found;
}

/// The lines of a log, at most so many of a kind.
class Lines {
 public:
  void add(const char* kind, const std::optional<std::string>& address, const std::string& text) {
    auto& number = std::string(kind) == log_kind::hardware ? hardware_ : others_;
    if (++number <= kMostLines) {
      lines_.push_back({{"kind", kind},
                        {"pci_address", address ? json(*address) : json(nullptr)},
                        {"text", text.substr(0, kLongestText)}});
    }
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

json kernel_log(const std::string& records, std::int64_t since_us,
                const std::vector<std::string>& functions) {
  Lines lines;
  std::istringstream all(records);
  for (std::string record; std::getline(all, record);) {
    // "priority,number,microseconds,flags;text"; what belongs to it follows after a blank.
    long long at = 0;
    const auto text = record.find(';');
    if (text == std::string::npos || std::sscanf(record.c_str(), "%*u,%*u,%lld,", &at) != 1 ||
        at < since_us) {
      continue;
    }
    const auto line = record.substr(text + 1);
    const auto* kind = kind_of(line, kernel_patterns());
    if (kind == nullptr) {
      continue;
    }
    const auto named = addresses_in(line);
    const auto own = std::find_if(named.begin(), named.end(), [&functions](const auto& one) {
      return std::find(functions.begin(), functions.end(), one) != functions.end();
    });
    if (own != named.end() && line.find("(Fatal)") != std::string::npos) {
      kind = log_kind::hardware;
    }
    const auto shown = own != named.end() || named.empty() ? own : named.begin();
    lines.add(kind, shown == named.end() ? std::nullopt : std::optional(*shown), line);
  }
  return lines.json_lines();
}

json runtime_log(const std::string& text, const std::string& sys) {
  Lines lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    const auto at = line.find(" by GPU node-");
    if (at == std::string::npos) {
      continue;
    }
    if (const auto* kind = kind_of(line, runtime_patterns())) {
      lines.add(kind, kfd_node_address(sys, std::atoi(line.c_str() + at + 13)), line);
    }
  }
  return lines.json_lines();
}

}  // namespace fabricheck

#include "harness/device_reading.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <sstream>
#include <utility>

#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

using nlohmann::json;

const Reading::Members& state_members() {
  static const Reading::Members all{
      {"clock_mhz", nullptr},
      {"clock_max_mhz", nullptr},
      {"memory_clock_mhz", nullptr},
      {"memory_clock_max_mhz", nullptr},
      {"temperature_c", nullptr},
      {"memory_temperature_c", nullptr},
      {"power_w", nullptr},
      {"power_cap_w", nullptr},
      {"power_cap_default_w", nullptr},
      {"busy_percent", nullptr},
      {"throttle", nullptr},
      {"throttled_s",
       {{throttle::power, nullptr}, {throttle::thermal, nullptr}, {throttle::hardware, nullptr}}},
      {"energy_j", nullptr},
      {"memory_errors", {{"corrected", nullptr}, {"uncorrected", nullptr}}},
      {"pcie",
       {{"width", nullptr},
        {"width_max", nullptr},
        {"width_max_port", nullptr},
        {"gt_per_s", nullptr},
        {"gt_per_s_max", nullptr},
        {"replays", nullptr}}},
      {"links", nullptr},
      {"link_errors", nullptr},
      {"vbios", nullptr},
      {"firmware", nullptr},
      {"compute_partition", nullptr},
      {"memory_partition", nullptr},
      {"ecc", nullptr},
      {"processes", nullptr}};
  return all;
}

/// "pair 0-1", "devices 0, 2"; of very many the first ones.
std::string named(const std::string& noun, const std::vector<std::string>& names) {
  constexpr std::size_t most = 16;
  auto text = noun + (names.size() == 1 ? " " : "s ");
  for (std::size_t i = 0; i < names.size() && i < most; ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() <= most ? text
                              : text + " and " + std::to_string(names.size() - most) + " more";
}

}  // namespace

void LinkReading::up() { ++number_; }

void LinkReading::down(unsigned link) {
  ++number_;
  down_.push_back(link);
}

bool LinkReading::is_down(unsigned link) const {
  return std::find(down_.begin(), down_.end(), link) != down_.end();
}

void LinkReading::set_speed(std::optional<std::uint64_t> width, std::optional<double> gb_per_s) {
  width_ = width;
  gb_per_s_ = gb_per_s;
}

nlohmann::json LinkReading::json() const {
  const bool any_up = down_.size() < number_;
  return {{"number", number_},
          {"down", down_},
          {"width", any_up && width_ ? nlohmann::json(*width_) : nlohmann::json()},
          {"gb_per_s", any_up && gb_per_s_ ? nlohmann::json(*gb_per_s_) : nlohmann::json()}};
}

void LinkErrors::add(const char* kind, const std::string& link, std::uint64_t count) {
  auto& links = kinds_[kind];
  if (links.is_null()) {
    links = nlohmann::json::object();
  }
  if (count > 0) {
    links[link] = count;
  }
}

Reading::Reading(const Members& members) : members_(members) {
  for (const auto& [name, parts] : members_) {
    values_[name] = nullptr;
  }
}

void Reading::set(const std::string& item, json value, const std::string& source) {
  const auto dot = item.find('.');
  const auto name = item.substr(0, dot);
  if (dot == std::string::npos) {
    values_.at(name) = std::move(value);
  } else {
    if (values_.at(name).is_null()) {
      values_[name] = members_.at(name);
    }
    values_[name].at(item.substr(dot + 1)) = std::move(value);
  }
  sources_[item] = source;
  absent_.erase(item);
}

void Reading::lack(const std::string& item, const std::string& why) { absent_.emplace(item, why); }

void Reading::explain_rest(const std::string& why) {
  if (absent_.count("") > 0) {
    return;
  }
  for (const auto& [name, parts] : members_) {
    if (values_[name].is_null() && parts.is_null() && sources_.count(name) == 0) {
      lack(name, why);
    }
    for (const auto& part : parts.items()) {
      const bool unknown = values_[name].is_null() || values_[name][part.key()].is_null();
      if (unknown && absent_.count(name) == 0) {
        lack(name + "." + part.key(), why);
      }
    }
  }
}

DeviceReading::DeviceReading() : Reading(state_members()) {}

void DeviceReading::list(std::vector<DriverProcess> processes, const std::string& source,
                         bool of_host) {
  processes_ = std::move(processes);
  processes_of_host_ = of_host;
  sources_["processes"] = source;
}

void DeviceReading::set_link_errors(const LinkErrors& errors, const std::string& source) {
  if (errors.empty()) {
    return;
  }
  auto all = values().at("link_errors");
  auto sources = source;
  if (all.is_null()) {
    all = json::object();
  } else {
    sources = sources_.at("link_errors") + ", " + source;
  }
  all.update(errors.json());
  set("link_errors", all, sources);
}

void Provenance::add(const Reading& reading, const std::string& name) {
  for (const auto& [item, why] : reading.absent()) {
    lack(item, why, name);
  }
  for (const auto& [item, source] : reading.sources()) {
    sources_[item].insert(source);
  }
}

void Provenance::lack(const std::string& item, const std::string& why, const std::string& name) {
  reasons_[item][why].push_back(name);
}

void Provenance::write(std::size_t count, json& absent, json& sources) const {
  for (const auto& [item, reasons] : reasons_) {
    std::string text;
    for (const auto& [why, names] : reasons) {
      text += text.empty() ? "" : "; ";
      text += names.size() < count ? named(noun_, names) + ": " + why : why;
    }
    absent.push_back({{"item", item.empty() ? items_ : items_ + "." + item}, {"why", text}});
  }
  for (const auto& [item, names] : sources_) {
    std::string text;
    for (const auto& name : names) {
      text += (text.empty() ? "" : ", ") + name;
    }
    sources[items_ + "." + item] = text;
  }
}

std::optional<std::string> file_bytes(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return std::nullopt;
  }
  std::string text;
  std::array<char, 4096> block{};
  ssize_t got = 0;
  while ((got = read(file, block.data(), block.size())) > 0) {
    text.append(block.data(), static_cast<std::size_t>(got));
  }
  (void)close(file);
  if (got < 0) {
    return std::nullopt;  // a driver may refuse to say it
  }
  return text;
}

std::optional<std::string> file_text(const std::string& path) {
  auto text = file_bytes(path);
  if (text) {
    text->erase(text->find_last_not_of(" \t\r\n") + 1);
  }
  return text;
}

std::string device_folder(const std::string& sys, const std::string& pci_address) {
  auto name = pci_address;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return sys + "/bus/pci/devices/" + name;
}

std::vector<int> cores_in(const std::string& list) {
  std::vector<int> cores;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0;
    int last = 0;
    const int read = std::sscanf(part.c_str(), "%d-%d", &first, &last);
    for (int core = first; read > 0 && core <= (read == 2 ? last : first); ++core) {
      cores.push_back(core);
    }
  }
  return cores;
}

}  // namespace fabricheck

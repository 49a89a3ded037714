#include "harness/nics.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "harness/device_reading.hpp"
#include "harness/vocabulary.hpp"

namespace fabricheck {
namespace {

namespace fs = std::filesystem;

/// The names in a folder, in order; none if it cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path folder_of(const Nic& nic, const NicRoots& roots) {
  const fs::path classes = roots.sys + "/class";
  switch (nic.kind) {
    case Nic::Kind::cxi:
      return classes / "cxi" / nic.name;
    case Nic::Kind::infiniband:
      return classes / "infiniband" / nic.name / "ports" / "1";
    default:
      return classes / "net" / nic.name;
  }
}

/// A counter; telemetry of CXI has the time behind it, as 1234@5678.9.
std::optional<std::uint64_t> counter(const fs::path& file) {
  const auto text = file_text(file);
  unsigned long long value = 0;
  if (!text || std::sscanf(text->c_str(), "%llu", &value) != 1) {
    return std::nullopt;
  }
  return value;
}

/// The interface of the kernel's stack on the card of a NIC, and its address.
void add_interface(Nic& nic, const NicRoots& roots) {
  const fs::path classes = roots.sys + "/class";
  const auto* folder = nic.kind == Nic::Kind::cxi ? "cxi" : "infiniband";
  for (const auto& name : names_in(classes / folder / nic.name / "device" / "net")) {
    nic.interface = name;
    nic.address = file_text(classes / "net" / name / "address").value_or("");
    return;
  }
}

const char* sent_counter(Nic::Kind kind) {
  switch (kind) {
    case Nic::Kind::cxi:
      return nic_counter::cxi_sent;
    case Nic::Kind::infiniband:
      return nic_counter::ib_sent;
    default:
      return nic_counter::net_sent;
  }
}

std::vector<const char*> error_counters(Nic::Kind kind) {
  const auto listed = [](const auto& names) {
    return std::vector<const char*>(names.begin(), names.end());
  };
  switch (kind) {
    case Nic::Kind::cxi:
      return listed(nic_counter::cxi_errors);
    case Nic::Kind::infiniband:
      return listed(nic_counter::ib_errors);
    default:
      return listed(nic_counter::net_errors);
  }
}

}  // namespace

std::vector<Nic> nics(const NicRoots& roots) {
  std::vector<Nic> nics;
  for (const auto& [kind, folder] :
       {std::pair(Nic::Kind::cxi, "cxi"), std::pair(Nic::Kind::infiniband, "infiniband")}) {
    for (const auto& name : names_in(roots.sys + "/class/" + folder)) {
      nics.push_back({kind, name, "", ""});
      add_interface(nics.back(), roots);
    }
  }
  for (const auto& name : names_in(roots.sys + "/class/net")) {
    nics.push_back({Nic::Kind::net, name, name,
                    file_text(roots.sys + "/class/net/" + name + "/address").value_or("")});
  }
  return nics;
}

std::map<std::string, std::uint64_t> sent_bytes(const std::vector<Nic>& nics,
                                                const NicRoots& roots) {
  std::map<std::string, std::uint64_t> sent;
  for (const auto& nic : nics) {
    if (const auto count = counter(folder_of(nic, roots) / sent_counter(nic.kind))) {
      // InfiniBand counts words of four bytes.
      sent[nic.name] = nic.kind == Nic::Kind::infiniband ? 4 * *count : *count;
    }
  }
  return sent;
}

std::map<std::string, std::map<std::string, std::uint64_t>> nic_errors(const std::vector<Nic>& nics,
                                                                       const NicRoots& roots) {
  std::map<std::string, std::map<std::string, std::uint64_t>> errors;
  for (const auto& nic : nics) {
    for (const auto* name : error_counters(nic.kind)) {
      if (const auto count = counter(folder_of(nic, roots) / name)) {
        errors[nic.name][name] = *count;
      }
    }
  }
  return errors;
}

std::string open_provider(const NicRoots& roots) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(roots.proc + "/self/fd", none)) {
    const auto target = fs::read_symlink(entry.path(), none).string();
    if (target.rfind("/dev/cxi", 0) == 0) {
      return "cxi";
    }
    if (target.rfind("/dev/infiniband/uverbs", 0) == 0) {
      return "verbs";
    }
  }
  return "";
}

}  // namespace fabricheck

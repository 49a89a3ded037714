#include "harness/container.hpp"

#include <array>
#include <cstdlib>

namespace fabricheck {
namespace {

/// The signs of a container: a variable of its processes, a file in it, a part of the name of its
/// control group. Empty where it has none of that kind.
struct Signs {
  const char* container;
  const char* variable;
  const char* file;
  const char* group;
};

/// Kubernetes is the first: its pods are containers of Docker's or Podman's kind. A container with
/// a namespace for its control groups shows no name of theirs.
constexpr std::array<Signs, 5> kSigns{{
    {"kubernetes", "KUBERNETES_SERVICE_HOST", "", "kubepods"},
    {"podman", "", "run/.containerenv", "libpod"},
    {"docker", "", ".dockerenv", "docker-"},
    {"apptainer", "APPTAINER_CONTAINER", ".singularity.d", ""},
    {"lxc", "", "", "/lxc"},
}};

/// The UTS namespace of the machine (PROC_UTS_INIT_INO of Linux).
constexpr const char* kOfTheMachine = "uts:[4026531838]";

bool shows(const Signs& signs, const std::string& groups, const std::filesystem::path& root) {
  if (*signs.variable != '\0' && std::getenv(signs.variable) != nullptr) {
    return true;
  }
  std::error_code unreadable;
  if (*signs.file != '\0' && std::filesystem::exists(root / signs.file, unreadable)) {
    return true;
  }
  return *signs.group != '\0' && groups.find(signs.group) != std::string::npos;
}

}  // namespace

std::optional<std::string> container_around(const std::string& groups,
                                            const std::filesystem::path& root) {
  for (const auto& signs : kSigns) {
    if (shows(signs, groups, root)) {
      return signs.container;
    }
  }
  return std::nullopt;
}

std::optional<bool> has_own_name(const std::filesystem::path& link) {
  std::error_code unreadable;
  const auto name = std::filesystem::read_symlink(link, unreadable);
  if (unreadable) {
    return std::nullopt;
  }
  return name != kOfTheMachine;
}

}  // namespace fabricheck

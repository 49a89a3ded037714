// Whether a process is in a container, and whose name its host name is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace fabricheck {

/// What holds this process: the first container of the table of which there is a sign. `groups` is
/// the text of /proc/self/cgroup, `root` the folder with the files of the container. Empty where
/// there is no sign.
std::optional<std::string> container_around(const std::string& groups,
                                            const std::filesystem::path& root = "/");

/// Whether the host name is of a namespace of its own, as most containers have, and need not be the
/// machine's. `link` leads to the namespace. Empty where the kernel does not tell.
std::optional<bool> has_own_name(const std::filesystem::path& link = "/proc/self/ns/uts");

}  // namespace fabricheck

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "harness/container.hpp"

using namespace fabricheck;

TEST_CASE("a container is known by a file, a control group or a variable") {
  const auto root =
      std::filesystem::temp_directory_path() / ("fabricheck-container-" + std::to_string(getpid()));
  const auto put = [&](const std::string& file) {
    std::filesystem::create_directories((root / file).parent_path());
    std::ofstream(root / file) << "";
  };
  unsetenv("KUBERNETES_SERVICE_HOST");
  unsetenv("APPTAINER_CONTAINER");
  std::filesystem::create_directories(root);
  CHECK_FALSE(container_around("0::/user.slice/session-1.scope\n", root));
  CHECK_FALSE(container_around("0::/system.slice/docker.service\n", root));
  CHECK(container_around("4:cpu:/lxc/node1\n0::/\n", root) == "lxc");
  CHECK(container_around("0::/machine.slice/libpod-3f2a9c0de1b2.scope\n", root) == "podman");
  CHECK(container_around("0::/system.slice/docker-3f2a9c0de1b2.scope\n", root) == "docker");
  CHECK(container_around("0::/kubepods.slice/cri-containerd-3f2a.scope\n", root) == "kubernetes");
  put(".dockerenv");
  CHECK(container_around("0::/\n", root) == "docker");
  put("run/.containerenv");
  CHECK(container_around("0::/\n", root) == "podman");
  // A pod's containers are made by another tool, whose signs they have as well.
  setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  CHECK(container_around("0::/\n", root) == "kubernetes");
  unsetenv("KUBERNETES_SERVICE_HOST");
  std::filesystem::remove_all(root);
}

TEST_CASE("a host name is the machine's, a container's, or nobody tells") {
  const auto root =
      std::filesystem::temp_directory_path() / ("fabricheck-names-" + std::to_string(getpid()));
  std::filesystem::create_directories(root);
  std::filesystem::create_symlink("uts:[4026531838]", root / "machine");
  std::filesystem::create_symlink("uts:[4026532612]", root / "container");
  CHECK(has_own_name(root / "machine") == false);
  CHECK(has_own_name(root / "container") == true);
  CHECK_FALSE(has_own_name(root / "none"));
  std::filesystem::remove_all(root);
}

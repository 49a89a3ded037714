#include "harness/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "harness/status.hpp"

namespace fabricheck {

using nlohmann::json;

struct CommandLine::Parser {
  Parser(const std::string& name, const std::string& description) : app(description, name) {}

  CLI::App app;
  std::string heading = "Options";
  std::vector<std::pair<std::string, std::function<json()>>> recorded;

  template <typename T>
  CLI::Option* add(const Option& option, T& value) {
    keep(option, [&value]() -> json { return value; });
    return take(option, value);
  }

  template <typename T>
  CLI::Option* take(const Option& option, T& value) {
    auto* added = app.add_option(option.name, value, option.text)->group(heading);
    if constexpr (std::is_same_v<T, std::vector<std::string>>) {
      return value.empty() ? added : added->capture_default_str();
    } else {
      return added->capture_default_str();
    }
  }

  void keep(const Option& option, std::function<json()> value) {
    if (!option.recorded) {
      return;
    }
    auto name = option.name.substr(2) + (option.unit.empty() ? "" : "_" + option.unit);
    std::replace(name.begin(), name.end(), '-', '_');
    recorded.emplace_back(std::move(name), std::move(value));
  }
};

CommandLine::CommandLine(const std::string& name, const std::string& description,
                         const std::string& version)
    : parser_(std::make_unique<Parser>(name, description)) {
  parser_->app.set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

void CommandLine::add(const Option& option, std::string& value) { parser_->add(option, value); }

void CommandLine::add(const Option& option, std::string& value,
                      const std::vector<std::string>& choices) {
  parser_->keep(option, [&value] { return value.empty() ? json(nullptr) : json(value); });
  parser_->take(option, value)->check(CLI::IsMember(choices));
}

void CommandLine::add(const Option& option, std::vector<std::string>& values) {
  parser_->add(option, values)->take_all()->allow_extra_args(false);
}

void CommandLine::add(const Option& option, int& value, int least, int most) {
  parser_->add(option, value)->check(CLI::Range(least, most));
}

void CommandLine::add(const Option& option, double& value, double least, double most) {
  parser_->add(option, value)->check(CLI::Range(least, most));
}

void CommandLine::add(const Option& option, bool& value) {
  parser_->keep(option, [&value]() -> json { return value; });
  parser_->app.add_flag(option.name, value, option.text)->group(parser_->heading);
}

void CommandLine::heading(const std::string& text) { parser_->heading = text; }

std::optional<int> CommandLine::parse(int argc, char** argv, const std::string& footer,
                                      bool speaks) {
  auto& app = parser_->app;
  app.footer(footer);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      return speaks ? app.exit(error) : 0;  // --help, --version
    }
    if (speaks) {
      std::fprintf(stderr, "%s: %s; see --help\n", app.get_name().c_str(), error.what());
    }
    return static_cast<int>(Status::usage);
  }
  return std::nullopt;
}

json CommandLine::values() const {
  json all = json::object();
  for (const auto& [name, value] : parser_->recorded) {
    all[name] = value();
  }
  return all;
}

}  // namespace fabricheck

// The command line of a program: its options, and what the document keeps of them.
//
// CLI11 is behind it, in one source: compiled into every program it takes most of the build's time.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// How an option is called, and what it says of itself.
struct Option {
  std::string name;       ///< with its dashes: --block-size, in the document block_size
  std::string text;       ///< for --help
  std::string unit = {};  ///< ends the name in the document: --warm-up in s is warm_up_s
  bool kept = true;       ///< in the document's member `options`
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Options that set `value`, which holds the default and must live as long.
  void add(const Option& option, std::string& value);
  /// One of `choices`; an empty default stands for none of them, in the document null.
  void add(const Option& option, std::string& value, const std::vector<std::string>& choices);
  /// May be given several times; what is given replaces the default.
  void add(const Option& option, std::vector<std::string>& values);
  void add(const Option& option, int& value, int least, int most);
  void add(const Option& option, double& value, double least, double most);
  /// Given or not.
  void add(const Option& option, bool& value);
  /// The heading of the options that follow in --help.
  void heading(const std::string& text);

  /// Sets the values. Returns the exit code of a command line that asks for nothing more (--help,
  /// --version), or is wrong: then a sentence is on standard error. Nothing is printed where
  /// another rank speaks.
  std::optional<int> parse(int argc, char** argv, const std::string& footer, bool speaks = true);

  /// The values as they are now, by the names of the document.
  [[nodiscard]] nlohmann::json values() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace fabricheck

// The command line of a program: its options, and their record in the document.
//
// CLI11 is compiled in a single source, because in every program it would take most of the build's
// time.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// The name of an option, and its help.
struct Option {
  std::string name;       ///< with its dashes: --block-size, in the document block_size
  std::string text;       ///< for --help
  std::string unit = {};  ///< ends the name in the document: --warm-up in s is warm_up_s
  bool recorded = true;   ///< in the document's member `options`
};

class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// Options that set `value`, which holds the default and must live as long.
  void add(const Option& option, std::string& value);
  /// One of `choices`; an empty default means none of them, in the document null.
  void add(const Option& option, std::string& value, const std::vector<std::string>& choices);
  /// May be given several times; the given values replace the default.
  void add(const Option& option, std::vector<std::string>& values);
  void add(const Option& option, int& value, int least, int most);
  void add(const Option& option, double& value, double least, double most);
  /// A flag.
  void add(const Option& option, bool& value);
  /// The heading of the following options in --help.
  void heading(const std::string& text);

  /// Sets the values. Returns the exit code of a command line that ends the program (--help,
  /// --version), or that is wrong: then a sentence is on standard error. A rank other than 0 prints
  /// nothing.
  std::optional<int> parse(int argc, char** argv, const std::string& footer, bool speaks = true);

  /// The present values, by the names of the document.
  [[nodiscard]] nlohmann::json values() const;

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace fabricheck

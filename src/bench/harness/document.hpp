// The result document: what one run measured (schema: result-1, docs/reference/result-document.md).
#pragma once

#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/status.hpp"

namespace fabricheck {

/// The text of a JSON value. Invalid UTF-8, as in an environment variable, is replaced by U+FFFD.
std::string dumped(const nlohmann::json& value, int indent = -1);

/// Writes `text` so that `path` never holds half a document: into `path`.new first, synced, then
/// renamed. A path that is not a regular file (a pipe, a device) is written directly; "-" is
/// standard output. Throws Failure(software) naming the file and the system's reason.
void write_whole(const std::string& path, const std::string& text);

/// The document of a run. All members may be called from the program and from the watchdog.
class Document {
 public:
  /// `path` is the final path ("-": standard output). Throws Failure(usage) when it cannot be
  /// written, before anything is measured.
  Document(std::string path, nlohmann::json head);

  void set(const std::string& key, nlohmann::json value);
  /// Changes a member in place: one that grows need not be copied each time.
  void change(const std::string& key, const std::function<void(nlohmann::json&)>& change);
  void add_series(nlohmann::json series);
  /// Returns whether the note is new.
  bool add_note(const std::string& sentence);

  /// Starts a measurement. The results so far are kept in `path`.partial, at most once a second, so
  /// that a killed run loses little.
  void begin(const std::string& measurement);
  /// The last measurement that started; empty before the first.
  [[nodiscard]] std::string last_begun() const;

  /// Sets the outcome and writes the document. `exit_code` as in `status`, or 128 + signal. If the
  /// path cannot be written, the document goes to standard output and Failure is thrown.
  void finish(const std::string& status, int exit_code, const std::string& message, bool complete);

  [[nodiscard]] nlohmann::json content() const;

 private:
  std::string path_;
  bool regular_ = false;
  bool finished_ = false;
  double started_ = 0;
  double last_partial_ = 0;
  std::string last_begun_;
  mutable std::mutex mutex_;
  nlohmann::json json_;
};

/// The present time as RFC 3339 with milliseconds, in UTC.
std::string timestamp();

}  // namespace fabricheck

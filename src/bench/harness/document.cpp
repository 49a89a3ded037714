#include "harness/document.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace fabricheck {
namespace {

using nlohmann::json;

/// Opens, writes, syncs and closes; returns errno of the step that failed, or 0.
int write_file(const std::string& path, const std::string& text, int how = O_TRUNC) {
  const int file =
      path == "-" ? dup(STDOUT_FILENO) : open(path.c_str(), O_WRONLY | O_CREAT | how, 0644);
  if (file < 0) {
    return errno;
  }
  int error = 0;
  for (std::size_t done = 0; done < text.size() && error == 0;) {
    const auto written = write(file, text.data() + done, text.size() - done);
    if (written >= 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      error = errno;
    }
  }
  // A file system may report a full disk only here; pipes and terminals cannot sync.
  if (error == 0 && fsync(file) != 0 && errno != EINVAL && errno != EROFS) {
    error = errno;
  }
  if (close(file) != 0 && error == 0) {
    error = errno;
  }
  return error;
}

bool is_regular_or_absent(const std::string& path) {
  struct stat info{};
  return path != "-" && (stat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode));
}

}  // namespace

std::string dumped(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

void write_whole(const std::string& path, const std::string& text) {
  const bool direct = !is_regular_or_absent(path);
  const auto target = direct ? path : path + ".new";
  if (!direct) {
    // What an earlier run left, or a link that another user planted, is not written to.
    (void)unlink(target.c_str());
  }
  int error = write_file(target, text, direct ? O_TRUNC : O_EXCL | O_NOFOLLOW);
  if (error == 0 && !direct && std::rename(target.c_str(), path.c_str()) != 0) {
    error = errno;
  }
  if (error != 0) {
    if (!direct) {
      (void)unlink(target.c_str());
    }
    throw Failure(Status::software,
                  "cannot write the result document to '" + path + "': " + std::strerror(error));
  }
}

std::string timestamp() {
  const auto now = std::chrono::system_clock::now();
  const auto seconds = std::chrono::system_clock::to_time_t(now);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%s.%03dZ", date.data(), static_cast<int>(milliseconds));
  return text.data();
}

Document::Document(std::string path, json head)
    : path_(std::move(path)), started_(wall_seconds()), json_(std::move(head)) {
  std::error_code unknown;
  if (path_.empty() || std::filesystem::is_directory(path_, unknown)) {
    throw Failure(Status::usage, "cannot write the result document to '" + path_ + "': " +
                                     (path_.empty() ? "the name is empty" : "it is a folder"));
  }
  regular_ = is_regular_or_absent(path_);
  json_["schema"] = "fabricheck-result";
  json_["schema_version"] = 1;
  json_["complete"] = false;
  json_["started"] = timestamp();
  json_["finished"] = nullptr;
  json_["duration_s"] = 0.0;
  json_["outcome"] = {{"exit_code", nullptr}, {"status", status::running}, {"message", nullptr}};
  json_["series"] = json::array();
  json_["notes"] = json::array();
  if (regular_) {
    try {
      write_whole(path_ + ".partial", dumped(json_) + "\n");
    } catch (const Failure& failure) {
      throw Failure(Status::usage, failure.what());
    }
    // An older document of the same name must not be taken for this run's.
    unlink(path_.c_str());
  }
}

void Document::set(const std::string& key, json value) {
  const std::lock_guard lock(mutex_);
  json_[key] = std::move(value);
}

void Document::change(const std::string& key, const std::function<void(json&)>& change) {
  const std::lock_guard lock(mutex_);
  change(json_[key]);
}

void Document::add_series(json series) {
  const std::lock_guard lock(mutex_);
  json_["series"].push_back(std::move(series));
}

bool Document::add_note(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  for (const auto& note : json_["notes"]) {
    if (note == sentence) {
      return false;
    }
  }
  json_["notes"].push_back(sentence);
  return true;
}

void Document::begin(const std::string& measurement) {
  const std::lock_guard lock(mutex_);
  last_begun_ = measurement;
  const auto now = wall_seconds();
  if (!regular_ || now - last_partial_ < 1) {
    return;
  }
  last_partial_ = now;
  json_["duration_s"] = now - started_;
  try {
    write_whole(path_ + ".partial", dumped(json_) + "\n");
  } catch (const Failure&) {
    // A full disk is reported by finish(), which then writes the document elsewhere.
  }
}

std::string Document::last_begun() const {
  const std::lock_guard lock(mutex_);
  return last_begun_;
}

void Document::finish(const std::string& status, int exit_code, const std::string& message,
                      bool complete) {
  const std::lock_guard lock(mutex_);
  if (finished_) {
    return;  // the program and its watchdog may both come to the end
  }
  finished_ = true;
  json_["complete"] = complete;
  json_["finished"] = timestamp();
  json_["duration_s"] = wall_seconds() - started_;
  json_["outcome"] = {{"exit_code", exit_code},
                      {"status", status},
                      {"message", message.empty() ? json(nullptr) : json(message)}};
  const auto text = dumped(json_, 1) + "\n";
  try {
    write_whole(path_, text);
    if (regular_) {
      (void)unlink((path_ + ".partial").c_str());
    }
  } catch (const Failure&) {
    if (path_ != "-") {
      (void)write_file("-", text);
    }
    throw;
  }
}

json Document::content() const {
  const std::lock_guard lock(mutex_);
  return json_;
}

}  // namespace fabricheck

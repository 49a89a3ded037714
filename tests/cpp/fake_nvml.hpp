// A library that takes the place of NVIDIA's: its functions answer what a test sets.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

struct FakeNvml {
  std::map<std::string, int> errors;  ///< by function; those that are not named answer
  unsigned long long throttle_reasons = 0;
  unsigned long long corrected = 0;
  unsigned long long uncorrected = 0;
  std::vector<std::pair<unsigned, unsigned long long>> processes;  ///< number and bytes
  std::map<unsigned, unsigned long long> fields;
  std::vector<std::string> addresses{"0000:00:06.0"};
  unsigned links = 0;
  unsigned links_down = 0;  ///< so many of the last ones
  int end_kind = 2;         ///< of each link: 0 a device, 2 a switch
  unsigned end_slot = 7;    ///< of the device at the end, 0000:00:07.0
  int p2p_status = 0;
  unsigned c2c = 0;
  /// Of links, by the number of the counter and the link; without any none is supported.
  std::map<std::pair<unsigned, unsigned>, unsigned long long> link_counters;
  /// The same by field.
  std::map<std::pair<unsigned, unsigned>, unsigned long long> link_fields;
  int opened = 0;  ///< nvmlInit_v2 less nvmlShutdown
};

using FakeNvmlFunction = FakeNvml* (*)();

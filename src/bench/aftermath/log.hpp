// What the kernel's log and a program's standard error say of devices. The texts are those of
// Linux, of the drivers amdgpu and NVRM, and of ROCr.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace fabricheck {

/// All records of a kernel log (/dev/kmsg); empty and errno if it cannot be read.
std::optional<std::string> kernel_records(const std::string& path);

/// The time of the last record in microseconds by the clock of the kernel's log; -1 without one.
std::int64_t last_record_us(const std::string& records);

/// The lines of a kernel log that concern devices, each with its kind, PCI address, text and row of
/// the table of lines (src/fabricheck/core/log_lines.json). An error of an accelerator's driver
/// that has no row is kept without one. `records` are those of /dev/kmsg, of which those before
/// `since_us` are left out. `functions` are the PCI addresses of the node's accelerators: a fatal
/// error of PCIe counts as theirs only if it names one of them.
nlohmann::json kernel_log(const std::string& records, std::int64_t since_us,
                          const std::vector<std::string>& functions);

/// The same of what a program wrote on its standard error. ROCr names a device by its node of KFD,
/// which is found under `sys` (/sys).
nlohmann::json runtime_log(const std::string& text, const std::string& sys);

}  // namespace fabricheck

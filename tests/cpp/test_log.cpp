#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "aftermath/log.hpp"

using namespace fabricheck;
namespace fs = std::filesystem;

namespace {

/// The kind of a line of the kernel's log, and its address; "" if it is left out.
std::string kind(const std::string& text, const std::string& priority = "6") {
  const auto lines = kernel_log(priority + ",7,100,-;" + text + "\n", 0, {"0000:c1:00.0"});
  if (lines.empty()) {
    return "";
  }
  const auto& address = lines[0]["pci_address"];
  return lines[0]["kind"].get<std::string>() +
         (address.is_null() ? "" : " " + address.get<std::string>());
}

/// The row of the table that a line of the kernel's log matches; "" if it has none or is left out.
std::string row(const std::string& text) {
  const auto lines = kernel_log("6,7,100,-;" + text + "\n", 0, {});
  return lines.empty() ? "" : lines[0].value("row", "");
}

std::string xid(const std::string& rest) { return "NVRM: Xid (PCI:0000:41:00): " + rest; }

/// A line of Xid 74 with these registers.
std::string xid_74(const std::string& registers) {
  return xid("74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 4(" +
             registers + ")");
}

}  // namespace

TEST_CASE("a line of the kernel's log names hardware, or what a program may cause as well") {
  for (const int number : {48, 64, 79, 95, 140, 171, 172}) {
    CHECK(kind(xid(std::to_string(number) + ", pid=1, name=x")) == "hardware 0000:41:00.0");
  }
  for (const int number : {13, 31, 43, 45, 7, 480, 109, 119, 63, 92, 94, 74, 154}) {
    CHECK(kind(xid(std::to_string(number) + ", pid=1, name=x")) == "unclear 0000:41:00.0");
  }
  CHECK(kind("NVRM: GPU 0000:41:00.0: GPU has fallen off the bus.") == "hardware 0000:41:00.0");
  const std::string amdgpu = "amdgpu 0000:c1:00.0: amdgpu: ";
  for (const auto* text :
       {"socket: 0, die: 0, 2 new uncorrectable hardware errors detected in umc "
        "block",
        "{3}poison is consumed by client 12, kick off gpu reset flow",
        "RAS poison consumption, fall back to gpu reset flow: client id 27",
        "Uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        "{1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!",
        "{7} socket: 0, die: 0, 1 new uncorrectable hardware errors detected in "
        "umc block",
        "{7} socket: 0, die: 0, 1 new poison consumption detected in gfx block",
        "{1}[Hardware Error]: ACA[01/02].STATUS=0xbaa000000000080b",
        "{1}[Hardware Error]: aca entry[00].STATUS=0xbaa000000000080b",
        "RAS records:260 exceed threshold:256", "Saved bad pages 256 reaches threshold value 256",
        "device lost from bus!"}) {
    CHECK_MESSAGE(kind(amdgpu + text) == "hardware 0000:c1:00.0", text);
  }
  for (const auto* text :
       {"2 uncorrectable hardware errors detected in umc block",
        "[gfxhub0] no-retry page fault (src_id:0 ring:0 vmid:8 pasid:32769)",
        "ring sdma0 timeout, signaled seq=3, emitted seq=5", "GPU reset begin!",
        "{2}socket: 0, die: 0, 1 new deferred hardware errors detected in umc "
        "block",
        "{2}socket: 0, die: 0, 3 uncorrectable hardware errors detected in total "
        "in umc block",
        "{2}Poison is created", "{1}[Hardware Error]: ACA[01/02].STATUS=0x98000800003e0000",
        "{1}[Hardware Error]: ACA[01/02].STATUS=0xb800100000000000", "GPU reset(2) succeeded!"}) {
    CHECK_MESSAGE(kind(amdgpu + text) == "unclear 0000:c1:00.0", text);
  }
  for (const auto* text : {"0 new uncorrectable hardware errors detected in umc block",
                           "no uncorrectable hardware errors detected in umc block",
                           "12 correctable hardware errors detected in umc block",
                           "SMU is initialized successfully!"}) {
    CHECK_MESSAGE(kind(amdgpu + text).empty(), text);
  }
  // Of the first drivers with RAS.
  CHECK(kind("[drm] RAS event of type ERREVENT_ATHUB_INTERRUPT detected!") == "hardware");
  CHECK(kind("[drm] 3 uncorrectable errors detected in umc block") == "unclear");
  CHECK(kind("NVRM: GPU 0000:c1:00.0: RmInitAdapter failed! (0x25:0x40:1250)") ==
        "unclear 0000:c1:00.0");
  CHECK(kind("mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 4: be00") ==
        "hardware");
  CHECK(kind("{1}[Hardware Error]: event severity: fatal") == "hardware");
  CHECK(kind("{1}[Hardware Error]: event severity: recoverable") == "unclear");
  CHECK(kind("[Hardware Error]: Uncorrected, software restartable error.") == "hardware");
  CHECK(kind("[Hardware Error]: System Fatal error.") == "hardware");
  CHECK(kind("EDAC MC0: 1 UE on mc#0csrow#1channel#0") == "hardware");
  CHECK(kind("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 23001, Fatal, Link 46") ==
        "hardware 0000:c1:00.0");
  CHECK(kind("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up") ==
        "unclear 0000:c1:00.0");
  CHECK(kind("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32") ==
        "unclear 0000:c1:00.0");
  CHECK(kind("[Hardware Error]: Corrected error, no action required.").empty());
  CHECK(kind("mce: [Hardware Error]: Machine check events logged").empty());
  CHECK(kind("eth0: link up").empty());
}

TEST_CASE("Xid 74 names hardware by the bits of its registers") {
  CHECK(row(xid_74("0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0")) == "xid-74-parity");
  CHECK(row(xid_74("0x0, 0x0, 0x40, 0x0, 0x0, 0x0, 0x0")) == "xid-74-parity");
  CHECK(row(xid_74("0x0, 0x0, 0x0, 0x0, 0x10000000, 0x0, 0x0")) == "xid-74-parity");
  CHECK(row(xid_74("0x100100, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0")) == "xid-74-connection");
  CHECK(row(xid_74("0x300000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0")) == "xid-74-marginal");
  for (const auto* secondary : {
           "0x100000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0",  // bit 20
           "0x2, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0",
           "0x40800001, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0",
           "0x0, 0x10, 0x0, 0x70000, 0x100000, 0x10, 0x10",
           "0x0",
           "",
       }) {
    CHECK_MESSAGE(row(xid_74(secondary)) == "xid-74", secondary);
  }
  CHECK(row(xid_74("0x100000, 0x0, 0x1")) == "xid-74-parity");  // cut short
}

TEST_CASE("a line has the row of what its Xid or its text says") {
  CHECK(row(xid("94, pid=1, name=x, Contained: SM (0x1). RST: No, D-RST: No")) == "xid-94");
  CHECK(row(xid("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000)")) == "xid-149-150-fatal");
  CHECK(row(xid("145, RLW_TAGSTATE Fatal XC0 i0 Link 13 (0x02)")) == "xid-144-146-fatal");
  CHECK(row(xid("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x02)")) == "xid-144-150");
  const std::string changed = "154, GPU recovery action changed from 0x0 (None) to ";
  CHECK(row(xid(changed + "0x1 (GPU Reset Required)")) == "xid-154-reset");
  CHECK(row(xid(changed + "0x2 (Node Reboot Required)")) == "xid-154-node");
  CHECK(row(xid(changed + "0x2 (OS Reboot)")) == "xid-154-node");
  CHECK(row(xid(changed + "0x4 (Drain and Reset)")) == "xid-154-drain-reset");
  CHECK(row(xid("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")) ==
        "xid-154-none");
  CHECK(row(xid("45, pid=1, name=x, Ch 00000001 caused by previous Xid 149")) == "xid-45");
  CHECK(row(xid("9999, something new")) == "xid-other");
  CHECK(row(xid("165, power smoothing")) == "xid-other");
  CHECK(row(xid("159, CHI Non-Data Error")) == "xid-159");
  for (const int number : {1, 7, 65, 81, 125, 142}) {
    CHECK(row(xid(std::to_string(number) + ", pid=1, name=x")) == "xid-support");
  }
  CHECK(row("[Hardware Error]: System Fatal error.") == "mce-fatal");
  CHECK(row("[Hardware Error]: Uncorrected, software restartable error.") == "mce");
}

TEST_CASE("an error of an accelerator's driver is kept though no row has it") {
  const std::string text = "amdgpu 0000:c1:00.0: amdgpu: a sentence of a later driver";
  CHECK(kind(text, "3") == "unclear 0000:c1:00.0");
  CHECK(kind(text, "11") == "unclear 0000:c1:00.0");  // an error of another facility
  CHECK(kind(text, "4").empty());
  CHECK(kind("nvme 0000:61:00.0: I/O error", "3").empty());
  CHECK(row(text).empty());
}

TEST_CASE("a fatal error of PCIe is that of an accelerator if it names one") {
  CHECK(kind("pcieport 0000:c0:01.1: AER: Uncorrected (Fatal) error received: 0000:c1:00.0") ==
        "hardware 0000:c1:00.0");
  CHECK(kind("amdgpu 0000:c1:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=x") ==
        "hardware 0000:c1:00.0");
  CHECK(kind("nvme 0000:61:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=x") ==
        "unclear 0000:61:00.0");
  CHECK(
      kind("pcieport 0000:80:01.1: AER: Multiple Uncorrectable (Non-Fatal) error message received "
           "from 0000:82:00.0") == "unclear 0000:80:01.1");
  CHECK(kind("amdgpu 0000:c1:00.0: PCIe Bus Error: severity=Corrected, type=Data Link").empty());
}

TEST_CASE("only lines since the program began count, and of thousands the first") {
  const std::string xid = "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus.";
  auto lines = kernel_log("4,1,99,-;" + xid + "\n SUBSYSTEM=pci\n4,2,100,-;" + xid +
                              "\nno record\n12,3,101,c;NVRM: Xid (PCI:0000:41:00): 31, x\n",
                          100, {});
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["text"] == xid);
  CHECK(lines[1]["kind"] == "unclear");
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += "4,1,100,-;NVRM: Xid (PCI:0000:41:00): 31, " + std::string(1000, 'x') + "\n";
  }
  lines = kernel_log(many + "4,1,100,-;" + xid + "\n", 0, {});
  REQUIRE(lines.size() == 51);
  CHECK(lines[0]["text"].get<std::string>().size() == 300);
  CHECK(lines[50]["kind"] == "hardware");
}

TEST_CASE("the last words of ROCr name a device by its node of KFD") {
  const auto sys = fs::temp_directory_path() / ("fabricheck-log-" + std::to_string(getpid()));
  const auto node = sys / "class/kfd/kfd/topology/nodes/4";
  fs::create_directories(node);
  std::ofstream(node / "properties") << "simd_count 440\nlocation_id 49408\ndomain 0\n";
  const auto lines = runtime_log(
      "stream: some words\n"
      "HW Exception by GPU node-4 (Agent handle: 0x5581) reason :ECC\n"
      "HW Exception by GPU node-4 (Agent handle: 0x5581) reason :GPU Hang\n"
      "Memory access fault by GPU node-9 (Agent handle: 0x5581) on address 0x7f00. Reason: "
      "DRAM ECC failure.\n"
      "Memory access fault by GPU node-9 (Agent handle: 0x5581) on address 0x7f00. Reason: Page "
      "not present or supervisor privilege.\n",
      sys.string());
  REQUIRE(lines.size() == 4);
  CHECK(lines[0]["kind"] == "hardware");
  CHECK(lines[0]["pci_address"] == "0000:c1:00.0");
  CHECK(lines[1]["kind"] == "unclear");
  CHECK(lines[2]["kind"] == "hardware");
  CHECK(lines[2]["pci_address"].is_null());
  CHECK(lines[3]["kind"] == "unclear");
  fs::remove_all(sys);
}

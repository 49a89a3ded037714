#include "fake_nvml.hpp"

#include <algorithm>
#include <cstdio>

namespace {

FakeNvml state;

int code_of(const char* function) {
  const auto found = state.errors.find(function);
  return found == state.errors.end() ? 0 : found->second;
}

template <typename T, typename U>
int answer(const char* function, T* place, U value) {
  const int code = code_of(function);
  if (code == 0) {
    *place = static_cast<T>(value);
  }
  return code;
}

int answer_text(const char* function, char* place, unsigned length, const char* text) {
  const int code = code_of(function);
  if (code == 0) {
    std::snprintf(place, length, "%s", text);
  }
  return code;
}

struct PciInfo {
  char legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned ids[2];
  char address[32];
};

struct Process {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct Field {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency;
  int type;
  int status;
  unsigned long long value;
};

}  // namespace

extern "C" {

FakeNvml* fake_nvml() { return &state; }

int nvmlInit_v2() {
  const int code = code_of("nvmlInit_v2");
  state.opened += code == 0 ? 1 : 0;
  return code;
}
int nvmlShutdown() {
  --state.opened;
  return 0;
}
const char* nvmlErrorString(int code) {
  return code == 3    ? "Not Supported"
         : code == 9  ? "Driver Not Loaded"
         : code == 15 ? "GPU is lost"
                      : "Unknown Error";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* address, void** device) {
  const auto found = std::find(state.addresses.begin(), state.addresses.end(), address);
  if (found == state.addresses.end()) {
    return 6;
  }
  *device = &*found;
  return code_of(__func__);
}
int nvmlDeviceGetName(void*, char* text, unsigned length) {
  return answer_text(__func__, text, length, "NVIDIA H100 80GB HBM3");
}
int nvmlDeviceGetCudaComputeCapability(void*, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return code_of(__func__);
}
int nvmlDeviceGetPciInfo_v3(void*, PciInfo* info) {
  info->ids[0] = 0x233010de;
  info->ids[1] = 0x16c110de;
  return code_of(__func__);
}
int nvmlDeviceGetMemoryAffinity(void*, unsigned, unsigned long* domains, unsigned scope) {
  return scope != 0 ? 2 : answer(__func__, domains, 1);
}
int nvmlDeviceGetCpuAffinity(void*, unsigned, unsigned long* cores) {
  return answer(__func__, cores, 0xffffffff);
}
int nvmlDeviceGetCurrPcieLinkWidth(void*, unsigned* width) { return answer(__func__, width, 16); }
int nvmlDeviceGetMaxPcieLinkWidth(void*, unsigned* width) { return answer(__func__, width, 16); }
int nvmlDeviceGetCurrPcieLinkGeneration(void*, unsigned* generation) {
  return answer(__func__, generation, 4);
}
int nvmlDeviceGetMaxPcieLinkGeneration(void*, unsigned* generation) {
  return answer(__func__, generation, 5);
}
int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) {
  return answer(__func__, mhz, clock == 1 ? 1980 : 3201);
}
int nvmlDeviceGetMaxClockInfo(void*, int clock, unsigned* mhz) {
  return answer(__func__, mhz, clock == 1 ? 1985 : 3202);
}
int nvmlDeviceGetTemperature(void*, int, unsigned* celsius) {
  return answer(__func__, celsius, 48);
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  return answer(__func__, milliwatts, 293747);
}
int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  return answer(__func__, milliwatts, 600000);
}
int nvmlDeviceGetPowerManagementDefaultLimit(void*, unsigned* milliwatts) {
  return answer(__func__, milliwatts, 700000);
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  return answer(__func__, reasons, state.throttle_reasons);
}
int nvmlDeviceGetTotalEccErrors(void*, int kind, int since, unsigned long long* count) {
  return since != 0 ? 2 : answer(__func__, count, kind == 0 ? state.corrected : state.uncorrected);
}
int nvmlDeviceGetEccMode(void*, int* current, int* pending) {
  *pending = 0;
  return answer(__func__, current, 1);
}
int nvmlDeviceGetMigMode(void*, unsigned* current, unsigned* pending) {
  *pending = 1;
  return answer(__func__, current, 0);
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* both) {
  both[1] = 12;
  return answer(__func__, both, 34);
}
int nvmlDeviceGetVbiosVersion(void*, char* text, unsigned length) {
  return answer_text(__func__, text, length, "96.00.A5.00.1A");
}
int nvmlDeviceGetInforomImageVersion(void*, char* text, unsigned length) {
  return answer_text(__func__, text, length, "G520.0282.02.02");
}
int nvmlDeviceGetPcieReplayCounter(void*, unsigned* count) { return answer(__func__, count, 5); }
int nvmlDeviceGetNvLinkState(void*, unsigned link, int* up) {
  return state.links == 0      ? 3
         : link >= state.links ? 2
                               : answer(__func__, up, link + state.links_down < state.links);
}

int nvmlDeviceGetNvLinkErrorCounter(void*, unsigned link, int kind, unsigned long long* count) {
  const auto known = state.link_counters.find({static_cast<unsigned>(kind), link});
  return known == state.link_counters.end() ? 3 : answer(__func__, count, known->second);
}

#ifndef FAKE_NVML_OLD
int nvmlDeviceGetNvLinkRemoteDeviceType(void*, unsigned, int* kind) {
  return answer(__func__, kind, state.end_kind);
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void*, unsigned, PciInfo* end) {
  end->device = state.end_slot;
  return code_of(__func__);
}
int nvmlDeviceGetP2PStatus(void*, void*, int index, int* status) {
  return index != 0 ? 2 : answer(__func__, status, state.p2p_status);
}
int nvmlDeviceGetC2cModeInfoV(void*, unsigned* joined) {
  return answer(__func__, joined, state.c2c);
}
int nvmlDeviceGetCurrentClocksEventReasons(void*, unsigned long long* reasons) {
  return answer(__func__, reasons, state.throttle_reasons);
}
int nvmlDeviceGetFieldValues(void*, int count, Field* fields) {
  for (Field* field = fields; field != fields + count; ++field) {
    const auto known = state.fields.find(field->field);
    const auto of_link = state.link_fields.find({field->field, field->scope});
    field->type = 3;
    field->status = 0;
    if (known != state.fields.end()) {
      field->value = known->second;
    } else if (of_link != state.link_fields.end()) {
      field->value = of_link->second;
    } else {
      field->status = 3;
    }
  }
  return code_of(__func__);
}
int nvmlDeviceGetComputeRunningProcesses_v3(void*, unsigned* count, Process* processes) {
  const auto room = *count;
  *count = static_cast<unsigned>(state.processes.size());
  if (room < state.processes.size()) {
    return 7;
  }
  for (std::size_t i = 0; i < state.processes.size(); ++i) {
    processes[i] = {state.processes[i].first, state.processes[i].second, ~0U, ~0U};
  }
  return code_of(__func__);
}
#endif
}

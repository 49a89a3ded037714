#include "harness/hip.hpp"

#include "harness/build.hpp"
#include "harness/devices.hpp"
#include "harness/host.hpp"
#include "harness/settings.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {
namespace {

double seconds_between(hipEvent_t first, hipEvent_t second) {
  float milliseconds = 0;
  FABRICHECK_HIP(hipEventElapsedTime(&milliseconds, first, second));
  return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace

bool names_hardware(hipError_t error) {
  // By their numbers: HIP has a name for the first only. Not cudaErrorContained (226), which an
  // invalid access to a peer's memory causes as well.
  switch (static_cast<int>(error)) {
    case 214:  // hipErrorECCNotCorrectable, cudaErrorECCUncorrectable
    case 220:  // cudaErrorNvlinkUncorrectable
    case 714:  // cudaErrorHardwareStackError
      return true;
    default:
      return false;
  }
}

bool names_missing_kernels(hipError_t error) {
  // By their numbers: CUDA has another name for the first, and no name of HIP's is in all runtimes.
  switch (static_cast<int>(error)) {
    case 98:   // hipErrorInvalidDeviceFunction, what HIP gives for a launch
    case 209:  // hipErrorNoBinaryForGpu, cudaErrorNoKernelImageForDevice
      return true;
    default:
      return false;
  }
}

Failure hip_failure(hipError_t error, const std::string& call, std::optional<int> device,
                    const std::string& compiled_for) {
  if (device && !compiled_for.empty() && names_missing_kernels(error)) {
    const auto arch = device_arch(*device);
    return {Status::setting, "device " + std::to_string(*device) + " is " +
                                 arch.substr(0, arch.find(':')) +
                                 ", but this program was compiled for " + compiled_for +
                                 ": compile it for that architecture"};
  }
  return {names_hardware(error) ? Status::device_error : Status::refused,
          call + (device ? " on device " + std::to_string(*device) : "") +
              " failed: " + hipGetErrorString(error) + " (" + hipGetErrorName(error) + ")"};
}

void check_hip(hipError_t error, const char* call) {
  if (error == hipSuccess) {
    return;
  }
  int current = -1;
  std::optional<int> device;
  if (hipGetDevice(&current) == hipSuccess) {
    device = current;
  }
  throw hip_failure(error, call, device, kernels_for());
}

Buffer Buffer::allocated(int device, std::size_t bytes,
                         const std::function<hipError_t(void**, std::size_t)>& allocate) {
  FABRICHECK_HIP(hipSetDevice(device));
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  FABRICHECK_HIP(hipMemGetInfo(&free_bytes, &total_bytes));
  Buffer buffer;
  // Asked before allocating: some runtimes overcommit and fail only at first touch.
  const auto error = bytes > free_bytes ? hipErrorOutOfMemory : allocate(&buffer.data_, bytes);
  if (error != hipSuccess) {
    buffer.data_ = nullptr;
    (void)hipGetLastError();
    const auto refused = bytes <= free_bytes
                             ? " were refused: " + std::string(hipGetErrorString(error))
                             : std::string(" more are needed");
    throw Failure(Status::unsupported, "device " + std::to_string(device) + " has " +
                                           format_size(free_bytes) + " of memory free, but " +
                                           format_size(bytes) + refused);
  }
  buffer.device_ = device;
  return buffer;
}

Buffer Buffer::on_device(int device, std::size_t bytes) {
  return allocated(device, bytes,
                   [](void** data, std::size_t size) { return hipMalloc(data, size); });
}

Buffer Buffer::managed(int device, std::size_t bytes) {
  if (bytes > host_memory_available()) {
    throw Failure(Status::unsupported, "the host has " + format_size(host_memory_available()) +
                                           " of memory free, but " + format_size(bytes) +
                                           " more of managed memory are needed");
  }
  // More than the device can hold makes some systems swap between both, and some hang.
  return allocated(device, bytes, [](void** data, std::size_t size) {
    return hipMallocManaged(data, size, hipMemAttachGlobal);
  });
}

unsigned host_malloc_flags(HostMemory kind, bool bound) {
  // Coherent by name: a kernel that polls memory of any other kind, as that of a gate, may see its
  // cache's copy for ever.
  return hipHostMallocPortable | hipHostMallocMapped |
         (kind == HostMemory::noncoherent ? hipHostMallocNonCoherent : hipHostMallocCoherent) |
         (bound ? hipHostMallocNumaUser : 0U);
}

Buffer Buffer::on_host(int numa_domain, std::size_t bytes, HostMemory kind,
                       std::optional<int> pages_on) {
  if (kind == HostMemory::noncoherent && hipHostMallocNonCoherent == 0) {
    throw Failure(Status::unsupported,
                  "page-locked memory of this runtime is always coherent: only ROCm has another");
  }
  const auto free_bytes = host_memory_available();
  const bool pinned = kind != HostMemory::pageable;
  Buffer buffer;
  buffer.kind_ = kind;
  buffer.bytes_ = bytes;
  buffer.asked_domain_ = numa_domain;
  const auto free_before =
      numa_domain < 0 ? std::map<int, std::uint64_t>{} : free_memory_of_domains();
  const HostBinding binding(pages_on.value_or(numa_domain));
  if (bytes <= free_bytes && pinned) {
    // ROCm allocates nothing where it may not read the policy.
    const auto error =
        hipHostMalloc(&buffer.data_, bytes, host_malloc_flags(kind, binding.holds()));
    if (error != hipSuccess) {
      buffer.data_ = nullptr;
      (void)hipGetLastError();
    }
  } else if (bytes <= free_bytes) {
    buffer.data_ = map_pages(bytes);
  }
  if (buffer.data_ == nullptr) {
    throw Failure(Status::unsupported, "the host has " + format_size(free_bytes) +
                                           " of memory free, but " + format_size(bytes) + " more" +
                                           (pinned ? " page-locked" : "") + " are needed");
  }
  touch_pages(buffer.data_, bytes);
  auto astray = buffer.ask_pages();
  if (!astray.empty() && !pages_on) {
    // A HIP built without libnuma follows no policy, and page cache can be in the way.
    move_pages_to(numa_domain, buffer.data_, bytes);
    astray = buffer.ask_pages();
  }
  if (!astray.empty()) {
    throw astray_failure(astray, numa_domain, bytes, free_before);
  }
  return buffer;
}

std::string pages_astray(int asked_domain, const PagePlaces& places) {
  const bool there = places.domains == std::vector<int>{asked_domain};
  if (asked_domain < 0 || there || places.error != 0) {
    return "";
  }
  std::string where = "where the system does not tell";
  for (const int domain : places.domains) {
    where = (domain == places.domains.front()
                 ? (places.domains.size() > 1 ? "on domains " : "on domain ")
                 : where + ", ") +
            std::to_string(domain);
  }
  return "host memory was asked for on NUMA domain " + std::to_string(asked_domain) +
         ", but its pages are " + where;
}

Failure astray_failure(const std::string& sentence, int asked_domain, std::size_t bytes,
                       const std::map<int, std::uint64_t>& free_before) {
  const auto asked = free_before.find(asked_domain);
  if (asked == free_before.end()) {
    return {Status::setting, sentence + ", and the system does not tell what is free there"};
  }
  std::string all;
  for (const auto& [domain, free_bytes] : free_before) {
    all += (all.empty() ? "" : ", ") + format_size(free_bytes) + " on domain " +
           std::to_string(domain);
  }
  const auto advice = asked->second < bytes
                          ? "give back page cache or end what uses memory of domain " +
                                std::to_string(asked_domain) + ", or ask for smaller arrays"
                          : std::string("see the memory policy of the job (numactl --show)");
  return {Status::setting, sentence + ": of " + format_size(bytes) +
                               " asked for, free before were " + all + "; " + advice};
}

std::string Buffer::ask_pages() {
  const auto places = page_places(data_, bytes_);
  numa_domain_ = places.domains.size() == 1 ? places.domains.front() : -1;
  return pages_astray(asked_domain_, places);
}

void Buffer::prove_pages() {
  const auto sentence = ask_pages();
  if (sentence.empty()) {
    return;
  }
  // They lay right when they were allocated. NUMA balancing moves pages that a thread uses from
  // elsewhere, and ROCm's page-locked ones are not held where they are.
  if (const auto balancing = numa_balancing_setting()) {
    throw Failure(Status::setting, sentence + ", where they were moved: " + *balancing);
  }
  throw Failure(Status::setting, sentence + ", where they were moved while they were used");
}

Buffer::~Buffer() {
  if (data_ == nullptr) {
    return;
  }
  if (device_ >= 0) {
    (void)hipSetDevice(device_);
    (void)hipFree(data_);
  } else if (kind_ != HostMemory::pageable) {
    (void)hipHostFree(data_);
  } else {
    unmap_pages(data_, bytes_);
  }
}

TimedStream::TimedStream(int device) : device_(device) {
  use();
  FABRICHECK_HIP(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking));
  FABRICHECK_HIP(hipEventCreate(&start_));
  FABRICHECK_HIP(hipEventCreate(&stop_));
}

TimedStream::~TimedStream() {
  if (stream_ != nullptr) {
    (void)hipSetDevice(device_);
    (void)hipEventDestroy(start_);
    (void)hipEventDestroy(stop_);
    (void)hipStreamDestroy(stream_);
  }
}

double TimedStream::seconds() const { return seconds_between(start_, stop_); }

double TimedStream::starts_after(const TimedStream& other) const {
  return seconds_between(other.start_, start_);
}

double TimedStream::stops_after(const TimedStream& other) const {
  return seconds_between(other.stop_, stop_);
}

bool can_access_peer(int device, int owner) {
  int possible = 0;
  FABRICHECK_HIP(hipDeviceCanAccessPeer(&possible, device, owner));
  return possible != 0;
}

void enable_peer_access(int device, int owner) {
  const auto pair = "device " + std::to_string(device) + " cannot reach the memory of device " +
                    std::to_string(owner);
  if (!can_access_peer(device, owner)) {
    throw Failure(Status::unsupported, pair + " from its kernels");
  }
  FABRICHECK_HIP(hipSetDevice(device));
  const auto error = hipDeviceEnablePeerAccess(owner, 0);
  if (error != hipSuccess && error != hipErrorPeerAccessAlreadyEnabled) {
    throw Failure(Status::unsupported, pair + ": " + hipGetErrorString(error));
  }
  (void)hipGetLastError();
}

}  // namespace fabricheck

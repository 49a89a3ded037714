// HIP calls that throw, and memory and streams that free themselves.
#pragma once

#include <hip/hip_runtime.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "harness/status.hpp"

namespace fabricheck {

struct PagePlaces;

/// Whether an error names hardware as its cause: uncorrected ECC or NVLink errors, one contained on
/// the device, or one of its call stack. Every other error can be that of a program or a driver.
bool names_hardware(hipError_t error);

/// Whether an error says that the program has no kernel for the device.
bool names_missing_kernels(hipError_t error);

/// The failure that an error of a call on the current device is: Failure(setting) with both
/// architectures if the program has no kernels for the device, Failure(device_error) if the error
/// names hardware, else Failure(refused).
Failure hip_failure(hipError_t error, const std::string& call, std::optional<int> device,
                    const std::string& compiled_for);

/// Throws that failure; nothing on hipSuccess.
void check_hip(hipError_t error, const char* call);

#define FABRICHECK_HIP(call) ::fabricheck::check_hip((call), #call)

/// Host memory: page-locked by the runtime, which every device reaches, coherent or not (ROCm
/// only), or as malloc gives it.
enum class HostMemory { pinned, noncoherent, pageable };

/// The flags for hipHostMalloc; `bound` if it has to follow the caller's memory policy.
unsigned host_malloc_flags(HostMemory kind, bool bound);

/// Memory, freed at the end of its life.
class Buffer {
 public:
  Buffer() = default;
  /// Memory of `device`. Throws Failure(unsupported) with both sizes when too little is free.
  static Buffer on_device(int device, std::size_t bytes);
  /// Managed memory, which the host and `device` share. Throws Failure(unsupported) with both sizes
  /// when the device, or the host, has too little free memory for all of it.
  static Buffer managed(int device, std::size_t bytes);
  /// Host memory of whole pages, on `numa_domain` if that is not negative; without a domain,
  /// page-locked memory is near the current device. The pages are touched, located, and moved if
  /// the runtime put them on other domains. If they stay there, throws Failure(setting) with the
  /// free memory of each domain if the requested one has too little, else Failure(software).
  /// Throws Failure(unsupported) for memory that is not coherent, on a runtime without it.
  /// `pages_on` is an injected fault: a domain that replaces the requested one.
  static Buffer on_host(int numa_domain, std::size_t bytes, HostMemory kind = HostMemory::pinned,
                        std::optional<int> pages_on = std::nullopt);

  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  template <typename T>
  [[nodiscard]] T* as() const {
    return static_cast<T*>(data_);
  }
  /// The NUMA domain in which all its pages were found; -1 for device memory or when unknown.
  [[nodiscard]] int numa_domain() const { return numa_domain_; }
  /// Locates the pages of host memory again, because a system may move them. Throws
  /// Failure(setting) with the domains found if they are not the requested ones, and names NUMA
  /// balancing if that moved them.
  void prove_pages();

 private:
  static Buffer allocated(int device, std::size_t bytes,
                          const std::function<hipError_t(void**, std::size_t)>& allocate);
  /// Locates the pages of host memory and returns the result of pages_astray.
  std::string ask_pages();
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(device_, other.device_);
    std::swap(numa_domain_, other.numa_domain_);
    std::swap(asked_domain_, other.asked_domain_);
    std::swap(bytes_, other.bytes_);
    std::swap(kind_, other.kind_);
  }
  void* data_ = nullptr;
  int device_ = -1;  // negative: host memory, to which what follows belongs
  int numa_domain_ = -1;
  int asked_domain_ = -1;
  std::size_t bytes_ = 0;
  HostMemory kind_ = HostMemory::pinned;
};

/// A sentence on the pages of host memory requested on a NUMA domain. Empty if all of them are
/// there, no domain was requested, or the system does not permit locating them.
std::string pages_astray(int asked_domain, const PagePlaces& places);

/// The failure of memory whose pages are on other domains; it names all domains. `free_before` is
/// the free memory of each domain before `bytes` were allocated. The system decides where pages
/// lie, so the failure is a setting.
Failure astray_failure(const std::string& sentence, int asked_domain, std::size_t bytes,
                       const std::map<int, std::uint64_t>& free_before);

/// A stream of one device with the two events that time a batch on it.
class TimedStream {
 public:
  explicit TimedStream(int device);
  TimedStream(TimedStream&& other) noexcept
      : device_(other.device_),
        stream_(std::exchange(other.stream_, nullptr)),
        start_(std::exchange(other.start_, nullptr)),
        stop_(std::exchange(other.stop_, nullptr)) {}
  TimedStream(const TimedStream&) = delete;
  TimedStream& operator=(const TimedStream&) = delete;
  TimedStream& operator=(TimedStream&&) = delete;
  ~TimedStream();

  [[nodiscard]] int device() const { return device_; }
  [[nodiscard]] hipStream_t get() const { return stream_; }
  void use() const { FABRICHECK_HIP(hipSetDevice(device_)); }
  void mark_start() const { FABRICHECK_HIP(hipEventRecord(start_, stream_)); }
  void mark_stop() const { FABRICHECK_HIP(hipEventRecord(stop_, stream_)); }
  void synchronize() const { FABRICHECK_HIP(hipStreamSynchronize(stream_)); }
  /// Seconds between the two marks; the stream must have been synchronized.
  [[nodiscard]] double seconds() const;
  /// Seconds from the other stream's mark of the start, or the stop, to this one's; negative if
  /// this one was first. Both must be of one device, and synchronized.
  [[nodiscard]] double starts_after(const TimedStream& other) const;
  [[nodiscard]] double stops_after(const TimedStream& other) const;

 private:
  int device_ = 0;
  hipStream_t stream_ = nullptr;
  hipEvent_t start_ = nullptr;
  hipEvent_t stop_ = nullptr;
};

/// Whether kernels on `device` can reach the memory of `owner`.
bool can_access_peer(int device, int owner);

/// Lets `device` read and write the memory of `owner` from its kernels.
/// Throws Failure(unsupported) naming the pair when it cannot.
void enable_peer_access(int device, int owner);

}  // namespace fabricheck

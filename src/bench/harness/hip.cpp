#include "harness/hip.hpp"

#include "harness/host.hpp"
#include "harness/sizes.hpp"

namespace fabricheck {

void check_hip(hipError_t error, const char* call) {
  if (error == hipSuccess) {
    return;
  }
  int device = -1;
  const bool known = hipGetDevice(&device) == hipSuccess;
  throw Failure(Status::runtime_error,
                std::string(call) + (known ? " on device " + std::to_string(device) : "") +
                    " failed: " + hipGetErrorString(error) + " (" + hipGetErrorName(error) + ")");
}

Buffer Buffer::on_device(int device, std::size_t bytes) {
  FABRICHECK_HIP(hipSetDevice(device));
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  FABRICHECK_HIP(hipMemGetInfo(&free_bytes, &total_bytes));
  Buffer buffer;
  // Asked before allocating: some runtimes overcommit and fail only at first touch.
  const auto error = bytes > free_bytes ? hipErrorOutOfMemory : hipMalloc(&buffer.data_, bytes);
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

Buffer Buffer::on_host(int numa_domain, std::size_t bytes) {
  const auto free_bytes = host_memory_available();
  Buffer buffer;
  const HostBinding binding(numa_domain);
  if (bytes > free_bytes ||
      hipHostMalloc(&buffer.data_, bytes, hipHostMallocPortable | hipHostMallocNumaUser) !=
          hipSuccess) {
    buffer.data_ = nullptr;
    (void)hipGetLastError();
    throw Failure(Status::unsupported, "the host has " + format_size(free_bytes) +
                                           " of memory free, but " + format_size(bytes) +
                                           " more page-locked are needed");
  }
  touch_pages(buffer.data_, bytes);
  buffer.numa_domain_ = numa_domain_of(buffer.data_, bytes);
  if (numa_domain >= 0 && buffer.numa_domain_ != numa_domain) {
    throw Failure(Status::runtime_error,
                  "host memory was asked for on NUMA domain " + std::to_string(numa_domain) +
                      ", but its pages are on " +
                      (buffer.numa_domain_ < 0 ? std::string("several or unknown domains")
                                               : "domain " + std::to_string(buffer.numa_domain_)));
  }
  return buffer;
}

Buffer::~Buffer() {
  if (data_ == nullptr) {
    return;
  }
  if (device_ < 0) {
    (void)hipHostFree(data_);
  } else {
    (void)hipSetDevice(device_);
    (void)hipFree(data_);
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

double TimedStream::seconds() const {
  float milliseconds = 0;
  FABRICHECK_HIP(hipEventElapsedTime(&milliseconds, start_, stop_));
  return 1e-3 * static_cast<double>(milliseconds);
}

void enable_peer_access(int device, int owner) {
  const auto pair = "device " + std::to_string(device) + " cannot reach the memory of device " +
                    std::to_string(owner);
  int possible = 0;
  FABRICHECK_HIP(hipDeviceCanAccessPeer(&possible, device, owner));
  if (possible == 0) {
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

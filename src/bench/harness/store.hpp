// Loads and stores of device code, plain or streaming.
#pragma once

#include <hip/hip_runtime.h>

#if !defined(__HIP_PLATFORM_AMD__) && !defined(__CUDACC__) && defined(__SSE2__)
#include <emmintrin.h>
#endif

// In device code: unroll the loop that follows.
#if defined(__HIP_PLATFORM_AMD__) || defined(__CUDACC__)
#define FABRICHECK_UNROLL _Pragma("unroll")
#else
#define FABRICHECK_UNROLL
#endif

namespace fabricheck {

/// Whether streaming loads differ from plain ones.
#if defined(__HIP_PLATFORM_AMD__) || defined(__CUDACC__)
constexpr bool kStreamingLoads = true;
#else
constexpr bool kStreamingLoads = false;
#endif

#if defined(__HIP_PLATFORM_AMD__)
/// Two doubles that are read or written by one streaming access: of two accesses of a double each,
/// which clang joins, clang 22 makes a plain one in loops.
using StreamedPair = double __attribute__((ext_vector_type(2)));
#endif

/// Reads 16 bytes. A streaming load asks the memory system not to keep the line in its caches; a
/// CPU has none for memory that it caches.
template <bool Streaming>
__device__ inline double2 load(const double2* where) {
#if defined(__HIP_PLATFORM_AMD__)
  if (Streaming) {
    const auto pair = __builtin_nontemporal_load(reinterpret_cast<const StreamedPair*>(where));
    return {pair.x, pair.y};
  }
#elif defined(__CUDACC__)
  if (Streaming) {
    return __ldcs(where);
  }
#endif
  return *where;
}

/// Writes 16 bytes. A streaming store asks the memory system not to keep the line in its caches:
/// on a CPU it also saves reading the line before it is overwritten, a third of a copy's traffic.
template <bool Streaming>
__device__ inline void store(double2* where, double2 value) {
  if (!Streaming) {
    *where = value;
    return;
  }
#if defined(__HIP_PLATFORM_AMD__)
  __builtin_nontemporal_store(StreamedPair{value.x, value.y},
                              reinterpret_cast<StreamedPair*>(where));
#elif defined(__CUDACC__)
  __stcs(where, value);
#elif defined(__SSE2__)
  _mm_stream_pd(&where->x, _mm_set_pd(value.y, value.x));
#else
  *where = value;  // no such store here
#endif
}

}  // namespace fabricheck

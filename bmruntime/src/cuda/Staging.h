// SPDX-License-Identifier: Apache-2.0
//===- Staging.h - Pinned staging memory for copies -----------------------===//
//
// A GPU copies from and to pinned host memory asynchronously. For other host memory, the driver's copy returns only
// when it is complete. Copies of other memory therefore go through pinned memory of the queue.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_STAGING_H
#define TESSERA_BMRUNTIME_SRC_CUDA_STAGING_H

#include "Driver.h"

#include <vector>

namespace bmrt::cuda {

/// Requires that the device's context is current.
class Staging {
public:
  explicit Staging(const Driver &driver) : driver(driver) {}
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  /// Returns true if the address is in pinned memory, from and to which the driver copies asynchronously.
  bool isPinned(const void *address) const;
  /// Returns |bytes| of pinned memory, valid until |finish|; null if it cannot be allocated or would exceed the limit.
  char *take(uint64_t bytes);
  /// Makes |finish| copy |bytes| from |from|, a result of |take|, to |to|.
  void deliverLater(void *to, const char *from, uint64_t bytes) { deliveries.push_back({to, from, bytes}); }
  /// Returns true if |finish| will change some of these bytes.
  bool willDeliver(const void *to, uint64_t bytes) const;
  /// Must be called after the stream has been waited for. |isDelivering|: the stream's copies succeeded, so deliver
  /// their data.
  void finish(bool isDelivering);
  /// Releases all memory; requires that nothing is in flight.
  void release();

private:
  struct Delivery {
    void *to;
    const char *from;
    uint64_t bytes;
  };
  struct Block {
    char *memory;
    uint64_t bytes, used;
  };

  const Driver &driver;
  std::vector<Block> blocks;
  std::vector<Delivery> deliveries;
  uint64_t total = 0;
};

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_STAGING_H

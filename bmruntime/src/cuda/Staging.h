// SPDX-License-Identifier: Apache-2.0
//===- Staging.h - The host's side of a queue's copies --------------------===//
//
// A GPU copies from and to pinned memory while its stream works on; of other memory of the host's the driver lets a
// copy return when it is done. So what is not pinned goes through pinned memory of the queue's own.
//
//===----------------------------------------------------------------------===//
#ifndef BMRT_CUDA_STAGING_H
#define BMRT_CUDA_STAGING_H

#include "Driver.h"

#include <vector>

namespace bmrt::cuda {

/// Functions are called with the device's context current.
class Staging {
public:
  explicit Staging(const Driver &driver) : driver(driver) {}
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;

  /// Whether the driver itself copies from and to there beside other work.
  bool isPinned(const void *address) const;
  /// |bytes| of pinned memory until |finish|; null where there are none, or it would become too much.
  char *take(uint64_t bytes);
  /// |finish| copies |bytes| from |from|, which |take| has given, to |to|.
  void deliverLater(void *to, const char *from, uint64_t bytes) { deliveries.push_back({to, from, bytes}); }
  /// When the stream has been waited for. |isDelivering|: its copies were done.
  void finish(bool isDelivering);
  /// Gives all memory back; nothing is in flight.
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

#endif // BMRT_CUDA_STAGING_H

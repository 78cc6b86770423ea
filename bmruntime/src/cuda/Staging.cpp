// SPDX-License-Identifier: Apache-2.0
//===- Staging.cpp - Pinned staging memory for copies ---------------------===//
#include "Staging.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

using namespace bmrt::cuda;

namespace {

constexpr uint64_t kLeastBlock = 256 << 10;
constexpr uint64_t kMost = 256 << 20; // limit, because pinned memory is lost to the rest of the system
constexpr uint64_t kAlignment = 256;

} // namespace

bool Staging::isPinned(const void *address) const {
  constexpr int kMemoryType = 2; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
  constexpr unsigned kHost = 1;  // CU_MEMORYTYPE_HOST
  unsigned type = 0;
  // The driver does not know memory that it has not allocated or registered, and returns an error for it.
  return driver.cuPointerGetAttribute(&type, kMemoryType, reinterpret_cast<CUdeviceptr>(address)) == CUDA_SUCCESS &&
         type == kHost;
}

char *Staging::take(uint64_t bytes) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  for (Block &block : blocks) {
    if (block.bytes - block.used >= bytes) {
      block.used += bytes;
      return block.memory + block.used - bytes;
    }
  }
  const uint64_t wanted = std::max({bytes, kLeastBlock, total}); // doubles the total
  const uint64_t size = wanted <= kMost - total ? wanted : bytes;
  void *memory = nullptr;
  if (size > kMost - total || driver.cuMemHostAlloc(&memory, size, 0) != CUDA_SUCCESS) {
    return nullptr;
  }
  total += size;
  blocks.push_back({static_cast<char *>(memory), size, bytes});
  return blocks.back().memory;
}

bool Staging::willDeliver(const void *to, uint64_t bytes) const {
  const auto begin = reinterpret_cast<uintptr_t>(to);
  return std::any_of(deliveries.begin(), deliveries.end(), [&](const Delivery &each) {
    const auto start = reinterpret_cast<uintptr_t>(each.to);
    return start < begin + bytes && begin < start + each.bytes;
  });
}

void Staging::finish(bool isDelivering) {
  for (const Delivery &each : deliveries) {
    if (isDelivering) {
      memcpy(each.to, each.from, each.bytes);
    }
  }
  deliveries.clear();
  for (Block &block : blocks) {
    block.used = 0;
  }
}

void Staging::release() {
  for (const Block &block : blocks) {
    driver.cuMemFreeHost(block.memory);
  }
  blocks.clear();
}

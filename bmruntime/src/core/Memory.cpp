// SPDX-License-Identifier: Apache-2.0
//===- Memory.cpp - Allocation that can fail ------------------------------===//
#include "Memory.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace bmrt::core;

namespace {
/// Size from which a buffer is a separate mapping: untouched pages cost nothing, and huge pages save TLB misses.
constexpr uint64_t kMapFrom = 1 << 20;
constexpr uint64_t kHugePage = 2 << 20;

uint64_t roundUp(uint64_t size) { return (size + 63) / 64 * 64; }
} // namespace

bool bmrt::core::exceedsMachine(uint64_t bytes) {
  const long pages = sysconf(_SC_PHYS_PAGES), pageSize = sysconf(_SC_PAGESIZE);
  return pages > 0 && pageSize > 0 && bytes / uint64_t(pageSize) >= uint64_t(pages);
}

Buffer::~Buffer() {
  if (size >= kMapFrom) {
    munmap(bytes, size);
  } else {
    free(bytes);
  }
}

bool Buffer::allocate(uint64_t newSize, bool isSparse) {
  Buffer fresh;
  if (newSize > UINT64_MAX / 2) {
    return false;
  }
  newSize = newSize == 0 ? 64 : roundUp(newSize);
  if (newSize >= kMapFrom) {
    if (!isSparse && exceedsMachine(newSize)) {
      return false;
    }
    void *mapped = mmap(nullptr, newSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      return false;
    }
    if (newSize >= 2 * kHugePage) {
      madvise(mapped, newSize, MADV_HUGEPAGE);
    }
    fresh.bytes = static_cast<char *>(mapped);
  } else {
    fresh.bytes = static_cast<char *>(aligned_alloc(64, newSize));
    if (!fresh.bytes) {
      return false;
    }
    memset(fresh.bytes, 0, newSize);
  }
  fresh.size = newSize;
  *this = std::move(fresh);
  return true;
}

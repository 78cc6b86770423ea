// SPDX-License-Identifier: Apache-2.0
//===- Integrity.cpp - Hash checks of a model at memory speed -------------===//
#include "Integrity.h"

#include <atomic>
#include <pthread.h>
#include <sys/mman.h>

using namespace bmrt::core;
using namespace bmodel;

namespace {

/// Size below which a second thread costs more than it saves.
constexpr uint64_t kHelpFrom = 8 << 20;

/// Size of a segment below which its pages stay: reading them again would cost time and save little memory.
constexpr uint64_t kReleaseFrom = 8 << 20;

/// All chunks of all wanted segments, numbered consecutively; each thread takes the next one.
class ChunkQueue {
public:
  ChunkQueue(const ModelView &view, uint32_t kinds, bool isMapped) : view(view), kinds(kinds), isMapped(isMapped) {}

  /// Checks chunks until none is left or a chunk is corrupt.
  void drain() {
    uint64_t first = 0; // number of the first chunk of segment i
    const auto &segments = *view.model->segments();
    uint64_t mine = next.fetch_add(1, std::memory_order_relaxed);
    for (uint32_t i = 0; i < segments.size(); ++i) {
      const SegmentDef &segment = *segments.Get(i);
      if (!(kinds >> uint32_t(segment.kind()) & 1)) {
        continue;
      }
      const uint64_t end = first + chunkCount(segment);
      while (mine < end) {
        check(i, segment, mine - first);
        if (failed.load(std::memory_order_relaxed)) {
          return;
        }
        mine = next.fetch_add(1, std::memory_order_relaxed);
      }
      first = end;
    }
  }

  uint64_t bytes() const {
    uint64_t total = 0;
    for (const SegmentDef *segment : *view.model->segments()) {
      total += kinds >> uint32_t(segment->kind()) & 1 ? segment->bytes() : 0;
    }
    return total;
  }

  bool result(Status &status) const {
    if (failed) {
      status = cause;
    }
    return !failed;
  }

private:
  void check(uint32_t index, const SegmentDef &segment, uint64_t chunk) {
    const uint64_t begin = segment.offset() + chunk * segment.chunk_bytes();
    const uint64_t end = segment.offset() + segment.bytes();
    const uint64_t size = end - begin < segment.chunk_bytes() ? end - begin : segment.chunk_bytes();
    const uintptr_t address = reinterpret_cast<uintptr_t>(view.data + begin) & ~uintptr_t(4095);
    // Populates the pages with one system call instead of a page fault per 64 KiB. Older kernels do not support this.
#ifdef MADV_POPULATE_READ
    madvise(reinterpret_cast<void *>(address), size, MADV_POPULATE_READ);
#endif
    Status found;
    if (!checkChunk(view, index, chunk, found) && !claimed.exchange(true)) {
      cause = found;
      failed = true;
    }
    // Gives the pages back. Runs may read a small part of them, e.g. a few rows of a table of embeddings. Never done
    // with memory of the caller, which would lose its contents.
    if (isMapped && segment.kind() != SegmentKind::Code && segment.bytes() >= kReleaseFrom) {
      madvise(reinterpret_cast<void *>(address), size, MADV_DONTNEED);
    }
  }

  const ModelView &view;
  const uint32_t kinds;
  const bool isMapped;
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> claimed = false, failed = false;
  Status cause;
};

void *drainQueue(void *queue) {
  static_cast<ChunkQueue *>(queue)->drain();
  return nullptr;
}

} // namespace

bool bmrt::core::checkIntegrity(const ModelView &view, bool trustConstants, bool isMapped, Status &status) {
  if (!view.model->segments()) {
    return true;
  }
  const uint32_t code = 1u << uint32_t(SegmentKind::Code);
  ChunkQueue queue(view, trustConstants ? code : ~0u, isMapped);
  pthread_t helper;
  // If no helper can be started, this thread checks all chunks.
  const bool helped = queue.bytes() >= kHelpFrom && pthread_create(&helper, nullptr, drainQueue, &queue) == 0;
  queue.drain();
  if (helped) {
    pthread_join(helper, nullptr);
  }
  return queue.result(status);
}

//===- PlaceBuffers.h - Offsets for buffers with lifetimes ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_DEVICE_DIALECT_TRANSFORMS_PLACEBUFFERS_H
#define TESSERA_DEVICE_DIALECT_TRANSFORMS_PLACEBUFFERS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace tessera::device {

/// Bytes that are needed from step |first| to step |last|, both inclusive.
struct Buffer {
  int64_t bytes;
  int64_t first, last;
};

struct Placement {
  llvm::SmallVector<int64_t> offsets; ///< in bytes, per buffer
  int64_t bytes = 0;                  ///< total extent
};

/// Returns offsets, multiples of |alignment|, such that buffers needed at the same step do not overlap: the best of
/// placing large buffers first, placing them in order of time, and a bounded search over orders. Deterministic.
Placement placeBuffers(llvm::ArrayRef<Buffer> buffers, int64_t alignment);

/// Returns the largest sum of (aligned) bytes needed at one step; no placement can be smaller.
int64_t lowerBound(llvm::ArrayRef<Buffer> buffers, int64_t alignment);

} // namespace tessera::device

#endif // TESSERA_DEVICE_DIALECT_TRANSFORMS_PLACEBUFFERS_H

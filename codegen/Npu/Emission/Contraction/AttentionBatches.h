//===- AttentionBatches.h - Positions of the batches of an attention --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ATTENTIONBATCHES_H
#define TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ATTENTIONBATCHES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace tessera::npu {

/// Offset of batch outer * group + inner of an operand, as a linear function, in elements.
struct Affine {
  int64_t base, byOuter, byInner;
};

/// Returns the linear function that gives all |begins|, or nothing if there is none.
inline std::optional<Affine> affineOf(llvm::ArrayRef<int64_t> begins, int64_t group) {
  int64_t count = int64_t(begins.size());
  Affine result = {begins[0], count > group ? begins[size_t(group)] - begins[0] : 0,
                   group > 1 ? begins[1] - begins[0] : 0};
  for (int64_t i = 0; i < count; ++i) {
    if (begins[size_t(i)] != result.base + i / group * result.byOuter + i % group * result.byInner) {
      return std::nullopt;
    }
  }
  return result;
}

/// Returns the number of consecutive batches that share keys and values, or 1 if not all such groups have the same
/// size.
inline int64_t groupOf(llvm::ArrayRef<int64_t> keys, llvm::ArrayRef<int64_t> values) {
  int64_t group = 1, count = int64_t(keys.size());
  while (group < count && keys[size_t(group)] == keys[0] && values[size_t(group)] == values[0]) {
    ++group;
  }
  auto isShared = [&](llvm::ArrayRef<int64_t> begins) {
    std::optional<Affine> found = affineOf(begins, group);
    return found && found->byInner == 0;
  };
  return count % group == 0 && isShared(keys) && isShared(values) ? group : 1;
}

/// Returns the number of runs of evenly spaced batches.
inline int64_t runsOf(llvm::ArrayRef<int64_t> begins) {
  int64_t runs = 1;
  for (size_t first = 0, i = 1; i < begins.size(); ++i) {
    if (begins[i] - begins[i - 1] != begins[first + 1] - begins[first]) {
      ++runs, first = i;
    }
  }
  return runs;
}

/// Returns every |period|-th batch, starting with batch |first|.
inline llvm::SmallVector<int64_t> everyOf(llvm::ArrayRef<int64_t> begins, int64_t first, int64_t period) {
  llvm::SmallVector<int64_t> result;
  for (size_t i = size_t(first); i < begins.size(); i += size_t(period)) {
    result.push_back(begins[i]);
  }
  return result;
}

} // namespace tessera::npu

#endif // TESSERA_CODEGEN_NPU_EMISSION_CONTRACTION_ATTENTIONBATCHES_H

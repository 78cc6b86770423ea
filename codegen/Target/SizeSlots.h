//===- SizeSlots.h - Sizes of a subnet known at run time --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_SIZESLOTS_H
#define TESSERA_CODEGEN_TARGET_SIZESLOTS_H

#include "bmodel/writer.h"
#include "top_dialect/IR/Sizes.h"

#include "llvm/ADT/MapVector.h"

namespace tessera::codegen {

/// Numbers the sizes of a subnet that are known at run time only. Its tensors and launches refer to a size by its
/// number, where the file has a dim slot of the stage; the StagePlanner replaces the numbers by slots.
class SizeSlots {
public:
  /// Returns the number of |size|, which must be symbolic; equal sizes have the same number.
  uint32_t slotOf(Dim size) {
    assert(size.isSymbolic() && "numbers need no slot");
    return numbers.try_emplace(size.expression(), uint32_t(numbers.size())).first->second;
  }
  /// Returns |size|, which must not be unknown, as a dimension of a tensor or a number of tiles.
  bmodel::Dim toFile(Dim size) {
    return size.isKnown() ? bmodel::constantDim(size.value()) : bmodel::Dim(maxOf(size), int32_t(slotOf(size)));
  }
  /// Returns the sizes in the order of their numbers.
  llvm::SmallVector<Dim> sizes() const {
    return llvm::map_to_vector(numbers, [](const auto &entry) { return Dim(entry.first); });
  }

private:
  llvm::MapVector<top::SizeAttr, uint32_t> numbers;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_SIZESLOTS_H

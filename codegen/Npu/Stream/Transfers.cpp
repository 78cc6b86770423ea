//===- Transfers.cpp - DMA transfers --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Stream/Transfers.h"

#include "bmodel/npu/latency.h"

namespace hw = bmodel::npu;

namespace tessera::npu {

double directCycles(llvm::ArrayRef<Transfer> moves, const Chip &chip) {
  double cycles = 0;
  for (const Transfer &move : moves) {
    hw::copy_command copy;
    copy.y = move.to.tensor, copy.x = move.from.tensor, copy.shape = move.to.shape;
    cycles += hw::costOf(hw::encode(copy), chip).cycles;
  }
  return cycles;
}

bool haveSameLayout(const TileView &a, const TileView &b) {
  return std::equal(std::begin(a.shape.dims), std::end(a.shape.dims), std::begin(b.shape.dims)) &&
         std::equal(std::begin(a.tensor.strides), std::end(a.tensor.strides), std::begin(b.tensor.strides)) &&
         a.tensor.region == b.tensor.region;
}

uint64_t apart(const TileView &a, const TileView &b) {
  return std::max(a.tensor.offset, b.tensor.offset) - std::min(a.tensor.offset, b.tensor.offset);
}

} // namespace tessera::npu

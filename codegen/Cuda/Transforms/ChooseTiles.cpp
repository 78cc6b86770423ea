//===- ChooseTiles.cpp - Tiles of products on tensor cores ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/TileCost.h"
#include "codegen/Cuda/Transforms/Passes.h"

namespace tessera::cuda {
#define GEN_PASS_DEF_CHOOSETILESPASS
#include "codegen/Cuda/Transforms/Passes.h.inc"
} // namespace tessera::cuda

using namespace mlir;

namespace tessera::cuda {
namespace {

struct Shape {
  int64_t rows, columns, kBytes, warpRows, warpColumns, warpK, stages;
};

/// Large tiles read their operands seldom; small ones, and warps along K, keep a chip busy with few results.
constexpr Shape kShapes[] = {
    {128, 128, 64, 2, 2, 1, 3}, {128, 64, 64, 2, 2, 1, 4}, {64, 128, 64, 2, 2, 1, 4}, {64, 64, 64, 2, 2, 1, 4},
    {64, 32, 64, 2, 1, 1, 4},   {32, 64, 64, 1, 2, 1, 4},  {64, 32, 128, 2, 1, 2, 4}, {32, 64, 128, 1, 2, 2, 4},
    {32, 32, 128, 1, 1, 4, 4},  {32, 32, 256, 1, 1, 4, 3}, {16, 32, 128, 1, 1, 4, 4}, {16, 64, 128, 1, 2, 2, 4},
    {16, 32, 256, 1, 1, 8, 4},  {32, 32, 64, 1, 1, 2, 4},  {16, 32, 64, 1, 1, 1, 4},
};

class ChooseTiles : public impl::ChooseTilesPassBase<ChooseTiles> {
public:
  using ChooseTilesPassBase::ChooseTilesPassBase;

  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      auto attention = dyn_cast<device::AttentionOp>(op);
      if (attention && fitsTensorCores(attention)) {
        op->setAttr(CudaDialect::kAttentionAttr, choose(attention));
        ++numTiles;
      } else if (fitsTensorCores(op)) {
        op->setAttr(CudaDialect::kTileAttr, choose(op));
        ++numTiles;
      }
    });
  }

private:
  AttentionTileAttr choose(device::AttentionOp op) {
    SmallVector<int64_t> q = op.view(0).sizes, v = op.view(2).sizes;
    int64_t batches = ShapedType::getNumElements(ArrayRef(q).drop_back(2)), queries = q[q.size() - 2], warps = 4;
    while (warps > 1 && batches * int64_t(llvm::divideCeil(queries, 16 * warps)) < multiprocessors) {
      warps /= 2;
    }
    // Wide rows, so that shared memory has two steps of them.
    constexpr int64_t kWide = 64;
    int64_t keys = std::max(q.back(), v.back()) > kWide ? 32 : 64;
    return AttentionTileAttr::get(&getContext(), warps, keys);
  }

  TileAttr choose(Operation *op) {
    TensorProduct product = TensorProduct::of(op);
    bool isInteger = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType().isInteger(8);
    TensorRate rate{multiprocessors, isInteger ? double(int8Rate) : 2.0 * double(f16Rate)};
    TileAttr best;
    for (const Shape &shape : kShapes) {
      auto tile = TileAttr::get(&getContext(), shape.rows, shape.columns, shape.kBytes, shape.warpRows,
                                shape.warpColumns, shape.warpK, shape.stages);
      if (!best || cyclesOf(product, tile, rate) < cyclesOf(product, best, rate)) {
        best = tile;
      }
    }
    return best;
  }
};

} // namespace
} // namespace tessera::cuda

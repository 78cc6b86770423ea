//===- ChooseTiles.cpp - Tiles of products --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/TileCost.h"
#include "codegen/Cuda/Transforms/Passes.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/IR/TypeUtilities.h"

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
      } else if (fitsTile(op)) {
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

  /// Of factors of |element|, times their bytes.
  double bytesRate(Type element) {
    int64_t products = element.isInteger(8)             ? int8Rate
                       : device::isNarrowFloat(element) ? f16Rate
                       : tf32                           ? tf32Rate
                                                        : f32Rate;
    return double(products * device::elementBytes(element));
  }

  /// Cores need registers for more factors than tensor cores do: a thread of them has fewer sums.
  TileAttr tileOf(const Shape &shape, bool onCores, bool asTf32) {
    constexpr int64_t kMostSums = 64;
    int64_t warps = shape.warpRows * shape.warpColumns, sums = shape.rows * shape.columns / (32 * warps);
    return TileAttr::get(&getContext(), shape.rows, shape.columns, shape.kBytes,
                         shape.warpRows * (onCores && sums > kMostSums ? 2 : 1), shape.warpColumns, shape.warpK,
                         shape.stages, asTf32);
  }

  TileAttr choose(Operation *op) {
    TiledProduct product = TiledProduct::of(op);
    Type element = getElementTypeOrSelf(op->getOperand(0));
    bool asTf32 = tf32 && element.isF32();
    ProductRate rate{multiprocessors, bytesRate(element)};
    TileAttr best;
    for (const Shape &shape : kShapes) {
      TileAttr tile = tileOf(shape, element.isF32() && !tf32, asTf32);
      if (!best || cyclesOf(product, tile, rate) < cyclesOf(product, best, rate)) {
        best = tile;
      }
    }
    return best;
  }
};

} // namespace
} // namespace tessera::cuda

//===- ChooseTiles.cpp - Chooses the tiles of contractions ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/TileCost.h"
#include "codegen/Cuda/Transforms/Passes.h"
#include "codegen/Kernels/SizeTerms.h"
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

/// Large tiles read their operands less often; small tiles, and warps along K, keep a GPU busy with few results.
constexpr Shape kShapes[] = {
    {128, 128, 64, 2, 2, 1, 3}, {128, 64, 64, 2, 2, 1, 4}, {64, 128, 64, 2, 2, 1, 4}, {64, 64, 64, 2, 2, 1, 4},
    {64, 32, 64, 2, 1, 1, 4},   {32, 64, 64, 1, 2, 1, 4},  {64, 32, 128, 2, 1, 2, 4}, {32, 64, 128, 1, 2, 2, 4},
    {32, 32, 128, 1, 1, 4, 4},  {32, 32, 256, 1, 1, 4, 3}, {16, 32, 128, 1, 1, 4, 4}, {16, 64, 128, 1, 2, 2, 4},
    {16, 32, 256, 1, 1, 8, 4},  {32, 32, 64, 1, 1, 2, 4},  {16, 32, 64, 1, 1, 1, 4},
};

constexpr int64_t kSplits[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr double kLeastGain = 0.05; ///< smaller gains are within the error of the model

class ChooseTiles : public impl::ChooseTilesPassBase<ChooseTiles> {
public:
  using ChooseTilesPassBase::ChooseTilesPassBase;

  void runOnOperation() override {
    double gained = 0;
    SmallVector<Choice> choices;
    getOperation().walk([&](Operation *op) {
      auto attention = dyn_cast<device::AttentionOp>(op);
      if (attention && fitsTensorCores(attention)) {
        op->setAttr(CudaDialect::kAttentionAttr, choose(attention));
        ++numTiles;
      } else if (fitsGemv(op)) {
        op->setAttr(CudaDialect::kGemvAttr, chooseWarps(op));
      } else if (fitsTile(op)) {
        choices.push_back(choose(op));
        gained += choices.back().gained;
      }
    });
    for (Choice &choice : choices) {
      choice.op->setAttr(CudaDialect::kTileAttr, gained > double(launchCycles) ? choice.best : choice.whole);
      ++numTiles;
    }
  }

private:
  /// The fastest tile of |op|, and the fastest one that blocks do not share.
  struct Choice {
    Operation *op;
    TileAttr best, whole;
    double gained; ///< cycles gained by sharing
  };

  AttentionTileAttr choose(device::AttentionOp op) {
    SmallVector<int64_t> q = op.view(0).sizes, v = op.view(2).sizes;
    int64_t batches = ShapedType::getNumElements(ArrayRef(q).drop_back(2)), queries = q[q.size() - 2], warps = 4;
    while (warps > 1 && batches * int64_t(llvm::divideCeil(queries, 16 * warps)) < multiprocessors) {
      warps /= 2;
    }
    // With wide rows, use fewer keys so that two steps fit shared memory.
    constexpr int64_t kWide = 64;
    int64_t keys = std::max(q.back(), v.back()) > kWide ? 32 : 64;
    return AttentionTileAttr::get(&getContext(), warps, keys);
  }

  /// Chooses enough warps to hide the latency of memory: several per multiprocessor, which divide columns before K.
  GemvAttr chooseWarps(Operation *op) {
    constexpr int64_t kWarps = 16, kBlockWarps = 4, kMostAlongK = 8;
    constexpr int64_t kShare = 1024; // least elements of K per warp
    int64_t columns = cast<RankedTensorType>(op->getResult(0).getType()).getShape().back();
    int64_t depth = cast<RankedTensorType>(op->getOperand(0).getType()).getShape().back();
    int64_t wanted = kWarps * multiprocessors, own = columns / 4 >= wanted ? 4 : 2,
            warps = llvm::divideCeil(columns, own);
    int64_t alongK = 1;
    while (alongK < kMostAlongK && warps * alongK < wanted && depth / (2 * alongK) >= kShare) {
      alongK *= 2;
    }
    return GemvAttr::get(&getContext(), own, std::max<int64_t>(1, kBlockWarps / alongK), alongK);
  }

  /// Returns the multiply-adds of |element|s per cycle, times the bytes of an element.
  double bytesRate(Type element) {
    int64_t products = element.isInteger(8)             ? int8Rate
                       : device::isNarrowFloat(element) ? f16Rate
                       : tf32                           ? tf32Rate
                                                        : f32Rate;
    return double(products * device::elementBytes(element));
  }

  /// Returns the tile of |shape|. Cores need more registers for operands than tensor cores, so a thread has fewer sums.
  TileAttr tileOf(const Shape &shape, bool onCores, bool asTf32) {
    constexpr int64_t kMostSums = 64;
    int64_t warps = shape.warpRows * shape.warpColumns, sums = shape.rows * shape.columns / (32 * warps);
    return TileAttr::get(&getContext(), shape.rows, shape.columns, shape.kBytes,
                         shape.warpRows * (onCores && sums > kMostSums ? 2 : 1), shape.warpColumns, shape.warpK,
                         shape.stages, /*splitK=*/1, asTf32);
  }

  Choice choose(Operation *op) {
    TiledContraction contraction = TiledContraction::of(op);
    Type element = getElementTypeOrSelf(op->getOperand(0));
    bool asTf32 = tf32 && element.isF32();
    ContractionRate rate{multiprocessors, bytesRate(element)};
    TileAttr whole, shared;
    auto cycles = [&](TileAttr tile) { return cyclesOf(contraction, tile, rate); };
    SmallVector<TileAttr> all;
    auto keepFaster = [&](TileAttr &best, TileAttr tile) {
      best = !best || cycles(tile) < cycles(best) ? tile : best;
      all.push_back(tile);
    };
    for (const Shape &shape : kShapes) {
      TileAttr tile = tileOf(shape, element.isF32() && !tf32, asTf32);
      keepFaster(whole, tile);
      // The counters of shared tiles, and the memory of their sums, have constant sizes.
      for (int64_t split : kernels::hasOpenSizes(op) ? ArrayRef<int64_t>() : ArrayRef(kSplits)) {
        // Each block must have a step.
        if ((split - 1) * tile.withSplit(split).stepsOf(contraction.kBytes) < tile.stepsOf(contraction.kBytes)) {
          keepFaster(shared, tile.withSplit(split));
        }
      }
    }
    if (candidates > 0) {
      llvm::stable_sort(all, [&](TileAttr a, TileAttr b) { return cycles(a) < cycles(b); });
      all.truncate(std::min<size_t>(all.size(), size_t(candidates)));
      op->setAttr(CudaDialect::kCandidatesAttr, ArrayAttr::get(&getContext(), {all.begin(), all.end()}));
    }
    double gained = shared ? cycles(whole) - cycles(shared) : 0;
    bool pays = gained > kLeastGain * cycles(whole);
    return {op, pays ? shared : whole, whole, pays ? gained : 0};
  }
};

} // namespace
} // namespace tessera::cuda

//===- PackBlocks.cpp - Packs the weights of block matmuls ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/NarrowFloats.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/SetVector.h"
#include <cstring>

namespace tessera::x86 {
#define GEN_PASS_DEF_PACKBLOCKSPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
namespace {

/// The logical weights of a block matmul.
struct BlockWeights {
  top::TensorData integers, scales;
  std::optional<top::TensorData> mins;
};

bool hasConstantWeights(device::BlockMatMulOp op) {
  return !op.getPacking() && op.getScales() && top::isConstant(op.getW()) && top::isConstant(op.getScales()) &&
         (!op.getMins() || top::isConstant(op.getMins()));
}

BlockWeights weightsOf(device::BlockMatMulOp op) {
  return {*top::getConstantData(op.getW()), *top::getConstantData(op.getScales()),
          op.getMins() ? top::getConstantData(op.getMins()) : std::nullopt};
}

/// Returns true if every number is an f16.
bool areHalves(ArrayRef<float> values) {
  return llvm::all_of(values, [](float value) { return top::widenF16(top::roundToF16(value)) == value; });
}

BlockPackingAttr choosePacking(device::BlockMatMulOp op, const BlockWeights &weights) {
  ArrayRef<int8_t> integers = weights.integers.data<int8_t>();
  auto areIn = [&](int8_t lowest, int8_t highest) {
    return llvm::all_of(integers, [=](int8_t w) { return w >= lowest && w <= highest; });
  };
  const int64_t lowest = areIn(0, 15) ? 0 : areIn(-8, 7) ? -8 : -128;
  const bool halves =
      areHalves(weights.scales.data<float>()) && (!weights.mins || areHalves(weights.mins->data<float>()));
  return BlockPackingAttr::get(op.getContext(), lowest == -128 ? PackedStep::i8 : PackedStep::i4, op.getWeightShape(),
                               static_cast<int64_t>(op.getBlock()), lowest, weights.mins.has_value(), halves);
}

/// Writes the panels of one packing.
class BlockPacker {
public:
  BlockPacker(BlockPackingAttr packing, const BlockWeights &weights)
      : packing(packing), depth(Shape(weights.integers.type)[0].value()),
        columns(Shape(weights.integers.type)[1].value()), weights(weights) {}

  std::vector<char> pack() const {
    std::vector<char> packed(packing.bytes(), 0);
    for (int64_t panel = 0; panel < packing.panels(); ++panel) {
      for (int64_t block = 0; block < packing.blocks(); ++block) {
        char *to = packed.data() + panel * packing.bytesOfPanel() + block * packing.bytesOfBlock();
        writeWeights(panel * kBlock, block * packing.getBlock(), to);
        to += packing.weightBytesOfBlock();
        writeScales(weights.scales, panel * kBlock, block, to);
        if (weights.mins) {
          writeScales(*weights.mins, panel * kBlock, block, to + packing.scaleBytesOfBlock());
        }
      }
    }
    return packed;
  }

private:
  int weightAt(int64_t k, int64_t column) const {
    return k < depth && column < columns ? weights.integers.data<int8_t>()[k * columns + column] : 0;
  }

  void writeWeights(int64_t firstColumn, int64_t firstK, char *to) const {
    const bool isNibble = packing.getStep() == PackedStep::i4;
    const auto lowest = static_cast<int>(packing.getLowest());
    for (int64_t i = 0; i < packing.getBlock(); ++i) {
      const int64_t step = i / 4, row = isNibble ? step / 2 : step;
      for (int64_t c = 0; c < kBlock; ++c) {
        char &byte = to[row * kBlock * 4 + c * 4 + i % 4];
        const int weight = weightAt(firstK + i, firstColumn + c);
        byte = static_cast<char>(isNibble ? byte | (weight - lowest) << (step % 2 * 4) : weight);
      }
    }
  }

  void writeScales(const top::TensorData &scales, int64_t firstColumn, int64_t block, char *to) const {
    for (int64_t c = 0; c < std::min(kBlock, columns - firstColumn); ++c) {
      const float value = scales.data<float>()[block * columns + firstColumn + c];
      if (packing.getHalves()) {
        const uint16_t half = top::roundToF16(value);
        std::memcpy(to + c * sizeof half, &half, sizeof half);
      } else {
        std::memcpy(to + c * sizeof value, &value, sizeof value);
      }
    }
  }

  BlockPackingAttr packing;
  int64_t depth, columns;
  const BlockWeights &weights;
};

struct PackBlocks : impl::PackBlocksPassBase<PackBlocks> {
  using PackBlocksPassBase::PackBlocksPassBase;

  void runOnOperation() override {
    SmallVector<device::BlockMatMulOp> ops;
    getOperation().walk([&](device::BlockMatMulOp op) {
      if (canPack(op)) {
        ops.push_back(op);
      }
    });
    // Pack a few at a time, because each needs its own copy of the weights until the store holds the packed ones.
    const size_t atOnce = std::max<size_t>(2, getContext().getNumThreads());
    for (size_t begin = 0; begin < ops.size(); begin += atOnce) {
      auto batch = ArrayRef(ops).slice(begin, std::min(atOnce, ops.size() - begin));
      std::vector<std::vector<char>> packed(batch.size());
      SmallVector<BlockPackingAttr> packings(batch.size());
      parallelFor(&getContext(), 0, batch.size(), [&](size_t i) {
        BlockWeights weights = weightsOf(batch[i]);
        packings[i] = choosePacking(batch[i], weights);
        packed[i] = BlockPacker(packings[i], weights).pack();
      });
      for (auto [op, packing, bytes] : llvm::zip_equal(batch, packings, packed)) {
        install(op, packing, std::move(bytes));
      }
      top::dropUnheldWeights(getOperation());
    }
  }

private:
  static bool canPack(device::BlockMatMulOp op) {
    constexpr int64_t kMostOfBlock = 256;
    const auto block = static_cast<int64_t>(op.getBlock());
    return block % kBlock == 0 && block <= kMostOfBlock && hasConstantWeights(op) && op.getWeightShape()[0] > 0;
  }

  static void install(device::BlockMatMulOp op, BlockPackingAttr packing, std::vector<char> packed) {
    OpBuilder builder(op);
    auto type = RankedTensorType::get({packing.bytes()}, builder.getI8Type());
    llvm::SmallSetVector<Value, 3> old; // scales and mins may be one constant
    for (Value value : {op.getW(), op.getScales(), op.getMins()}) {
      if (value) {
        old.insert(value);
      }
    }
    op.getWMutable().assign(top::createConstant(builder, op.getW().getLoc(), type, std::move(packed), "packed_blocks"));
    op.getScalesMutable().clear();
    op.getMinsMutable().clear();
    op.setPackingAttr(packing);
    for (Value value : old) {
      top::releaseWeight(value);
      if (value.use_empty()) {
        value.getDefiningOp()->erase();
      }
    }
  }
};

} // namespace
} // namespace tessera::x86

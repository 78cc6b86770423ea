//===- BlockWeights.cpp - Weights of a block matmul as constants ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Contraction/BlockWeights.h"

#include "codegen/Npu/Contraction/Contraction.h"
#include "top_dialect/IR/NarrowFloats.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;
namespace {

/// Parts of an op's constants: its weights, and its scales and minima in f32 or f16.
enum Part : int64_t { kWeights, kFloats, kHalfs };

/// The constants as the op has them.
struct Given {
  std::vector<char> weights;         ///< [entries, columns]
  std::vector<float> scales, minima; ///< [blocks, columns]
};

llvm::Expected<Given> givenBy(device::BlockMatMulOp op) {
  llvm::Expected<std::vector<char>> weights = constantValues<char>(op.getW(), "weights");
  llvm::Expected<std::vector<float>> scales = constantValues<float>(op.getScales(), "scales");
  llvm::Expected<std::vector<float>> minima =
      op.getMins() ? constantValues<float>(op.getMins(), "minima") : std::vector<float>();
  if (!weights || !scales || !minima) {
    return llvm::joinErrors(llvm::joinErrors(weights.takeError(), scales.takeError()), minima.takeError());
  }
  return Given{std::move(*weights), std::move(*scales), std::move(*minima)};
}

std::vector<char> tableOf(const Given &given, const BlockSizes &sizes, int64_t columns) {
  const int64_t entries = sizes.paddedDepth();
  std::vector<char> table(size_t(columns * entries));
  for (int64_t k = 0; k < sizes.depth; ++k) {
    for (int64_t n = 0; n < sizes.columns; ++n) {
      table[size_t(n * entries + k)] = given.weights[size_t(k * sizes.columns + n)];
    }
  }
  return table;
}

bool areF16(ArrayRef<float> numbers) {
  return llvm::all_of(numbers, [](float number) { return top::widenF16(top::roundToF16(number)) == number; });
}

template <typename T>
std::vector<char> numbersOf(const Given &given, const BlockSizes &sizes, int64_t columns, T (*convert)(float)) {
  const int64_t blocks = sizes.blocks();
  std::vector<T> table(size_t(columns * sizes.steps()));
  for (auto [part, numbers] : llvm::enumerate(ArrayRef<ArrayRef<float>>{given.scales, given.minima})) {
    for (int64_t g = 0; g < (numbers.empty() ? 0 : blocks); ++g) {
      for (int64_t n = 0; n < sizes.columns; ++n) {
        table[size_t(n * sizes.steps() + int64_t(part) * blocks + g)] = convert(numbers[size_t(g * sizes.columns + n)]);
      }
    }
  }
  std::vector<char> bytes(table.size() * sizeof(T));
  std::memcpy(bytes.data(), table.data(), bytes.size());
  return bytes;
}

TileView viewOf(uint64_t offset, int64_t columns, int64_t perColumn, Type type) {
  TileView view;
  const auto size = int32_t(hw::sizeOf(type));
  view.shape = {{1, uint32_t(columns), 1, uint32_t(perColumn)}};
  view.tensor = {
      .offset = offset, .strides = {0, int32_t(perColumn) * size, 0, size}, .region = Region::constants, .type = type};
  return view;
}

} // namespace

llvm::Expected<BlockWeights> BlockWeights::place(device::BlockMatMulOp op, const BlockSizes &sizes,
                                                 CommandStream &stream) {
  const int64_t columns = int64_t(llvm::alignTo(uint64_t(sizes.columns), stream.chip.lanes));
  auto &known = stream.constants.weights;
  auto key = [&](Part part) { return std::tuple(static_cast<const void *>(op.getOperation()), false, int64_t(part)); };
  if (!known.count(key(kWeights))) {
    llvm::Expected<Given> given = givenBy(op);
    if (!given) {
      return given.takeError();
    }
    known[key(kWeights)] = stream.addConstant(tableOf(*given, sizes, columns));
    if (llvm::is_contained(stream.chip.casts, "f16-f32") && areF16(given->scales) && areF16(given->minima)) {
      known[key(kHalfs)] = stream.addConstant(numbersOf<uint16_t>(*given, sizes, columns, top::roundToF16));
    } else {
      known[key(kFloats)] =
          stream.addConstant(numbersOf<float>(*given, sizes, columns, [](float number) { return number; }));
    }
  }
  const bool areHalfs = known.count(key(kHalfs));
  BlockWeights result;
  result.weights = viewOf(known[key(kWeights)], columns, sizes.paddedDepth(), Type::i8);
  result.numbers =
      viewOf(known[key(areHalfs ? kHalfs : kFloats)], columns, sizes.steps(), areHalfs ? Type::f16 : Type::f32);
  return result;
}

std::pair<TileView, TileView> BlockWeights::load(uint32_t first, uint32_t columns, LocalBudget &localBudget, Tile &tile,
                                                 const Chip &chip) const {
  const TileView from[] = {slice(weights, 1, first, columns, chip), slice(numbers, 1, first, columns, chip)};
  const TileView to[] = {localBudget.allocate(from[0].shape, Type::i8), localBudget.allocate(from[1].shape, Type::f32)};
  for (auto [y, x] : llvm::zip(to, from)) {
    tile.loads.push_back(hw::encode(hw::copy_command{.y = y.tensor, .x = x.tensor, .shape = y.shape}));
  }
  return {to[0], to[1]};
}

} // namespace tessera::npu

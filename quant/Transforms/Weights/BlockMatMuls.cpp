//===- BlockMatMuls.cpp - Matmuls of quantised rows and blocks of weights ---===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Weights/BlockMatMuls.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/NarrowFloats.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopBlockOps.h"
#include "top_dialect/IR/TopConstOps.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightLifetime.h"
#include "top_dialect/IR/WeightStore.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::quant {
namespace {

/// Constants of the right operand of a matmul before they are brought into the order of block_matmul. Weight (k, n)
/// stands for q * scale + addend, if there are addends.
struct GivenWeights {
  Operation *dequantize;
  top::TensorData integers, scales;
  std::optional<top::TensorData> addends;
  bool columnsFirst;     ///< integers are [N, ..] instead of [.., N]
  int64_t depth, padded; ///< K, and the entries of K that the constants have
  int64_t columns;
  int64_t block = 0; ///< entries of K that share a scale; 0: all

  int64_t integerAt(int64_t k, int64_t n) const { return columnsFirst ? n * padded + k : k * columns + n; }
  /// Returns the index of the scale or addend of entry k of column n.
  int64_t scaleAt(int64_t k, int64_t n) const {
    const int64_t blocks = block ? padded / block : 1, b = block ? k / block : 0;
    return columnsFirst ? n * blocks + b : b * columns + n;
  }
};

/// Returns the value that `value` is a slice of, if the slice only cuts off the ends of dims; else `value`.
Value beforeCrop(Value value) {
  auto slice = value.getDefiningOp<top::SliceOp>();
  bool crops = slice && llvm::all_of(slice.getStarts(), [](int64_t start) { return start == 0; }) &&
               llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
  return crops ? slice.getX() : value;
}

/// Returns true if every element of the constant `value` is zero.
bool isZero(Value value) {
  std::optional<top::TensorData> data = top::getConstantData(value);
  return data && llvm::all_of(data->bytes, [](char byte) { return byte == 0; });
}

std::optional<GivenWeights> match(Operation *op) {
  auto matmul = dyn_cast<top::MatMulOp>(op);
  if (!matmul || matmul.getTransA() || !Shape(matmul.getB()).isKnown() || Shape(matmul.getB()).rank() != 2) {
    return std::nullopt;
  }
  ArrayRef<int64_t> shape = Shape(matmul.getB()).values();
  const bool columnsFirst = matmul.getTransB();
  Value value = beforeCrop(matmul.getB());
  ArrayRef<int64_t> whole = Shape(value).values();
  if (whole[columnsFirst ? 0 : 1] != shape[columnsFirst ? 0 : 1]) {
    return std::nullopt;
  }
  if (auto reshape = value.getDefiningOp<top::ReshapeOp>()) {
    value = reshape.getX();
  }
  std::optional<top::TensorData> addends;
  if (auto add = value.getDefiningOp<top::AddOp>()) {
    addends = top::getConstantData(add.getB());
    if (!addends || !addends->type.getElementType().isF32()) {
      return std::nullopt;
    }
    value = add.getA();
  }
  auto dequantize = value.getDefiningOp<top::DequantizeOp>();
  if (!dequantize || !isZero(dequantize.getZeroPoint())) {
    return std::nullopt;
  }
  std::optional<top::TensorData> integers = top::getConstantData(dequantize.getX()),
                                 scales = top::getConstantData(dequantize.getScale());
  if (!integers || !scales || !integers->type.getElementType().isSignlessInteger(8)) {
    return std::nullopt;
  }
  GivenWeights given{dequantize,
                     *integers,
                     *scales,
                     addends,
                     columnsFirst,
                     shape[columnsFirst ? 1 : 0],
                     whole[columnsFirst ? 1 : 0],
                     shape[columnsFirst ? 0 : 1]};
  ArrayRef<int64_t> dims = Shape(given.integers.type).values();
  SmallVector<int64_t> expected(dims.size(), 1); // dims of the scales
  if (dims.size() == 3) {
    // [N, blocks, block] or [blocks, block, N]
    given.block = dims[columnsFirst ? 2 : 1];
    expected[0] = dims[0], expected[columnsFirst ? 1 : 2] = dims[columnsFirst ? 1 : 2];
    if (given.block < 1 || dims[columnsFirst ? 0 : 2] != given.columns) {
      return std::nullopt;
    }
  } else if (dims == whole) {
    expected[columnsFirst ? 0 : 1] = given.columns;
  } else {
    return std::nullopt;
  }
  auto fits = [&](const top::TensorData &data) { return Shape(data.type).values() == ArrayRef(expected); };
  return fits(given.scales) && (!addends || fits(*addends)) ? std::optional(given) : std::nullopt;
}

/// The constants of a block_matmul, without its integers.
struct Blocks {
  std::vector<float> scales, mins;
  int raise = 0; ///< integers are greater than the given ones by this
};

Blocks arrange(const GivenWeights &given, int64_t block) {
  const int64_t blocks = int64_t(llvm::divideCeil(given.depth, block));
  Blocks result{std::vector<float>(blocks * given.columns), {}};
  result.mins.resize(given.addends ? result.scales.size() : 0);
  for (int64_t b = 0; b < blocks; ++b) {
    for (int64_t n = 0; n < given.columns; ++n) {
      const int64_t to = b * given.columns + n, from = given.scaleAt(b * block, n);
      result.scales[to] = given.scales.data<float>()[from];
      if (given.addends) {
        result.mins[to] = given.addends->data<float>()[from];
      }
    }
  }
  return result;
}

/// Returns the integers [K, N] of a block_matmul. Goes by tiles of columns, because rows of the given integers may be
/// columns of the result.
std::vector<char> arrangeIntegers(const GivenWeights &given, int raise) {
  constexpr int64_t kTile = 64;
  std::vector<char> result(given.depth * given.columns);
  for (int64_t begin = 0; begin < given.columns; begin += kTile) {
    const int64_t end = std::min(begin + kTile, given.columns);
    for (int64_t k = 0; k < given.depth; ++k) {
      for (int64_t n = begin; n < end; ++n) {
        result[k * given.columns + n] = static_cast<char>(given.integers.bytes[given.integerAt(k, n)] + raise);
      }
    }
  }
  return result;
}

/// Returns true if all weights are from -limit to limit - 1.
bool areWithin(const GivenWeights &given, int limit) {
  const int64_t rows = given.columnsFirst ? given.columns : given.depth;
  const int64_t used = given.columnsFirst ? given.depth : given.columns; // of a row; the rest is padding
  const int64_t stride = given.columnsFirst ? given.padded : given.columns;
  auto isLow = [&](int8_t q) { return q >= -limit && q < limit; };
  for (int64_t row = 0; row < rows; ++row) {
    if (!llvm::all_of(given.integers.data<int8_t>().slice(row * stride, used), isLow)) {
      return false;
    }
  }
  return true;
}

/// Replaces weights q >= -8 by q + 8 if the smaller mins are f16 numbers with which every weight stands for the same
/// number: files store such mins, in half the bytes.
void raiseNibbles(const GivenWeights &given, Blocks &blocks) {
  constexpr int kRaise = 8;
  if (blocks.mins.empty() || !areWithin(given, kRaise)) {
    return;
  }
  std::vector<float> lowered;
  for (auto [scale, min] : llvm::zip_equal(blocks.scales, blocks.mins)) {
    const float low = top::widenF16(top::roundToF16(min - kRaise * scale));
    if (low + kRaise * scale != min) {
      return;
    }
    lowered.push_back(low);
  }
  blocks.mins = std::move(lowered);
  blocks.raise = kRaise;
}

/// Returns the integers as a constant that takes no memory until it is packed.
Value createIntegers(OpBuilder &builder, Location loc, const GivenWeights &given, int raise) {
  auto type = RankedTensorType::get({given.depth, given.columns}, builder.getI8Type());
  auto source = given.dequantize->getOperand(0).getDefiningOp<top::WeightOp>();
  if (!source) {
    return top::createConstant(builder, loc, type, arrangeIntegers(given, raise), "block_weights");
  }
  top::WeightStore &store = builder.getContext()->getOrLoadDialect<top::TopDialect>()->getWeightStore();
  std::shared_ptr<const void> owner = store.lookup(source.getKey())->owner; // the source may be dropped before
  return top::createLazyConstant(
      builder, loc, type, [given, raise, owner] { return arrangeIntegers(given, raise); }, "block_weights");
}

} // namespace

bool hasBlockWeights(Operation *op) { return match(op).has_value(); }

Operation *rewriteToBlockMatMul(top::MatMulOp op, int64_t groupSize) {
  constexpr int64_t kAlignment = 16; // of blocks that fast kernels read
  const GivenWeights given = *match(op);
  int64_t block = given.block ? given.block : groupSize;
  if (block >= given.depth) { // one block: its size is free
    block = std::max(kAlignment, int64_t(llvm::alignTo(given.depth, kAlignment)));
  }
  Blocks blocks = arrange(given, block);
  raiseNibbles(given, blocks);
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto floats = [&](const std::vector<float> &values, StringRef hint) -> Value {
    auto type = RankedTensorType::get({int64_t(values.size()) / given.columns, given.columns}, builder.getF32Type());
    ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    return top::createConstant(builder, loc, type, bytes, hint);
  };
  Value integers = createIntegers(builder, loc, given, blocks.raise);
  Value scales = floats(blocks.scales, "block_scales");
  Value mins = blocks.mins.empty() ? Value() : floats(blocks.mins, "block_mins");
  auto matmul = top::BlockMatMulOp::create(builder, loc, op.getY().getType(), op.getA(), integers, scales, mins, block);
  Value value = matmul;
  if (op.getBias()) {
    value = top::AddOp::create(builder, loc, op.getY().getType(), value, op.getBias());
  }
  value = rectified(builder, op, value);
  top::copyNames(op, value.getDefiningOp());
  top::releaseWeight(given.dequantize->getOperand(0));
  top::releaseWeight(given.dequantize->getOperand(1));
  op.getY().replaceAllUsesWith(value);
  return matmul;
}

} // namespace tessera::quant

//===- PackedWeights.cpp - Handlers of onnxruntime's operators with packed weights --===//
// SPDX-License-Identifier: Apache-2.0
//
// The weights are unpacked during import. Scales and zero points apply to blocks of weights. Integers with f32 scales
// stay integers, in the form in which import from other files writes them.
#include "top_dialect/Import/Onnx/Microsoft/PackedWeights.h"
#include "top_dialect/IR/BlockQuantization.h"
#include "top_dialect/IR/TopBlockOps.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

Value unpackBits(NodeImporter &n, Value packed, int64_t bits, int64_t count) {
  auto data = getConstantData(packed);
  Ints shape(NodeImporter::shape(packed));
  if (n.failed() || !data || shape.empty() || shape.back() != (count * bits + 7) / 8) {
    n.fail(llvm::formatv("a tensor of {0} numbers of {1} bits is computed at run time, or has {2} bytes per row", count,
                         bits, shape.empty() ? 0 : shape.back()));
    return packed;
  }
  int64_t rowBytes = shape.back(), rows = rowBytes ? static_cast<int64_t>(data->bytes.size()) / rowBytes : 0;
  shape.back() = count;
  auto type =
      mlir::RankedTensorType::get(shape, mlir::IntegerType::get(n.b.getContext(), 8, mlir::IntegerType::Unsigned));
  if (!n.charge(byteSize(type))) {
    return packed;
  }
  std::vector<char> values(rows * count);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < count; ++i) {
      unsigned byte = static_cast<unsigned char>(data->bytes[row * rowBytes + i * bits / 8]);
      values[row * count + i] = static_cast<char>(byte >> (i * bits % 8) & ((1U << bits) - 1));
    }
  }
  return createConstant(n.b, n.loc, type, std::move(values), nodeName(n.node));
}

int64_t readBits(NodeImporter &n, llvm::StringRef name) {
  int64_t bits = n.intAttr(name, 4);
  if (bits != 2 && bits != 4 && bits != 8) {
    n.unsupported(llvm::formatv("attribute '{0}' is {1}; supported are 2, 4 and 8", name, bits));
    return 8;
  }
  return bits;
}

Value dequantise(NodeImporter &n, Value q, Value zero, Value scale) {
  mlir::Type element = NodeImporter::elementType(scale);
  return n.create<MulOp>(n.create<SubOp>(n.cast(q, element), n.cast(zero, element)), scale);
}

namespace {

/// Rows of integers in blocks: a weight stands for q * scale + minimum.
struct Blocks {
  Value integers;       ///< i8 [N, blocks, block]
  Value scales, minima; ///< f32 [N, blocks, 1]; minima may be null
  int64_t rows = 0, blocks = 0, block = 0;

  /// Returns the weights as [N, blocks, block].
  Value dequantise(NodeImporter &n) const {
    Value zero = n.scalar(n.b.getI8Type(), 0);
    return n.create<DequantizeOp>(integers, scales, zero);
  }
};

/// Returns the |unsignedIntegers| (u8 [N, blocks, block]), whose |zero| points (a scalar or [N, blocks, 1], f32) and
/// |scales| (f32 [N, blocks, 1]) are constants, with integers around 0. Blocks whose scale is 0 get the scale 1 and the
/// weights 0: kernels take scales other than 0 only. Returns nothing for other types, and if weights are to be
/// dequantised.
std::optional<Blocks> centre(NodeImporter &n, Value unsignedIntegers, Value zero, Value scales, int64_t bits) {
  auto given = getConstantData(unsignedIntegers), zeros = getConstantData(zero), factors = getConstantData(scales);
  if (n.failed() || !n.graph.model.keepsFormats || !given || !zeros || !factors ||
      !factors->type.getElementType().isF32() || !zeros->type.getElementType().isF32()) {
    return std::nullopt;
  }
  Blocks result;
  llvm::ArrayRef<int64_t> dims = NodeImporter::shape(unsignedIntegers);
  result.rows = dims[0], result.blocks = dims[1], result.block = dims[2];
  const int64_t count = result.rows * result.blocks, middle = int64_t(1) << (bits - 1);
  llvm::ArrayRef<float> zeroPoints = zeros->data<float>(), oldScales = factors->data<float>();
  if (int64_t(oldScales.size()) != count || (int64_t(zeroPoints.size()) != count && zeroPoints.size() != 1) ||
      !n.charge(int64_t(given->bytes.size()))) {
    return std::nullopt;
  }
  std::vector<char> integers(given->bytes.begin(), given->bytes.end());
  std::vector<float> newScales(oldScales.begin(), oldScales.end()), minima(count);
  for (int64_t i = 0; i < count; ++i) {
    auto part = llvm::MutableArrayRef(integers).slice(i * result.block, result.block);
    if (newScales[i] == 0) {
      newScales[i] = 1;
      llvm::fill(part, 0);
      continue;
    }
    llvm::for_each(part, [&](char &q) { q = static_cast<char>(static_cast<unsigned char>(q) - middle); });
    minima[i] = (static_cast<float>(middle) - zeroPoints[zeroPoints.size() == 1 ? 0 : i]) * newScales[i];
  }
  auto floats = [&](const std::vector<float> &values) {
    llvm::SmallVector<int64_t> sizes = {result.rows, result.blocks, 1};
    llvm::ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    return createConstant(n.b, n.loc, mlir::RankedTensorType::get(sizes, n.b.getF32Type()), bytes, nodeName(n.node));
  };
  result.integers = createConstant(n.b, n.loc, mlir::RankedTensorType::get(dims, n.b.getI8Type()), std::move(integers),
                                   nodeName(n.node));
  result.scales = floats(newScales);
  result.minima = llvm::all_of(minima, [](float minimum) { return minimum == 0; }) ? Value() : floats(minima);
  return result;
}

/// Cuts the last dim of |x| to |size| entries.
Value cropLast(NodeImporter &n, Value x, Dim size) {
  llvm::SmallVector<Dim> sizes = NodeImporter::sizes(x);
  if (n.failed() || sameSize(sizes.back(), size)) {
    return x;
  }
  sizes.back() = size;
  return n.slice(x, llvm::SmallVector<Dim>(sizes.size(), 0), sizes, Ints(sizes.size(), 1));
}

/// Multiplies |x| by the transpose of the first |depth| columns of |weights|.
Value multiplyBlocks(NodeImporter &n, Value x, const Blocks &weights, int64_t depth) {
  Value wide = weights.dequantise(n);
  wide = weights.minima ? n.create<AddOp>(wide, weights.minima) : wide;
  wide = cropLast(n, n.reshape(wide, {weights.rows, weights.blocks * weights.block}), depth);
  return n.create<MatMulOp>(x, wide, Value(), false, /*transB=*/true, false, llvm::APFloat(-1.0));
}

/// Multiplies the rows of |x|, quantised to i8 by blocks, by the same weights.
Value multiplyQuantised(NodeImporter &n, Value x, const Blocks &weights, int64_t depth) {
  Value joined = cropLast(n, n.reshape(weights.integers, {weights.rows, weights.blocks * weights.block}), depth);
  auto byBlock = [&](Value parameter) {
    return parameter ? n.transpose(n.reshape(parameter, {weights.rows, weights.blocks}), {1, 0}) : parameter;
  };
  return n.create<BlockMatMulOp>(x, n.transpose(joined, {1, 0}), byBlock(weights.scales), byBlock(weights.minima),
                                 weights.block);
}

/// Fails unless g_idx (input 4), the block of each weight, is absent or k / block.
void requirePlainOrder(NodeImporter &n, int64_t depth, int64_t block) {
  if (!n.hasInput(4) || n.failed()) {
    return;
  }
  auto order = getConstantInts(n.input(4));
  bool isPlain = order && static_cast<int64_t>(order->size()) >= depth;
  for (int64_t i = 0; isPlain && i < depth; ++i) {
    isPlain = (*order)[i] == i / block;
  }
  if (!isPlain) {
    n.unsupported("g_idx (input 4) that assigns weights to blocks in another order is not supported");
  }
}

/// Multiplies A by the transpose of weights [N, K]. Each block of block_size weights along K has a scale. With
/// accuracy_level 4, A is quantised by blocks as well.
void matMulNBits(NodeImporter &n) {
  n.allowOnly({"K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"}, 6);
  int64_t k = n.requiredInt("K"), columns = n.requiredInt("N"), block = n.requiredInt("block_size"),
          bits = readBits(n, "bits");
  if (n.intAttr("weight_prepacked", 0) != 0) {
    n.unsupported("attribute 'weight_prepacked' is not 0: save the model without it");
  }
  if (n.failed()) {
    return;
  }
  if (k < 1 || columns < 1 || block < 1 || k > (int64_t(1) << 31) || columns > (int64_t(1) << 31)) {
    n.fail(llvm::formatv("K is {0}, N is {1} and block_size is {2}; all must be positive", k, columns, block));
    return;
  }
  requirePlainOrder(n, k, block);
  int64_t blocks = (k + block - 1) / block;
  Value packed = n.input(1), scales = n.reshape(n.input(2), {columns, blocks, 1});
  Value weights = unpackBits(n, n.reshape(packed, {columns, blocks, block * bits / 8}), bits, block);
  Value zero = n.scalarLike(scales, static_cast<double>(1 << (bits - 1)));
  if (n.hasInput(3) && !n.failed()) {
    zero = NodeImporter::isFloat(n.input(3))
               ? n.input(3)
               : unpackBits(n, n.reshape(n.input(3), {columns, (blocks * bits + 7) / 8}), bits, blocks);
    zero = n.reshape(n.cast(zero, NodeImporter::elementType(scales)), {columns, blocks, 1});
  }
  Value x = n.input(0), y;
  bool isWide = NodeImporter::rank(x) > 1 && NodeImporter::elementType(x).isF32();
  if (auto centred = isWide ? centre(n, weights, zero, scales, bits) : std::nullopt) {
    constexpr int64_t kInt8Rows = 4;
    y = n.intAttr("accuracy_level", 0) == kInt8Rows && block <= kMostOfBlock ? multiplyQuantised(n, x, *centred, k)
                                                                             : multiplyBlocks(n, x, *centred, k);
  } else {
    Value wide = n.reshape(dequantise(n, weights, zero, scales), {columns, blocks * block});
    y = makeNumpyMatMul(n, x, n.transpose(cropLast(n, wide, k), {1, 0}));
  }
  n.setOutput(0, n.hasInput(5) ? n.create<AddOp>(y, n.input(5)) : y);
}

/// Gathers |indices| of the rows of |table|, and dequantises these rows.
Value gatherBlocks(NodeImporter &n, const Blocks &table, Value indices) {
  Value rows = n.create<GatherOp>(table.dequantise(n), indices, 0);
  rows = table.minima ? n.create<AddOp>(rows, n.create<GatherOp>(table.minima, indices, 0)) : rows;
  llvm::SmallVector<Dim> sizes = NodeImporter::sizes(indices);
  sizes.push_back(table.blocks * table.block);
  return n.failed() ? rows : n.reshapeTo(rows, sizes);
}

/// Gathers rows of integers and their scales, and multiplies the gathered rows.
void gatherBlockQuantized(NodeImporter &n) {
  n.allowOnly({"bits", "block_size", "gather_axis", "quantize_axis"}, 4);
  Value data = n.input(0), indices = n.input(1), scales = n.input(2), zeros = n.optionalInput(3);
  const StorageType *storage = n.inputStorage(0);
  int64_t bits = readBits(n, "bits"), block = n.intAttr("block_size", 128), rank = NodeImporter::rank(data);
  bool isPacked = !storage && NodeImporter::elementType(data).isUnsignedInteger(8);
  if (!n.failed() && !isPacked && (!storage || storage->isFloat())) {
    n.unsupported("its data must be int4, uint4 or packed uint8");
  }
  int64_t gatherAxis = n.normalizeAxis(n.intAttr("gather_axis", 0), rank),
          quantizeAxis = n.normalizeAxis(n.intAttr("quantize_axis", 1), rank);
  if (n.failed() || block < 1 || gatherAxis == quantizeAxis) {
    n.unsupported(
        llvm::formatv("block_size {0}, gather_axis {1} and quantize_axis {2} are not supported; the axes must "
                      "differ",
                      block, gatherAxis, quantizeAxis));
    return;
  }
  double zero = 0;
  if (isPacked) {
    data = unpackBits(n, data, bits, NodeImporter::shape(data).back() * 8 / bits);
    int64_t blocks = NodeImporter::shape(scales).back();
    zeros = zeros ? unpackBits(n, zeros, bits, blocks) : zeros;
    zero = 1 << (bits - 1);
    int64_t rows = NodeImporter::dim(data, 0), width = NodeImporter::dim(data, 1);
    if (!n.failed() && rank == 2 && gatherAxis == 0 && width % block == 0 && blocks == width / block) {
      Value points =
          zeros ? n.reshape(n.cast(zeros, n.b.getF32Type()), {rows, blocks, 1}) : n.scalar(n.b.getF32Type(), zero);
      Value table = n.reshape(data, {rows, blocks, block}), factors = n.reshape(scales, {rows, blocks, 1});
      if (auto centred = centre(n, table, points, factors, bits)) {
        n.setOutput(0, gatherBlocks(n, *centred, indices));
        return;
      }
    }
  }
  bool isWhole = !n.graph.model.keepsFormats || !Shape(indices).isKnown(); // dequantise before the gather
  auto pick = [&](Value x) { return isWhole ? x : n.create<GatherOp>(x, indices, gatherAxis); };
  int64_t added = !isWhole && quantizeAxis > gatherAxis ? NodeImporter::rank(indices) - 1 : 0;
  Value q = pick(data);
  int64_t size = NodeImporter::dim(q, quantizeAxis + added);
  auto spread = [&](Value x) { return repeatBlocks(n, pick(x), quantizeAxis + added, block, size); };
  Value scale = spread(scales);
  Value y = dequantise(n, q, zeros ? spread(zeros) : n.scalarLike(scale, zero), scale);
  n.setOutput(0, isWhole ? n.create<GatherOp>(y, indices, gatherAxis) : y);
}

constexpr llvm::StringLiteral kDomain = "com.microsoft";
constexpr HandlerEntry kHandlers[] = {
    {kDomain, "MatMulNBits", matMulNBits},
    {kDomain, "GatherBlockQuantized", gatherBlockQuantized},
};

} // namespace

llvm::ArrayRef<HandlerEntry> packedWeightHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

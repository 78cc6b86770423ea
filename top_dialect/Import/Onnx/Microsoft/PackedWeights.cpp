//===- PackedWeights.cpp - Handlers of onnxruntime's operators with packed weights --===//
// SPDX-License-Identifier: Apache-2.0
//
// The weights are unpacked during import. Scales and zero points apply to blocks of weights.
#include "top_dialect/Import/Onnx/Microsoft/PackedWeights.h"
#include "top_dialect/Import/Onnx/OpBuilders.h"
#include "top_dialect/Import/Onnx/StorageTypes.h"

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

/// Multiplies A by the transpose of weights [N, K]. Each block of block_size weights along K has a scale.
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
  int64_t blocks = (k + block - 1) / block;
  Value packed = n.input(1), scales = n.reshape(n.input(2), {columns, blocks});
  Value weights = unpackBits(n, n.reshape(packed, {columns, blocks, block * bits / 8}), bits, block);
  if (n.hasInput(4) && !n.failed()) {
    auto order = getConstantInts(n.input(4));
    bool isPlain = order && static_cast<int64_t>(order->size()) >= k;
    for (int64_t i = 0; isPlain && i < k; ++i) {
      isPlain = (*order)[i] == i / block;
    }
    if (!isPlain) {
      n.unsupported("g_idx (input 4) that assigns weights to blocks in another order is not supported");
    }
  }
  Value zero = n.scalarLike(scales, static_cast<double>(1 << (bits - 1)));
  if (n.hasInput(3) && !n.failed()) {
    zero = NodeImporter::isFloat(n.input(3))
               ? n.input(3)
               : unpackBits(n, n.reshape(n.input(3), {columns, (blocks * bits + 7) / 8}), bits, blocks);
    zero = n.reshape(zero, {columns, blocks, 1});
  }
  Value wide = dequantise(n, weights, zero, n.reshape(scales, {columns, blocks, 1}));
  wide = n.reshape(wide, {columns, blocks * block});
  if (blocks * block != k) {
    wide = n.create<SliceOp>(wide, Ints{0, 0}, Ints{columns, k}, Ints{1, 1});
  }
  Value y = makeNumpyMatMul(n, n.input(0), n.transpose(wide, {1, 0}));
  n.setOutput(0, n.hasInput(5) ? n.create<AddOp>(y, n.input(5)) : y);
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
  }
  auto pick = [&](Value x) { return n.create<GatherOp>(x, indices, gatherAxis); };
  int64_t moved = quantizeAxis + (quantizeAxis > gatherAxis ? NodeImporter::rank(indices) - 1 : 0);
  Value q = pick(data);
  int64_t size = NodeImporter::dim(q, moved);
  auto spread = [&](Value x) { return repeatBlocks(n, pick(x), moved, block, size); };
  Value scale = spread(scales);
  n.setOutput(0, dequantise(n, q, zeros ? spread(zeros) : n.scalarLike(scale, zero), scale));
}

constexpr llvm::StringLiteral kDomain = "com.microsoft";
constexpr HandlerEntry kHandlers[] = {
    {kDomain, "MatMulNBits", matMulNBits},
    {kDomain, "GatherBlockQuantized", gatherBlockQuantized},
};

} // namespace

llvm::ArrayRef<HandlerEntry> packedWeightHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

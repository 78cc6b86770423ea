//===- CudaDialect.cpp - Registration and attributes ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/IR/CudaDialect.h"

#include "codegen/Cuda/IR/GemvRows.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/TypeUtilities.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using tessera::typeOf;
using namespace tessera::cuda;

//===----------------------------------------------------------------------===//
// Optional parameters of tiles: [, split_k = n] [, tf32 = true]
//===----------------------------------------------------------------------===//

static ParseResult parseTileOptions(AsmParser &parser, int64_t &splitK, bool &tf32) {
  splitK = 1, tf32 = false;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name, truth;
    SMLoc at = parser.getCurrentLocation();
    bool isKnown = succeeded(parser.parseOptionalKeyword(&name, {"split_k", "tf32"})) && !parser.parseEqual();
    if (!isKnown || (name == "split_k" ? failed(parser.parseInteger(splitK))
                                       : failed(parser.parseOptionalKeyword(&truth, {"true", "false"})))) {
      return parser.emitError(at, "expected 'split_k = ' and a number, or 'tf32 = ' and true or false");
    }
    tf32 = name == "tf32" ? truth == "true" : tf32;
  }
  return success();
}

static void printTileOptions(AsmPrinter &printer, int64_t splitK, bool tf32) {
  if (splitK != 1) {
    printer << ", split_k = " << splitK;
  }
  if (tf32) {
    printer << ", tf32 = true";
  }
}

#include "codegen/Cuda/IR/CudaDialect.cpp.inc"
#include "codegen/Cuda/IR/CudaEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "codegen/Cuda/IR/CudaAttrs.cpp.inc"

void CudaDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "codegen/Cuda/IR/CudaAttrs.cpp.inc"
#include "top_dialect/IR/TensorTypes.h"
      >();
}

LogicalResult CudaDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  using namespace tessera::device;
  if (attribute.getName() == kTileAttr && (!isa<ConvOp, MatMulOp>(op) || !isa<TileAttr>(attribute.getValue()))) {
    return op->emitOpError() << "has " << attribute.getName() << " = " << attribute.getValue()
                             << ", allowed a #cuda.tile on a device.conv or device.matmul";
  }
  if (attribute.getName() == kTileAttr && !fitsTile(op)) {
    return op->emitOpError() << "has " << kTileAttr
                             << ", allowed on convolutions and matmuls of bytes, and of f32, f16 or bf16 if the order "
                             << "of sums is not specified; groups must have several channels in whole 4-byte words, "
                                "convolution weights must be constant, "
                                "weights narrower than an f32 input must be "
                             << "constant 8- or 16-bit weights of one matrix whose scales are equal for every four "
                                "elements of K, and operands "
                             << "must be smaller than 1 GiB";
  }
  if (attribute.getName() == kTileAttr && cast<TileAttr>(attribute.getValue()).getTf32() &&
      !getElementTypeOrSelf(op->getOperand(0)).isF32()) { // tile_c6
    return op->emitOpError() << "has a tile with tf32, allowed on ops with an f32 left operand (tile_c6)";
  }
  auto candidates = dyn_cast<ArrayAttr>(attribute.getValue());
  bool areTiles = candidates && llvm::all_of(candidates, [](Attribute each) { return isa<TileAttr>(each); });
  if (attribute.getName() == kCandidatesAttr && (!areTiles || !fitsTile(op))) {
    return op->emitOpError() << "has " << kCandidatesAttr << " = " << attribute.getValue()
                             << ", allowed a list of #cuda.tile on an op that supports cuda.tile";
  }
  if (attribute.getName() == kProductAttr && (!isa<StringAttr>(attribute.getValue()) || !tileOf(op))) {
    return op->emitOpError() << "has " << kProductAttr << " = " << attribute.getValue()
                             << ", allowed a string on an op with cuda.tile";
  }
  if (attribute.getName() == kGemvAttr && (!isa<GemvAttr>(attribute.getValue()) || !fitsGemv(op))) { // gemv_c3
    return op->emitOpError()
           << "has " << attribute.getName() << " = " << attribute.getValue()
           << ", allowed a #cuda.gemv on a device.matmul of at most " << kMostGemvRows
           << " rows of f32 whose order of sums is not specified, by constant integer weights of one "
           << "matrix, with K at least 256 and a multiple of 32, and groups of K that are whole runs (gemv_c3)";
  }
  auto attention = dyn_cast<AttentionOp>(op);
  bool ofAttention = attribute.getName() == kAttentionAttr;
  if (ofAttention && (!attention || !isa<AttentionTileAttr>(attribute.getValue()) || !fitsTensorCores(attention))) {
    return op->emitOpError()
           << "has " << attribute.getName() << " = " << attribute.getValue()
           << ", allowed a #cuda.attention on a device.attention of f16 or bf16 whose order of sums is "
           << "not specified, with 16 or more rows of q, rows of 8 to " << kMostFeatures
           << " elements whose lengths, strides and offsets are multiples of 8, and operands smaller than 1 GiB";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Returns true if kernels can address |value| with 32 bits at all sizes.
static bool isSmall(Value value) {
  constexpr int64_t kMostBytes = int64_t(1) << 30;
  return tessera::Shape(value).isDetermined() && !tessera::countElements(value).is(0) &&
         tessera::device::physicalBytes(typeOf(value)) < kMostBytes;
}

static bool hasKnownSizes(Operation *op) {
  auto isKnown = [](Value value) { return tessera::Shape(value).isKnown(); };
  return llvm::all_of(op->getOperands(), isKnown) && llvm::all_of(op->getResults(), isKnown);
}

/// Returns true if K, the columns and the pitches of rows are numbers; rows and batches may be open.
static bool hasSizesOfTiles(Operation *op) {
  using tessera::Shape;
  Shape x(op->getOperand(0)), w(op->getOperand(1)), y(op->getResult(0));
  if (isa<tessera::device::ConvOp>(op)) {
    return x[1].isKnown() && w.isKnown() && y[1].isKnown();
  }
  auto matmul = cast<tessera::device::MatMulOp>(op);
  bool isKnownB = w[w.rank() - 2].isKnown() && w.back().isKnown();
  return x.back().isKnown() && (!matmul.getTransA() || x[x.rank() - 2].isKnown()) && isKnownB && y.back().isKnown();
}

/// Returns true if the scales are absent, or constant and equal for every four neighbours along K.
static bool scalesFit(Value scales, int64_t group, int64_t period) {
  return !scales || (tessera::top::isConstant(scales) && (group % 4 == 0 || group >= period));
}

bool tessera::cuda::widensWeights(Operation *op) {
  return getElementTypeOrSelf(op->getOperand(0)).isF32() && !getElementTypeOrSelf(op->getOperand(1)).isF32();
}

int64_t tessera::cuda::channelRun(tessera::device::ConvOp conv) {
  int64_t channels = conv.getWeightShape()[1];
  Type element = getElementTypeOrSelf(conv.getX());
  return conv.getGroups() == 1 ? llvm::alignTo(channels, 16 / tessera::device::elementBytes(element)) : channels;
}

/// Returns true if the channels of a group fill words of 4 bytes. Tiles do not compute groups of single channels.
static bool groupsFit(tessera::device::ConvOp conv) {
  constexpr int64_t kWord = 4;
  int64_t channels = conv.getWeightShape()[1];
  return conv.getGroups() == 1 ||
         (channels > 1 && channels * tessera::device::elementBytes(getElementTypeOrSelf(conv.getX())) % kWord == 0);
}

/// Returns true if |op| has constant weights of one matrix that can be widened to f32, four neighbours along K at a
/// time.
static bool fitsWidening(Operation *op) {
  using namespace tessera;
  Type weights = typeOf(op->getOperand(1)).getElementType();
  if (!top::isConstant(op->getOperand(1)) || (!weights.isInteger(8) && !device::isNarrowFloat(weights))) {
    return false;
  }
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    // In K of a row-major x, kernel positions vary faster than channels.
    int64_t channels = conv.getWeightShape()[1];
    bool isOne = int64_t(conv.getWeightGroup()) >= channels;
    return conv.getGroups() == 1 && scalesFit(conv.getScales(), conv.getWeightGroup(), channels) &&
           (isOne || !conv.getScales() || device::isBlocked(conv.getX().getType()));
  }
  auto matmul = cast<device::MatMulOp>(op);
  RankedTensorType a = typeOf(matmul.getA());
  bool isOne = ShapedType::getNumElements(matmul.getWeightShape().drop_back(2)) == 1;
  return isOne && scalesFit(matmul.getScales(), matmul.getWeightGroup(),
                            a.getDimSize(a.getRank() - (matmul.getTransA() ? 2 : 1)));
}

bool tessera::cuda::fitsTile(Operation *op) {
  using namespace tessera;
  auto conv = dyn_cast<device::ConvOp>(op);
  auto matmul = dyn_cast<device::MatMulOp>(op);
  if ((!conv && !matmul) || !hasSizesOfTiles(op)) {
    return false;
  }
  if (conv && (!groupsFit(conv) || !top::isConstant(conv.getW()))) {
    return false;
  }
  Type a = typeOf(op->getOperand(0)).getElementType(), b = typeOf(op->getOperand(1)).getElementType();
  bool integers = a.isInteger(8) && b.isInteger(8);
  bool floats =
      device::isSummedInF32(a) && !device::isOrderedContraction(op) && (a == b || (a.isF32() && fitsWidening(op)));
  return (integers || floats) && llvm::all_of(op->getOperands(), isSmall) && isSmall(op->getResult(0));
}

bool tessera::cuda::fitsTensorCores(device::AttentionOp op, Type wanted) {
  constexpr int64_t kRun = 8, kFewestRows = 16;
  Type element = wanted ? wanted : typeOf(op.getQ()).getElementType();
  auto isOf = [&](Value value) { return (wanted || typeOf(value).getElementType() == element) && isSmall(value); };
  Type y = typeOf(op.getY()).getElementType();
  if (!hasKnownSizes(op) || !device::isNarrowFloat(element) || device::isExact(op) || !isOf(op.getQ()) ||
      !isOf(op.getK()) || !isOf(op.getV()) || (y != element && !y.isF32()) ||
      (op.getMask() && !isSmall(op.getMask()))) {
    return false;
  }
  auto rowsFit = [](const device::AttentionOp::View &view) {
    bool fits = view.sizes.back() % kRun == 0 && view.sizes.back() <= kMostFeatures && view.offset % kRun == 0;
    for (size_t d = 0; d + 1 < view.sizes.size(); ++d) {
      fits &= view.sizes[d] == 1 || view.strides[d] % kRun == 0;
    }
    return fits;
  };
  device::AttentionOp::View q = op.view(0);
  return rowsFit(q) && rowsFit(op.view(1)) && rowsFit(op.view(2)) && rowsFit(op.view(3)) &&
         q.sizes[q.sizes.size() - 2] >= kFewestRows;
}

AttentionTileAttr tessera::cuda::attentionTileOf(Operation *op) {
  return op->getAttrOfType<AttentionTileAttr>(CudaDialect::kAttentionAttr);
}

LogicalResult AttentionTileAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t warps, int64_t keys) {
  if (warps != 1 && warps != 2 && warps != 4) { // attention_tile_c1
    return emitError() << "warps = " << warps << ", allowed 1, 2 or 4 (attention_tile_c1)";
  }
  if (keys != 32 && keys != 64) { // attention_tile_c2
    return emitError() << "keys = " << keys << ", allowed 32 or 64 (attention_tile_c2)";
  }
  return success();
}

int64_t TileAttr::sharedBytes() const {
  constexpr int64_t kSumBytes = 4;
  return std::max(getStages() * stageBytes(), (getWarpK() - 1) * getRows() * getColumns() * kSumBytes);
}

LogicalResult TileAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t rows, int64_t columns,
                               int64_t kBytes, int64_t warpRows, int64_t warpColumns, int64_t warpK, int64_t stages,
                               int64_t splitK, bool) {
  constexpr int64_t kMostWarps = 16, kMostShared = 48 << 10, kMostSplit = 64;
  int64_t warps = warpRows * warpColumns * warpK;
  if (warpRows < 1 || warpColumns < 1 || warpK < 1 || warps > kMostWarps) { // tile_c3
    return emitError() << "warps = " << warpRows << "x" << warpColumns << "x" << warpK
                       << ", allowed positive numbers and 16 in all (tile_c3)";
  }
  int64_t rowsPerWarp = rows / warpRows, columnsPerWarp = columns / warpColumns;
  bool fits = rows > 0 && columns > 0 && rows % (16 * warpRows) == 0 && columns % warpColumns == 0 &&
              rowsPerWarp <= 64 && (columnsPerWarp == 16 || columnsPerWarp == 32 || columnsPerWarp == 64);
  if (!fits) { // tile_c1
    return emitError() << rows << "x" << columns << " sums for " << warpRows << "x" << warpColumns
                       << " warps, allowed for each a multiple of 16 rows up to 64 and 16, 32 or 64 columns (tile_c1)";
  }
  if ((kBytes != 32 && kBytes != 64 && kBytes != 128 && kBytes != 256) || kBytes % (32 * warpK)) { // tile_c2
    return emitError() << "k_bytes = " << kBytes << " for " << warpK
                       << " warps along K, allowed 32, 64, 128 or 256 and a multiple of 32 for each (tile_c2)";
  }
  int64_t rowsAtOnce = 32 * warps * 16 / kBytes;
  if (rows % rowsAtOnce || columns % rowsAtOnce) { // tile_c5
    return emitError() << rows << "x" << columns << " sums, allowed multiples of the " << rowsAtOnce
                       << " rows of k_bytes that all threads copy at once (tile_c5)";
  }
  int64_t shared = std::max(stages * (rows + columns) * kBytes, (warpK - 1) * rows * columns * 4);
  if (stages < 2 || stages > 8 || shared > kMostShared) { // tile_c4
    return emitError() << "stages = " << stages << " with " << shared
                       << " bytes of shared memory, allowed 2 to 8 and 49152 bytes (tile_c4)";
  }
  if (splitK < 1 || splitK > kMostSplit) { // tile_c7
    return emitError() << "split_k = " << splitK << ", allowed 1 to 64 blocks for a tile (tile_c7)";
  }
  return success();
}

TileAttr tessera::cuda::tileOf(Operation *op) { return op->getAttrOfType<TileAttr>(CudaDialect::kTileAttr); }

bool tessera::cuda::isOnTensorCores(Operation *op, TileAttr tile) {
  return tile.getTf32() || !getElementTypeOrSelf(op->getOperand(0)).isF32();
}

//===----------------------------------------------------------------------===//
// Packed weights
//===----------------------------------------------------------------------===//

GemvAttr tessera::cuda::gemvOf(Operation *op) { return op->getAttrOfType<GemvAttr>(CudaDialect::kGemvAttr); }

bool tessera::cuda::fitsGemv(Operation *op) {
  using namespace tessera;
  constexpr int64_t kLeastDepth = 256; // with less, most threads of a warp have nothing to sum
  auto matmul = dyn_cast<device::MatMulOp>(op);
  if (!matmul || !hasKnownSizes(op) || matmul.getTransA() || device::isOrderedContraction(op) ||
      !top::isConstant(matmul.getB()) || !llvm::all_of(op->getOperands(), isSmall) || !isSmall(op->getResult(0))) {
    return false;
  }
  RankedTensorType a = typeOf(matmul.getA()), b = typeOf(matmul.getB()), y = typeOf(matmul.getY());
  PackingAttr packing = packingOf(op);
  bool isPacked = packing && (packing.getOrder() == PackedOrder::bytes || packing.getOrder() == PackedOrder::nibbles);
  ArrayRef<int64_t> shape = matmul.getWeightShape();
  bool isOne = ShapedType::getNumElements(shape.drop_back(2)) == 1;
  if (!a.getElementType().isF32() || !b.getElementType().isInteger(8) || (packing && !isPacked) || !isOne ||
      !sameSizes(Shape(a).dropBack(2), Shape(y).dropBack(2)) ||
      ShapedType::getNumElements(y.getShape().drop_back()) > kMostGemvRows) {
    return false;
  }
  if (matmul.getScales() && !top::isConstant(matmul.getScales())) {
    return false;
  }
  int64_t group = packing ? packing.getGroup() : matmul.getScales() ? matmul.getWeightGroup() : 0;
  GemvRows rows{a.getShape().back(), packing && packing.getOrder() == PackedOrder::nibbles ? 4 : 8, group};
  return rows.depth >= kLeastDepth && rows.lanes() > 0;
}

LogicalResult GemvAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t columns, int64_t warpColumns,
                               int64_t warpK) {
  if (columns != 2 && columns != 4) { // gemv_c1
    return emitError() << "columns = " << columns << ", allowed 2 or 4 (gemv_c1)";
  }
  if (warpColumns < 1 || warpK < 1 || warpColumns * warpK > 8) { // gemv_c2
    return emitError() << "warps = " << warpColumns << "x" << warpK << ", allowed 1 to 8 in all (gemv_c2)";
  }
  return success();
}

PackingAttr tessera::cuda::packingOf(Operation *op) { return op->getAttrOfType<PackingAttr>("packing"); }

LogicalResult PackingAttr::verify(function_ref<InFlightDiagnostic()> emitError, PackedOrder order,
                                  ArrayRef<int64_t> shape, int64_t group) {
  bool hasGroups = order == PackedOrder::bytes || order == PackedOrder::nibbles;
  if (group < 0 || (group && !hasGroups)) { // packing_c2
    return emitError() << "group = " << group << ", allowed 0, or a positive number for bytes and nibbles (packing_c2)";
  }
  if (shape.size() < 2 || llvm::any_of(shape, [](int64_t dim) { return dim < 0; })) { // packing_c1
    return emitError() << "shape [" << llvm::interleaved(shape)
                       << "], allowed 2 or more dims, none negative (packing_c1)";
  }
  return success();
}

RankedTensorType tessera::cuda::packedType(PackingAttr packing, Operation *op, Type element) {
  ArrayRef<int64_t> shape = packing.getShape();
  // Narrower weights are widened to the type of the left side, so their rows have whole chunks of that type.
  int64_t chunk = 16 / device::elementBytes(getElementTypeOrSelf(op->getOperand(0)));
  auto matmul = dyn_cast<device::MatMulOp>(op);
  if (matmul) {
    int64_t n = shape[shape.size() - (matmul.getTransB() ? 2 : 1)];
    int64_t k = shape[shape.size() - (matmul.getTransB() ? 1 : 2)];
    if (packing.getOrder() == PackedOrder::bytes || packing.getOrder() == PackedOrder::nibbles) {
      GemvRows rows{k, packing.getOrder() == PackedOrder::bytes ? 8 : 4, packing.getGroup()};
      return RankedTensorType::get({n, rows.rowBytes()}, element);
    }
    return RankedTensorType::get({n, int64_t(llvm::alignTo(k, chunk))}, element);
  }
  int64_t taps = 1;
  for (int64_t dim : shape.drop_front(2)) {
    taps *= dim;
  }
  switch (packing.getOrder()) {
  case PackedOrder::depthwise:
    return RankedTensorType::get({taps, int64_t(llvm::alignTo(shape[0], kBlockChannels))}, element);
  case PackedOrder::taps:
    return RankedTensorType::get({shape[0], int64_t(llvm::alignTo(taps * channelRun(cast<device::ConvOp>(op)), chunk))},
                                 element);
  case PackedOrder::rows:
  case PackedOrder::bytes:
  case PackedOrder::nibbles:
    break;
  }
  return RankedTensorType::get({shape[0], int64_t(llvm::alignTo(taps * shape[1], chunk))}, element);
}

LogicalResult PackingAttr::verifyWeights(Operation *op, RankedTensorType weights) const {
  auto reject = [&] { return op->emitOpError() << "has " << *this << ", but "; };
  auto conv = dyn_cast<device::ConvOp>(op);
  if (getOrder() == PackedOrder::bytes || getOrder() == PackedOrder::nibbles) {
    if (!gemvOf(op)) {
      return reject() << "only matmuls with cuda.gemv read that order";
    }
    RankedTensorType expected = packedType(*this, op, weights.getElementType());
    return weights == expected ? success() : reject() << "its weights are " << weights << ", expected " << expected;
  }
  bool blocked = device::isBlocked(op->getOperand(0).getType());
  if (getOrder() != PackedOrder::rows && (!conv || !blocked)) {
    return reject() << "only convolutions of channel-blocked tensors read that order";
  }
  if (conv && getOrder() == PackedOrder::rows && blocked) {
    return reject() << "it is a convolution of a channel-blocked tensor, which requires the order taps";
  }
  if (conv && getOrder() != PackedOrder::depthwise && !groupsFit(conv)) {
    return reject() << "it has " << conv.getGroups()
                    << " groups, which must have several channels in whole 4-byte words";
  }
  RankedTensorType expected = packedType(*this, op, weights.getElementType());
  if (weights != expected) {
    return reject() << "its weights are " << weights << ", expected " << expected;
  }
  return success();
}

//===- DeviceComputeOps.cpp - Verifiers of the compute family -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/IR/Verify.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "llvm/ADT/StringSwitch.h"
#include <limits>

using namespace mlir;
using tessera::Dim;
using tessera::knownNumElements;
using tessera::sameSizes;
using tessera::Shape;
using tessera::toText;
using tessera::typeOf;
using namespace tessera::device;
using verify::agree;

/// Returns the type of sums: f32 (i32) if the element type is narrower.
static Type sumType(Type elementType) {
  Builder builder(elementType.getContext());
  if (elementType.isIntOrFloat() && elementType.getIntOrFloatBitWidth() < 32) {
    return isa<FloatType>(elementType) ? Type(builder.getF32Type()) : builder.getI32Type();
  }
  return scalarType(elementType);
}

/// Returns the largest magnitude of an integer operand.
static int64_t largestOf(Type elementType) {
  unsigned bits = elementType.getIntOrFloatBitWidth();
  return elementType.isUnsignedInteger() ? (int64_t(1) << bits) - 1 : int64_t(1) << (bits - 1);
}

/// Verifies the element types of a sum of `steps` products of x and w: all alike; floats of up to 32 bits with an f32
/// bias; or i8/ui8/i16 x i8 + i32, summed in i32 without overflow.
static LogicalResult verifyContraction(Operation *op, Value x, Value w, Value bias, bool integerWeights, Dim steps,
                                       std::optional<int64_t> sumBound, StringRef types, StringRef overflow) {
  Type xType = typeOf(x).getElementType(), wType = typeOf(w).getElementType();
  Type biasType = bias ? typeOf(bias).getElementType() : Type();
  bool narrow = xType.isInteger(8) || (xType.isSignlessInteger(16) && wType != xType);
  bool floats = isSummedInF32(xType) && (!bias || biasType.isF32()) &&
                (isSummedInF32(wType) || (integerWeights && wType.isSignlessInteger(8)));
  bool fits = floats || (narrow ? wType.isSignlessInteger(8) && (!bias || biasType.isSignlessInteger(32))
                                : wType == xType && (!bias || biasType == xType));
  if (!fits) {
    InFlightDiagnostic error = op->emitOpError() << "multiplies " << xType << " and " << wType;
    if (bias) {
      error << " and adds a bias of " << biasType;
    }
    return error
           << ", allowed one type for all, f32, f16 or bf16 each with a bias of f32, or i8, ui8 or i16 times i8 with a "
              "bias of i32 ("
           << types << ")";
  }
  constexpr int64_t kLargestSum = std::numeric_limits<int32_t>::max();
  if (!narrow || sumBound) {
    if (narrow && (*sumBound < 0 || *sumBound > kLargestSum)) {
      return op->emitOpError() << "sumBound is " << *sumBound << ", allowed 0 to " << kLargestSum << " (" << overflow
                               << ")";
    }
    return success();
  }
  int64_t most = kLargestSum / (largestOf(xType) * largestOf(wType));
  if (!steps.isUnknown() && maxOf(steps) > most) {
    return op->emitOpError() << "sums " << maxOf(steps) << " products of " << xType << " and " << wType
                             << " in i32, allowed " << most << " so that no sum can overflow (" << overflow << ")";
  }
  return success();
}

/// Verifies the scales of integer weights for a float x with `depth` steps and `channels` columns.
static LogicalResult verifyScales(Operation *op, Value x, Value scales, int64_t group, Dim depth, Dim channels,
                                  StringRef label) {
  if (!scales) {
    if (group == 0) {
      return success();
    }
    return op->emitOpError() << "weightGroup is " << group << " without scales (" << label << ")";
  }
  Type element = typeOf(scales).getElementType();
  if (group < 1 || !element.isF32() || !isSummedInF32(typeOf(x).getElementType())) {
    return op->emitOpError() << "scales of " << element << " with weightGroup " << group
                             << ", allowed f32 with a positive weightGroup and a float first operand (" << label << ")";
  }
  return verify::dims(op, scales, {ceilDiv(depth, group), channels}, "scales", label);
}

static LogicalResult verifyPacking(Operation *op, PackingInterface packing, Value weights) {
  return packing ? packing.verifyWeights(op, typeOf(weights)) : success();
}

//===----------------------------------------------------------------------===//
// conv, pool
//===----------------------------------------------------------------------===//

static LogicalResult verifyWindow(Operation *op, size_t spatial, ArrayRef<int64_t> strides, ArrayRef<int64_t> pads,
                                  ArrayRef<int64_t> dilations, StringRef label) {
  return success(succeeded(verify::entries(op, strides, spatial, 1, "strides", label)) &&
                 succeeded(verify::entries(op, pads, 2 * spatial, 0, "pads", label)) &&
                 succeeded(verify::entries(op, dilations, spatial, 1, "dilations", label)));
}

Region &ConvOp::getEpilogueRegion() { return getEpilogue(); }
OperandRange ConvOp::getEpilogueOperands() { return getExtras(); }
void ConvOp::setEpilogueOperands(ValueRange operands) { getExtrasMutable().assign(operands); }
Type ConvOp::getAccumulatorType() { return sumType(typeOf(getX()).getElementType()); }

/// Returns true for y's shape, one value per channel ([C, 1, 1] or [1, C, 1, 1]), or a single value.
static bool fitsChannels(RankedTensorType extra, RankedTensorType y) {
  if (knownNumElements(extra) == 1 || sameSizes(extra, y)) {
    return true;
  }
  Shape dims = extra;
  for (size_t i = 0; i < dims.rank(); ++i) {
    int64_t at = y.getRank() - int64_t(dims.rank()) + int64_t(i);
    if (!sameSize(dims[i], at == 1 ? Shape(y)[1] : Dim(1))) {
      return false;
    }
  }
  return static_cast<int64_t>(dims.rank()) >= y.getRank() - 1;
}

bool ConvOp::canReadExtra(Value extra) {
  RankedTensorType type = typeOf(extra), y = typeOf(getY());
  // A full-size constant would have to be converted to the result's layout in every run.
  bool moves = knownNumElements(type) != 1 && sameSizes(type, y) && tessera::top::isConstant(extra);
  return isEpilogueElement(type.getElementType()) && fitsChannels(type, y) && !moves;
}

static LogicalResult verifyPadValue(ConvOp op) {
  Type element = typeOf(op.getX()).getElementType();
  int64_t value = op.getPadValue();
  bool isUnsigned = element.isUnsignedInteger();
  if (value == 0 || (element.isInteger(8) && value >= (isUnsigned ? 0 : -128) && value <= (isUnsigned ? 255 : 127))) {
    return success();
  }
  return op.emitOpError() << "padValue is " << value << ", allowed 0 or a value of an i8 or ui8 x, which is " << element
                          << " here (conv_c10)";
}

ArrayRef<int64_t> ConvOp::getWeightShape() { return verify::weightShape(getPackingAttr(), getW()); }

LogicalResult ConvOp::verify() {
  Shape x = getX(), y = getY(), w = getWeightShape();
  if ((x.rank() != 4 && x.rank() != 5) || w.rank() != x.rank() || y.rank() != x.rank()) { // conv_c1
    return emitOpError() << "ranks of x, w and y are " << x.rank() << ", " << w.rank() << ", " << y.rank()
                         << ", allowed all 4 or all 5 (conv_c1)";
  }
  size_t spatial = x.rank() - 2;
  if (failed(verifyWindow(*this, spatial, getStrides(), getPads(), getDilations(), "conv_c2"))) {
    return failure();
  }
  int64_t groups = getGroups();
  if (groups < 1 || !isMultipleOf(w[0], groups) || !agree(x[1], w[1] * groups)) { // conv_c3
    return emitOpError() << groups << " groups do not divide C = " << toText(x[1]) << " and OC = " << toText(w[0])
                         << " with C / groups = " << toText(w[1]) << " (conv_c3)";
  }
  if (getBias() && failed(verify::dims(*this, getBias(), {w[0]}, "bias", "conv_c4"))) {
    return failure();
  }
  SmallVector<Dim> expected{x[0], w[0]};
  for (size_t d = 0; d < spatial; ++d) {
    Dim extent = Dim(getDilations()[d]) * (w[d + 2] - 1) + 1;
    Dim positions = floorDiv(x[d + 2] + getPads()[d] + getPads()[d + spatial] - extent, getStrides()[d]) + 1;
    expected.push_back(max(positions, 0));
  }
  Dim steps = countElements(w.dropFront());
  return success(succeeded(verify::dims(*this, getY(), expected, "result", "conv_c5")) &&
                 succeeded(verifyContraction(*this, getX(), getW(), getBias(), getScales() || getPacking(), steps,
                                             getSumBound(), "conv_c8", "conv_c9")) &&
                 succeeded(verifyScales(*this, getX(), getScales(), getWeightGroup(), w[1], w[0], "conv_c11")) &&
                 succeeded(verifyPadValue(*this)) && succeeded(verify::epilogue(*this, "conv_c7")) &&
                 succeeded(verifyPacking(*this, getPackingAttr(), getW()))); // conv_c6
}

Region &PoolOp::getEpilogueRegion() { return getEpilogue(); }
OperandRange PoolOp::getEpilogueOperands() { return getExtras(); }
void PoolOp::setEpilogueOperands(ValueRange operands) { getExtrasMutable().assign(operands); }
Type PoolOp::getAccumulatorType() {
  Type element = typeOf(getX()).getElementType();
  return getKind() == PoolKind::max ? scalarType(element) : sumType(element);
}

/// Returns true if the window that starts at `start` has a tap in [lo, hi).
static bool touches(int64_t start, int64_t kernel, int64_t dilation, int64_t lo, int64_t hi) {
  int64_t first = start >= lo ? 0 : llvm::divideCeil(lo - start, dilation);
  return first < kernel && start + first * dilation < hi;
}

LogicalResult PoolOp::verify() {
  Shape x = getX(), y = getY();
  if ((x.rank() != 4 && x.rank() != 5) || y.rank() != x.rank()) { // pool_c1
    return emitOpError() << "ranks of x and y are " << x.rank() << ", " << y.rank()
                         << ", allowed both 4 or both 5 (pool_c1)";
  }
  size_t spatial = x.rank() - 2;
  if (failed(verify::entries(*this, getKernel(), spatial, 1, "kernel", "pool_c2")) ||
      failed(verifyWindow(*this, spatial, getStrides(), getPads(), getDilations(), "pool_c2"))) {
    return failure();
  }
  if (!agree(x[0], y[0]) || !agree(x[1], y[1]) ||
      llvm::any_of(y.dims(), [](Dim dim) { return dim.is(0); })) { // pool_c4
    return emitOpError() << "result dims " << verify::printDims(y.dims()) << " do not fit operand dims "
                         << verify::printDims(x.dims()) << " (pool_c4)";
  }
  for (size_t d = 0; d < spatial; ++d) {
    if (!x[d + 2].isKnown() || !y[d + 2].isKnown()) {
      continue;
    }
    int64_t size = x[d + 2].value(), begin = getPads()[d], end = getPads()[d + spatial];
    bool padded = getKind() == PoolKind::avg && getCountIncludePad();
    for (int64_t o = 0; o < y[d + 2].value(); ++o) {
      int64_t start = o * getStrides()[d] - begin;
      if (!touches(start, getKernel()[d], getDilations()[d], padded ? -begin : 0,
                   padded ? size + end : size)) { // pool_c3
        return emitOpError() << "the window at position " << o << " of dim " << d + 2 << " holds no element (pool_c3)";
      }
    }
  }
  return verify::epilogue(*this, "pool_c5");
}

//===----------------------------------------------------------------------===//
// matmul
//===----------------------------------------------------------------------===//

Region &MatMulOp::getEpilogueRegion() { return getEpilogue(); }
OperandRange MatMulOp::getEpilogueOperands() { return getExtras(); }
void MatMulOp::setEpilogueOperands(ValueRange operands) { getExtrasMutable().assign(operands); }
Type MatMulOp::getAccumulatorType() { return sumType(typeOf(getA()).getElementType()); }

ArrayRef<int64_t> verify::weightShape(PackingInterface packing, Value weights) {
  return packing ? packing.getShape() : typeOf(weights).getShape();
}

bool verify::fitsMatMul(Value extra, Value y) {
  RankedTensorType type = typeOf(extra);
  Shape dims = type, result = y;
  if (!isEpilogueElement(type.getElementType())) {
    return false;
  }
  if (knownNumElements(type) == 1 || sameSizes(dims, result)) {
    return true;
  }
  bool column =
      sameSize(dims.back(), result.back()) && llvm::all_of(dims.dropBack().dims(), [](Dim dim) { return dim.is(1); });
  bool row = dims.back().is(1) && sameSizes(dims.dropBack(), result.dropBack());
  return column || row;
}

bool MatMulOp::canReadExtra(Value extra) { return verify::fitsMatMul(extra, getY()); }

ArrayRef<int64_t> MatMulOp::getWeightShape() { return verify::weightShape(getPackingAttr(), getB()); }

LogicalResult MatMulOp::verify() {
  Shape a = getA(), b = getPacking() ? Shape(getWeightShape()) : Shape(getB());
  if (a.rank() < 2 || b.rank() < 2) { // matmul_c1
    return emitOpError() << "ranks of a and b are " << a.rank() << ", " << b.rank() << ", allowed from 2 (matmul_c1)";
  }
  Dim m = a[a.rank() - (getTransA() ? 1 : 2)], ka = a[a.rank() - (getTransA() ? 2 : 1)];
  Dim kb = b[b.rank() - (getTransB() ? 1 : 2)], n = b[b.rank() - (getTransB() ? 2 : 1)];
  if (!agree(ka, kb)) { // matmul_c2
    return emitOpError() << "a has K = " << toText(ka) << ", b has K = " << toText(kb) << " (matmul_c2)";
  }
  size_t rank = std::max(a.rank(), b.rank());
  SmallVector<Dim> expected(rank - 2, 1);
  for (Shape shape : {a, b}) {
    for (size_t i = 2; i < shape.rank(); ++i) {
      Dim &dim = expected[rank - 1 - i], other = shape[shape.rank() - 1 - i];
      if (!dim.is(1) && !other.is(1) && !agree(dim, other)) { // matmul_c3
        return emitOpError() << "batch dims of a and b, " << toText(dim) << " and " << toText(other)
                             << ", do not broadcast (matmul_c3)";
      }
      dim = dim.is(1) ? other : dim;
    }
  }
  if (getBias() && failed(verify::dims(*this, getBias(), {n}, "bias", "matmul_c4"))) {
    return failure();
  }
  expected.append({m, n});
  return success(succeeded(verify::dims(*this, getY(), expected, "result", "matmul_c5")) &&
                 succeeded(verifyContraction(*this, getA(), getB(), getBias(), getScales() || getPacking(), ka,
                                             getSumBound(), "matmul_c8", "matmul_c9")) &&
                 succeeded(verifyScales(*this, getA(), getScales(), getWeightGroup(), kb, n, "matmul_c10")) &&
                 succeeded(verify::epilogue(*this, "matmul_c7")) &&
                 succeeded(verifyPacking(*this, getPackingAttr(), getB()))); // matmul_c6
}

//===----------------------------------------------------------------------===//
// map, reduce
//===----------------------------------------------------------------------===//

LogicalResult MapOp::verify() {
  RankedTensorType y = typeOf(getY());
  SmallVector<Type> arguments;
  for (Value input : getInputs()) {
    arguments.push_back(scalarType(typeOf(input).getElementType()));
    if (failed(verify::broadcasts(*this, Shape(input).dims(), Shape(y).dims(), "operand", "map_c1"))) {
      return failure();
    }
  }
  // Choose the label first: it depends on whether the block's types fit or an op of the body is at fault.
  Block &block = getBody().front();
  bool fits = block.getArgumentTypes() == TypeRange(arguments) && !block.empty();
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  fits = fits && yield && yield.getValues().size() == 1 &&
         yield.getValues().front().getType() == scalarType(y.getElementType());
  return verify::scalarRegion(*this, getBody(), arguments, scalarType(y.getElementType()), "body",
                              fits ? "map_c3" : "map_c2");
}

LogicalResult LutOp::verify() {
  for (Value value : {Value(getX()), Value(getY())}) {
    Type element = typeOf(value).getElementType();
    if (!element.isInteger(8)) {
      return emitOpError() << "elements are " << element << ", allowed i8 and ui8 (lut_c1)";
    }
  }
  Type element = typeOf(getY()).getElementType();
  if (typeOf(getTable()).getElementType() != element) {
    return emitOpError() << "table has elements " << typeOf(getTable()).getElementType() << ", expected the result's "
                         << element << " (lut_c2)";
  }
  Shape x = getX();
  SmallVector<Dim> table = {256};
  if (x.rank() == 4 && hasTablePerChannel()) {
    table.insert(table.begin(), x[1]);
  }
  return success(succeeded(verify::dims(*this, getTable(), table, "table", "lut_c2")) &&
                 succeeded(verify::dims(*this, getY(), x.dims(), "result", "lut_c3")));
}

Region &ReduceOp::getEpilogueRegion() { return getEpilogue(); }
OperandRange ReduceOp::getEpilogueOperands() { return getExtras(); }
void ReduceOp::setEpilogueOperands(ValueRange operands) { getExtrasMutable().assign(operands); }
Type ReduceOp::getAccumulatorType() {
  if (!getPrologue().empty() && !getPrologue().front().empty()) {
    auto yield = dyn_cast<YieldOp>(getPrologue().front().back());
    if (yield && yield.getValues().size() == 1) {
      return yield.getValues().front().getType();
    }
  }
  return scalarType(typeOf(getX()).getElementType());
}

LogicalResult ReduceOp::verify() {
  RankedTensorType x = typeOf(getX());
  if (failed(verify::axes(*this, getAxes(), x.getRank(), "reduce_c1"))) {
    return failure();
  }
  SmallVector<Dim> expected = Shape(x).dims();
  for (int64_t axis : getAxes()) {
    expected[axis] = 1;
  }
  if (failed(verify::dims(*this, getY(), expected, "result", "reduce_c2"))) {
    return failure();
  }
  if (!getPrologue().empty() && failed(verify::scalarRegion(*this, getPrologue(), {scalarType(x.getElementType())},
                                                            Type(), "prologue", "reduce_c3"))) {
    return failure();
  }
  return verify::epilogue(*this, "reduce_c3");
}

//===----------------------------------------------------------------------===//
// softmax, norm, attention, recurrent
//===----------------------------------------------------------------------===//

static LogicalResult verifyFloat(Operation *op, Value x, Value y, StringRef label) {
  Type element = typeOf(x).getElementType();
  if (!isa<FloatType>(element)) {
    return op->emitOpError() << "operand elements are " << element << ", allowed floats (" << label << ")";
  }
  return verify::sameType(op, x, y, label);
}

LogicalResult SoftmaxOp::verify() {
  return success(succeeded(verify::axis(*this, getAxis(), typeOf(getX()).getRank(), "softmax_c1")) &&
                 succeeded(verifyFloat(*this, getX(), getY(), "softmax_c2")));
}

LogicalResult NormOp::verify() {
  RankedTensorType x = typeOf(getX());
  if (failed(verify::axis(*this, getAxis(), x.getRank(), "norm_c1"))) {
    return failure();
  }
  for (Value parameter : {getScale(), getBias()}) {
    if (parameter &&
        failed(verify::dims(*this, parameter, Shape(x).dropFront(getAxis()).dims(), "scale or bias", "norm_c2"))) {
      return failure();
    }
  }
  Type y = typeOf(getY()).getElementType();
  if (!isa<FloatType>(x.getElementType()) || (getEpilogue().empty() && !isa<FloatType>(y))) {
    return emitOpError() << "elements of operand and result are " << x.getElementType() << " and " << y
                         << ", allowed floats (norm_c3)";
  }
  if (!getEpilogue().empty() && failed(verify::epilogue(*this, "norm_c4"))) {
    return failure();
  }
  return verify::dims(*this, getY(), Shape(x).dims(), "result", "norm_c3");
}

Region &NormOp::getEpilogueRegion() { return getEpilogue(); }
OperandRange NormOp::getEpilogueOperands() { return getOperation()->getOperands().take_front(0); }
void NormOp::setEpilogueOperands(ValueRange operands) { assert(operands.empty() && "canReadExtra says so"); }
Type NormOp::getAccumulatorType() { return sumType(typeOf(getX()).getElementType()); }
bool NormOp::canReadExtra(Value) { return false; }

Region &AttentionOp::getEpilogueRegion() { return getEpilogue(); }
OperandRange AttentionOp::getEpilogueOperands() { return getOperation()->getOperands().take_front(0); }
void AttentionOp::setEpilogueOperands(ValueRange operands) { assert(operands.empty() && "canReadExtra says so"); }
Type AttentionOp::getAccumulatorType() {
  return isOfIntegers() ? Float32Type::get(getContext()) : sumType(typeOf(getQ()).getElementType());
}
bool AttentionOp::canReadExtra(Value) { return false; }
int64_t AttentionOp::mostKeys(int64_t levels) { return std::numeric_limits<int32_t>::max() / (levels * 128); }
int64_t AttentionOp::mostDepth() { return std::numeric_limits<int32_t>::max() / (128 * 128); }

AttentionOp::View AttentionOp::view(unsigned index) {
  RankedTensorType type = typeOf(index < 3 ? getOperand(index) : getY());
  SmallVector<int64_t> dense = Shape(type).isKnown() ? denseStrides(Shape(type).values()) : SmallVector<int64_t>();
  if (!getViews()) {
    return {SmallVector<int64_t>(type.getShape()), dense, 0};
  }
  auto piece = cast<PieceAttr>((*getViews())[index]);
  size_t rank = piece.getSizes().size();
  View view{SmallVector<int64_t>(rank), SmallVector<int64_t>(rank), 0};
  for (size_t d = 0; d < rank; ++d) {
    int64_t s = piece.getSrcDims()[d];
    size_t own = index < 3 ? d : size_t(s);
    view.sizes[own] = piece.getSizes()[d];
    view.strides[own] = index == 3 ? dense[d] : s < 0 ? 0 : piece.getSrcSteps()[d] * dense[s];
  }
  for (auto [offset, stride] : llvm::zip(piece.getSrcOffsets(), dense)) {
    view.offset += offset * stride;
  }
  return view;
}

SmallVector<Dim> AttentionOp::viewSizes(unsigned index) {
  if (getViews()) {
    return llvm::map_to_vector(view(index).sizes, [](int64_t size) { return Dim(size); });
  }
  SmallVector<Dim> sizes = Shape(index < 3 ? getOperand(index) : Value(getY())).dims();
  if (getKeys() && (index == 1 || index == 2) && sizes.size() >= 2) {
    sizes.end()[-2] = Dim(*getKeys());
  }
  return sizes;
}

/// Verifies (C9).
static LogicalResult verifyKeys(AttentionOp op) {
  auto hasRows = [&](Value matrices) {
    Shape shape = matrices;
    return shape.rank() >= 2 && minOf(shape[shape.rank() - 2] - Dim(*op.getKeys())) >= 0;
  };
  if (op.getKeys() && (op.getViews() || !hasRows(op.getK()) || !hasRows(op.getV()))) { // attention_c9
    return op.emitOpError() << "has keys = " << toText(Dim(*op.getKeys()))
                            << ", allowed at most the rows of k and v, without views (attention_c9)";
  }
  return success();
}

/// Verifies (C5) for the view of operand |index|, or of the result (3).
static LogicalResult verifyView(AttentionOp op, unsigned index) {
  auto piece = cast<PieceAttr>((*op.getViews())[index]);
  RankedTensorType type = typeOf(index < 3 ? op.getOperand(index) : op.getY());
  size_t rank = piece.getSizes().size(), sources = index < 3 ? size_t(type.getRank()) : rank;
  auto isZero = [](int64_t i) { return i == 0; };
  auto isOne = [](int64_t i) { return i == 1; };
  bool fits =
      piece.isKnown() && piece.getSource() == 0 && piece.getDstOffsets().size() == rank &&
      piece.getDstSteps().size() == rank && piece.getSrcDims().size() == rank && piece.getSrcSteps().size() == rank &&
      rank >= 2 && piece.getSrcOffsets().size() == sources && llvm::all_of(piece.getDstOffsets(), isZero) &&
      llvm::all_of(piece.getDstSteps(), isOne) &&
      llvm::all_of(piece.getSizes(), [](int64_t size) { return size >= 0; }) &&
      llvm::all_of(piece.getSrcDims(), [&](int64_t s) { return s >= (index < 3 ? -1 : 0) && s < int64_t(sources); });
  if (fits && index < 3) {
    for (auto [range, size] : llvm::zip_equal(sourceRanges(piece, sources), Shape(type).values())) {
      fits &= pieceElements(piece) == 0 || (range.first >= 0 && range.last < size);
    }
  } else if (fits) {
    llvm::SmallDenseSet<int64_t> dims(piece.getSrcDims().begin(), piece.getSrcDims().end());
    fits = dims.size() == rank && sameSizes(piece.getSizes(), type) && llvm::all_of(piece.getSrcOffsets(), isZero) &&
           llvm::all_of(piece.getSrcSteps(), isOne);
  }
  AttentionOp::View view = fits ? op.view(index) : AttentionOp::View();
  if (!fits || (view.sizes.back() > 1 && view.strides.back() != 1)) { // attention_c5
    return op.emitOpError() << "has view " << index << " = " << piece << " of " << type
                            << ", allowed a piece inside the tensor with contiguous rows (attention_c5)";
  }
  return success();
}

/// Verifies (C7) and (C8): either all or none of q, k and v are integers, and their sums fit.
static LogicalResult verifyIntegers(AttentionOp op) {
  auto isByte = [](Value value) { return typeOf(value).getElementType().isSignlessInteger(8); };
  auto isF32 = [](Value value) { return typeOf(value).getElementType().isF32(); };
  SmallVector<Value> factors = {op.getQ(), op.getK(), op.getV()};
  int64_t levels = op.getLevels().value_or(0);
  bool fits = op.getValueScale() && llvm::all_of(factors, isByte) && (!op.getMask() || isF32(op.getMask())) &&
              levels >= 1 && levels <= 255 && (!op.getEpilogue().empty() || isF32(op.getY()));
  bool isFloat = !op.getLevels() && !op.getValueScale() && llvm::none_of(factors, isByte);
  if (!fits && !isFloat) { // attention_c7
    return op.emitOpError()
           << "has levels = " << levels << " and operands of " << typeOf(op.getQ()).getElementType() << ", "
           << typeOf(op.getK()).getElementType() << ", " << typeOf(op.getV()).getElementType()
           << ", allowed levels from 1 to 255 and a valueScale on i8 operands with an f32 mask and result, "
              "or neither attribute (attention_c7)";
  }
  int64_t keys = maxOf(op.viewSizes(2).end()[-2]), depth = maxOf(op.viewSizes(0).back());
  if (fits && (keys > AttentionOp::mostKeys(levels) || depth > AttentionOp::mostDepth())) { // attention_c8
    return op.emitOpError() << "sums " << keys << " keys and a depth of " << depth << ", allowed are "
                            << AttentionOp::mostKeys(levels) << " and " << AttentionOp::mostDepth()
                            << ": sums of more may exceed 32 bits (attention_c8)";
  }
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyKeys(*this))) {
    return failure();
  }
  if (getViews()) {
    auto isPlain = [](Type type) {
      Type element = cast<RankedTensorType>(type).getElementType();
      return isSummedInF32(element) || element.isSignlessInteger(8);
    };
    auto isKnown = [](Type type) { return Shape(cast<RankedTensorType>(type)).isKnown(); };
    Operation *op = getOperation();
    if (getViews()->size() != 4 || !llvm::all_of(op->getOperandTypes(), isPlain) ||
        (getEpilogue().empty() && !isPlain(getY().getType())) || !llvm::all_of(op->getOperandTypes(), isKnown) ||
        !isKnown(getY().getType())) { // attention_c5
      return emitOpError() << "has " << getViews()->size()
                           << " views, allowed 4 of tensors of f32, f16, bf16 or i8 whose "
                           << "dims are known (attention_c5)";
    }
    for (unsigned i = 0; i < 4; ++i) {
      if (failed(verifyView(*this, i))) {
        return failure();
      }
    }
  }
  if (!getEpilogue().empty() && failed(verify::epilogue(*this, "attention_c6"))) {
    return failure();
  }
  SmallVector<Dim> q = viewSizes(0), k = viewSizes(1), v = viewSizes(2);
  size_t rank = q.size();
  if (rank < 2 || k.size() != rank || v.size() != rank) { // attention_c2
    return emitOpError() << "ranks of q, k and v are " << rank << ", " << k.size() << ", " << v.size()
                         << ", allowed equal and from 2 (attention_c2)";
  }
  if (!agree(q[rank - 1], k[rank - 1]) || !agree(k[rank - 2], v[rank - 2])) { // attention_c1
    return emitOpError() << "E of q and k are " << toText(q[rank - 1]) << " and " << toText(k[rank - 1])
                         << ", T of k and v are " << toText(k[rank - 2]) << " and " << toText(v[rank - 2])
                         << " (attention_c1)";
  }
  ArrayRef<Dim> batch = ArrayRef(q).drop_back(2);
  SmallVector<Dim> scores(batch), result(batch);
  scores.append({q[rank - 2], k[rank - 2]});
  result.append({q[rank - 2], v[rank - 1]});
  if (failed(verify::broadcasts(*this, ArrayRef(k).drop_back(2), batch, "k's batch", "attention_c3")) ||
      failed(verify::broadcasts(*this, ArrayRef(v).drop_back(2), batch, "v's batch", "attention_c3")) ||
      (getMask() && failed(verify::broadcasts(*this, Shape(getMask()).dims(), scores, "mask", "attention_c3")))) {
    return failure();
  }
  SmallVector<Dim> y = viewSizes(3);
  bool isResult = y.size() == rank && llvm::all_of(llvm::zip_equal(y, result), [](auto both) {
                    return agree(std::get<0>(both), std::get<1>(both));
                  });
  if (!isResult) { // attention_c4
    return emitOpError() << "result has dims " << verify::printDims(y) << ", expected " << verify::printDims(result)
                         << " (attention_c4)";
  }
  return verifyIntegers(*this);
}

int64_t AttentionOp::countFlops() { return 2 * countMacs(); }

int64_t AttentionOp::countMacs() {
  SmallVector<Dim> q = viewSizes(0), v = viewSizes(2);
  Dim macs = v[v.size() - 2] * (q.back() + v.back());
  for (Dim size : ArrayRef(q).drop_back()) {
    macs *= size;
  }
  return likelyCount(macs);
}

LogicalResult RecurrentOp::verify() {
  bool isKind = llvm::is_contained({"rnn", "gru", "lstm"}, getKind());
  if (!isKind || !llvm::is_contained({"forward", "reverse", "bidirectional"}, getDirection())) { // recurrent_c2
    return emitOpError() << "kind '" << getKind() << "' or direction '" << getDirection()
                         << "' is not known; kinds are rnn, gru, lstm, directions forward, reverse, "
                            "bidirectional (recurrent_c2)";
  }
  static constexpr StringLiteral known[] = {
      "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
      "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};
  int64_t gates = getNumGates(), directions = getNumDirections();
  size_t needed = directions * (gates == 1 ? 1 : gates == 3 ? 2 : 3);
  bool allKnown = llvm::all_of(getActivations().getAsValueRange<StringAttr>(),
                               [](StringRef name) { return llvm::is_contained(known, name); });
  if (getActivations().size() != needed || !allKnown) { // recurrent_c3
    return emitOpError() << getActivations().size() << " activations " << getActivations() << ", expected " << needed
                         << " of ONNX's names (recurrent_c3)";
  }
  Shape x = getX();
  if (x.rank() != 3) { // recurrent_c1
    return emitOpError() << "x has rank " << x.rank() << ", allowed 3 (recurrent_c1)";
  }
  int64_t h = getHiddenSize(), gh = gates * h, d = directions;
  auto check = [&](Value value, ArrayRef<Dim> dims, StringRef what) {
    return !value || succeeded(verify::dims(*this, value, dims, what, "recurrent_c1"));
  };
  if (getPacking() && getW()) { // recurrent_c4
    return emitOpError("has both w and a packing of r, allowed at most one of them (recurrent_c4)");
  }
  if (getPacking() && failed(verifyPacking(*this, getPackingAttr(), getR()))) {
    return failure();
  }
  bool fits = getW() ? check(getW(), {d, gh, x[2]}, "w") : check(getX(), {x[0], x[1], d * gh}, "x");
  return success(fits && (getPacking() || check(getR(), {d, gh, h}, "r")) &&
                 check(getBias(), {d, getW() ? 2 * gh : gh}, "bias") && check(getSequenceLens(), {x[1]}, "lens") &&
                 check(getInitialH(), {d, x[1], h}, "h") && check(getInitialC(), {d, x[1], h}, "c") &&
                 check(getPeephole(), {d, 3 * h}, "peephole") && check(getY(), {x[0], d, x[1], h}, "result y") &&
                 check(getYH(), {d, x[1], h}, "result yH") && check(getYC(), {d, x[1], h}, "result yC"));
}

//===- Lowering.cpp - Helpers of the lowering patterns --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Lowering.h"
#include "device_dialect/IR/Layout.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "top_dialect/IR/Names.h"

using namespace mlir;

namespace tessera::device {

/// Copies of constants that would grow beyond this size are left to run time.
static constexpr int64_t kMaxGrownBytes = 1 << 20;

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value scalarConstant(OpBuilder &builder, Location loc, Type type, double value) {
  TypedAttr attr;
  if (auto floatType = dyn_cast<FloatType>(type)) {
    attr = builder.getFloatAttr(floatType, value);
  } else {
    attr = builder.getIntegerAttr(type, static_cast<int64_t>(value));
  }
  return arith::ConstantOp::create(builder, loc, attr);
}

Value emitRelu(OpBuilder &builder, Location loc, Value x, double limit) {
  bool isFloat = isa<FloatType>(x.getType());
  Value zero = scalarConstant(builder, loc, x.getType(), 0);
  Value y = isFloat ? arith::MaximumFOp::create(builder, loc, x, zero).getResult()
                    : arith::MaxSIOp::create(builder, loc, x, zero).getResult();
  if (limit <= 0) {
    return y;
  }
  Value top = scalarConstant(builder, loc, x.getType(), limit);
  return isFloat ? arith::MinimumFOp::create(builder, loc, y, top).getResult()
                 : arith::MinSIOp::create(builder, loc, y, top).getResult();
}

Value castFloat(OpBuilder &builder, Location loc, Value x, Type type) {
  if (x.getType() == type || !isa<FloatType>(x.getType()) || !isa<FloatType>(type)) {
    return x;
  }
  if (x.getType().getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth()) {
    return arith::ExtFOp::create(builder, loc, type, x);
  }
  if (x.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth()) {
    return arith::TruncFOp::create(builder, loc, type, x);
  }
  // Conversions between f16 and bf16 go through f32.
  Value wide = arith::ExtFOp::create(builder, loc, builder.getF32Type(), x);
  return arith::TruncFOp::create(builder, loc, type, wide);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

Value Lowering::reshape(Value x, const SizeList &sizes) {
  RankedTensorType result = tensorType(sizes, element(x));
  if (sameSizes(x, result)) {
    return x;
  }
  if (std::optional<top::TensorData> data = top::getConstantData(x)) {
    return top::createConstant(rewriter, loc, result, data->bytes, "reshaped");
  }
  return ReshapeOp::create(rewriter, loc, result, x);
}

/// Returns the bytes of one element with the fill value.
static std::vector<char> encode(Type elementType, double value);

static std::vector<char> foldCopy(ArrayRef<top::TensorData> sources, ArrayRef<PieceAttr> pieces,
                                  RankedTensorType result, std::optional<double> fill) {
  int64_t width = elementBytes(result.getElementType());
  std::vector<char> bytes(physicalBytes(result));
  if (fill.value_or(0) != 0) {
    std::vector<char> one = encode(result.getElementType(), *fill);
    for (size_t at = 0; at < bytes.size(); at += width) {
      llvm::copy(one, bytes.begin() + at);
    }
  }
  for (PieceAttr piece : pieces) {
    const top::TensorData &source = sources[piece.getSource()];
    movePiece(piece, source.bytes.data(), Shape(source.type).values(), bytes.data(), Shape(result).values(), width);
  }
  return bytes;
}

Value Lowering::copy(ValueRange sources, ArrayRef<SymbolicPiece> pieces, const SizeList &sizes,
                     std::optional<double> fill, int64_t growth) {
  RankedTensorType result = tensorType(sizes, element(sources.front()));
  SmallVector<PieceAttr> attrs;
  for (const SymbolicPiece &piece : pieces) {
    attrs.push_back(piece.get(rewriter.getContext()));
  }
  SmallVector<top::TensorData> data;
  int64_t sourceBytes = kMaxGrownBytes;
  for (Value source : sources) {
    if (std::optional<top::TensorData> one = top::getConstantData(source)) {
      sourceBytes = std::max<int64_t>(sourceBytes, one->bytes.size() * growth);
      data.push_back(std::move(*one));
    }
  }
  bool isKnown = Shape(result).isKnown() && llvm::all_of(attrs, [](PieceAttr piece) { return piece.isKnown(); });
  if (data.size() == sources.size() && isKnown && physicalBytes(result) <= sourceBytes) {
    return top::createConstant(rewriter, loc, result, foldCopy(data, attrs, result, fill), "moved");
  }
  auto copyOp = CopyOp::create(rewriter, loc, result, sources,
                               rewriter.getArrayAttr(SmallVector<Attribute>(attrs.begin(), attrs.end())),
                               fill ? rewriter.getF64FloatAttr(*fill) : FloatAttr());
  return copyOp.getY();
}

Value Lowering::transpose(Value x, ArrayRef<int64_t> perm) {
  SmallVector<Dim> newDims;
  SmallVector<int64_t> moving;
  for (int64_t source : perm) {
    newDims.push_back(shape(x)[source]);
    if (!shape(x)[source].is(1)) {
      moving.push_back(source);
    }
  }
  if (llvm::is_sorted(moving)) {
    return reshape(x, newDims);
  }
  auto piece = SymbolicPiece::identity(0, newDims);
  piece.srcDims.assign(perm.begin(), perm.end());
  return copy(x, piece, newDims);
}

Value Lowering::slice(Value x, const SizeList &starts, const SizeList &sizes, ArrayRef<int64_t> steps) {
  if (sameSizes(x, tensorType(sizes, element(x))) && llvm::all_of(steps, [](int64_t step) { return step > 0; })) {
    return x;
  }
  auto piece = SymbolicPiece::identity(0, sizes);
  piece.srcOffsets.assign(ArrayRef<Dim>(starts).begin(), ArrayRef<Dim>(starts).end());
  piece.srcSteps.assign(steps.begin(), steps.end());
  return copy(x, piece, sizes);
}

Value Lowering::expand(Value x, const SizeList &sizes) {
  ArrayRef<Dim> newDims = sizes;
  if (sameSize(countElements(tensorType(newDims, element(x))), countElements(x))) {
    return reshape(x, sizes);
  }
  if (countElements(tensorType(newDims, element(x))).is(0)) {
    return copy(x, ArrayRef<SymbolicPiece>(), newDims, /*fill=*/0.0);
  }
  size_t rank = shape(x).rank(), shift = newDims.size() - rank;
  auto piece = SymbolicPiece::identity(0, newDims);
  piece.srcOffsets.assign(rank, 0);
  for (size_t d = 0; d < newDims.size(); ++d) {
    bool moves = d >= shift && !shape(x)[d - shift].is(1);
    piece.srcDims[d] = moves ? static_cast<int64_t>(d - shift) : -1;
  }
  return copy(x, piece, newDims);
}

Value Lowering::concat(ValueRange inputs, int64_t axis) {
  SmallVector<Value> sources;
  std::vector<SymbolicPiece> pieces;
  SmallVector<Dim> newDims = shape(inputs.front()).dims();
  newDims[axis] = 0;
  for (Value input : inputs) {
    if (countElements(input).is(0)) {
      continue;
    }
    auto piece = SymbolicPiece::identity(sources.size(), shape(input).dims());
    piece.dstOffsets[axis] = newDims[axis];
    newDims[axis] += shape(input)[axis];
    sources.push_back(input);
    pieces.push_back(piece);
  }
  return sources.size() == 1 ? sources.front() : copy(sources, pieces, newDims);
}

//===----------------------------------------------------------------------===//
// Computations
//===----------------------------------------------------------------------===//

/// Returns the scalar of a one-element constant as an attribute for the body, or null.
static TypedAttr scalarAttr(Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  if (knownNumElements(type) != 1) {
    return {};
  }
  std::optional<top::TensorData> data = top::getConstantData(input);
  if (!data) {
    return {};
  }
  Type scalar = scalarType(type.getElementType());
  uint64_t bits = 0;
  std::memcpy(&bits, data->bytes.data(), std::min<size_t>(sizeof(bits), data->bytes.size()));
  APInt value(scalar.getIntOrFloatBitWidth(), bits, /*isSigned=*/false, /*implicitTrunc=*/true);
  if (auto floatType = dyn_cast<FloatType>(scalar)) {
    return FloatAttr::get(floatType, APFloat(floatType.getFloatSemantics(), value));
  }
  return IntegerAttr::get(scalar, value);
}

/// Fills an empty scalar region.
static void fillRegion(PatternRewriter &rewriter, Location loc, Region &region, TypeRange arguments,
                       function_ref<Value(OpBuilder &, Block *)> body) {
  OpBuilder::InsertionGuard guard(rewriter);
  SmallVector<Location> locs(arguments.size(), loc);
  Block *block = rewriter.createBlock(&region, region.end(), arguments, locs);
  YieldOp::create(rewriter, loc, body(rewriter, block));
}

Value Lowering::map(ValueRange inputs, RankedTensorType result, Body body) {
  SmallVector<Value> operands;
  SmallVector<TypedAttr> constants;
  SmallVector<Type> arguments;
  for (Value input : inputs) {
    constants.push_back(scalarAttr(input));
    if (!constants.back()) {
      operands.push_back(input);
      arguments.push_back(scalarType(element(input)));
    }
  }
  auto mapOp = MapOp::create(rewriter, loc, result, operands);
  fillRegion(rewriter, loc, mapOp.getBody(), arguments, [&](OpBuilder &builder, Block *block) {
    SmallVector<Value> scalars;
    unsigned next = 0;
    for (TypedAttr constant : constants) {
      scalars.push_back(constant ? arith::ConstantOp::create(builder, loc, constant).getResult()
                                 : Value(block->getArgument(next++)));
    }
    return body(builder, loc, scalars);
  });
  return mapOp.getY();
}

void Lowering::setEpilogue(Operation *target, Body body) {
  auto owner = cast<EpilogueInterface>(target);
  Type result = scalarType(element(target->getResult(0))), accumulator = owner.getAccumulatorType();
  if (!body && result == accumulator) {
    return;
  }
  SmallVector<Type> arguments{accumulator};
  for (Value extra : owner.getEpilogueOperands()) {
    arguments.push_back(scalarType(element(extra)));
  }
  fillRegion(rewriter, loc, owner.getEpilogueRegion(), arguments, [&](OpBuilder &builder, Block *block) {
    Value y = body ? body(builder, loc, block->getArguments()) : Value(block->getArgument(0));
    return castFloat(builder, loc, y, result);
  });
}

Value Lowering::reduce(Value x, ReduceKind kind, ArrayRef<int64_t> axes, Type result, Body prologue, Body epilogue,
                       ValueRange extras) {
  SmallVector<Dim> newDims = shape(x).dims();
  for (int64_t axis : axes) {
    newDims[axis] = 1;
  }
  auto reduceOp = ReduceOp::create(rewriter, loc, tensorType(newDims, result), x, extras, kind,
                                   rewriter.getDenseI64ArrayAttr(axes));
  Type from = scalarType(element(x));
  // Sums of narrow floats accumulate in f32.
  bool widens = isa<FloatType>(from) && from.getIntOrFloatBitWidth() < 32;
  if (prologue || widens) {
    fillRegion(rewriter, loc, reduceOp.getPrologue(), from, [&](OpBuilder &builder, Block *block) {
      Value e = block->getArgument(0);
      e = widens ? castFloat(builder, loc, e, builder.getF32Type()) : e;
      return prologue ? prologue(builder, loc, e) : e;
    });
  }
  setEpilogue(reduceOp, epilogue);
  return reduceOp.getY();
}

static std::vector<char> encode(Type elementType, double value) {
  int64_t width = elementBytes(elementType);
  uint64_t bits;
  if (auto floatType = dyn_cast<FloatType>(elementType)) {
    APFloat number(value);
    bool losesInfo;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
    bits = number.bitcastToAPInt().getZExtValue();
  } else {
    bits = static_cast<uint64_t>(static_cast<int64_t>(value));
  }
  std::vector<char> bytes(width);
  std::memcpy(bytes.data(), &bits, width);
  return bytes;
}

Value Lowering::constant(ArrayRef<double> values, Type elementType, ArrayRef<int64_t> newDims, StringRef hint) {
  std::vector<char> bytes;
  for (double value : values) {
    llvm::append_range(bytes, encode(elementType, value));
  }
  return top::createConstant(rewriter, loc, RankedTensorType::get(newDims, elementType), std::move(bytes), hint);
}

LogicalResult Lowering::replace(ValueRange results) {
  for (auto [old, value] : llvm::zip(op->getResults(), results)) {
    Operation *result = value.getDefiningOp();
    if (!result || result->getLoc() != loc) {
      continue;
    }
    if (op->getNumResults() == result->getNumResults()) {
      top::copyNames(op, result);
      break;
    }
    // One Top op, e.g. a split, may become several device ops.
    if (result->getNumResults() == 1 && !top::getTensorName(old).empty()) {
      top::setTensorNames(result, top::getTensorName(old));
    }
  }
  rewriter.replaceOp(op, results);
  return success();
}

} // namespace tessera::device

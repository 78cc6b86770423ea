//===- ScalarRegion.cpp - Elements in registers, scalar regions -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Kernels/MathApprox.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;

namespace tessera::kernels {

/// Returns |element| with the vector shape of |like|.
static Type withLanesOf(Type element, Type like) {
  auto vector = dyn_cast<VectorType>(like);
  return vector ? Type(VectorType::get(vector.getShape(), element)) : element;
}

static Type withLanes(Type element, unsigned lanes) {
  return lanes ? Type(VectorType::get({int64_t(lanes)}, element)) : element;
}

static Type signless(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  return integer && !integer.isSignless() ? IntegerType::get(integer.getContext(), integer.getWidth()) : element;
}

using device::isNarrowFloat;

Type registerType(Type elementType) {
  return isNarrowFloat(elementType) ? Type(Float32Type::get(elementType.getContext())) : signless(elementType);
}

//===----------------------------------------------------------------------===//
// f16 and bf16 as bits: conversions without calls to the compiler's runtime library
//===----------------------------------------------------------------------===//

namespace {
/// Helpers for integer formulas on i32 lanes.
struct Bits {
  KernelBuilder &kb;
  Type type; ///< i32 or vector of i32

  Value lit(int64_t value) const {
    TypedAttr attribute = kb.b.getI32IntegerAttr(int32_t(value));
    if (auto vector = dyn_cast<VectorType>(type)) {
      attribute = DenseElementsAttr::get(vector, Attribute(attribute));
    }
    return arith::ConstantOp::create(kb.b, attribute);
  }
  template <typename Op>
  Value make(Value x, int64_t y) const {
    return Op::create(kb.b, x, lit(y));
  }
  Value compare(arith::CmpIPredicate predicate, Value x, int64_t y) const {
    return arith::CmpIOp::create(kb.b, predicate, x, lit(y));
  }
  Value select(Value condition, Value x, Value y) const { return arith::SelectOp::create(kb.b, condition, x, y); }
};
} // namespace

static Bits bitsOf(KernelBuilder &kb, Type like) { return {kb, withLanesOf(kb.b.getI32Type(), like)}; }

static Value asFloat(KernelBuilder &kb, Value bits) {
  return arith::BitcastOp::create(kb.b, withLanesOf(kb.b.getF32Type(), bits.getType()), bits);
}

/// Converts i16 bits of bf16 to f32.
static Value bf16ToF32(KernelBuilder &kb, Value bits) {
  Bits i32 = bitsOf(kb, bits.getType());
  Value wide = arith::ExtUIOp::create(kb.b, i32.type, bits);
  return asFloat(kb, i32.make<arith::ShLIOp>(wide, 16));
}

/// Converts f32 to i16 bits of bf16, rounding to nearest even; NaN becomes a quiet NaN.
static Value f32ToBf16(KernelBuilder &kb, Value value) {
  Bits i32 = bitsOf(kb, value.getType());
  Value raw = arith::BitcastOp::create(kb.b, i32.type, value);
  Value odd = i32.make<arith::AndIOp>(i32.make<arith::ShRUIOp>(raw, 16), 1);
  Value rounded = arith::AddIOp::create(kb.b, i32.make<arith::AddIOp>(raw, 0x7fff), odd);
  Value nan = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::UNO, value, value);
  Value kept = i32.select(nan, i32.make<arith::OrIOp>(raw, 0x400000), rounded);
  Value high = i32.make<arith::ShRUIOp>(kept, 16);
  return arith::TruncIOp::create(kb.b, withLanesOf(kb.b.getI16Type(), value.getType()), high);
}

/// Converts i16 bits of f16 to f32. Multiplying by 2^112 adjusts the exponent and makes subnormals normal.
static Value f16ToF32(KernelBuilder &kb, Value bits) {
  Bits i32 = bitsOf(kb, bits.getType());
  Value wide = arith::ExtUIOp::create(kb.b, i32.type, bits);
  Value sign = i32.make<arith::ShLIOp>(i32.make<arith::AndIOp>(wide, 0x8000), 16);
  Value magnitude = i32.make<arith::ShLIOp>(i32.make<arith::AndIOp>(wide, 0x7fff), 13);
  Value moved = asFloat(kb, magnitude);
  Value scaled = arith::MulFOp::create(kb.b, moved, kb.floatConstant(moved.getType(), 0x1p112));
  Value raw = arith::BitcastOp::create(kb.b, i32.type, scaled);
  Value special = i32.compare(arith::CmpIPredicate::uge, magnitude, 0x7c00 << 13);
  raw = i32.select(special, i32.make<arith::OrIOp>(magnitude, 0x7f800000), raw);
  return asFloat(kb, arith::OrIOp::create(kb.b, raw, sign));
}

/// Converts f32 to i16 bits of f16, rounding to nearest even.
static Value f32ToF16(KernelBuilder &kb, Value value) {
  Bits i32 = bitsOf(kb, value.getType());
  Value raw = arith::BitcastOp::create(kb.b, i32.type, value);
  Value sign = i32.make<arith::ShRUIOp>(i32.make<arith::AndIOp>(raw, 0x80000000), 16);
  Value magnitude = i32.make<arith::AndIOp>(raw, 0x7fffffff);
  // Normal: add half of the last kept bit (minus one for ties to even), rebias 127 -> 15.
  Value odd = i32.make<arith::AndIOp>(i32.make<arith::ShRUIOp>(magnitude, 13), 1);
  Value rounded = arith::AddIOp::create(kb.b, i32.make<arith::AddIOp>(magnitude, 0xfff - (112 << 23)), odd);
  Value normal = i32.make<arith::ShRUIOp>(rounded, 13);
  // Subnormal: adding 0.5 lets the float adder round at the right bit.
  Value shifted = arith::AddFOp::create(kb.b, asFloat(kb, magnitude), kb.floatConstant(value.getType(), 0.5));
  Value small = i32.make<arith::SubIOp>(arith::BitcastOp::create(kb.b, i32.type, shifted), 0x3f000000);
  Value result = i32.select(i32.compare(arith::CmpIPredicate::ult, magnitude, 113 << 23), small, normal);
  Value overflow = i32.compare(arith::CmpIPredicate::uge, magnitude, 0x477ff000);
  result = i32.select(overflow, i32.lit(0x7c00), result);
  Value nan = i32.compare(arith::CmpIPredicate::ugt, magnitude, 0x7f800000);
  result = i32.select(nan, i32.lit(0x7e00), result);
  result = arith::OrIOp::create(kb.b, result, sign);
  return arith::TruncIOp::create(kb.b, withLanesOf(kb.b.getI16Type(), value.getType()), result);
}

static Value narrowToF32(KernelBuilder &kb, Type elementType, Value bits) {
  if (elementType.isBF16()) {
    return bf16ToF32(kb, bits);
  }
  if (!kb.target.hasFma()) { // targets with FMA have F16C too
    return f16ToF32(kb, bits);
  }
  Value half = arith::BitcastOp::create(kb.b, withLanesOf(elementType, bits.getType()), bits);
  return arith::ExtFOp::create(kb.b, withLanesOf(kb.b.getF32Type(), bits.getType()), half);
}

static Value f32ToNarrow(KernelBuilder &kb, Type elementType, Value value) {
  if (elementType.isBF16() && !kb.hasBf16Rounding) {
    return f32ToBf16(kb, value);
  }
  if (elementType.isF16() && !kb.target.hasFma()) {
    return f32ToF16(kb, value);
  }
  Value half = arith::TruncFOp::create(kb.b, withLanesOf(elementType, value.getType()), value);
  return arith::BitcastOp::create(kb.b, withLanesOf(kb.b.getI16Type(), value.getType()), half);
}

Value roundToElement(KernelBuilder &kb, Value value, Type elementType) {
  return isNarrowFloat(elementType) ? narrowToF32(kb, elementType, f32ToNarrow(kb, elementType, value)) : value;
}

//===----------------------------------------------------------------------===//
// Loads and stores of elements
//===----------------------------------------------------------------------===//

Value KernelBuilder::loadElements(Type elementType, unsigned lanes, Value base, Value index, Value mask,
                                  unsigned alignment) {
  if (lane && lanes) {
    // Inactive lanes read the first lane's element, which is always active, instead of branching, so that the threads
    // stay together.
    Value own = mask ? Value(arith::SelectOp::create(b, mask, lane, constant(0))) : lane;
    Value loaded = loadElements(elementType, 0, base, add(index, own));
    return mask ? Value(arith::SelectOp::create(b, mask, loaded, zero(loaded.getType()))) : loaded;
  }
  bool narrow = isNarrowFloat(elementType);
  Type type = withLanes(narrow ? b.getI16Type() : signless(elementType), lanes);
  Value loaded = mask ? maskedLoad(cast<VectorType>(type), base, index, mask) : load(type, base, index, alignment);
  return narrow ? narrowToF32(*this, elementType, loaded) : loaded;
}

Value KernelBuilder::loadRun(Type elementType, unsigned lanes, Value base, Value index) {
  bool narrow = isNarrowFloat(elementType);
  Type type = withLanes(narrow ? b.getI16Type() : signless(elementType), lanes);
  Value loaded = load(type, base, index, std::min<int64_t>(lanes * device::elementBytes(elementType), 16));
  return narrow ? narrowToF32(*this, elementType, loaded) : loaded;
}

void KernelBuilder::storeRun(Type elementType, ValueRange values, Value base, Value index) {
  Value run = vector::FromElementsOp::create(b, withLanes(values[0].getType(), values.size()), values);
  run = isNarrowFloat(elementType) ? f32ToNarrow(*this, elementType, run) : run;
  store(run, base, index, std::min<int64_t>(values.size() * device::elementBytes(elementType), 16));
}

Value KernelBuilder::gatherElements(Type elementType, unsigned lanes, Value base, Value index, Value offsets,
                                    Value mask) {
  bool narrow = isNarrowFloat(elementType);
  auto type = cast<VectorType>(withLanes(narrow ? b.getI16Type() : signless(elementType), lanes));
  Value loaded = gather(type, base, index, offsets, mask);
  return narrow ? narrowToF32(*this, elementType, loaded) : loaded;
}

void KernelBuilder::storeElements(Type elementType, Value value, Value base, Value index, Value mask,
                                  unsigned alignment) {
  Value stored = isNarrowFloat(elementType) ? f32ToNarrow(*this, elementType, value) : value;
  if (lane) {
    auto own = [&] { store(stored, base, add(index, lane)); };
    return mask ? ifThen(mask, own) : own();
  }
  if (mask) {
    maskedStore(stored, base, index, mask);
  } else {
    store(stored, base, index, alignment);
  }
}

//===----------------------------------------------------------------------===//
// Scalar regions
//===----------------------------------------------------------------------===//

static Value cloneConstant(KernelBuilder &kb, arith::ConstantOp op, Type like) {
  Type element = registerType(op.getType());
  if (auto number = dyn_cast<FloatAttr>(op.getValue())) {
    return kb.floatConstant(withLanesOf(element, like), number.getValueAsDouble());
  }
  auto vector = dyn_cast<VectorType>(like);
  if (!vector) {
    return arith::ConstantOp::create(kb.b, op.getValue());
  }
  auto type = VectorType::get(vector.getShape(), element);
  return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, Attribute(op.getValue())));
}

/// Rounds f64 to f32 such that a second rounding, to a narrower type, gives the nearest value: an inexact result
/// becomes the neighbour with an odd last bit.
static Value roundToOdd(KernelBuilder &kb, Value value, Type single) {
  Bits i32 = bitsOf(kb, single);
  Value nearest = arith::TruncFOp::create(kb.b, single, value);
  Value back = arith::ExtFOp::create(kb.b, value.getType(), nearest);
  auto flag = [&](arith::CmpFPredicate predicate, Value x, Value y) -> Value {
    return arith::ExtUIOp::create(kb.b, i32.type, arith::CmpFOp::create(kb.b, predicate, x, y));
  };
  auto magnitude = [&](Value x) -> Value { return math::AbsFOp::create(kb.b, x); };
  Value isAbove = flag(arith::CmpFPredicate::OGT, magnitude(back), magnitude(value));
  Value isInexact = flag(arith::CmpFPredicate::ONE, back, value);
  Value raw = arith::BitcastOp::create(kb.b, i32.type, nearest);
  return asFloat(kb, arith::OrIOp::create(kb.b, arith::SubIOp::create(kb.b, raw, isAbove), isInexact));
}

/// Converts integers to floats that f32 registers hold. They are rounded to f32 first, as in onnxruntime and ml_dtypes.
static Value convertToNarrow(KernelBuilder &kb, Operation &op, Value operand) {
  Type single = withLanesOf(kb.b.getF32Type(), operand.getType());
  Value value = isa<arith::UIToFPOp>(op) ? Value(arith::UIToFPOp::create(kb.b, single, operand))
                                         : arith::SIToFPOp::create(kb.b, single, operand);
  return roundToElement(kb, value, op.getResult(0).getType());
}

/// Emits casts to and from float types that f32 registers hold; returns null for other ops.
static Value castNarrow(KernelBuilder &kb, Operation &op, Value operand) {
  if (isa<arith::SIToFPOp, arith::UIToFPOp>(op) && isNarrowFloat(op.getResult(0).getType())) {
    return convertToNarrow(kb, op, operand);
  }
  if (!isa<arith::ExtFOp, arith::TruncFOp>(op)) {
    return {};
  }
  Type to = op.getResult(0).getType();
  Type from = op.getOperand(0).getType();
  if (!isNarrowFloat(from) && !isNarrowFloat(to)) {
    return {};
  }
  Type wanted = withLanesOf(registerType(to), operand.getType());
  Value value = operand;
  if (wanted != value.getType()) {
    value = to.isF64() ? Value(arith::ExtFOp::create(kb.b, wanted, value)) : roundToOdd(kb, value, wanted);
  }
  return roundToElement(kb, value, to);
}

/// Returns true for a value that a constant bounds, e.g. one that is clamped to the range of an integer.
static bool isClamped(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<math::RoundEvenOp, math::FloorOp, math::CeilOp, math::TruncOp>(op)) {
    return isClamped(op->getOperand(0));
  }
  return isa_and_nonnull<arith::MinimumFOp, arith::MaximumFOp>(op) && matchPattern(op->getOperand(1), m_Constant());
}

/// Converts a float to an integer by truncation; NaN and numbers out of range become the smallest integer. LLVM leaves
/// that result undefined: some machines saturate, and patterns merge several casts. Returns null for other ops, and for
/// clamped numbers on machines whose instruction already gives the smallest integer.
static Value castToInteger(KernelBuilder &kb, Operation &op, Value operand) {
  if (!isa<arith::FPToSIOp>(op) || (isClamped(op.getOperand(0)) && !kb.target.tileIsThread)) {
    return {};
  }
  auto element = cast<IntegerType>(op.getResult(0).getType());
  Type type = withLanesOf(element, operand.getType());
  const double limit = std::ldexp(1, int(element.getWidth()) - 1);
  // In f64, numbers between the smallest integer and the integer below it would fail the comparison, although they
  // truncate to a valid one.
  Value whole = op.getOperand(0).getType().isF64() ? Value(math::TruncOp::create(kb.b, operand)) : operand;
  auto within = [&](arith::CmpFPredicate predicate, double bound) -> Value {
    return arith::CmpFOp::create(kb.b, predicate, whole, kb.floatConstant(operand.getType(), bound));
  };
  Value fits =
      arith::AndIOp::create(kb.b, within(arith::CmpFPredicate::OGE, -limit), within(arith::CmpFPredicate::OLT, limit));
  TypedAttr smallest = kb.b.getIntegerAttr(element, APInt::getSignedMinValue(element.getWidth()));
  if (auto vector = dyn_cast<VectorType>(type)) {
    smallest = DenseElementsAttr::get(vector, Attribute(smallest));
  }
  Value cut = arith::FPToSIOp::create(kb.b, type, operand);
  return arith::SelectOp::create(kb.b, fits, cut, arith::ConstantOp::create(kb.b, smallest));
}

Value beforeRounding(Region &region) {
  if (region.empty()) {
    return {};
  }
  Value yielded = region.front().getTerminator()->getOperand(0);
  auto round = yielded.getDefiningOp<arith::TruncFOp>();
  return round && isNarrowFloat(round.getType()) && round.getIn().getType().isF32() ? round.getIn() : yielded;
}

/// Returns true if the region's result becomes a bf16 whose last bits do not have to be exact.
static bool endsInBf16(KernelBuilder &kb, Region &region) {
  auto round = region.front().getTerminator()->getOperand(0).getDefiningOp<arith::TruncFOp>();
  return !kb.exact && round && round.getType().isBF16() && round.getIn().getType().isF32();
}

/// Emits |op|, which is not a constant, on the registers that |mapping| holds for its operands, and maps its results.
static void emitScalarOp(KernelBuilder &kb, Operation &op, IRMapping &mapping, Type like, bool isCoarse) {
  SmallVector<Value> operands =
      llvm::map_to_vector(op.getOperands(), [&](Value operand) { return mapping.lookup(operand); });
  Value expanded = castNarrow(kb, op, operands.empty() ? Value() : operands[0]);
  if (!expanded) {
    expanded = castToInteger(kb, op, operands.empty() ? Value() : operands[0]);
  }
  if (!expanded && !(isCoarse && isa<arith::AddFOp>(op))) { // for bf16, 1 + erf is emitted as emitErfForBf16() and an
                                                            // addition
    expanded = expandPattern(kb, op, mapping);
  }
  if (auto erf = dyn_cast<math::ErfOp>(op); !expanded && isCoarse && erf && erf.getType().isF32()) {
    expanded = emitErfForBf16(kb, operands[0]);
  }
  if (!expanded) {
    expanded = expandMath(kb, &op, operands);
  }
  if (expanded) {
    mapping.map(op.getResult(0), expanded);
    return;
  }
  Operation *clone = kb.b.clone(op, mapping);
  for (OpResult result : clone->getResults()) {
    result.setType(withLanesOf(registerType(result.getType()), like));
  }
}

Value emitScalarRegion(KernelBuilder &kb, Region &region, ValueRange arguments, Value wanted) {
  if (region.empty()) {
    return arguments.front();
  }
  bool isCoarse = endsInBf16(kb, region);
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  Type like = arguments.empty() ? Type(kb.b.getI64Type()) : arguments.front().getType();
  for (Operation &op : block.without_terminator()) {
    if (wanted && mapping.contains(wanted)) {
      break;
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      mapping.map(constant.getResult(), cloneConstant(kb, constant, like));
    } else {
      emitScalarOp(kb, op, mapping, like, isCoarse);
    }
  }
  return mapping.lookup(wanted ? wanted : block.getTerminator()->getOperand(0));
}

Value emitScalarRegionFrom(KernelBuilder &kb, Region &region, Value from, Value value) {
  bool isCoarse = endsInBf16(kb, region);
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(from, value);
  for (Operation &op : block.without_terminator()) {
    auto isMapped = [&](Value operand) { return mapping.contains(operand); };
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      mapping.map(constant.getResult(), cloneConstant(kb, constant, value.getType()));
    } else if (!isMapped(op.getResult(0)) && llvm::all_of(op.getOperands(), isMapped)) {
      emitScalarOp(kb, op, mapping, value.getType(), isCoarse);
    }
  }
  return mapping.lookup(block.getTerminator()->getOperand(0));
}

} // namespace tessera::kernels

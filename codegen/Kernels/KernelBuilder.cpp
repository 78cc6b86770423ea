//===- KernelBuilder.cpp - Frame of one kernel during emission ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelBuilder.h"

#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tessera::kernels {

Dim multiply(ArrayRef<Dim> sizes) {
  Dim product = 1;
  for (Dim size : sizes) {
    product *= size;
  }
  return product;
}

Dim physicalElements(RankedTensorType type) { return multiply(device::physicalDims(type)); }

KernelBuilder::KernelBuilder(const VectorTarget &target, Operation *op, StringRef symbol)
    : target(target), exact(device::isExact(op)), b(UnknownLoc::get(op->getContext()), op->getContext()), sourceOp(op),
      symbols(symbolsOf(op)) {
  kernelFrame.symbol = symbol.str();
  module = ModuleOp::create(b.getLoc());
  b.setInsertionPointToEnd(module->getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto function = func::FuncOp::create(b, symbol, b.getFunctionType({pointer, i64, i64, pointer}, {}));
  Block *body = function.addEntryBlock();
  b.setInsertionPointToEnd(body);
  auto end = func::ReturnOp::create(b);
  b.setInsertionPoint(end);
  arguments = body->getArgument(0);
  begin = body->getArgument(1);
  this->end = body->getArgument(2);
  scratchPointer = body->getArgument(3);
  for (unsigned i = 0, e = op->getNumOperands() + op->getNumResults(); i < e; ++i) {
    pointers.push_back(loadPointer(i));
  }
  lastOfEntry = pointers.back().getDefiningOp();
}

Value KernelBuilder::loadPointer(unsigned index) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value slot = LLVM::GEPOp::create(b, pointer, pointer, arguments, ArrayRef<LLVM::GEPArg>{int32_t(index)});
  return LLVM::LoadOp::create(b, pointer, slot);
}

Value KernelBuilder::counters(int64_t count) {
  kernelFrame.counters = count;
  return loadPointer(unsigned(pointers.size()));
}

OwningOpRef<ModuleOp> KernelBuilder::takeModule() { return std::move(module); }

RankedTensorType KernelBuilder::operandType(unsigned index) const {
  return cast<RankedTensorType>(sourceOp->getOperand(index).getType());
}

RankedTensorType KernelBuilder::resultType(unsigned index) const {
  return cast<RankedTensorType>(sourceOp->getResult(index).getType());
}

void KernelBuilder::setScratchBytes(int64_t bytes) {
  kernelFrame.scratchBytes = std::max(kernelFrame.scratchBytes, bytes);
}

void KernelBuilder::setTiles(Dim tiles) {
  kernelFrame.tiles = tiles.isKnown() ? tiles.value() : 0;
  kernelFrame.tileTerms = tiles.isSymbolic() ? termsOf(tiles, symbols) : SizeTerms();
  unknownSize |= tiles.isUnknown();
}

void KernelBuilder::forTiles(Dim tiles, function_ref<void(Value)> body) {
  setTiles(tiles);
  forLoop(begin, end, 1, body);
}

void KernelBuilder::forSharedRows(Dim count, function_ref<void(Value)> body) {
  // A launch of an open number of tiles may have none, and then no thread accesses a row.
  forTiles(count.isKnown() ? tessera::max(1, count * kRowThreads) : count * kRowThreads, [&](Value tile) {
    lane = rem(tile, kRowThreads);
    body(div(tile, kRowThreads));
    lane = nullptr;
  });
}

void KernelBuilder::inFirstThread(function_ref<void()> body) {
  if (!lane) {
    return body();
  }
  Value own = lane;
  lane = nullptr;
  ifThen(less(own, constant(1)), body);
  lane = own;
}

Type KernelBuilder::lanesOf(Type element, unsigned lanes) const {
  return lane ? element : VectorType::get({int64_t(lanes)}, element);
}

//===----------------------------------------------------------------------===//
// i64 arithmetic and loops
//===----------------------------------------------------------------------===//

Value KernelBuilder::constant(int64_t value) { return arith::ConstantOp::create(b, b.getI64IntegerAttr(value)); }

Value KernelBuilder::index(Dim size) {
  if (size.isKnown()) {
    return constant(size.value());
  }
  if (size.isUnknown()) {
    unknownSize = true;
    return constant(0);
  }
  Value &value = sizes[size.expression()];
  if (!value) {
    value = computeAtEntry(size);
  }
  return value;
}

/// Returns the quotient rounded down; the divisor is positive.
static Value emitFloorDiv(KernelBuilder &kb, Value x, Value y) {
  Value quotient = arith::DivSIOp::create(kb.b, x, y);
  Value rest = kb.sub(x, kb.mul(quotient, y));
  Value isNegative = kb.less(rest, kb.constant(0));
  return kb.add(quotient, arith::ExtSIOp::create(kb.b, kb.b.getI64Type(), isNegative));
}

Value KernelBuilder::computeAtEntry(Dim size) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfter(lastOfEntry);
  if (!dims) {
    dims = loadPointer(unsigned(pointers.size()));
  }
  SmallVector<Value> stack;
  for (const bm_dim_term &term : termsOf(size, symbols)) {
    if (term.op == BM_DIM_CONST || term.op == BM_DIM_PARAM) {
      Value number = constant(term.value);
      stack.push_back(term.op == BM_DIM_CONST ? number : load(b.getI64Type(), dims, number));
      continue;
    }
    Value y = stack.pop_back_val(), x = stack.pop_back_val();
    stack.push_back(term.op == BM_DIM_ADD         ? add(x, y)
                    : term.op == BM_DIM_MUL       ? mul(x, y)
                    : term.op == BM_DIM_FLOOR_DIV ? emitFloorDiv(*this, x, y)
                    : term.op == BM_DIM_MIN       ? min(x, y)
                                                  : max(x, y));
  }
  lastOfEntry = &*std::prev(b.getInsertionPoint());
  return stack.back();
}

static std::optional<int64_t> constantOf(Value value) {
  APInt result;
  if (matchPattern(value, m_ConstantInt(&result))) {
    return result.getSExtValue();
  }
  return std::nullopt;
}

Value KernelBuilder::add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
Value KernelBuilder::sub(Value x, Value y) { return b.createOrFold<arith::SubIOp>(x, y); }
Value KernelBuilder::mul(Value x, Value y) { return b.createOrFold<arith::MulIOp>(x, y); }
Value KernelBuilder::min(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(x, y); }
Value KernelBuilder::max(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(x, y); }

Value KernelBuilder::div(Value x, Dim y) {
  assert((!y.isKnown() || y.value() > 0) && "division by a positive number only");
  return y.is(1) ? x : b.createOrFold<arith::DivUIOp>(x, index(y));
}

Value KernelBuilder::rem(Value x, Dim y) {
  assert((!y.isKnown() || y.value() > 0) && "remainder of a positive number only");
  return y.is(1) ? constant(0) : b.createOrFold<arith::RemUIOp>(x, index(y));
}

Value KernelBuilder::less(Value x, Value y) { return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, x, y); }

void KernelBuilder::forLoop(Value lower, Value upper, int64_t step, function_ref<void(Value)> body) {
  forLoop(lower, upper, step, ValueRange(), [&](Value i, ValueRange) {
    body(i);
    return SmallVector<Value>();
  });
}

void KernelBuilder::forLoop(Dim lower, Dim upper, int64_t step, function_ref<void(Value)> body) {
  forLoop(index(lower), index(upper), step, body);
}

SmallVector<Value> KernelBuilder::forLoop(Value lower, Value upper, int64_t step, ValueRange init,
                                          function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  std::optional<int64_t> low = constantOf(lower), high = constantOf(upper);
  if (low && high && *low >= *high) {
    return llvm::to_vector(init);
  }
  if (low && high && *low + step >= *high) {
    return body(lower, init);
  }
  auto loop = scf::ForOp::create(b, lower, upper, constant(step), init);
  OpBuilder::InsertionGuard guard(b);
  Block *block = loop.getBody();
  if (!block->empty()) { // a loop without carried values already has a terminator
    block->back().erase();
  }
  b.setInsertionPointToEnd(block);
  SmallVector<Value> next = body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(b, next);
  return SmallVector<Value>(loop.getResults());
}

void KernelBuilder::ifThen(Value condition, function_ref<void()> then) {
  if (std::optional<int64_t> known = constantOf(condition)) {
    if (*known) {
      then();
    }
    return;
  }
  auto branch = scf::IfOp::create(b, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(branch.thenYield());
  then();
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Returns the type of |type| in memory: a byte for i1, otherwise |type| itself.
static Type memoryType(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (!element.isInteger(1)) {
    return type;
  }
  Type byte = IntegerType::get(type.getContext(), 8);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(VectorType::get(vector.getShape(), byte)) : byte;
}

static Value fromMemory(KernelBuilder &kb, Type type, Value loaded) {
  if (loaded.getType() == type) {
    return loaded;
  }
  return arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ne, loaded, kb.zero(loaded.getType()));
}

static Value toMemory(KernelBuilder &kb, Value value) {
  Type type = memoryType(value.getType());
  return type == value.getType() ? value : arith::ExtUIOp::create(kb.b, type, value);
}

static unsigned naturalAlignment(Type type, unsigned alignment) {
  return alignment ? alignment : device::elementBytes(getElementTypeOrSelf(type));
}

/// Returns the largest power of two, at most 16, that |index| is known to be a multiple of.
static uint64_t knownMultiple(Value index, unsigned depth = 0) {
  constexpr uint64_t kMost = 16;
  auto lowestBit = [&](uint64_t number) { return number ? std::min(number & -number, kMost) : kMost; };
  if (std::optional<int64_t> number = constantOf(index)) {
    return lowestBit(uint64_t(*number));
  }
  auto loop = isa<BlockArgument>(index) ? dyn_cast<scf::ForOp>(index.getParentBlock()->getParentOp()) : scf::ForOp();
  if (depth == 24) {
    return 1;
  }
  auto of = [&](Value operand) { return knownMultiple(operand, depth + 1); };
  if (loop && index == loop.getInductionVar()) {
    return std::min(of(loop.getLowerBound()), of(loop.getStep()));
  }
  Operation *op = index.getDefiningOp();
  if (isa_and_nonnull<arith::MulIOp>(op)) {
    return std::min(of(op->getOperand(0)) * of(op->getOperand(1)), kMost);
  }
  if (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::RemUIOp, arith::MinSIOp, arith::MaxSIOp>(op)) {
    return std::min(of(op->getOperand(0)), of(op->getOperand(1)));
  }
  return 1;
}

/// Returns the known alignment, in bytes, of the elements of |type| at |index| from |base|. More than the natural
/// alignment is computed only for GPU threads, which load 16 aligned bytes at once but unaligned elements one by one.
unsigned KernelBuilder::alignmentAt(Type type, Value base, Value index, unsigned alignment) const {
  unsigned natural = naturalAlignment(type, alignment);
  auto vector = dyn_cast<VectorType>(type);
  if (!target.tileIsThread || !vector || alignment || !llvm::is_contained(pointers, base)) {
    return natural;
  }
  uint64_t bytes = llvm::bit_floor(uint64_t(natural) * vector.getNumElements());
  return unsigned(std::max<uint64_t>(natural, std::min({knownMultiple(index) * natural, bytes, uint64_t(16)})));
}

Value KernelBuilder::element(Type elementType, Value base, Value index) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  return LLVM::GEPOp::create(b, pointer, memoryType(elementType), base, ArrayRef<LLVM::GEPArg>{index});
}

Value KernelBuilder::load(Type type, Value base, Value index, unsigned alignment) {
  Value address = element(getElementTypeOrSelf(type), base, index);
  unsigned aligned = alignmentAt(type, base, index, alignment);
  return fromMemory(*this, type, LLVM::LoadOp::create(b, memoryType(type), address, aligned));
}

void KernelBuilder::store(Value value, Value base, Value index, unsigned alignment) {
  Value address = element(getElementTypeOrSelf(value.getType()), base, index);
  unsigned aligned = alignmentAt(value.getType(), base, index, alignment);
  LLVM::StoreOp::create(b, toMemory(*this, value), address, aligned);
}

Value KernelBuilder::maskedLoad(VectorType type, Value base, Value index, Value mask) {
  Value address = element(type.getElementType(), base, index);
  Type memory = memoryType(type);
  Value loaded = LLVM::MaskedLoadOp::create(b, memory, address, mask, zero(memory), naturalAlignment(type, 0));
  return fromMemory(*this, type, loaded);
}

/// Returns |value| after an empty asm statement, to avoid bugs of LLVM 22. It merges a truncation with the masked store
/// after it and then, if the mask is known to select one lane, stores that lane untruncated, over its neighbours. If
/// lanes are zeroed, it computes the other lanes of 64 bits with an instruction that does not exist.
static Value keepTruncationApart(KernelBuilder &kb, Value value) {
  auto vector = cast<VectorType>(value.getType());
  int64_t width = vector.getElementTypeBitWidth(), bits = width * vector.getNumElements();
  if (!kb.target.hasMasks() || !vector.getElementType().isInteger() || width > 32 || bits < 128 || bits > 512) {
    return value;
  }
  return LLVM::InlineAsmOp::create(kb.b, kb.b.getLoc(), value.getType(), value, "", "=v,0", /*has_side_effects=*/false,
                                   /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

Value KernelBuilder::zeroOutside(Value mask, Value value) {
  return arith::SelectOp::create(b, mask, keepTruncationApart(*this, value), zero(value.getType()));
}

void KernelBuilder::maskedStore(Value value, Value base, Value index, Value mask) {
  Value address = element(getElementTypeOrSelf(value.getType()), base, index);
  Value stored = keepTruncationApart(*this, toMemory(*this, value));
  LLVM::MaskedStoreOp::create(b, stored, address, mask, naturalAlignment(value.getType(), 0));
}

Value KernelBuilder::gather(VectorType type, Value base, Value index, Value offsets, Value mask) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type memory = memoryType(type);
  Type element = getElementTypeOrSelf(memory);
  Value start = this->element(type.getElementType(), base, index);
  auto pointers = LLVM::GEPOp::create(b, VectorType::get(type.getShape(), pointer), element, start,
                                      ArrayRef<LLVM::GEPArg>{offsets});
  if (!mask) {
    auto ones = DenseElementsAttr::get(VectorType::get(type.getShape(), b.getI1Type()), true);
    mask = arith::ConstantOp::create(b, ones);
  }
  Value loaded = LLVM::masked_gather::create(b, memory, pointers, mask, ValueRange{zero(memory)},
                                             b.getI32IntegerAttr(naturalAlignment(type, 0)));
  return fromMemory(*this, type, loaded);
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

Value KernelBuilder::ifElse(Value condition, function_ref<Value()> then, Value otherwise) {
  return ifElseAll(condition, [&] { return SmallVector<Value>{then()}; }, otherwise).front();
}

SmallVector<Value> KernelBuilder::ifElseAll(Value condition, function_ref<SmallVector<Value>()> then,
                                            ValueRange otherwise) {
  auto chosen = scf::IfOp::create(b, otherwise.getTypes(), condition, /*addElseBlock=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(&chosen.getThenRegion().front());
  scf::YieldOp::create(b, then());
  b.setInsertionPointToEnd(&chosen.getElseRegion().front());
  scf::YieldOp::create(b, otherwise);
  return SmallVector<Value>(chosen.getResults());
}

Value KernelBuilder::maskBelow(unsigned lanes, Value count) {
  if (lane) {
    return less(lane, count);
  }
  // 32-bit lane numbers need half the registers of 64-bit numbers; |count|, the size of a tail, is small.
  auto type = VectorType::get({int64_t(lanes)}, b.getI32Type());
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value iota = arith::ConstantOp::create(b, DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  Value limit = splat(arith::TruncIOp::create(b, b.getI32Type(), count), lanes);
  return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, iota, limit);
}

Value KernelBuilder::splat(Value scalar, unsigned lanes) {
  if (lane) {
    return scalar;
  }
  Attribute constant;
  auto type = VectorType::get({int64_t(lanes)}, scalar.getType());
  if (matchPattern(scalar, m_Constant(&constant))) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(type, constant));
  }
  return vector::BroadcastOp::create(b, type, scalar);
}

Value KernelBuilder::floatConstant(Type type, double value) {
  auto element = cast<FloatType>(getElementTypeOrSelf(type));
  APFloat number(value);
  bool inexact;
  number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
  TypedAttr attribute = FloatAttr::get(element, number);
  if (auto vector = dyn_cast<VectorType>(type)) {
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  }
  return arith::ConstantOp::create(b, attribute);
}

Value KernelBuilder::zero(Type type) { return arith::ConstantOp::create(b, b.getZeroAttr(type)); }

} // namespace tessera::kernels

//===- MicroTile.cpp - Register tiles with an epilogue, as functions ------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/MicroTile.h"

#include "codegen/X86/AmxTile.h"
#include "codegen/X86/RequantiseBytes.h"
#include "codegen/X86/RoundedPower.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace tessera::x86 {

Value byteOffset(KernelBuilder &kb, Value base, Value bytes) { return kb.element(kb.b.getI8Type(), base, bytes); }
Value byteOffset(KernelBuilder &kb, Value base, Dim bytes) {
  return bytes.is(0) ? base : byteOffset(kb, base, kb.index(bytes));
}

void flipBytes(KernelBuilder &kb, Value from, Value to, Value bytes) {
  constexpr int64_t kBytes = 64;
  auto vector = VectorType::get({kBytes}, kb.b.getI8Type());
  Value flip = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(vector, static_cast<int8_t>(-128)));
  Value whole = kb.mul(kb.div(bytes, kBytes), kBytes), zero = kb.constant(0);
  kb.forLoop(zero, whole, kBytes, [&](Value at) {
    Value value = kb.load(vector, from, at, 1);
    kb.store(arith::XOrIOp::create(kb.b, value, flip), to, at, 1);
  });
  kb.ifThen(kb.less(whole, bytes), [&] {
    Value mask = kb.maskBelow(kBytes, kb.sub(bytes, whole));
    Value value = kb.maskedLoad(vector, from, whole, mask);
    kb.maskedStore(arith::XOrIOp::create(kb.b, value, flip), to, whole, mask);
  });
}

void widenFloats(KernelBuilder &kb, Type element, Value from, Value to, Value count) {
  Value whole = kb.mul(kb.div(count, kBlock), kBlock);
  kb.forLoop(kb.constant(0), whole, kBlock,
             [&](Value at) { kb.store(kb.loadElements(element, kBlock, from, at), to, at); });
  kb.forLoop(whole, count, 1, [&](Value at) { kb.store(kb.loadElements(element, 0, from, at), to, at); });
}

TileFunctions::TileFunctions(KernelBuilder &kb, Region &epilogue, ArrayRef<TileExtra> extras, Bias bias,
                             ArrayRef<int32_t> offsets)
    : kb(kb), epilogue(epilogue), extras(extras), bias(bias) {
  if (offsets.empty()) {
    return;
  }
  OpBuilder::InsertionGuard guard(kb.b);
  auto module = kb.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  kb.b.setInsertionPointToStart(module.getBody());
  table = kb.frame().symbol + "_offsets";
  auto type = RankedTensorType::get({static_cast<int64_t>(offsets.size())}, kb.b.getI32Type());
  LLVM::GlobalOp::create(kb.b, LLVM::LLVMArrayType::get(kb.b.getI32Type(), offsets.size()),
                         /*isConstant=*/true, LLVM::Linkage::Internal, table, DenseElementsAttr::get(type, offsets),
                         /*alignment=*/64);
}

/// Returns a text that is equal for two tiles if and only if they can share a function.
static std::string describe(const TileShape &shape, const TileResult &result) {
  std::string text = llvm::formatv("{0} {1} {2} {3} {4} {5} {6} {7} {8} {9} {10} {11} {12}", shape.blocks,
                                   shape.stepBytes, shape.groupBytes, shape.panelRowBytes, shape.prefetchLines,
                                   result.blockStride, result.tailLanes, result.blocked, shape.rows.size(),
                                   shape.aheadBytes, shape.aheadLines, static_cast<int>(shape.step), shape.scalesAt);
  text += llvm::formatv(" {0} {1} {2} {3} {4} {5} {6} {7} {8} {9} {10}", shape.chunk, shape.rowStride, shape.windowRows,
                        static_cast<int>(shape.kind), shape.oddGroups, shape.skips, shape.tableBytes, shape.highAt,
                        shape.openGroups, result.openBlocks, shape.openSteps);
  for (auto [a, c] : llvm::zip_equal(shape.rows, result.rows)) {
    text += llvm::formatv(" {0}:{1}", a, c);
  }
  for (const StepRun &run : shape.groups) {
    text += llvm::formatv(" {0}*{1}", run.count, run.size);
  }
  return text;
}

void TileFunctions::call(const TileShape &shape, const TileResult &result, const Pointers &pointers) {
  func::FuncOp &function = functions[describe(shape, result)];
  if (!function) {
    function = build(shape, result, llvm::formatv("{0}_tile{1}", kb.frame().symbol, functions.size()).str());
  }
  SmallVector<Value> arguments{pointers.a, pointers.b, pointers.c};
  if (bias != Bias::None) {
    arguments.push_back(pointers.bias);
  }
  if (shape.prefetchLines) {
    arguments.push_back(pointers.prefetch);
  }
  llvm::append_range(arguments, pointers.extras);
  if (shape.openGroups) {
    arguments.push_back(pointers.groupStride);
  }
  if (shape.openSteps) {
    arguments.push_back(pointers.steps);
  }
  if (result.openBlocks) {
    arguments.push_back(pointers.blockStride);
  }
  func::CallOp::create(kb.b, function, arguments);
}

/// Allocates |bytes| bytes on the stack, 64-byte aligned.
static Value stackBytes(KernelBuilder &kb, int64_t bytes) {
  return LLVM::AllocaOp::create(kb.b, LLVM::LLVMPointerType::get(kb.b.getContext()), kb.b.getI8Type(),
                                LLVM::ConstantOp::create(kb.b, kb.b.getI64Type(), kb.b.getI64IntegerAttr(bytes)),
                                /*alignment=*/64);
}

/// Returns where AMX can store its sums directly as results, or nullopt if an epilogue or layout must process them.
static std::optional<SumPlaces> placesInResult(const TileShape &shape, const TileResult &result,
                                               const TileWindows &windows, Type sum) {
  int64_t rows = shape.rows.size(), stride = rows > 1 ? result.rows[1] - result.rows[0] : 0;
  bool isEven = llvm::all_of(llvm::enumerate(result.rows), [&](auto row) {
    return row.value() == result.rows[0] + static_cast<int64_t>(row.index()) * stride;
  });
  if (!windows.whole || !isEven || result.blocked || result.blockStride != kBlock || result.tailLanes != kBlock ||
      (result.element && result.element != sum)) {
    return std::nullopt;
  }
  SumPlaces places{{}, stride * 4};
  for (int64_t row : windows.first) {
    places.windows.push_back(result.rows[row] * 4);
  }
  return places;
}

/// Returns where AMX stores sums for an epilogue, window behind window.
static SumPlaces placesOnStack(const TileShape &shape, const TileWindows &windows) {
  SumPlaces places{{}, shape.blocks * kBlockBytes};
  for (size_t window = 0; window < windows.offsets.size(); ++window) {
    places.windows.push_back(window * kWindowRows * places.rowBytes);
  }
  return places;
}

TileFunctions::Arguments TileFunctions::addArguments(Block &body, const TileShape &shape, const TileResult &result) {
  Type pointer = LLVM::LLVMPointerType::get(kb.b.getContext());
  auto add = [&](bool wanted, Type type) { return wanted ? Value(body.addArgument(type, kb.b.getLoc())) : Value(); };
  Arguments arguments;
  arguments.a = add(true, pointer), arguments.b = add(true, pointer), arguments.c = add(true, pointer);
  arguments.bias = add(bias != Bias::None, pointer);
  arguments.prefetch = add(shape.prefetchLines != 0, pointer);
  unsigned firstExtra = body.getNumArguments();
  for (size_t extra = 0; extra < extras.size(); ++extra) {
    add(true, pointer);
  }
  arguments.groupStride = add(shape.openGroups, kb.b.getI64Type());
  arguments.steps = add(shape.openSteps, kb.b.getI64Type());
  arguments.blockStride = add(result.openBlocks, kb.b.getI64Type());
  arguments.extras = ValueRange(body.getArguments()).slice(firstExtra, extras.size());
  return arguments;
}

func::FuncOp TileFunctions::build(const TileShape &shape, const TileResult &result, StringRef name) {
  OpBuilder::InsertionGuard guard(kb.b);
  auto module = kb.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  kb.b.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(kb.b.getContext());
  auto function = func::FuncOp::create(kb.b, name, kb.b.getFunctionType({}, {}));
  function.setPrivate();
  function->setAttr("llvm.linkage", LLVM::LinkageAttr::get(kb.b.getContext(), LLVM::Linkage::Internal));
  Block *body = function.addEntryBlock();
  const Arguments arguments = addArguments(*body, shape, result);
  function.setType(kb.b.getFunctionType(body->getArgumentTypes(), {}));
  kb.b.setInsertionPointToEnd(body);
  blockStride = arguments.blockStride;
  Value offsets;
  if (shape.openGroups || shape.openSteps) {
    offsets = LLVM::IntToPtrOp::create(kb.b, pointer, shape.openSteps ? arguments.steps : arguments.groupStride);
  } else if (!table.empty()) {
    offsets = byteOffset(kb, LLVM::AddressOfOp::create(kb.b, pointer, table), shape.tableBytes);
  }
  int64_t width = shape.blocks * vectorsPerBlock(targetOf(kb));
  if (shape.chunk) {
    assert(bias != Bias::Last && "AMX tiles support Bias::First only");
    TileWindows windows(shape);
    Type sum = sumsFloats(shape.kind) ? Type(kb.b.getF32Type()) : kb.b.getI32Type();
    std::optional<SumPlaces> places =
        epilogue.empty() ? placesInResult(shape, result, windows, sum) : std::optional<SumPlaces>();
    Value memory = places ? arguments.c : stackBytes(kb, matrixSumBytes(shape.blocks));
    emitAmxTile(kb, shape, windows, arguments.a, arguments.b, arguments.bias, offsets, arguments.prefetch, memory,
                places ? *places : placesOnStack(shape, windows));
    if (shape.highAt) {
      addHighSums(kb, memory, shape.blocks);
    }
    if (!places) {
      emitEpilogue(shape, result, TileSums(memory, VectorType::get({kBlock}, sum), windows.places, width), arguments.c,
                   arguments.extras);
    }
    func::ReturnOp::create(kb.b);
    return function;
  }
  bool last = bias == Bias::Last;
  SmallVector<Value> sums = emitRegisterTile(kb, shape, arguments.a, arguments.b, last ? Value() : arguments.bias,
                                             offsets, arguments.prefetch);
  for (int64_t i = 0; last && i < static_cast<int64_t>(sums.size()); ++i) {
    Value from = byteOffset(kb, arguments.bias, i % width * targetOf(kb).vectorBytes());
    sums[i] = arith::AddFOp::create(kb.b, sums[i], kb.load(sums[i].getType(), from, kb.constant(0)));
  }
  emitEpilogue(shape, result, TileSums(sums, width), arguments.c, arguments.extras);
  func::ReturnOp::create(kb.b);
  return function;
}

/// Returns a constant mask of the lanes of vector |part| of a block whose first |tail| columns exist.
static Value tailMask(KernelBuilder &kb, int64_t part, int64_t tail) {
  int64_t lanes = targetOf(kb).lanes(32);
  SmallVector<bool> mask;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    mask.push_back(part * lanes + lane < tail);
  }
  auto type = VectorType::get({lanes}, kb.b.getI1Type());
  return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, mask));
}

Value emitVectorEpilogue(KernelBuilder &kb, Region &epilogue, ArrayRef<TileExtra> extras, ValueRange bases, Value sum,
                         VectorPlace place, Value mask, Value wanted) {
  int64_t lanes = cast<VectorType>(sum.getType()).getNumElements();
  Value zero = kb.constant(0);
  SmallVector<Value> arguments{sum};
  for (auto [extra, base] : llvm::zip_equal(extras, bases)) {
    auto at = [&, base = base, bytes = extra.elementBytes](int64_t offset) {
      return byteOffset(kb, base, offset * bytes);
    };
    if (mask && (extra.kind == ExtraKind::Full || extra.perMatrix)) {
      int64_t offset = extra.perMatrix ? place.column : place.element;
      arguments.push_back(kb.loadElements(extra.element, lanes, at(offset), zero, mask));
    } else if (extra.kind == ExtraKind::Full || extra.kind == ExtraKind::Column) {
      // A vector of channels may end inside this one, but its cache line may be read to the end.
      int64_t offset = extra.kind == ExtraKind::Full ? place.element : place.column;
      arguments.push_back(kb.loadElements(extra.element, lanes, at(offset), zero));
    } else {
      int64_t offset = extra.kind == ExtraKind::Row ? place.row * extra.rowStride : 0;
      Value scalar = kb.loadElements(extra.element, 0, at(offset), zero);
      arguments.push_back(kb.splat(scalar, lanes));
    }
  }
  return emitScalarRegion(kb, epilogue, arguments, wanted ? wanted : beforeRounding(epilogue));
}

/// Returns the requantisation at the end of |epilogue| if its results can be packed to bytes four vectors at a time.
static std::optional<Requantise> packedEnd(Region &epilogue) {
  if (epilogue.empty()) {
    return std::nullopt;
  }
  std::optional<Requantise> end = matchRequantise(epilogue.front().getTerminator()->getOperand(0));
  return end && end->fitsBytes() ? end : std::nullopt;
}

/// Clears all but the first |tail| of every 16 bytes; the bytes belong to consecutive positions.
static Value keepChannels(KernelBuilder &kb, Value value, int64_t tail) {
  if (tail == kBlock) {
    return value;
  }
  auto vector = cast<VectorType>(value.getType());
  SmallVector<int8_t> mask;
  for (int64_t i = 0; i < vector.getNumElements(); ++i) {
    mask.push_back(i % kBlock < tail ? -1 : 0);
  }
  return arith::AndIOp::create(kb.b, value,
                               arith::ConstantOp::create(kb.b, DenseElementsAttr::get(vector, ArrayRef(mask))));
}

void emitPositions(KernelBuilder &kb, Region &epilogue, ArrayRef<TileExtra> extras, ValueRange bases,
                   ArrayRef<Value> sums, VectorPlace first, Value to, Type element, int64_t tail) {
  int64_t elementBytes = device::elementBytes(element), lanes = targetOf(kb).lanes(32),
          parts = vectorsPerBlock(targetOf(kb)), count = sums.size() / parts, together = 4 / parts;
  std::optional<Requantise> end = elementBytes == 1 ? packedEnd(epilogue) : std::nullopt;
  auto value = [&](int64_t position, int64_t part, Value wanted) {
    VectorPlace place{first.element + position * kBlock + part * lanes, first.column + part * lanes,
                      first.row + position};
    return emitVectorEpilogue(kb, epilogue, extras, bases, sums[position * parts + part], place, {}, wanted);
  };
  int64_t position = 0;
  for (; end && position + together <= count; position += together) {
    SmallVector<Value> four;
    for (int64_t i = 0; i < together * parts; ++i) {
      four.push_back(value(position + i / parts, i % parts, end->value));
    }
    Value bytes = keepChannels(kb, emitRequantise4(kb, *end, four), tail);
    kb.store(bytes, byteOffset(kb, to, first.element + position * kBlock), kb.constant(0));
  }
  for (; position < count; ++position) {
    for (int64_t part = 0; part < parts; ++part) {
      int64_t at = first.element + position * kBlock + part * lanes;
      Value target = byteOffset(kb, to, at * elementBytes);
      storeBlockVector(kb, element, value(position, part, {}), target, part, tail);
    }
  }
}

void storeBlockVector(KernelBuilder &kb, Type element, Value value, Value to, int64_t part, int64_t tail) {
  int64_t lanes = targetOf(kb).lanes(32);
  if (tail <= part * lanes) {
    value = kb.zero(value.getType());
  } else if (tail < (part + 1) * lanes) {
    value = kb.zeroOutside(tailMask(kb, part, tail), value);
  }
  kb.storeElements(element ? element : getElementTypeOrSelf(value.getType()), value, to, kb.constant(0));
}

/// Returns the approximate number of ops of |epilogue| after expansion; a math function is a polynomial.
static int64_t epilogueOps(Region &epilogue) {
  int64_t count = 0;
  epilogue.walk([&](Operation *op) {
    bool math = op->getDialect()->getNamespace() == "math" && !isa<math::RoundEvenOp>(op);
    count += op->hasTrait<OpTrait::ConstantLike>() ? 0 : math ? 20 : 1;
  });
  return count;
}

Value TileSums::at(KernelBuilder &kb, int64_t row, int64_t column) const {
  if (!memory) {
    return values[row * width + column];
  }
  return kb.load(type, memory, kb.constant((places[row] * width + column) * type.getNumElements()));
}

SmallVector<Value> TileSums::row(KernelBuilder &kb, int64_t row) const {
  SmallVector<Value> sums;
  for (int64_t column = 0; column < width; ++column) {
    sums.push_back(at(kb, row, column));
  }
  return sums;
}

/// Returns the index, in elements, of vector |column| of the row |index| rows behind row |first|.
Value TileSums::vectorBehind(KernelBuilder &kb, int64_t first, Value index, int64_t column) const {
  Value vector = kb.add(kb.mul(kb.add(index, places[first]), width), column);
  return kb.mul(vector, type.getNumElements());
}

SmallVector<Value> TileSums::rowBehind(KernelBuilder &kb, int64_t first, Value index) const {
  SmallVector<Value> sums;
  for (int64_t column = 0; column < width; ++column) {
    sums.push_back(kb.load(type, memory, vectorBehind(kb, first, index, column)));
  }
  return sums;
}

void TileSums::storeRowBehind(KernelBuilder &kb, int64_t first, Value index, ArrayRef<Value> vectors) const {
  for (auto [column, vector] : llvm::enumerate(vectors)) {
    kb.store(vector, memory, vectorBehind(kb, first, index, column));
  }
}

int64_t TileSums::neighbours(int64_t first, int64_t count) const {
  int64_t rows = 1;
  while (rows < count && places[first + rows] == places[first] + rows) {
    ++rows;
  }
  return rows;
}

TileSums TileSums::spilled(KernelBuilder &kb, int64_t rows, SmallVectorImpl<int64_t> &rowPlaces) const {
  int64_t bytes = targetOf(kb).vectorBytes();
  Value stack = stackBytes(kb, rows * width * bytes);
  for (auto [index, sum] : llvm::enumerate(values)) {
    kb.store(sum, byteOffset(kb, stack, index * bytes), kb.constant(0));
  }
  for (int64_t row = 0; row < rows; ++row) {
    rowPlaces.push_back(row);
  }
  return TileSums(stack, cast<VectorType>(values.front().getType()), rowPlaces, width);
}

/// Returns how many of |rows| from |first| on, at most |count|, have a constant stride.
static int64_t evenRows(ArrayRef<int64_t> rows, int64_t first, int64_t count) {
  int64_t even = std::min<int64_t>(count, 2);
  while (even < count && rows[first + even] - rows[first + even - 1] == rows[first + 1] - rows[first]) {
    ++even;
  }
  return even;
}

void TileFunctions::emitEpilogue(const TileShape &shape, const TileResult &result, const TileSums &sums, Value c,
                                 ValueRange extraPointers) {
  int64_t rows = shape.rows.size();
  bool isShort = rows * epilogueOps(epilogue) < 60, isEven = evenRows(result.rows, 0, rows) == rows;
  SmallVector<int64_t> places;
  if (std::optional<RoundedGate> gate = RoundedGate::match(epilogue, targetOf(kb));
      gate && (sums.inMemory() || isEven)) {
    TileSums memory = sums.inMemory() ? sums : sums.spilled(kb, rows, places);
    return emitGatedRows(*gate, shape, result, memory, c, extraPointers);
  }
  if (result.blocked && result.elementBytes == 1 && packedEnd(epilogue) && epilogueOps(epilogue) <= 40) {
    return emitPackedEpilogue(shape, result, sums, c, extraPointers);
  }
  if (sums.inMemory() && !isShort) {
    return emitRowLoops(shape, result, sums, c, extraPointers);
  }
  if (isShort || !isEven) {
    auto exact = [&](auto... arguments) { return exactEpilogue(arguments...); };
    for (int64_t row = 0; row < rows; ++row) {
      emitEpilogueRow(shape, result, sums.row(kb, row), c, extraPointers, result.rows[row], row, exact);
    }
    return;
  }
  // Unrolling a long epilogue over all accumulators would produce a long function that spills them anyway.
  emitRowLoops(shape, result, sums.spilled(kb, rows, places), c, extraPointers);
}

/// Emits loops over the rows of sums in memory.
void TileFunctions::forRows(const TileShape &shape, const TileResult &result, const TileSums &sums, Value c,
                            ValueRange extraPointers, RowBody body) {
  int64_t rows = shape.rows.size();
  for (int64_t first = 0, count; first < rows; first += count) {
    count = evenRows(result.rows, first, sums.neighbours(first, rows - first));
    int64_t stride = count > 1 ? result.rows[first + 1] - result.rows[first] : 0;
    kb.forLoop(0, count, 1, [&](Value row) {
      SmallVector<Value> bases;
      for (auto [extra, base] : llvm::zip_equal(extras, extraPointers)) {
        int64_t step = extra.kind == ExtraKind::Full ? stride : extra.kind == ExtraKind::Row ? extra.rowStride : 0;
        bases.push_back(step ? byteOffset(kb, base, kb.mul(row, step * extra.elementBytes)) : base);
      }
      Value to = byteOffset(kb, c, kb.mul(row, stride * result.elementBytes));
      body({sums.rowBehind(kb, first, row), to, bases, result.rows[first], first, row, kb.add(row, first)});
    });
  }
}

/// Emits the epilogue of sums in memory as loops over rows.
void TileFunctions::emitRowLoops(const TileShape &shape, const TileResult &result, const TileSums &sums, Value c,
                                 ValueRange extraPointers) {
  auto exact = [&](auto... arguments) { return exactEpilogue(arguments...); };
  forRows(shape, result, sums, c, extraPointers, [&](const TileRow &row) {
    emitEpilogueRow(shape, result, row.sums, row.c, row.extras, row.offset, row.first, exact);
  });
}

/// Emits an epilogue that ends in |gate|: a loop computes all rows by the gate's table, and a second loop computes the
/// rows with uncertain results by the exact function. The result may overwrite an operand of the epilogue, so the
/// second loop reads no operands: the first one replaces the sums by the gate's arguments.
void TileFunctions::emitGatedRows(const RoundedGate &gate, const TileShape &shape, const TileResult &result,
                                  const TileSums &sums, Value c, ValueRange extraPointers) {
  Type word = kb.b.getI16Type();
  Value flags = stackBytes(kb, llvm::alignTo(shape.rows.size() * 2, 64));
  forRows(shape, result, sums, c, extraPointers, [&](const TileRow &row) {
    Value worst;
    SmallVector<Value> gateArguments(row.sums);
    auto gated = [&](Value sum, ValueRange pointers, const VectorPlace &place, Value mask) {
      Value x = emitVectorEpilogue(kb, epilogue, extras, pointers, sum, place, mask, gate.argument());
      llvm::replace(gateArguments, sum, x);
      return gate.emit(kb, x, worst);
    };
    emitEpilogueRow(shape, result, row.sums, row.c, row.extras, row.offset, row.first, gated);
    sums.storeRowBehind(kb, row.first, row.behind, gateArguments);
    kb.store(emitUnsure(kb, worst, gate.error()), flags, row.index);
  });
  auto exact = [&](Value x, ValueRange, const VectorPlace &, Value) {
    return emitScalarRegionFrom(kb, epilogue, gate.argument(), x);
  };
  TileSums arguments = sums.as(VectorType::get({kBlock}, kb.b.getF32Type()));
  forRows(shape, result, arguments, c, extraPointers, [&](const TileRow &row) {
    Value zero = arith::ConstantOp::create(kb.b, kb.b.getI16IntegerAttr(0));
    Value unsure = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ne, kb.load(word, flags, row.index), zero);
    kb.ifThen(unsure,
              [&] { emitEpilogueRow(shape, result, row.sums, row.c, row.extras, row.offset, row.first, exact); });
  });
}

Value TileFunctions::exactEpilogue(Value sum, ValueRange extraPointers, const VectorPlace &place, Value mask) {
  return emitVectorEpilogue(kb, epilogue, extras, extraPointers, sum, place, mask);
}

TileFunctions::BlockPlace TileFunctions::placeOf(int64_t block, const TileResult &result, Value c,
                                                 ValueRange extraPointers) {
  BlockPlace place{c, llvm::to_vector(extraPointers), result.openBlocks ? 0 : block * result.blockStride};
  if (!result.openBlocks || block == 0) {
    return place;
  }
  Value element = kb.mul(blockStride, block);
  place.c = byteOffset(kb, c, kb.mul(element, result.elementBytes));
  for (auto [extra, pointer] : llvm::zip_equal(extras, place.extras)) {
    if (extra.kind == ExtraKind::Full) {
      pointer = byteOffset(kb, pointer, kb.mul(element, extra.elementBytes));
    }
  }
  return place;
}

/// Emits the epilogue of a blocked result of bytes, block by block, for runs of rows that are consecutive positions.
void TileFunctions::emitPackedEpilogue(const TileShape &shape, const TileResult &result, const TileSums &sums, Value c,
                                       ValueRange extraPointers) {
  constexpr int64_t kReadTogether = 8; // positions of sums in memory
  int64_t rows = shape.rows.size(), parts = vectorsPerBlock(targetOf(kb));
  for (int64_t block = 0; block < shape.blocks; ++block) {
    BlockPlace place = placeOf(block, result, c, extraPointers);
    for (int64_t row = 0; row < rows;) {
      SmallVector<Value> run;
      int64_t begin = row;
      do {
        for (int64_t part = 0; part < parts; ++part) {
          run.push_back(sums.at(kb, row, block * parts + part));
        }
        ++row;
      } while (row < rows && result.rows[row] == result.rows[row - 1] + kBlock &&
               !(sums.inMemory() && row - begin == kReadTogether));
      VectorPlace first{result.rows[begin] + place.element, block * kBlock, begin};
      emitPositions(kb, epilogue, extras, place.extras, run, first, place.c, result.element,
                    block + 1 == shape.blocks ? result.tailLanes : kBlock);
    }
  }
}

/// Emits the epilogue of one row, |rowOffset| elements and |row| rows behind the pointers.
void TileFunctions::emitEpilogueRow(const TileShape &shape, const TileResult &result, ArrayRef<Value> sums, Value c,
                                    ValueRange extraPointers, int64_t rowOffset, int64_t row,
                                    VectorEpilogue epilogueOf) {
  int64_t lanes = targetOf(kb).lanes(32), parts = vectorsPerBlock(targetOf(kb));
  for (int64_t block = 0; block < shape.blocks; ++block) {
    BlockPlace at = placeOf(block, result, c, extraPointers);
    for (int64_t part = 0; part < parts; ++part) {
      int64_t tail = block + 1 == shape.blocks ? result.tailLanes : kBlock;
      bool cut = tail < (part + 1) * lanes;
      if (!result.blocked && tail <= part * lanes) {
        continue;
      }
      VectorPlace place{rowOffset + at.element + part * lanes, block * kBlock + part * lanes, row};
      Value to = byteOffset(kb, at.c, place.element * result.elementBytes);
      Value mask = cut && !result.blocked ? tailMask(kb, part, tail) : Value();
      Value value = epilogueOf(sums[block * parts + part], at.extras, place, mask);
      if (mask) {
        Type element = result.element ? result.element : getElementTypeOrSelf(value.getType());
        kb.storeElements(element, value, to, kb.constant(0), mask);
      } else {
        storeBlockVector(kb, result.element, value, to, part, tail);
      }
    }
  }
}

} // namespace tessera::x86

//===- TiledContraction.cpp - Contractions by tiles -----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A block computes a tile of the result. Asynchronous copies bring steps of K to shared memory ahead of their use;
// warps multiply them (WarpMma.h) and keep the sums in registers, which pass through the epilogue. Blocks that
// share a tile's steps store their sums in scratch and count their arrivals; the last one adds all sums.
//===----------------------------------------------------------------------===//
#include "codegen/Cuda/Contraction/TiledContraction.h"

#include "codegen/Cuda/Contraction/ColumnStore.h"
#include "codegen/Cuda/Contraction/TileLoader.h"
#include "codegen/Cuda/Contraction/WarpMma.h"
#include "codegen/Cuda/IR/CudaDialect.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::cuda {

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// Returns true if the right side is one matrix for the whole batch. The rows of all left matrices are then the rows of
/// one matmul.
static bool joinsBatch(device::MatMulOp op) {
  RankedTensorType a = typeOf(op.getA()), y = typeOf(op.getY());
  bool oneMatrix = op.getPacking() || countElements(Shape(op.getB()).dropBack(2)).is(1);
  return oneMatrix && !op.getTransA() && sameSizes(Shape(a).dropBack(2), Shape(y).dropBack(2));
}

/// Returns the number of elements along K.
static int64_t depthOf(device::MatMulOp op) {
  RankedTensorType a = typeOf(op.getA());
  return Shape(a)[a.getRank() - (op.getTransA() ? 2 : 1)].value();
}

TiledContraction TiledContraction::of(Operation *op) {
  TiledContraction contraction;
  int64_t bytes = device::elementBytes(typeOf(op->getOperand(0)).getElementType());
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY());
    int64_t taps = ShapedType::getNumElements(conv.getWeightShape().drop_front(2)), channels = Shape(x)[1].value();
    int64_t outputs = Shape(y)[1].value();
    auto groups = int64_t(conv.getGroups());
    channels = device::isBlocked(x) ? channelRun(conv) : channels / groups;
    contraction.batch = groups;
    contraction.columns = contraction.columnsWritten = outputs / groups;
    contraction.rows = Shape(y)[0] * countElements(Shape(y).dropFront(2));
    contraction.kBytes = taps * channels * bytes;
    if (device::BlockedAttr layout = device::getBlockedLayout(y)) {
      contraction.columnsWritten += llvm::alignTo(outputs, layout.getBlock()) - outputs; // of the last group
    }
  } else {
    auto matmul = cast<device::MatMulOp>(op);
    Shape y(matmul.getY());
    bool joins = joinsBatch(matmul);
    contraction.columns = contraction.columnsWritten = y.back().value();
    contraction.rows = joins ? countElements(y.dropBack()) : y[y.rank() - 2];
    contraction.batch = joins ? Dim(1) : countElements(y.dropBack(2));
    contraction.kBytes = depthOf(matmul) * bytes;
  }
  contraction.kBytes = llvm::alignTo(contraction.kBytes, kChunk);
  return contraction;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

namespace {

/// Returns the walk of one operand of a matmul. |kIsLast|: K is its last dim, else the last but one. |joins|: its
/// batches are further rows.
std::unique_ptr<OperandIterator> matrixIterator(device::MatMulOp op, Value operand, bool kIsLast, bool joins) {
  RankedTensorType type = typeOf(operand), y = typeOf(op.getY());
  int64_t bytes = device::elementBytes(type.getElementType()), rank = type.getRank();
  Shape shape(type);
  int64_t last = shape[rank - 1].value(), pitch = last * bytes;
  Dim before = shape[rank - 2], rows = kIsLast ? before : Dim(last);
  int64_t k = kIsLast ? last : before.value();
  SmallVector<std::pair<Dim, Dim>> batches;
  if (joins) {
    rows = countElements(shape.dropBack());
  } else {
    Dim stride = before * pitch;
    for (int64_t i = y.getRank() - 3; i >= 0; --i) {
      int64_t own = i - (y.getRank() - rank);
      Dim size = own < 0 ? Dim(1) : shape[own];
      batches.insert(batches.begin(), {Shape(y)[i], size.is(1) ? Dim(0) : stride});
      stride *= size;
    }
  }
  if (kIsLast && pitch % kChunk == 0) {
    return std::make_unique<MatrixIterator>(kChunk, rows, pitch / kChunk, pitch, kChunk, batches);
  }
  return kIsLast ? std::make_unique<MatrixIterator>(bytes, rows, k, pitch, bytes, batches)
                 : std::make_unique<MatrixIterator>(bytes, rows, k, bytes, pitch, batches);
}

std::unique_ptr<OperandIterator> iteratorOfA(BlockBuilder &b, Operation *op, Value batch) {
  auto matmul = dyn_cast<device::MatMulOp>(op);
  if (!matmul) {
    return std::make_unique<WindowIterator>(b, op, batch);
  }
  return matrixIterator(matmul, matmul.getA(), !matmul.getTransA(), joinsBatch(matmul));
}

int64_t elementBytesOf(Operation *op, unsigned operand) {
  return device::elementBytes(typeOf(op->getOperand(operand)).getElementType());
}

std::unique_ptr<OperandIterator> iteratorOfB(Operation *op, const TiledContraction &contraction) {
  if (packingOf(op)) { // rows as long as K; a unit is widened to a chunk
    int64_t chunks = contraction.kBytes / kChunk, unit = kChunk * elementBytesOf(op, 1) / elementBytesOf(op, 0);
    std::pair<Dim, Dim> groups(contraction.batch, isa<device::ConvOp>(op) ? contraction.columns * chunks * unit : 0);
    return std::make_unique<MatrixIterator>(unit, contraction.columns, chunks, chunks * unit, unit, groups);
  }
  auto matmul = cast<device::MatMulOp>(op);
  return matrixIterator(matmul, matmul.getB(), matmul.getTransB(), false);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

class ContractionEmitter {
public:
  ContractionEmitter(kernels::KernelBuilder &kb, TileAttr tile)
      : kb(kb), op(kb.op()), tile(tile), contraction(TiledContraction::of(op)), b(kb, unsigned(tile.threads())),
        tileA{tile.getRows(), tile.getKBytes()}, tileB{tile.getColumns(), tile.getKBytes()},
        elementA(kb.operandType(0).getElementType()), elementB(kb.operandType(1).getElementType()),
        warp(tile, contraction), columns(b) {
    sumType = kernels::registerType(cast<device::EpilogueInterface>(*op).getAccumulatorType());
  }

  void emit() {
    Dim rowTiles = ceilDiv(contraction.rows, tile.getRows());
    columnTiles = llvm::divideCeil(contraction.columnsWritten, tile.getColumns());
    tiles = contraction.batch * rowTiles * columnTiles;
    kb.setBlocks(1, b.threads);
    kb.setTiles(tiles * tile.getSplitK());
    shared = b.sharedMemory(tile.sharedBytes());
    part = b.rem(b.tile(), tile.getSplitK());
    number = b.div(b.tile(), tile.getSplitK());
    Value rest = number;
    firstColumn = b.mul(b.rem(rest, columnTiles), tile.getColumns());
    rest = b.div(rest, columnTiles);
    firstRow = b.mul(b.rem(rest, rowTiles), tile.getRows());
    batch = b.div(rest, rowTiles);
    if (isa<device::ConvOp>(op) && !contraction.batch.is(1)) {
      columns.setGroup(batch, contraction.batch.value());
    }
    at = WarpPlace(b, tile);
    bool splits = tile.getSplitK() > 1;
    SmallVector<Value> sums = sumSteps();
    auto finish = [&](ArrayRef<Value> total) { splits ? leaveSums(total) : storeSums(total); };
    tile.getWarpK() == 1 ? finish(sums) : joinWarps(sums, finish);
    if (splits) {
      joinBlocks();
    }
  }

private:
  struct Loaders;
  SmallVector<Value> sumSteps();
  Value stepsOfBlock(int64_t count);
  SmallVector<Value> addTail(WarpMma &multiplier, Value stage, ArrayRef<Value> sums);
  SmallVector<Value> multiplyStep(WarpMma &multiplier, Value stage, ValueRange sums, int64_t bytes);
  Value hasResults();
  void joinWarps(ArrayRef<Value> sums, function_ref<void(ArrayRef<Value>)> finish);
  Value partAddress(Value block, int64_t group);
  void leaveSums(ArrayRef<Value> sums);
  void joinBlocks();
  Value addSums(Value x, Value y) {
    return sumType.isF32() ? Value(arith::AddFOp::create(kb.b, x, y)) : Value(arith::AddIOp::create(kb.b, x, y));
  }
  /// Returns the number of threads that hold the block's sums after its warps along K have been joined.
  int64_t summingThreads() const { return b.threads / tile.getWarpK(); }
  void storeSums(ArrayRef<Value> sums);
  void storeRow(Value row, function_ref<Value(int64_t fragment, int64_t i)> sum);
  SmallVector<Value> indicesOf(Value row);

  kernels::KernelBuilder &kb;
  Operation *op;
  TileAttr tile;
  TiledContraction contraction;
  BlockBuilder b;
  SharedTile tileA, tileB;
  Type elementA, elementB, sumType;
  WarpTile warp;
  ColumnStore columns;
  int64_t columnTiles = 1;
  Dim tiles = 1;
  Value shared, firstColumn, firstRow, batch;
  Value number, part; ///< index of the tile, and of the block among those that share the tile
  WarpPlace at;
};

/// The loaders of both operands.
struct ContractionEmitter::Loaders {
  explicit Loaders(ContractionEmitter &own);

  /// Starts to load step |step| (i32) to the stage that is |stage| bytes from the first one. Returns the fetched values
  /// for finish().
  SmallVector<Value> start(Value step, Value stage) {
    left.load(step, own.b.at(own.shared, stage));
    if (widening) {
      return widening->fetch(step);
    }
    plain->load(step, rightOf(stage));
    return {};
  }
  void finish(ValueRange fetched, Value stage) {
    if (widening) {
      widening->put(fetched, rightOf(stage));
    }
  }
  /// Returns values for finish() if no step was started.
  SmallVector<Value> none() {
    SmallVector<Value> values;
    for (Type type : widening ? widening->fetched() : SmallVector<Type>()) {
      values.push_back(arith::ConstantOp::create(own.kb.b, own.kb.b.getZeroAttr(type)));
    }
    return values;
  }

private:
  Value rightOf(Value stage) { return own.b.at(own.shared, own.b.add(stage, own.tileA.bytes())); }
  WideningLoader::Scales scales();

  ContractionEmitter &own;
  TileLoader left;
  std::unique_ptr<TileLoader> plain;
  std::unique_ptr<WideningLoader> widening;
};

ContractionEmitter::Loaders::Loaders(ContractionEmitter &own)
    : own(own), left(own.b, own.tileA, iteratorOfA(own.b, own.op, own.batch), own.elementA, own.kb.operand(0),
                     isa<device::ConvOp>(own.op) ? cast<device::ConvOp>(own.op).getPadValue() : 0) {
  left.begin(own.batch, own.firstRow, nullptr);
  auto walk = iteratorOfB(own.op, own.contraction);
  TileLoader *right = nullptr;
  if (widensWeights(own.op)) {
    widening =
        std::make_unique<WideningLoader>(own.b, own.tileB, std::move(walk), own.elementB, own.kb.operand(1), scales());
    right = widening.get();
  } else {
    plain = std::make_unique<TileLoader>(own.b, own.tileB, std::move(walk), own.elementB, own.kb.operand(1), 0);
    right = plain.get();
  }
  right->begin(own.batch, own.firstColumn, [&](Value row) { return own.warp.columnAt(own.b, row); });
}

WideningLoader::Scales ContractionEmitter::Loaders::scales() {
  auto conv = dyn_cast<device::ConvOp>(own.op);
  auto matmul = dyn_cast<device::MatMulOp>(own.op);
  if (conv ? !conv.getScales() : !matmul.getScales()) {
    return {nullptr, 0, 0, 0};
  }
  Value base = own.kb.operand(own.op->getNumOperands() - 1);
  int64_t group = std::max<int64_t>(1, conv ? conv.getWeightGroup() : matmul.getWeightGroup());
  int64_t elements = conv ? conv.getWeightShape()[1] : depthOf(matmul);
  // The channels of a kernel position are padded, see TiledContraction::of().
  bool isOne = group >= elements;
  int64_t period = llvm::alignTo(elements, kChunk / elementBytesOf(own.op, 0));
  return {base, isOne ? period : group, period, own.contraction.columns};
}

/// Returns how many of the tile's |count| steps along K this block computes (i32).
Value ContractionEmitter::stepsOfBlock(int64_t count) {
  int64_t steps = tile.stepsOf(contraction.kBytes);
  if (tile.getSplitK() == 1 || count == steps * tile.getSplitK()) {
    return b.constant(std::min(count, steps));
  }
  Value left = arith::MaxSIOp::create(kb.b, b.sub(b.constant(count), b.mul(part, steps)), b.constant(0));
  return arith::MinSIOp::create(kb.b, left, b.constant(steps));
}

/// Emits the loop over K and returns the sums.
SmallVector<Value> ContractionEmitter::sumSteps() {
  Loaders loaders(*this);
  auto multiplier = WarpMma::create(b, tile, warp, at, tileA, tileB, elementA, elementB);
  const int64_t steps = tile.stepsOf(contraction.kBytes), ahead = tile.getStages() - 1;
  // The last step of K may have fewer bytes.
  const int64_t whole = contraction.kBytes / tile.getKBytes(), tail = contraction.kBytes % tile.getKBytes();
  Value firstStep = b.mul(part, steps);
  Value ownSteps = stepsOfBlock(whole + (tail ? 1 : 0));
  auto isThere = [&](Value step) -> Value {
    return kb.b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, step, ownSteps);
  };
  auto start = [&](Value step, Value stage) {
    SmallVector<Value> fetched = loaders.none();
    auto load = [&] { return loaders.start(b.add(firstStep, step), stage); };
    if (fetched.empty()) {
      kb.ifThen(isThere(step), [&] { load(); });
    } else {
      fetched = kb.ifElseAll(isThere(step), load, fetched);
    }
    b.commitCopies();
    return fetched;
  };
  for (int64_t i = 0; i < ahead; ++i) {
    Value step = b.constant(i), stage = b.constant(i * tile.stageBytes());
    if (i < steps) {
      SmallVector<Value> fetched = start(step, stage);
      kb.ifThen(isThere(step), [&] { loaders.finish(fetched, stage); });
    } else {
      b.commitCopies();
    }
  }
  SmallVector<Value> carried(warp.sumCount(), kb.zero(sumType));
  carried.append({b.constant(0), b.constant(ahead * tile.stageBytes())});
  Value wholeSteps = b.toIndex(stepsOfBlock(whole));
  carried = kb.forLoop(kb.constant(0), wholeSteps, 1, carried, [&](Value index, ValueRange old) {
    Value reading = old[warp.sumCount()], writing = old[warp.sumCount() + 1];
    b.waitForCopies(ahead - 1);
    b.barrier();
    Value step = b.add(b.fromIndex(index), ahead);
    SmallVector<Value> fetched = start(step, writing);
    SmallVector<Value> next = multiplyStep(*multiplier, reading, old.take_front(warp.sumCount()), tile.getKBytes());
    if (!fetched.empty()) {
      kb.ifThen(isThere(step), [&] { loaders.finish(fetched, writing); });
    }
    for (Value stage : {reading, writing}) {
      Value following = b.add(stage, tile.stageBytes());
      Value isInside = b.less(following, tile.getStages() * tile.stageBytes());
      next.push_back(arith::SelectOp::create(kb.b, isInside, following, b.constant(0)));
    }
    return next;
  });
  Value reading = carried[warp.sumCount()];
  carried.truncate(warp.sumCount());
  return tail ? addTail(*multiplier, reading, carried) : carried;
}

/// Adds the step of fewer bytes at the end of K to |sums|. The block that computes this step finds it at |stage|.
SmallVector<Value> ContractionEmitter::addTail(WarpMma &multiplier, Value stage, ArrayRef<Value> sums) {
  int64_t step = contraction.kBytes / tile.getKBytes(), bytes = contraction.kBytes % tile.getKBytes();
  auto add = [&] {
    b.waitForCopies(tile.getStages() - 2);
    b.barrier();
    return multiplyStep(multiplier, stage, sums, bytes);
  };
  Value isOwn = b.equal(part, step / tile.stepsOf(contraction.kBytes));
  return tile.getSplitK() == 1 ? add() : kb.ifElseAll(isOwn, add, sums);
}

/// Returns a condition that is true if this warp computes any element of the result, or null if every warp does.
Value ContractionEmitter::hasResults() {
  Value has;
  auto check = [&](Dim size, int64_t tileSize, int64_t warps, Value first, Value own) {
    int64_t warpSize = tileSize / warps, last = size.isKnown() ? size.value() % tileSize : 1;
    if (last && last <= tileSize - warpSize) {
      has = b.both(has, b.less(b.add(first, b.mul(own, warpSize)), size));
    }
  };
  check(contraction.rows, tile.getRows(), tile.getWarpRows(), firstRow, at.row);
  check(contraction.columns, tile.getColumns(), tile.getWarpColumns(), firstColumn, at.column);
  return has;
}

/// Adds a stage with |bytes| of K to |sums|.
SmallVector<Value> ContractionEmitter::multiplyStep(WarpMma &multiplier, Value stage, ValueRange sums, int64_t bytes) {
  auto multiply = [&] { return multiplier.multiply(b.at(shared, stage), sums, bytes); };
  Value has = hasResults();
  return has ? kb.ifElseAll(has, multiply, sums) : multiply();
}

/// Adds the sums of the warps along K, in the order of K, to those of the first one, which calls |finish| with the
/// total.
void ContractionEmitter::joinWarps(ArrayRef<Value> sums, function_ref<void(ArrayRef<Value>)> finish) {
  constexpr int64_t kSumBytes = 4;
  int64_t threads = summingThreads(), part = warp.sumCount() * threads * kSumBytes;
  Value thread = b.rem(b.thread(), threads);
  auto place = [&](Value k, int64_t i) {
    return b.at(shared, b.add(b.mul(k, part), b.mul(b.add(thread, i * threads), kSumBytes)));
  };
  b.waitForCopies(0);
  b.barrier(); // all warps have read the last step
  Value isFirst = b.less(at.k, 1);
  Value isOther = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ne, at.k, b.constant(0));
  kb.ifThen(isOther, [&] {
    Value own = b.add(at.k, -1);
    for (auto [i, sum] : llvm::enumerate(sums)) {
      b.storeShared(sum, place(own, int64_t(i)), kSumBytes);
    }
  });
  b.barrier();
  kb.ifThen(isFirst, [&] {
    SmallVector<Value> total(sums);
    for (int64_t k = 0; k + 1 < tile.getWarpK(); ++k) {
      for (auto [i, sum] : llvm::enumerate(total)) {
        Value other = b.loadShared(sumType, place(b.constant(k), int64_t(i)), kSumBytes);
        sum = addSums(sum, other);
      }
    }
    finish(total);
  });
}

/// Returns the address of this thread's sums 4 |group| to 4 |group| + 3 of a block; neighbouring threads are
/// contiguous.
Value ContractionEmitter::partAddress(Value block, int64_t group) {
  constexpr int64_t kGroupBytes = 16;
  Value thread = b.rem(b.thread(), summingThreads());
  Value within = b.mul(b.add(thread, group * summingThreads()), kGroupBytes);
  Value own = kb.sub(b.toIndex(block), b.toIndex(part)); // scratch() points to this block's part
  Value offset = kb.add(kb.mul(own, tile.partBytes()), b.toIndex(within));
  return kb.element(kb.b.getI8Type(), kb.scratch(), offset);
}

void ContractionEmitter::leaveSums(ArrayRef<Value> sums) {
  kb.setScratchBytes(tile.partBytes());
  auto type = VectorType::get({4}, sumType);
  for (int64_t group = 0; group < warp.sumCount() / 4; ++group) {
    Value four = LLVM::UndefOp::create(kb.b, type);
    for (int64_t i = 0; i < 4; ++i) {
      four = LLVM::InsertElementOp::create(kb.b, four, sums[4 * group + i], b.constant(i));
    }
    LLVM::StoreOp::create(kb.b, four, partAddress(part, group), kChunk);
  }
}

/// In the last block of a tile to arrive, adds the sums of all blocks. The order is that of K whichever block is last,
/// so that every run computes the same floats.
void ContractionEmitter::joinBlocks() {
  Value counter = kb.element(kb.b.getI32Type(), kb.counters(tiles.value()), b.toIndex(number));
  Value isLast = b.arriveLast(counter, tile.getSplitK());
  if (tile.getWarpK() > 1) {
    isLast = b.both(isLast, b.less(at.k, 1));
  }
  kb.ifThen(isLast, [&] {
    auto type = VectorType::get({4}, sumType);
    SmallVector<Value> none(warp.sumCount() / 4, kb.zero(type));
    SmallVector<Value> fours =
        kb.forLoop(kb.constant(0), kb.constant(tile.getSplitK()), 1, none, [&](Value block, ValueRange old) {
          SmallVector<Value> next;
          for (auto [group, sum] : llvm::enumerate(old)) {
            Value address = partAddress(b.fromIndex(block), int64_t(group));
            next.push_back(addSums(sum, LLVM::LoadOp::create(kb.b, type, address, kChunk)));
          }
          return next;
        });
    SmallVector<Value> total;
    for (Value four : fours) {
      for (int64_t i = 0; i < 4; ++i) {
        total.push_back(LLVM::ExtractElementOp::create(kb.b, four, b.constant(i)));
      }
    }
    storeSums(total);
  });
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void ContractionEmitter::storeSums(ArrayRef<Value> sums) {
  Value first = b.add(b.add(firstRow, b.mul(at.row, warp.fragmentsM * kFragmentRows)), b.div(at.lane, 4));
  for (int64_t m = 0; m < warp.usedM; ++m) {
    for (int64_t half = 0; half < 2; ++half) {
      Value row = b.add(first, m * kFragmentRows + 8 * half);
      auto store = [&] {
        storeRow(row, [&](int64_t n, int64_t i) { return sums[warp.sumIndex(m, n, 2 * half + i)]; });
      };
      isMultipleOf(contraction.rows, tile.getRows()) ? store() : kb.ifThen(b.less(row, contraction.rows), store);
    }
  }
}

/// Returns the result's indices of |row|, with 0 for the column.
SmallVector<Value> ContractionEmitter::indicesOf(Value row) {
  SmallVector<Dim> shape = Shape(kb.resultType()).dims();
  SmallVector<Value> indices(shape.size(), kb.constant(0));
  bool isConv = isa<device::ConvOp>(op);
  size_t column = isConv ? 1 : shape.size() - 1;
  // If the batch dims are not folded into the rows of the matmul, they are the outer dims of the result, indexed by
  // `batch`.
  size_t outerDims = isConv || !sameSize(contraction.rows, shape[shape.size() - 2]) ? 0 : shape.size() - 2;
  Value rest = row;
  for (size_t dim = shape.size(); dim-- > outerDims;) {
    if (dim != column) {
      indices[dim] = b.toIndex(b.rem(rest, shape[dim]));
      rest = b.div(rest, shape[dim]);
    }
  }
  rest = batch;
  for (size_t dim = outerDims; dim-- > 0;) {
    indices[dim] = b.toIndex(b.rem(rest, shape[dim]));
    rest = b.div(rest, shape[dim]);
  }
  return indices;
}

void ContractionEmitter::storeRow(Value row, function_ref<Value(int64_t, int64_t)> sum) {
  SmallVector<Value> indices = indicesOf(row);
  Value warpColumn = b.add(firstColumn, b.mul(at.column, warp.fragmentsN * kFragmentColumns));
  for (const WarpTile::Group &group : warp.groups) {
    int64_t lanes = 2 * group.count, end = columnTiles * tile.getColumns();
    Value first = b.add(b.add(warpColumn, group.first * kFragmentColumns), b.mul(b.rem(at.lane, 4), lanes));
    if (group.first >= warp.usedN) {
      columns.storePadding(indices, first, lanes, end);
      continue;
    }
    Value values = LLVM::UndefOp::create(kb.b, VectorType::get({lanes}, sumType));
    for (int64_t i = 0; i < lanes; ++i) {
      values = LLVM::InsertElementOp::create(kb.b, values, sum(group.first + i / 2, i % 2), b.constant(i));
    }
    columns.store(indices, first, values, end);
  }
}

} // namespace

void emitTiledContraction(kernels::KernelBuilder &kb) { ContractionEmitter(kb, tileOf(kb.op())).emit(); }

} // namespace tessera::cuda

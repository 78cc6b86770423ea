//===- TensorProduct.cpp - Products on tensor cores -----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A block computes a tile of the result. Steps along K come to shared memory by asynchronous copies, some of them ahead
// of use; warps read them as fragments and keep their sums in registers, which pass through the epilogue.
//===----------------------------------------------------------------------===//
#include "codegen/Cuda/TensorProduct.h"

#include "codegen/Cuda/ColumnStore.h"
#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/TileLoader.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::cuda {

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===----------------------------------------------------------------------===//
// What it is
//===----------------------------------------------------------------------===//

static int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes) {
    product *= size;
  }
  return product;
}

/// Whether the right side is one matrix for the whole batch, whose rows are then those of all matrices of the left one.
static bool joinsBatch(device::MatMulOp op) {
  RankedTensorType a = typeOf(op.getA()), y = typeOf(op.getY());
  bool oneMatrix = op.getPacking() || productOf(typeOf(op.getB()).getShape().drop_back(2)) == 1;
  return oneMatrix && !op.getTransA() && a.getShape().drop_back(2) == y.getShape().drop_back(2);
}

/// Elements along K.
static int64_t depthOf(device::MatMulOp op) {
  RankedTensorType a = typeOf(op.getA());
  return a.getDimSize(a.getRank() - (op.getTransA() ? 2 : 1));
}

TensorProduct TensorProduct::of(Operation *op) {
  TensorProduct product;
  int64_t bytes = device::elementBytes(typeOf(op->getOperand(0)).getElementType());
  if (auto conv = dyn_cast<device::ConvOp>(op)) {
    RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY());
    int64_t taps = productOf(conv.getWeightShape().drop_front(2)), channels = x.getDimSize(1);
    if (device::BlockedAttr layout = device::getBlockedLayout(x)) {
      channels = llvm::alignTo(channels, layout.getBlock());
    }
    product.columns = product.columnsWritten = y.getDimSize(1);
    product.rows = y.getNumElements() / y.getDimSize(1);
    product.kBytes = taps * channels * bytes;
    if (device::BlockedAttr layout = device::getBlockedLayout(y)) {
      product.columnsWritten = llvm::alignTo(product.columns, layout.getBlock());
    }
  } else {
    auto matmul = cast<device::MatMulOp>(op);
    ArrayRef<int64_t> y = typeOf(matmul.getY()).getShape();
    bool joins = joinsBatch(matmul);
    product.columns = product.columnsWritten = y.back();
    product.rows = joins ? productOf(y.drop_back()) : y[y.size() - 2];
    product.batch = joins ? 1 : productOf(y.drop_back(2));
    product.kBytes = depthOf(matmul) * bytes;
  }
  product.kBytes = llvm::alignTo(product.kBytes, kChunk);
  return product;
}

//===----------------------------------------------------------------------===//
// Its operands
//===----------------------------------------------------------------------===//

namespace {

/// The walk of one side of a matrix product. |alongK|: the dim of K, of the last two.
std::unique_ptr<OperandWalk> matrixWalk(device::MatMulOp op, Value operand, bool kIsLast, bool joins) {
  RankedTensorType type = typeOf(operand), y = typeOf(op.getY());
  int64_t bytes = device::elementBytes(type.getElementType()), rank = type.getRank();
  int64_t last = type.getDimSize(rank - 1), before = type.getDimSize(rank - 2), pitch = last * bytes;
  int64_t rows = kIsLast ? before : last, k = kIsLast ? last : before;
  SmallVector<std::pair<int64_t, int64_t>> batches;
  if (joins) {
    rows = type.getNumElements() / last;
  } else {
    int64_t stride = before * pitch;
    for (int64_t i = y.getRank() - 3; i >= 0; --i) {
      int64_t own = i - (y.getRank() - rank), size = own < 0 ? 1 : type.getDimSize(own);
      batches.insert(batches.begin(), {y.getDimSize(i), size == 1 ? 0 : stride});
      stride *= size;
    }
  }
  if (kIsLast && pitch % kChunk == 0) {
    return std::make_unique<MatrixWalk>(kChunk, rows, pitch / kChunk, pitch, kChunk, batches);
  }
  return kIsLast ? std::make_unique<MatrixWalk>(bytes, rows, k, pitch, bytes, batches)
                 : std::make_unique<MatrixWalk>(bytes, rows, k, bytes, pitch, batches);
}

std::unique_ptr<OperandWalk> walkOfA(Operation *op) {
  auto matmul = dyn_cast<device::MatMulOp>(op);
  if (!matmul) {
    return std::make_unique<WindowWalk>(op);
  }
  return matrixWalk(matmul, matmul.getA(), !matmul.getTransA(), joinsBatch(matmul));
}

std::unique_ptr<OperandWalk> walkOfB(Operation *op, const TensorProduct &product) {
  if (packingOf(op)) {
    int64_t chunks = product.kBytes / kChunk;
    return std::make_unique<MatrixWalk>(kChunk, product.columns, chunks, product.kBytes, kChunk,
                                        ArrayRef<std::pair<int64_t, int64_t>>());
  }
  auto matmul = cast<device::MatMulOp>(op);
  return matrixWalk(matmul, matmul.getB(), matmul.getTransB(), false);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

constexpr int64_t kWarp = 32;
constexpr int64_t kFragmentRows = 16, kFragmentColumns = 8, kFragmentBytes = 32; ///< of one mma

class ProductEmitter {
public:
  ProductEmitter(kernels::KernelBuilder &kb, TileAttr tile)
      : kb(kb), op(kb.op()), tile(tile), product(TensorProduct::of(op)), b(kb, unsigned(tile.threads())),
        tileA{tile.getRows(), tile.getKBytes()}, tileB{tile.getColumns(), tile.getKBytes()},
        elementA(kb.operandType(0).getElementType()), elementB(kb.operandType(1).getElementType()),
        fragmentsM(tile.getRows() / tile.getWarpRows() / kFragmentRows),
        fragmentsN(tile.getColumns() / tile.getWarpColumns() / kFragmentColumns),
        joined(std::min<int64_t>(4, fragmentsN)), columns(b) {
    sumType = kernels::registerType(cast<device::EpilogueInterface>(*op).getAccumulatorType());
  }

  void emit() {
    int64_t rowTiles = llvm::divideCeil(product.rows, tile.getRows());
    columnTiles = llvm::divideCeil(product.columnsWritten, tile.getColumns());
    kb.setBlocks(product.batch * rowTiles * columnTiles, b.threads);
    shared = b.sharedMemory(tile.sharedBytes());
    Value number = b.tile();
    firstColumn = b.mul(b.rem(number, columnTiles), tile.getColumns());
    number = b.div(number, columnTiles);
    firstRow = b.mul(b.rem(number, rowTiles), tile.getRows());
    batch = b.div(number, rowTiles);
    Value warp = b.div(b.thread(), kWarp);
    lane = b.rem(b.thread(), kWarp);
    warpColumn = b.rem(warp, tile.getWarpColumns());
    warpRow = b.rem(b.div(warp, tile.getWarpColumns()), tile.getWarpRows());
    warpK = b.div(warp, tile.getWarpColumns() * tile.getWarpRows());
    findFragments();
    SmallVector<Value> sums = sumSteps();
    if (tile.getWarpK() == 1) {
      return storeSums(sums);
    }
    joinWarps(sums);
  }

private:
  SmallVector<Value> sumSteps();
  void findFragments();
  SmallVector<Value> multiplyStage(Value stage, ValueRange sums);
  void joinWarps(ArrayRef<Value> sums);
  void storeSums(ArrayRef<Value> sums);
  void storeRow(Value row, function_ref<Value(int64_t fragment, int64_t i)> sum);
  SmallVector<Value> indicesOf(Value row);

  /// Of a warp, in order of rows.
  int64_t sumIndex(int64_t m, int64_t n, int64_t i) const { return (m * fragmentsN + n) * 4 + i; }
  int64_t sumCount() const { return fragmentsM * fragmentsN * 4; }

  kernels::KernelBuilder &kb;
  Operation *op;
  TileAttr tile;
  TensorProduct product;
  BlockBuilder b;
  SharedTile tileA, tileB;
  Type elementA, elementB, sumType;
  int64_t fragmentsM, fragmentsN;
  int64_t joined; ///< fragments whose columns are dealt so that a thread's are neighbours
  ColumnStore columns;
  int64_t columnTiles = 1;
  Value shared, firstColumn, firstRow, batch, lane, warpColumn, warpRow, warpK;
  SmallVector<Value> fragmentA, fragmentB; ///< offsets in a stage of the first fragment, for each 32 bytes of K
};

/// Where this thread's part of ldmatrix lies: A's matrices are (rows 0-7, 8-15) of the first 16 bytes, then of the
/// second; B's are both halves of columns 0-7, then of 8-15.
void ProductEmitter::findFragments() {
  int64_t steps = tile.getKBytes() / tile.getWarpK() / kFragmentBytes;
  Value within = b.rem(lane, 8), matrix = b.div(lane, 8);
  Value low = b.rem(matrix, 2), high = b.div(matrix, 2);
  Value rowA = b.add(b.mul(warpRow, fragmentsM * kFragmentRows), b.add(b.mul(low, 8), within));
  Value rowB = b.add(b.mul(warpColumn, fragmentsN * kFragmentColumns), b.add(b.mul(high, 8), within));
  for (int64_t step = 0; step < steps; ++step) {
    Value chunk = b.add(b.mul(warpK, steps * 2), 2 * step);
    fragmentA.push_back(tileA.offset(b, rowA, b.add(chunk, high)));
    fragmentB.push_back(b.add(tileB.offset(b, rowB, b.add(chunk, low)), tileA.bytes()));
  }
}

SmallVector<Value> ProductEmitter::multiplyStage(Value stage, ValueRange sums) {
  SmallVector<Value> next(sums);
  Value base = b.at(shared, stage);
  for (auto [offsetA, offsetB] : llvm::zip_equal(fragmentA, fragmentB)) {
    SmallVector<std::array<Value, 4>> left, right;
    Value baseA = b.at(base, offsetA), baseB = b.at(base, offsetB);
    for (int64_t m = 0; m < fragmentsM; ++m) {
      left.push_back(b.loadMatrices(b.at(baseA, b.constant(m * kFragmentRows * tile.getKBytes()))));
    }
    for (int64_t n = 0; n < fragmentsN; n += 2) {
      right.push_back(b.loadMatrices(b.at(baseB, b.constant(n * kFragmentColumns * tile.getKBytes()))));
    }
    for (int64_t m = 0; m < fragmentsM; ++m) {
      for (int64_t n = 0; n < fragmentsN; ++n) {
        const std::array<Value, 4> &pair = right[n / 2];
        std::array<Value, 2> column{pair[n % 2 * 2], pair[n % 2 * 2 + 1]};
        std::array<Value, 4> old;
        std::copy_n(next.begin() + sumIndex(m, n, 0), 4, old.begin());
        llvm::copy(b.multiply(elementA, elementB, left[m], column, old), next.begin() + sumIndex(m, n, 0));
      }
    }
  }
  return next;
}

/// The loop over K.
SmallVector<Value> ProductEmitter::sumSteps() {
  auto conv = dyn_cast<device::ConvOp>(op);
  TileLoader left(b, tileA, walkOfA(op), elementA, kb.operand(0), conv ? conv.getPadValue() : 0);
  TileLoader right(b, tileB, walkOfB(op, product), elementB, kb.operand(1), 0);
  left.begin(batch, firstRow, nullptr);
  // Column c of fragment j of those joined is column (c / 2) * 2 joined + 2 j + c % 2 of the result: the sums that a
  // thread has of them are neighbours.
  right.begin(batch, firstColumn, [&](Value row) {
    Value group = b.div(row, 8 * joined), fragment = b.rem(b.div(row, 8), joined), column = b.rem(row, 8);
    Value place = b.add(b.mul(b.div(column, 2), 2 * joined), b.add(b.mul(fragment, 2), b.rem(column, 2)));
    return b.add(b.mul(group, 8 * joined), place);
  });
  int64_t steps = llvm::divideCeil(product.kBytes, tile.getKBytes()), ahead = tile.getStages() - 1;
  auto load = [&](Value step, Value stage) {
    left.load(step, b.at(shared, stage));
    right.load(step, b.at(shared, b.add(stage, tileA.bytes())));
  };
  for (int64_t step = 0; step < ahead; ++step) {
    if (step < steps) {
      load(b.constant(step), b.constant(step * tile.stageBytes()));
    }
    b.commitCopies();
  }
  SmallVector<Value> carried(sumCount(), kb.zero(sumType));
  carried.append({b.constant(0), b.constant(ahead * tile.stageBytes())});
  carried = kb.forLoop(kb.constant(0), kb.constant(steps), 1, carried, [&](Value index, ValueRange old) {
    Value reading = old[sumCount()], writing = old[sumCount() + 1];
    b.waitForCopies(ahead - 1);
    b.barrier();
    Value step = b.add(b.fromIndex(index), ahead);
    kb.ifThen(b.less(step, steps), [&] { load(step, writing); });
    b.commitCopies();
    SmallVector<Value> next = multiplyStage(reading, old.take_front(sumCount()));
    for (Value stage : {reading, writing}) {
      Value following = b.add(stage, tile.stageBytes());
      Value isInside = b.less(following, tile.getStages() * tile.stageBytes());
      next.push_back(arith::SelectOp::create(kb.b, isInside, following, b.constant(0)));
    }
    return next;
  });
  carried.truncate(sumCount());
  return carried;
}

/// Adds the sums of the warps along K, in their order, in those of the first one, which stores them.
void ProductEmitter::joinWarps(ArrayRef<Value> sums) {
  constexpr int64_t kSumBytes = 4;
  int64_t threads = b.threads / tile.getWarpK(), part = sumCount() * threads * kSumBytes;
  Value thread = b.rem(b.thread(), threads);
  auto place = [&](Value warp, int64_t i) {
    return b.at(shared, b.add(b.mul(warp, part), b.mul(b.add(thread, i * threads), kSumBytes)));
  };
  b.waitForCopies(0);
  b.barrier(); // the last step is read
  Value isFirst = b.less(warpK, 1);
  Value isOther = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ne, warpK, b.constant(0));
  kb.ifThen(isOther, [&] {
    Value own = b.add(warpK, -1);
    for (auto [i, sum] : llvm::enumerate(sums)) {
      b.storeShared(sum, place(own, int64_t(i)), kSumBytes);
    }
  });
  b.barrier();
  kb.ifThen(isFirst, [&] {
    SmallVector<Value> total(sums);
    for (int64_t warp = 0; warp + 1 < tile.getWarpK(); ++warp) {
      for (auto [i, sum] : llvm::enumerate(total)) {
        Value other = b.loadShared(sumType, place(b.constant(warp), int64_t(i)), kSumBytes);
        sum = sumType.isF32() ? Value(arith::AddFOp::create(kb.b, sum, other))
                              : Value(arith::AddIOp::create(kb.b, sum, other));
      }
    }
    storeSums(total);
  });
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

void ProductEmitter::storeSums(ArrayRef<Value> sums) {
  Value first = b.add(b.add(firstRow, b.mul(warpRow, fragmentsM * kFragmentRows)), b.div(lane, 4));
  for (int64_t m = 0; m < fragmentsM; ++m) {
    for (int64_t half = 0; half < 2; ++half) {
      Value row = b.add(first, m * kFragmentRows + 8 * half);
      auto store = [&] { storeRow(row, [&](int64_t n, int64_t i) { return sums[sumIndex(m, n, 2 * half + i)]; }); };
      product.rows % tile.getRows() ? kb.ifThen(b.less(row, product.rows), store) : store();
    }
  }
}

/// The result's indices of |row|, of the column dim 0.
SmallVector<Value> ProductEmitter::indicesOf(Value row) {
  ArrayRef<int64_t> shape = kb.resultType().getShape();
  SmallVector<Value> indices(shape.size(), kb.constant(0));
  bool isConv = isa<device::ConvOp>(op);
  size_t column = isConv ? 1 : shape.size() - 1;
  // The dims of a batch that is not joined stand before the rows.
  size_t outerDims = isConv || product.rows != shape[shape.size() - 2] ? 0 : shape.size() - 2;
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

void ProductEmitter::storeRow(Value row, function_ref<Value(int64_t, int64_t)> sum) {
  SmallVector<Value> indices = indicesOf(row);
  int64_t lanes = 2 * joined;
  Value first =
      b.add(b.add(firstColumn, b.mul(warpColumn, fragmentsN * kFragmentColumns)), b.mul(b.rem(lane, 4), lanes));
  for (int64_t n = 0; n < fragmentsN; n += joined) {
    Value values = LLVM::UndefOp::create(kb.b, VectorType::get({lanes}, sumType));
    for (int64_t i = 0; i < lanes; ++i) {
      values = LLVM::InsertElementOp::create(kb.b, values, sum(n + i / 2, i % 2), b.constant(i));
    }
    columns.store(indices, b.add(first, n * kFragmentColumns), values, columnTiles * tile.getColumns());
  }
}

} // namespace

void emitTensorProduct(kernels::KernelBuilder &kb) { ProductEmitter(kb, tileOf(kb.op())).emit(); }

} // namespace tessera::cuda

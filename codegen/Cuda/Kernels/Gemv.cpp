//===- Gemv.cpp - Matmuls of few rows by integer weights ------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Reading the weights takes most of the time. A thread loads 16 bytes of each of its warp's columns, converts them to
// floats in registers and multiplies all rows by them. The threads of a warp exchange their sums at the end.
//===----------------------------------------------------------------------===//
#include "codegen/Cuda/Kernels/Gemv.h"

#include "codegen/Cuda/Contraction/ColumnStore.h"
#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/IR/GemvRows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::cuda {
namespace {

class GemvEmitter {
public:
  explicit GemvEmitter(kernels::KernelBuilder &kb)
      : kb(kb), gemv(gemvOf(kb.op())), b(kb, unsigned(gemv.threads())), columnStore(b), packing(packingOf(kb.op())),
        weights{kb.operandType(0).getShape().back(), packing.getOrder() == PackedOrder::nibbles ? 4 : 8,
                packing.getGroup()},
        rows(kb.resultType().getNumElements() / kb.resultType().getShape().back()),
        columns(kb.resultType().getShape().back()), own(gemv.getColumns()) {}

  void emit();

private:
  using Values = SmallVector<Value>;

  Values sumChunks();
  Values addChunk(Value chunk, ValueRange sums);
  Values unpack(Value words, int64_t run);
  Values scalesOf(Value column, Value chunk);
  Value loadScale(Value column, Type type, Value index);
  void joinWarps(Values sums);
  void store(ArrayRef<Value> sums);
  Value byteAt(Value column, Value byte) { // address in the packed weights
    Value offset = b.add(b.mul(column, weights.rowBytes()), byte);
    return kb.element(kb.b.getI8Type(), kb.operand(1), b.toIndex(offset));
  }
  Value float32(double value) { return kb.floatConstant(kb.b.getF32Type(), value); }

  kernels::KernelBuilder &kb;
  GemvAttr gemv;
  BlockBuilder b;
  ColumnStore columnStore;
  PackingAttr packing;
  GemvRows weights;
  int64_t rows, columns, own;
  Value lane, warpK, warpColumn, firstColumn;
  Values readColumns; ///< columns to read; those beyond the last repeat the last one
};

void GemvEmitter::emit() {
  constexpr int64_t kWarp = 32;
  int64_t blockColumns = own * gemv.getWarpColumns();
  kb.setBlocks(llvm::divideCeil(columns, blockColumns), b.threads);
  lane = b.rem(b.thread(), kWarp);
  Value warp = b.div(b.thread(), kWarp);
  warpColumn = b.rem(warp, gemv.getWarpColumns()), warpK = b.div(warp, gemv.getWarpColumns());
  firstColumn = b.add(b.mul(b.tile(), blockColumns), b.mul(warpColumn, own));
  for (int64_t c = 0; c < own; ++c) {
    Value column = b.add(firstColumn, c);
    if (columns % blockColumns) {
      column = arith::MinUIOp::create(kb.b, column, b.constant(columns - 1));
    }
    readColumns.push_back(column);
  }
  Values sums = sumChunks();
  for (Value &sum : sums) {
    for (int64_t distance = kWarp / 2; distance > 0; distance /= 2) {
      sum = arith::AddFOp::create(kb.b, sum, b.fromOther(sum, distance));
    }
  }
  gemv.getWarpK() == 1 ? store(sums) : joinWarps(sums);
}

/// Returns this thread's share of the sums [row][column] of all rows and this warp's columns.
GemvEmitter::Values GemvEmitter::sumChunks() {
  int64_t stride = 32 * gemv.getWarpK(), steps = llvm::divideCeil(weights.chunks(), stride);
  // Several chunks per iteration keep several loads in flight.
  int64_t unrolled = std::min<int64_t>(steps, rows > 2 ? 1 : 8 / own);
  Value first = b.add(b.mul(warpK, 32), lane);
  Values sums(rows * own, kb.zero(kb.b.getF32Type()));
  return kb.forLoop(kb.constant(0), kb.constant(llvm::divideCeil(steps, unrolled)), 1, sums,
                    [&](Value step, ValueRange old) {
                      Values next(old);
                      for (int64_t i = 0; i < unrolled; ++i) {
                        Value index = b.add(b.mul(b.fromIndex(step), unrolled), i);
                        Value chunk = b.add(first, b.mul(index, stride));
                        if (weights.chunks() % (stride * unrolled) == 0) {
                          next = addChunk(chunk, next);
                          continue;
                        }
                        // A missing chunk reads the first one and does not add it.
                        Value isThere = b.below(chunk, weights.chunks());
                        Value safe = arith::SelectOp::create(kb.b, isThere, chunk, b.constant(0));
                        Values added = addChunk(safe, next);
                        for (auto [value, before] : llvm::zip_equal(added, next)) {
                          before = arith::SelectOp::create(kb.b, isThere, value, before);
                        }
                      }
                      return next;
                    });
}

GemvEmitter::Values GemvEmitter::addChunk(Value chunk, ValueRange sums) {
  int64_t lanes = weights.lanes(), count = weights.chunkScales();
  Type words = VectorType::get({4}, kb.b.getI32Type()), four = VectorType::get({4}, kb.b.getF32Type());
  SmallVector<Value> loaded;
  SmallVector<Values> scales;
  for (Value column : readColumns) {
    loaded.push_back(LLVM::LoadOp::create(kb.b, words, byteAt(column, b.mul(chunk, kChunk)), kChunk));
    scales.push_back(scalesOf(column, chunk));
  }
  Value begin =
      b.add(b.mul(b.div(chunk, lanes), lanes * weights.chunkElements()), b.mul(b.rem(chunk, lanes), GemvRows::kRun));
  Values next(sums), partial(sums.size());
  for (int64_t run = 0; run < weights.runs(); ++run) {
    SmallVector<Values> factors;
    for (Value column : loaded) {
      factors.push_back(unpack(column, run));
    }
    int64_t runsOfScale = count ? weights.runs() / count : 0;
    for (int64_t row = 0; row < rows; ++row) {
      Value at = b.add(begin, run * lanes * GemvRows::kRun + row * weights.depth);
      Value values =
          LLVM::LoadOp::create(kb.b, four, kb.element(kb.b.getF32Type(), kb.operand(0), b.toIndex(at)), kChunk);
      for (int64_t column = 0; column < own; ++column) {
        Value &sum = count ? partial[row * own + column] : next[row * own + column];
        sum = count && run % runsOfScale == 0 ? float32(0) : sum;
        for (int64_t i = 0; i < GemvRows::kRun; ++i) {
          Value value = LLVM::ExtractElementOp::create(kb.b, values, b.constant(i));
          sum = math::FmaOp::create(kb.b, value, factors[column][i], sum);
        }
        if (count && (run + 1) % runsOfScale == 0) {
          Value &total = next[row * own + column];
          total = math::FmaOp::create(kb.b, scales[column][run / runsOfScale], sum, total);
        }
      }
    }
  }
  return next;
}

/// Returns run |run| of a chunk as floats.
GemvEmitter::Values GemvEmitter::unpack(Value words, int64_t run) {
  bool isNibbles = weights.bits == 4;
  Value word = LLVM::ExtractElementOp::create(kb.b, words, b.constant(isNibbles ? run / 2 : run));
  if (isNibbles) {
    if (run % 2) {
      word = arith::ShRUIOp::create(kb.b, word, b.constant(4));
    }
    word = arith::AndIOp::create(kb.b, word, b.constant(0x0f0f0f0f));
  }
  // Flipping the sign bit adds the bias, which makes the integers unsigned.
  word = b.exclusiveOr(word, b.constant(int32_t(isNibbles ? 0x08080808u : 0x80808080u)));
  return llvm::to_vector(b.bytesToFloats(word, isNibbles ? 8 : 128));
}

Value GemvEmitter::loadScale(Value column, Type type, Value index) {
  constexpr int64_t kScaleBytes = 4;
  auto vector = dyn_cast<VectorType>(type);
  int64_t count = vector ? vector.getNumElements() : 1;
  Value at = byteAt(column, b.add(b.mul(index, kScaleBytes), weights.weightBytes()));
  return LLVM::LoadOp::create(kb.b, type, at, std::min(kChunk, count * kScaleBytes));
}

/// Returns the scales of |chunk|; the index of the first one is a multiple of their number.
GemvEmitter::Values GemvEmitter::scalesOf(Value column, Value chunk) {
  int64_t count = weights.chunkScales(), block = weights.lanes() * weights.chunkElements();
  if (!count) {
    return {};
  }
  Value blockIndex = b.div(chunk, weights.lanes());
  if (count == 1) {
    return {loadScale(column, kb.b.getF32Type(), b.div(blockIndex, weights.group / block))};
  }
  Value loaded = loadScale(column, VectorType::get({count}, kb.b.getF32Type()), b.mul(blockIndex, count));
  Values scales;
  for (int64_t i = 0; i < count; ++i) {
    scales.push_back(LLVM::ExtractElementOp::create(kb.b, loaded, b.constant(i)));
  }
  return scales;
}

/// Adds the sums of the warps along K, in the order of K.
void GemvEmitter::joinWarps(Values sums) {
  constexpr int64_t kSumBytes = 4;
  int64_t count = int64_t(sums.size());
  Value shared = b.sharedMemory(gemv.getWarpK() * gemv.getWarpColumns() * count * kSumBytes);
  auto place = [&](Value k, int64_t i) {
    Value warp = b.add(b.mul(k, gemv.getWarpColumns()), warpColumn);
    return b.at(shared, b.mul(b.add(b.mul(warp, count), i), kSumBytes));
  };
  kb.ifThen(b.less(lane, 1), [&] {
    for (auto [i, sum] : llvm::enumerate(sums)) {
      b.storeShared(sum, place(warpK, int64_t(i)), kSumBytes);
    }
  });
  b.barrier();
  kb.ifThen(b.less(warpK, 1), [&] {
    Values total(sums);
    for (int64_t k = 1; k < gemv.getWarpK(); ++k) {
      for (auto [i, sum] : llvm::enumerate(total)) {
        Value other = b.loadShared(kb.b.getF32Type(), place(b.constant(k), int64_t(i)), kSumBytes);
        sum = arith::AddFOp::create(kb.b, sum, other);
      }
    }
    store(total);
  });
}

/// Stores |sums|, which all threads of the warp have, by its first thread.
void GemvEmitter::store(ArrayRef<Value> sums) {
  ArrayRef<int64_t> shape = kb.resultType().getShape();
  auto type = VectorType::get({own}, kb.b.getF32Type());
  kb.ifThen(b.less(lane, 1), [&] {
    SmallVector<Value> scales;
    for (Value column : readColumns) {
      bool isOne = weights.groups() == 1;
      scales.push_back(isOne ? loadScale(column, kb.b.getF32Type(), b.constant(0)) : Value());
    }
    for (int64_t row = 0; row < rows; ++row) {
      SmallVector<Value> indices(shape.size());
      int64_t rest = row;
      for (size_t dim = shape.size() - 1; dim-- > 0; rest /= shape[dim]) {
        indices[dim] = kb.constant(rest % shape[dim]);
      }
      Value values = LLVM::UndefOp::create(kb.b, type);
      for (int64_t c = 0; c < own; ++c) {
        Value sum = sums[row * own + c];
        sum = scales[c] ? Value(arith::MulFOp::create(kb.b, sum, scales[c])) : sum;
        values = LLVM::InsertElementOp::create(kb.b, values, sum, b.constant(c));
      }
      columnStore.store(indices, firstColumn, values, llvm::alignTo(columns, own * gemv.getWarpColumns()));
    }
  });
}

} // namespace

void emitGemv(kernels::KernelBuilder &kb) { GemvEmitter(kb).emit(); }

} // namespace tessera::cuda

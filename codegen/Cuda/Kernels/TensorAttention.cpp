//===- TensorAttention.cpp - Attention on tensor cores --------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// FlashAttention (Dao et al., arXiv:2205.14135): a block holds some rows of q and iterates over k and v once. Scores
// stay in registers; when a larger score appears, the previous sums are scaled. Each warp has 16 rows.
//===----------------------------------------------------------------------===//
#include "codegen/Cuda/Kernels/TensorAttention.h"

#include "codegen/Cuda/Contraction/TileLoader.h"
#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Kernels/AttentionShape.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Reduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <limits>

using namespace mlir;

namespace tessera::cuda {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kColumns = 8; ///< columns of a fragment of sums
constexpr int64_t kDepth = 16;  ///< elements of K per mma
constexpr int64_t kElementBytes = 2;
constexpr int64_t kStages = 2;

/// Returns the shared memory of |rows| rows of |elements|. The chunks per row are a power of two, which SharedTile
/// requires, and enough that |threads| threads do not copy more than all rows at once.
SharedTile sharedTile(int64_t rows, int64_t elements, int64_t threads) {
  auto own = int64_t(llvm::PowerOf2Ceil(uint64_t(elements * kElementBytes)));
  return {rows, std::max({2 * kChunk, own, threads / rows * kChunk})};
}

class AttentionEmitter {
public:
  explicit AttentionEmitter(kernels::KernelBuilder &kb)
      : kb(kb), tile(attentionTileOf(kb.op())), s(kernels::AttentionShape(kb)),
        b(kb, unsigned(kWarp * tile.getWarps())), element(kb.operandType(0).getElementType()),
        tileQ(sharedTile(tile.rows(), s.depth, b.threads)), tileK(sharedTile(tile.getKeys(), s.depth, b.threads)),
        tileV(sharedTile(tile.getKeys(), s.features, b.threads)), depthSteps(llvm::divideCeil(s.depth, kDepth)),
        keyFragments(tile.getKeys() / kColumns),
        featureFragments(int64_t(llvm::alignTo(s.features, 2 * kColumns)) / kColumns) {}

  void emit();

private:
  using Values = SmallVector<Value>;
  using Four = std::array<Value, 4>;

  std::unique_ptr<OperandIterator> iteratorOf(const kernels::AttentionShape::Matrices &matrices) const;
  void loadRows(unsigned operand, const SharedTile &to, const kernels::AttentionShape::Matrices &matrices, Value first,
                Value place);
  void loadKeys(Value step, Value stage);
  SmallVector<Four> loadQueries();
  Values addStep(Value step, ValueRange old);
  SmallVector<Four> scoresOf(Value stage);
  Value scoreAt(Value sum, Value key, int64_t half);
  Values softenRow(MutableArrayRef<Four> scores, int64_t half, Value best, Value total, Value &factor);
  void multiplyValues(Value stage, ArrayRef<Four> powers, MutableArrayRef<Value> sums);
  void storeRows(ValueRange carried);
  /// Applies |combine| over the four threads that share a row.
  Value overQuad(Value value, function_ref<Value(Value, Value)> combine);
  Value maximum(Value x, Value y) { return kernels::emitExtremum(kb, kb.b.getF32Type(), x, y, false); }
  Value f32(double value) { return kb.floatConstant(kb.b.getF32Type(), value); }
  int64_t stageBytes() const { return tileK.bytes() + tileV.bytes(); }
  int64_t keySteps() const { return llvm::divideCeil(s.keys, tile.getKeys()); }

  kernels::KernelBuilder &kb;
  AttentionTileAttr tile;
  kernels::FixedAttentionShape s;
  BlockBuilder b;
  Type element;
  SharedTile tileQ, tileK, tileV;
  int64_t depthSteps, keyFragments, featureFragments;
  Value shared, batch, firstRow, lane, rowInBlock; ///< rowInBlock: this thread's upper row
  SmallVector<Value> at;                           ///< batch indices
  SmallVector<Four> queries;                       ///< fragments, one for each 16 elements of depth
};

void AttentionEmitter::emit() {
  int64_t rowTiles = llvm::divideCeil(s.queries, tile.rows()), batches = ShapedType::getNumElements(s.batchDims());
  kb.setBlocks(batches * rowTiles, b.threads);
  shared = b.sharedMemory(tileQ.bytes() + kStages * stageBytes());
  firstRow = b.mul(b.rem(b.tile(), rowTiles), tile.rows());
  batch = b.div(b.tile(), rowTiles);
  at = kernels::delinearize(kb, b.toIndex(batch), s.batchDims());
  lane = b.rem(b.thread(), kWarp);
  rowInBlock = b.add(b.mul(b.div(b.thread(), kWarp), 16), b.div(lane, 4));
  loadRows(0, tileQ, s.q, firstRow, shared);
  loadKeys(b.constant(0), b.constant(0));
  b.commitCopies();
  b.waitForCopies(0);
  b.barrier();
  queries = loadQueries();
  // Carried values: the largest scores of both rows of a thread, this thread's parts of their sums of powers, and the
  // sums of the result. The largest score starts above minus infinity, so that a step whose scores are all minus
  // infinity adds nothing.
  Values carried(2, f32(-double(std::numeric_limits<float>::max())));
  carried.append(2 + 4 * featureFragments, f32(0));
  carried = kb.forLoop(kb.constant(0), kb.constant(keySteps()), 1, carried,
                       [&](Value step, ValueRange old) { return addStep(b.fromIndex(step), old); });
  storeRows(carried);
}

std::unique_ptr<OperandIterator> AttentionEmitter::iteratorOf(const kernels::AttentionShape::Matrices &matrices) const {
  SmallVector<std::pair<Dim, Dim>> batches;
  for (size_t d = 0; d + 2 < matrices.sizes.size(); ++d) {
    Dim stride = matrices.sizes[d].is(1) ? Dim(0) : matrices.strides[d] * kElementBytes;
    batches.emplace_back(Dim(s.batchDims()[d]), stride);
  }
  int64_t rows = matrices.sizes.end()[-2].value(), units = matrices.sizes.back().value() * kElementBytes / kChunk;
  return std::make_unique<MatrixIterator>(kChunk, rows, units, matrices.rowStride() * kElementBytes, kChunk, batches);
}

/// Starts to copy the rows from |first| on.
void AttentionEmitter::loadRows(unsigned operand, const SharedTile &to,
                                const kernels::AttentionShape::Matrices &matrices, Value first, Value place) {
  Value base = kb.element(element, kb.operand(operand), kb.constant(matrices.offset));
  TileLoader loader(b, to, iteratorOf(matrices), element, base, 0);
  loader.begin(batch, first, nullptr);
  loader.load(b.constant(0), place);
}

void AttentionEmitter::loadKeys(Value step, Value stage) {
  Value first = b.mul(step, tile.getKeys()), place = b.at(b.at(shared, b.constant(tileQ.bytes())), stage);
  loadRows(1, tileK, s.k, first, place);
  loadRows(2, tileV, s.v, first, b.at(place, b.constant(tileK.bytes())));
}

/// Returns the queries as fragments of A: rows 0-7 and 8-15 of the first 8 elements, then of the second 8.
SmallVector<AttentionEmitter::Four> AttentionEmitter::loadQueries() {
  Value within = b.rem(lane, 8), matrix = b.div(lane, 8);
  Value row = b.add(b.mul(b.div(b.thread(), kWarp), 16), b.add(b.mul(b.rem(matrix, 2), 8), within));
  SmallVector<Four> fragments;
  for (int64_t step = 0; step < depthSteps; ++step) {
    Value chunk = b.add(b.div(matrix, 2), 2 * step);
    fragments.push_back(b.loadMatrices(b.at(shared, tileQ.offset(b, row, chunk))));
  }
  return fragments;
}

AttentionEmitter::Values AttentionEmitter::addStep(Value step, ValueRange old) {
  auto stageOf = [&](Value index) { return b.mul(b.rem(index, kStages), stageBytes()); };
  if (keySteps() > 1) {
    Value next = b.add(step, 1);
    kb.ifThen(b.less(next, keySteps()), [&] { loadKeys(next, stageOf(next)); });
    b.commitCopies();
    b.waitForCopies(1);
    b.barrier();
  }
  Value stage = b.at(b.at(shared, b.constant(tileQ.bytes())), stageOf(step));
  SmallVector<Four> scores = scoresOf(stage);
  Value firstKey = b.mul(step, tile.getKeys());
  for (auto [n, fragment] : llvm::enumerate(scores)) {
    for (int64_t i = 0; i < 4; ++i) {
      Value key = b.add(b.add(firstKey, b.mul(b.rem(lane, 4), 2)), int64_t(n) * kColumns + i % 2);
      fragment[i] = scoreAt(fragment[i], key, i / 2);
    }
  }
  Values next(old);
  MutableArrayRef<Value> sums = MutableArrayRef(next).drop_front(4);
  for (int64_t half = 0; half < 2; ++half) {
    Value factor;
    Values row = softenRow(scores, half, next[half], next[2 + half], factor);
    next[half] = row[0], next[2 + half] = row[1];
    for (int64_t n = 0; n < featureFragments; ++n) {
      for (int64_t i = 2 * half; i < 2 * half + 2; ++i) {
        sums[4 * n + i] = arith::MulFOp::create(kb.b, sums[4 * n + i], factor);
      }
    }
  }
  multiplyValues(stage, scores, sums);
  if (keySteps() > 1) {
    b.barrier(); // all warps have read the stage
  }
  return next;
}

/// Returns q k^T of this warp's rows. B's matrices are both halves of 16 elements of 8 keys, then of the next 8 keys.
SmallVector<AttentionEmitter::Four> AttentionEmitter::scoresOf(Value stage) {
  Value zero = f32(0), within = b.rem(lane, 8), matrix = b.div(lane, 8);
  SmallVector<Four> scores(keyFragments, Four{zero, zero, zero, zero});
  for (int64_t step = 0; step < depthSteps; ++step) {
    Value chunk = b.add(b.rem(matrix, 2), 2 * step);
    for (int64_t n = 0; n < keyFragments; n += 2) {
      Value row = b.add(b.add(b.mul(b.div(matrix, 2), 8), within), n * kColumns);
      Four keys = b.loadMatrices(b.at(stage, tileK.offset(b, row, chunk)));
      for (int64_t i = 0; i < 2; ++i) {
        scores[n + i] = b.multiply(element, element, queries[step], {keys[2 * i], keys[2 * i + 1]}, scores[n + i]);
      }
    }
  }
  return scores;
}

/// Returns the score of this thread's upper or lower row (|half|); minus infinity if the key does not exist.
Value AttentionEmitter::scoreAt(Value sum, Value key, int64_t half) {
  Value score = arith::MulFOp::create(kb.b, sum, f32(s.scale));
  bool isWhole = s.keys % tile.getKeys() == 0;
  if (s.isMasked) {
    Value row = b.add(b.add(firstRow, rowInBlock), 8 * half), last = kb.constant(s.queries - 1);
    Value safeRow = s.queries % tile.rows() ? kb.min(b.toIndex(row), last) : b.toIndex(row);
    Value safeKey = isWhole ? b.toIndex(key) : kb.min(b.toIndex(key), kb.constant(s.keys - 1));
    Type type = kb.operandType(3).getElementType();
    Value mask = kb.loadElements(type, 0, kb.operand(3), s.maskOffset(at, safeRow, safeKey));
    score = arith::AddFOp::create(kb.b, score, kernels::convertElement(kb, mask, type, kb.b.getF32Type()));
  }
  if (isWhole) {
    return score;
  }
  return arith::SelectOp::create(kb.b, b.less(key, s.keys), score, f32(-std::numeric_limits<double>::infinity()));
}

Value AttentionEmitter::overQuad(Value value, function_ref<Value(Value, Value)> combine) {
  for (int64_t distance : {1, 2}) {
    value = combine(value, b.fromOther(value, distance));
  }
  return value;
}

/// Replaces a row's scores by their powers. Returns the row's new largest score and sum; sets |factor|, which scales
/// the older sums.
AttentionEmitter::Values AttentionEmitter::softenRow(MutableArrayRef<Four> scores, int64_t half, Value best,
                                                     Value total, Value &factor) {
  Value largest = best;
  for (const Four &fragment : scores) {
    largest = maximum(largest, maximum(fragment[2 * half], fragment[2 * half + 1]));
  }
  largest = overQuad(largest, [&](Value x, Value y) { return maximum(x, y); });
  auto power = [&](Value score) { return kernels::emitExpOfNegative(kb, arith::SubFOp::create(kb.b, score, largest)); };
  factor = power(best);
  total = arith::MulFOp::create(kb.b, total, factor);
  for (Four &fragment : scores) {
    for (int64_t i = 2 * half; i < 2 * half + 2; ++i) {
      fragment[i] = power(fragment[i]);
      total = arith::AddFOp::create(kb.b, total, fragment[i]);
    }
  }
  return {largest, total};
}

/// Adds powers * v to |sums|. Two fragments of scores have the layout of a fragment of A. The load transposes the
/// matrices of v: keys 0-7 and 8-15 of 8 features, then of the next 8 features.
void AttentionEmitter::multiplyValues(Value stage, ArrayRef<Four> powers, MutableArrayRef<Value> sums) {
  Value values = b.at(stage, b.constant(tileK.bytes())), within = b.rem(lane, 8), matrix = b.div(lane, 8);
  for (int64_t n = 0; n < keyFragments; n += 2) {
    const Four &x = powers[n], &y = powers[n + 1];
    Four a{b.roundPair(element, x[0], x[1]), b.roundPair(element, x[2], x[3]), b.roundPair(element, y[0], y[1]),
           b.roundPair(element, y[2], y[3])};
    Value row = b.add(b.add(b.mul(b.rem(matrix, 2), 8), within), n * kColumns);
    for (int64_t f = 0; f < featureFragments; f += 2) {
      Four features =
          b.loadMatrices(b.at(values, tileV.offset(b, row, b.add(b.div(matrix, 2), f))), /*transpose=*/true);
      for (int64_t i = 0; i < 2; ++i) {
        MutableArrayRef<Value> own = sums.slice(4 * (f + i), 4);
        Four old{own[0], own[1], own[2], own[3]};
        llvm::copy(b.multiply(element, element, a, {features[2 * i], features[2 * i + 1]}, old), own.begin());
      }
    }
  }
}

void AttentionEmitter::storeRows(ValueRange carried) {
  Value base = s.matrixBase(s.y, at);
  for (int64_t half = 0; half < 2; ++half) {
    Value total = overQuad(carried[2 + half], [&](Value x, Value y) { return arith::AddFOp::create(kb.b, x, y); });
    Value factor = s.factorOf(total);
    Value row = b.add(b.add(firstRow, rowInBlock), 8 * half);
    auto store = [&] {
      Value first = kb.add(kb.add(base, kb.mul(b.toIndex(row), s.y.rowStride())), b.toIndex(b.mul(b.rem(lane, 4), 2)));
      for (int64_t n = 0; n * kColumns < s.features; ++n) {
        Values two;
        for (int64_t i = 0; i < 2; ++i) {
          two.push_back(s.stored(arith::MulFOp::create(kb.b, carried[4 + 4 * n + 2 * half + i], factor)));
        }
        kb.storeRun(s.resultElement(), two, kb.result(), kb.add(first, n * kColumns));
      }
    };
    s.queries % tile.rows() ? kb.ifThen(b.less(row, s.queries), store) : store();
  }
}

} // namespace

void emitTensorAttention(kernels::KernelBuilder &kb) { AttentionEmitter(kb).emit(); }

} // namespace tessera::cuda

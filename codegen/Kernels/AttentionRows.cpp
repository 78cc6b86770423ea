//===- AttentionRows.cpp - Attention with threads sharing rows ------------===//
// SPDX-License-Identifier: Apache-2.0
//
// kRowThreads threads (16) share some rows of q under one k and v. In the first pass each thread computes the scores of
// one key in every 16 and their maximum; the scores stay in scratch if they fit. In the second pass each thread owns
// features: each of the 16 threads computes the power of one key, and the powers are broadcast in turn to multiply the
// rows of v. The sum of a row's powers has the order that numerics_float.h states.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/AttentionShape.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

constexpr int64_t kMostScoreBytes = int64_t(64) << 20; ///< scratch for the scores of all rows; if they need more,
                                                       ///< scores are computed twice
constexpr int64_t kWantedThreads = 16384;              ///< a thread takes several rows only while at least this many
                                                       ///< threads remain
constexpr int64_t kMostRuns = 8;                       ///< runs of features that one thread sums at once

class SharedAttention : AttentionShape {
public:
  explicit SharedAttention(const AttentionShape &shape)
      : AttentionShape(shape), element(isOfIntegers() ? kb.b.getF32Type() : kb.operandType(0).getElementType()),
        type(registerType(element)), scoreSum(isOfIntegers() ? scoreSumType() : type),
        valueSum(isOfIntegers() ? valueSumType() : type), chunks(llvm::divideCeil(maxOf(keys), kRowThreads)) {
    const Dim batch = multiply(batchDims());
    while (rows < 4 && likelyOf(batch * ceilDiv(queries, 2 * rows)) * kRowThreads >= kWantedThreads) {
      rows *= 2;
    }
    while (run < 4 && features % (2 * run * kRowThreads) == 0 && v.begin(2 * run) && y.begin(2 * run)) {
      run *= 2;
    }
  }

  void emit() {
    SmallVector<Dim> space(batchDims());
    space.push_back(ceilDiv(queries, rows));
    int64_t perThread = rows * chunks * int64_t(sizeof(float));
    keepsScores = maxOf(multiply(space)) <= kMostScoreBytes / (kRowThreads * perThread);
    kb.setScratchBytes(keepsScores ? perThread : 0);
    kb.forSharedRows(multiply(space), [&](Value item) {
      at = delinearize(kb, item, space);
      firstRow = kb.mul(at.pop_back_val(), rows);
      // Start at the scratch of the row's first thread. The scratch areas of the threads that share a row are used as
      // one array, in which neighbouring threads own neighbouring scores.
      scores = kb.element(type, kb.scratch(), kb.mul(kb.sharedLane(), -rows * chunks));
      SmallVector<Value> best = maxima();
      int64_t step = kMostRuns * run * kRowThreads;
      for (int64_t first = 0; first < features; first += step) {
        multiplyValues(best, first, std::min(features, first + step));
      }
    });
  }

private:
  using Values = SmallVector<Value>;

  Type elementOf(unsigned operand) { return kb.operandType(operand).getElementType(); }
  Value maximum(Value a, Value b) { return emitExtremum(kb, type, a, b, false); }
  /// Returns the index of row |firstRow| + |r|; rows beyond the last one repeat the last row and are not stored.
  Value clampedRow(int64_t r) { return kb.min(kb.add(firstRow, r), kb.index(queries - 1)); }

  /// Computes, for each row, this thread's score among the 16 keys that begin at |first|.
  Values scoresAt(Value first, Value mask) {
    Value key = kb.add(first, kb.sharedLane());
    key = mask ? kb.min(key, kb.index(keys - 1)) : key;
    Value kBase = kb.add(matrixBase(k, at), kb.mul(key, k.rowStride())), qBase = matrixBase(q, at);
    unsigned width = depth % 4 == 0 && q.begin(4) && k.begin(4) ? 4 : 1;
    Values sums = kb.forLoop(
        kb.constant(0), kb.constant(depth), width, Values(rows, kb.zero(scoreSum)), [&](Value e, ValueRange old) {
          Value keyRun = kb.loadRun(elementOf(1), width, kb.operand(1), kb.add(kBase, e));
          Values next;
          for (int64_t r = 0; r < rows; ++r) {
            Value from = kb.add(kb.add(qBase, kb.mul(clampedRow(r), q.rowStride())), e);
            next.push_back(addProducts(kb.loadRun(elementOf(0), width, kb.operand(0), from), keyRun, width, old[r]));
          }
          return next;
        });
    for (int64_t r = 0; r < rows; ++r) {
      sums[r] = arith::MulFOp::create(kb.b, single(sums[r]), kb.floatConstant(type, scale));
      if (isMasked) {
        sums[r] = arith::AddFOp::create(kb.b, sums[r], loadMask(at, clampedRow(r), first, kRowThreads, mask));
      }
    }
    return sums;
  }

  Value addProducts(Value x, Value y, unsigned width, Value sum) {
    for (int64_t i = 0; i < width; ++i) {
      sum = addProduct(vector::ExtractOp::create(kb.b, x, i), vector::ExtractOp::create(kb.b, y, i), sum);
    }
    return sum;
  }

  /// Returns x * y + sum. Integer operands are first converted to the type of the sum, in which they are exact.
  Value addProduct(Value x, Value y, Value sum) {
    return isOfIntegers() ? emitMultiplyAdd(kb, convert(x, sum.getType()), convert(y, sum.getType()), sum)
                          : emitFma(kb, x, y, sum);
  }
  /// Converts a sum to |type|, in which scores and results are computed.
  Value single(Value sum) { return isOfIntegers() ? convert(sum, type) : sum; }

  /// Returns the index of the scores of row |r| for the keys that begin at |first|.
  Value slot(int64_t r, Value first) { return kb.add(first, r * chunks * kRowThreads); }

  Values maxima() {
    Value lowest = lowestValue(kb, element, type, false);
    Values best = overRow(kb, keys, kRowThreads, Values(rows, lowest), [&](Value t, Value mask, ValueRange old) {
      Values own = scoresAt(t, mask), next;
      for (int64_t r = 0; r < rows; ++r) {
        if (keepsScores) {
          kb.storeElements(type, own[r], scores, slot(r, t));
        }
        next.push_back(maximum(old[r], keepActive(kb, mask, own[r], lowest)));
      }
      return next;
    });
    for (Value &value : best) {
      value = referenceOf(reduceLanes(kb, value, [&](Value a, Value b) { return maximum(a, b); }));
    }
    return best;
  }

  /// Computes features [|from|, |to|) of the result.
  void multiplyValues(ArrayRef<Value> best, int64_t from, int64_t to) {
    int64_t runs = llvm::divideCeil(to - from, run * kRowThreads);
    Value vBase = matrixBase(v, at);
    // Each row has this thread's part of the sum of powers, followed by the sums of this thread's features.
    int64_t perRow = 1 + runs * run;
    Values zeros(rows * perRow, kb.zero(valueSum));
    for (int64_t r = 0; r < rows; ++r) {
      zeros[r * perRow] = kb.zero(type);
    }
    Values sums = overRow(kb, keys, kRowThreads, zeros, [&](Value t, Value mask, ValueRange old) {
      Values next(old), powers = powersAt(t, mask, best);
      for (int64_t r = 0; r < rows; ++r) {
        next[r * perRow] = arith::AddFOp::create(kb.b, next[r * perRow], powers[r]);
      }
      Dim count = mask ? mod(keys, kRowThreads) : Dim(kRowThreads);
      return overKeys(count, next, [&](Value j, Values &inner) {
        Value at = kb.add(vBase, kb.mul(kb.add(t, j), v.rowStride()));
        addKey(at, j, powers, from, runs, inner);
      });
    });
    for (int64_t r = 0; r < rows; ++r) {
      Value total = reduceLanes(kb, sums[r * perRow],
                                [&](Value a, Value b) { return arith::AddFOp::create(kb.b, a, b).getResult(); });
      storeRow(r, from, factorOf(total), ArrayRef(sums).slice(r * perRow + 1, perRow - 1));
    }
  }

  /// Runs |body| over |count| keys of a chunk; unrolls four keys if |count| is a multiple of four.
  Values overKeys(Dim count, Values sums, function_ref<void(Value j, Values &sums)> body) {
    int64_t unrolled = isMultipleOf(count, 4) ? 4 : 1;
    return kb.forLoop(kb.constant(0), kb.index(count), unrolled, sums, [&](Value j, ValueRange old) {
      Values next(old);
      for (int64_t i = 0; i < unrolled; ++i) {
        body(kb.add(j, i), next);
      }
      return next;
    });
  }

  Values powersAt(Value first, Value mask, ArrayRef<Value> best) {
    Values powers = keepsScores ? Values() : scoresAt(first, mask);
    for (int64_t r = 0; r < rows; ++r) {
      Value score = keepsScores ? kb.loadElements(type, kRowThreads, scores, slot(r, first)) : powers[r];
      Value power = emitExpOfNegative(kb, arith::SubFOp::create(kb.b, score, best[r]));
      power = keepActive(kb, mask, isOfIntegers() ? rounded(power) : power, kb.zero(type));
      keepsScores ? powers.push_back(power) : void(powers[r] = power);
    }
    return powers;
  }

  /// Returns the first feature of this thread's run |i|, counting runs from feature |from|.
  Value featureOf(int64_t from, int64_t i) {
    return kb.add(kb.mul(kb.sharedLane(), run), from + i * run * kRowThreads);
  }
  bool isWhole(int64_t from, int64_t i) { return from + (i + 1) * run * kRowThreads <= features; }

  /// Adds the power of key |j| of a chunk times this thread's features of v, whose row begins at |base|, to |sums|.
  void addKey(Value base, Value j, ArrayRef<Value> powers, int64_t from, int64_t runs, Values &sums) {
    Values factors;
    for (Value power : powers) {
      factors.push_back(kb.target.broadcast(kb, power, j));
    }
    for (int64_t i = 0; i < runs; ++i) {
      // Threads beyond the last feature read the last feature instead; they do not store a result.
      Value feature = featureOf(from, i);
      feature = isWhole(from, i) ? feature : kb.min(feature, kb.constant(features - 1));
      Value values = kb.loadRun(elementOf(2), run, kb.operand(2), kb.add(base, feature));
      for (int64_t n = 0; n < run; ++n) {
        Value value = vector::ExtractOp::create(kb.b, values, n);
        for (int64_t r = 0; r < rows; ++r) {
          Value &sum = sums[r * (1 + runs * run) + 1 + i * run + n];
          sum = addProduct(factors[r], value, sum);
        }
      }
    }
  }

  void storeRow(int64_t r, int64_t from, Value factor, ArrayRef<Value> sums) {
    Value row = kb.add(firstRow, r);
    Value base = kb.add(matrixBase(y, at), kb.mul(row, y.rowStride()));
    auto store = [&] {
      for (int64_t i = 0; i * run < int64_t(sums.size()); ++i) {
        Value feature = featureOf(from, i);
        auto storeRun = [&] {
          Values products;
          for (Value sum : sums.slice(i * run, run)) {
            products.push_back(stored(arith::MulFOp::create(kb.b, single(sum), factor)));
          }
          kb.storeRun(resultElement(), products, kb.result(), kb.add(base, feature));
        };
        isWhole(from, i) ? storeRun() : kb.ifThen(kb.less(feature, kb.constant(features)), storeRun);
      }
    };
    isMultipleOf(queries, rows) ? store() : kb.ifThen(kb.less(row, kb.index(queries)), store);
  }

  Type element, type;
  Type scoreSum, valueSum; ///< accumulator types of q k^T and of the contraction with v
  int64_t chunks;          ///< of kRowThreads keys, at most
  int64_t rows = 1;        ///< rows of q that the threads compute together
  int64_t run = 1;         ///< neighbouring features that one thread computes
  bool keepsScores = true;
  Values at;
  Value firstRow, scores;
};

} // namespace

void emitSharedAttention(const AttentionShape &shape) { SharedAttention(shape).emit(); }

} // namespace tessera::kernels

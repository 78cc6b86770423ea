//===- AttentionRows.cpp - Attention whose rows threads share -------------===//
// SPDX-License-Identifier: Apache-2.0
//
// kRowThreads threads take some rows of q under one k and v. First each has a key of every sixteen: scores, which
// stay in scratch where they fit, and their maximum. Then each has features: the powers of sixteen keys, one a thread,
// go round by broadcasts and multiply v, key by key. Sums have the order of numerics_float.h.
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

constexpr int64_t kMostScoreBytes = int64_t(64) << 20; ///< of all rows; beyond, scores are computed twice
constexpr int64_t kWantedThreads = 16384;              ///< before a thread takes several rows
constexpr int64_t kMostRuns = 8;                       ///< of features that a thread sums at once

class SharedAttention : AttentionShape {
public:
  explicit SharedAttention(const AttentionShape &shape)
      : AttentionShape(shape), element(isOfIntegers() ? kb.b.getF32Type() : kb.operandType(0).getElementType()),
        type(registerType(element)), scoreSum(isOfIntegers() ? scoreSumType() : type),
        valueSum(isOfIntegers() ? valueSumType() : type), chunks(llvm::divideCeil(keys, kRowThreads)),
        batch(product(batchDims())) {
    while (rows < 4 && batch * llvm::divideCeil(queries, 2 * rows) * kRowThreads >= kWantedThreads) {
      rows *= 2;
    }
    while (run < 4 && features % (2 * run * kRowThreads) == 0 && v.begin(2 * run) && y.begin(2 * run)) {
      run *= 2;
    }
  }

  void emit() {
    SmallVector<int64_t> space(batchDims());
    space.push_back(llvm::divideCeil(queries, rows));
    int64_t perThread = rows * chunks * int64_t(sizeof(float));
    keepsScores = product(space) * kRowThreads * perThread <= kMostScoreBytes;
    kb.setScratchBytes(keepsScores ? perThread : 0);
    kb.forSharedRows(product(space), [&](Value item) {
      at = delinearize(kb, item, space);
      firstRow = kb.mul(at.pop_back_val(), rows);
      // The scratch of the row's first thread and of those behind it, in which neighbours have neighbouring scores.
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
  /// Rows beyond the last repeat it; they are not stored.
  Value clampedRow(int64_t r) { return kb.min(kb.add(firstRow, r), kb.constant(queries - 1)); }

  /// This thread's scores of the keys from |first| on, one a row.
  Values scoresAt(Value first, Value mask) {
    Value key = kb.add(first, kb.sharedLane());
    key = mask ? kb.min(key, kb.constant(keys - 1)) : key;
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

  /// x y + sum; of integers in the type of the sum, in which they are exact.
  Value addProduct(Value x, Value y, Value sum) {
    return isOfIntegers() ? emitMultiplyAdd(kb, convert(x, sum.getType()), convert(y, sum.getType()), sum)
                          : emitFma(kb, x, y, sum);
  }
  /// A sum of products as scores and results are computed.
  Value single(Value sum) { return isOfIntegers() ? convert(sum, type) : sum; }

  /// Where the scores of row |r| for the keys from |first| on lie.
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

  /// Features [|from|, |to|) of the result.
  void multiplyValues(ArrayRef<Value> best, int64_t from, int64_t to) {
    int64_t runs = llvm::divideCeil(to - from, run * kRowThreads);
    Value vBase = matrixBase(v, at);
    // Per row: this thread's part of the sum of powers, then the sums of its features.
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
      int64_t count = mask ? keys % kRowThreads : kRowThreads;
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

  /// |count| keys of a chunk, four at a time where that divides them.
  Values overKeys(int64_t count, Values sums, function_ref<void(Value j, Values &sums)> body) {
    int64_t unrolled = count % 4 == 0 ? 4 : 1;
    return kb.forLoop(kb.constant(0), kb.constant(count), unrolled, sums, [&](Value j, ValueRange old) {
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

  /// First feature of this thread's run |i| of those from |from| on.
  Value featureOf(int64_t from, int64_t i) {
    return kb.add(kb.mul(kb.sharedLane(), run), from + i * run * kRowThreads);
  }
  bool isWhole(int64_t from, int64_t i) { return from + (i + 1) * run * kRowThreads <= features; }

  /// sums += the power of key |j| of a chunk times its features, which begin at |base|.
  void addKey(Value base, Value j, ArrayRef<Value> powers, int64_t from, int64_t runs, Values &sums) {
    Values factors;
    for (Value power : powers) {
      factors.push_back(kb.target.broadcast(kb, power, j));
    }
    for (int64_t i = 0; i < runs; ++i) {
      // Threads beyond the last feature repeat it.
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
    queries % rows ? kb.ifThen(kb.less(row, kb.constant(queries)), store) : store();
  }

  Type element, type;
  Type scoreSum, valueSum; ///< in which products are added up
  int64_t chunks, batch;
  int64_t rows = 1; ///< of q that threads take together
  int64_t run = 1;  ///< neighbouring features of a thread
  bool keepsScores = true;
  Values at;
  Value firstRow, scores;
};

} // namespace

void emitSharedAttention(const AttentionShape &shape) { SharedAttention(shape).emit(); }

} // namespace tessera::kernels

//===- MatMulThreads.cpp - Matmuls for machines with many threads ---------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each thread sums some rows of some neighbouring columns in registers, and the next thread has the next columns, so
// that a warp loads contiguous runs of b and a single address of a. If that leaves too few threads, or b is transposed,
// the threads of a shared row split the terms of a sum, unless the order of the sums is specified.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/MatMulThreads.h"
#include "codegen/Kernels/BatchedMatrix.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/Exact.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

constexpr int64_t kWantedThreads = 16384; ///< a thread takes several results only while this many threads remain
constexpr int64_t kFewThreads = 8192;     ///< with fewer threads of one result each, threads share rows instead
constexpr int64_t kMostRows = 8, kMostColumns = 4;

class ThreadMatMul {
public:
  ThreadMatMul(KernelBuilder &kb, device::MatMulOp op)
      : kb(kb), op(op), a(kb.operandType(0)), b(kb.operandType(1)), y(kb.resultType()),
        epilogue(kb, cast<device::EpilogueInterface>(*op)), accumulator(registerType(op.getAccumulatorType())),
        isOrdered(device::isOrderedContraction(op)), rows(Shape(y)[y.getRank() - 2]),
        columns(Shape(y)[y.getRank() - 1]), depth(Shape(a)[a.getRank() - (op.getTransA() ? 2 : 1)]) {
    choose();
  }

  void emit() {
    SmallVector<Dim> space = Shape(y).dropBack(2).dims();
    space.append({ceilDiv(rows, rowsPerThread), floorDiv(columns, columnsPerThread)});
    if (isShared) {
      return kb.forSharedRows(multiply(space), [&](Value item) {
        place(delinearize(kb, item, space));
        sumInRow();
      });
    }
    kb.forTiles(multiply(space), [&](Value tile) {
      place(delinearize(kb, tile, space));
      Value start = kb.constant(0);
      Values sums =
          kb.forLoop(start, kb.index(depth), unrolled, Values(rowsPerThread * columnsPerThread, kb.zero(accumulator)),
                     [&](Value k, ValueRange old) { return addTerms(k, old); });
      store(sums);
    });
  }

private:
  using Values = SmallVector<Value>;

  /// Chooses the results of a thread at likely sizes.
  void choose() {
    int64_t batch = likelyOf(countElements(Shape(y).dropBack(2))), likelyRows = likelyOf(rows);
    isShared = kb.target.shuffle && !isOrdered && accumulator.getIntOrFloatBitWidth() == 32 &&
               likelyOf(depth) >= 2 * kRowThreads &&
               (op.getTransB() || batch * likelyRows * likelyOf(columns) < kFewThreads);
    auto grow = [&](int64_t &size, int64_t most, bool fits) {
      size *= 2;
      int64_t threads = batch * llvm::divideCeil(likelyRows, rowsPerThread) * (likelyOf(columns) / columnsPerThread) *
                        (isShared ? kRowThreads : 1);
      // A warp contains two rows of threads. If each row computes four columns, the warp reads a whole 32-byte sector
      // of a row of b.
      bool isSector = isShared && !op.getTransB() && &size == &columnsPerThread;
      if (size > most || !fits || (threads < kWantedThreads && !isSector)) {
        size /= 2;
        return false;
      }
      return true;
    };
    bool grows = true;
    while (grows) {
      grows = grow(columnsPerThread, kMostColumns, isMultipleOf(columns, 2 * columnsPerThread));
      grows |= grow(rowsPerThread, isShared ? kMostRows / 2 : kMostRows, rowsPerThread < likelyRows);
    }
    int64_t step = isShared ? 4 * kRowThreads : 4;
    bool isAlong = !isShared || (op.getTransB() && !op.getTransA()); // a thread's terms are contiguous
    unrolled = isMultipleOf(depth, step) && isAlong && op.getWeightGroup() % 4 == 0 ? 4 : 1;
  }

  /// Sets the results that this thread computes, from its |indices| in the space of tiles.
  void place(Values indices) {
    left = matrixAt(kb, a, y.getRank(), indices, op.getTransA()),
    right = matrixAt(kb, b, y.getRank(), indices, op.getTransB());
    column = kb.mul(indices.pop_back_val(), columnsPerThread), row = kb.mul(indices.pop_back_val(), rowsPerThread);
    outer = indices;
  }

  /// Returns the index of this thread's row |r|. Rows beyond the last one repeat the last row and are not stored.
  Value rowAt(int64_t r) {
    Value at = kb.add(row, r);
    return isMultipleOf(rows, rowsPerThread) ? at : kb.min(at, kb.index(rows - 1));
  }

  /// Loads |count| elements of an operand, |stride| apart from |at| on, and converts them to the accumulator type.
  Values load(unsigned operand, int64_t count, Value at, Dim stride) {
    Type type = kb.operandType(operand).getElementType();
    Values elements;
    if (stride.is(1) && count > 1) {
      Value run = convertElement(kb, kb.loadRun(type, count, kb.operand(operand), at), type, accumulator);
      for (int64_t i = 0; i < count; ++i) {
        elements.push_back(vector::ExtractOp::create(kb.b, run, i));
      }
      return elements;
    }
    for (int64_t i = 0; i < count; ++i) {
      Value element = kb.loadElements(type, 0, kb.operand(operand), kb.add(at, i * stride));
      elements.push_back(convertElement(kb, element, type, accumulator));
    }
    return elements;
  }

  /// Loads b for the terms from |k| on and this thread's columns: [term][column].
  SmallVector<Values> loadRight(Value k) {
    SmallVector<Values> terms(unrolled);
    Value at = kb.add(right.base, kb.add(kb.mul(k, right.rowStride), kb.mul(column, right.columnStride)));
    if (op.getTransB()) {
      for (int64_t c = 0; c < columnsPerThread; ++c) {
        for (auto [i, value] : llvm::enumerate(load(1, unrolled, kb.add(at, c * right.columnStride), 1))) {
          terms[i].push_back(value);
        }
      }
    } else {
      for (int64_t i = 0; i < unrolled; ++i) {
        terms[i] = load(1, columnsPerThread, kb.add(at, i * right.rowStride), 1);
      }
    }
    if (op.getScales()) {
      unsigned scales = op->getNumOperands() - 1;
      Value group = kb.div(k, std::max<int64_t>(1, op.getWeightGroup()));
      Values factors = load(scales, columnsPerThread, kb.add(kb.mul(group, columns), column), 1);
      for (Values &term : terms) {
        for (auto [value, factor] : llvm::zip_equal(term, factors)) {
          value = arith::MulFOp::create(kb.b, value, factor);
        }
      }
    }
    return terms;
  }

  /// Returns |sums|, [row][column], plus the terms from |k| on.
  Values addTerms(Value k, ValueRange sums) {
    SmallVector<Values> terms = loadRight(k);
    Values next(sums);
    for (int64_t r = 0; r < rowsPerThread; ++r) {
      Value at = kb.add(left.base, kb.add(kb.mul(rowAt(r), left.rowStride), kb.mul(k, left.columnStride)));
      for (auto [i, factor] : llvm::enumerate(load(0, unrolled, at, left.columnStride))) {
        for (int64_t c = 0; c < columnsPerThread; ++c) {
          Value &sum = next[r * columnsPerThread + c];
          sum = isOrdered ? emitFma(kb, factor, terms[i][c], sum) : emitMultiplyAdd(kb, factor, terms[i][c], sum);
        }
      }
    }
    return next;
  }

  void sumInRow() {
    Values sums(rowsPerThread * columnsPerThread, kb.zero(accumulator));
    sums = overRow(kb, depth, kRowThreads * unrolled, sums, [&](Value i, Value mask, ValueRange old) {
      Value k = kb.add(i, kb.mul(kb.sharedLane(), unrolled));
      Values next = addTerms(mask ? kb.min(k, kb.index(depth - 1)) : k, old);
      for (auto [value, before] : llvm::zip_equal(next, old)) {
        value = keepActive(kb, mask, value, before);
      }
      return next;
    });
    for (Value &sum : sums) {
      sum = reduceLanes(kb, sum, [&](Value x, Value y) { return add(x, y); });
    }
    kb.inFirstThread([&] { store(sums); });
  }

  Value add(Value x, Value y) {
    return isa<FloatType>(accumulator) ? Value(arith::AddFOp::create(kb.b, x, y))
                                       : Value(arith::AddIOp::create(kb.b, x, y));
  }

  void store(ArrayRef<Value> sums) {
    Values bias = op.getBias() ? load(2, columnsPerThread, column, 1) : Values();
    for (int64_t r = 0; r < rowsPerThread; ++r) {
      auto storeRow = [&] {
        Values results(sums.slice(r * columnsPerThread, columnsPerThread)), where = outer;
        for (auto [result, start] : llvm::zip(results, bias)) {
          result = add(result, start); // last, in case the order of the sums is specified
        }
        where.append({kb.add(row, r), column});
        auto type = VectorType::get({columnsPerThread}, accumulator);
        columnsPerThread == 1
            ? epilogue.store(results[0], where, -1, Value())
            : epilogue.store(vector::FromElementsOp::create(kb.b, type, results), where, y.getRank() - 1, Value());
      };
      isMultipleOf(rows, rowsPerThread) ? storeRow() : kb.ifThen(kb.less(kb.add(row, r), kb.index(rows)), storeRow);
    }
  }

  KernelBuilder &kb;
  device::MatMulOp op;
  RankedTensorType a, b, y;
  EpilogueStore epilogue;
  Type accumulator;
  const bool isOrdered;
  const Dim rows, columns, depth;
  bool isShared = false;
  int64_t rowsPerThread = 1, columnsPerThread = 1; ///< per thread or per shared row
  int64_t unrolled = 1;                            ///< contiguous terms that a thread loads at once
  BatchedMatrix left, right;
  Value row, column;
  Values outer; ///< indices in the batch dims
};

} // namespace

void emitMatMulByThreads(KernelBuilder &kb, device::MatMulOp matmul) { ThreadMatMul(kb, matmul).emit(); }

} // namespace tessera::kernels

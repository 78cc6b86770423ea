//===- OrderThreads.cpp - Ordered elements on many-thread machines --------===//
// SPDX-License-Identifier: Apache-2.0
//
// ArgMax and running sums share an axis between the threads of a row. TopK has a thread per element, which counts the
// elements that rank before its own.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/Order.h"
#include "codegen/Kernels/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

constexpr int64_t kFewThreads = 8192; ///< with fewer threads of one item each, threads share rows instead

/// Returns true if threads should share each item of |view|: if the axis is contiguous or if there are few items.
bool isShared(const KernelBuilder &kb, const AxisView &view) {
  Dim items = view.lines();
  return kb.target.shuffle && minOf(items) > 0 && minOf(view.axis) >= int64_t(2 * kRowThreads) &&
         (view.inner.is(1) || maxOf(items) < kFewThreads);
}

/// Returns |value|, of at most 64 bits, of another thread of the row; |move| exchanges 32 bits.
Value exchange(KernelBuilder &kb, Value value, function_ref<Value(Value)> move) {
  Type type = value.getType(), i32 = kb.b.getI32Type();
  unsigned width = type.getIntOrFloatBitWidth();
  if (width == 32) {
    return move(value);
  }
  if (width < 32) {
    return arith::TruncIOp::create(kb.b, type, move(arith::ExtUIOp::create(kb.b, i32, value)));
  }
  Type i64 = kb.b.getI64Type();
  Value bits = arith::BitcastOp::create(kb.b, i64, value), half = kb.constant(32);
  Value low = move(arith::TruncIOp::create(kb.b, i32, bits));
  Value high = move(arith::TruncIOp::create(kb.b, i32, arith::ShRUIOp::create(kb.b, bits, half)));
  bits = arith::OrIOp::create(kb.b, arith::ExtUIOp::create(kb.b, i64, low),
                              arith::ShLIOp::create(kb.b, arith::ExtUIOp::create(kb.b, i64, high), half));
  return arith::BitcastOp::create(kb.b, type, bits);
}

Value above(KernelBuilder &kb, Value value, unsigned distance) {
  return exchange(kb, value, [&](Value bits) { return kb.target.shuffle(kb, bits, distance); });
}

Value both(KernelBuilder &kb, Value x, Value y) { return arith::AndIOp::create(kb.b, x, y); }
Value either(KernelBuilder &kb, Value x, Value y) { return arith::OrIOp::create(kb.b, x, y); }
Value choose(KernelBuilder &kb, Value c, Value x, Value y) { return arith::SelectOp::create(kb.b, c, x, y); }

Value areEqual(KernelBuilder &kb, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? Value(arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OEQ, x, y))
                                     : Value(arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, x, y));
}

/// Finds the best element of a shared row, of which each thread examines every sixteenth element: its value and its
/// index, or -1 if a thread has only seen NaN. If the row's first element is NaN, no element is better and its index is
/// the result.
class ArgRow {
public:
  ArgRow(KernelBuilder &kb, device::ArgReduceOp op)
      : kb(kb), op(op), element(kb.operandType(0).getElementType()), view(kb.operandType(0), op.getAxis()) {}

  Value emit(Value base) {
    Value first = kb.loadElements(element, 0, kb.operand(0), base);
    SmallVector<Value> best =
        overRow(kb, view.axis, kRowThreads, {first, kb.constant(-1)}, [&](Value i, Value mask, ValueRange old) {
          Value k = kb.add(i, kb.sharedLane());
          k = mask ? kb.min(k, kb.index(view.axis - 1)) : k;
          return next(kb.add(base, kb.mul(k, view.inner)), k, mask, old);
        });
    for (unsigned distance = kRowThreads / 2; distance > 0; distance /= 2) {
      Value value = above(kb, best[0], distance), index = above(kb, best[1], distance);
      Value tie = op.getSelectLast() ? kb.less(best[1], index) : kb.less(index, best[1]);
      Value ahead = either(kb, better(value, best[0], false), both(kb, areEqual(kb, value, best[0]), tie));
      take(best, value, index, both(kb, isSeen(index), either(kb, isUnseen(best[1]), ahead)));
    }
    return best[1];
  }

private:
  Value better(Value value, Value old, bool orEqual) { return isBetter(kb, element, value, old, op.getMin(), orEqual); }
  Value isUnseen(Value index) { return kb.less(index, kb.constant(0)); }
  Value isSeen(Value index) { return kb.less(kb.constant(-1), index); }
  void take(SmallVector<Value> &best, Value value, Value index, Value isTaken) {
    best = {choose(kb, isTaken, value, best[0]), choose(kb, isTaken, index, best[1])};
  }

  SmallVector<Value> next(Value at, Value k, Value mask, ValueRange old) {
    SmallVector<Value> best(old);
    Value value = kb.loadElements(element, 0, kb.operand(0), at);
    Value counts = either(kb, areEqual(kb, value, value), kb.less(k, kb.constant(1)));
    Value isTaken = either(kb, both(kb, isUnseen(best[1]), counts),
                           both(kb, isSeen(best[1]), better(value, best[0], op.getSelectLast())));
    take(best, value, k, mask ? both(kb, isTaken, mask) : isTaken);
    return best;
  }

  KernelBuilder &kb;
  device::ArgReduceOp op;
  Type element;
  AxisView view;
};

/// Computes running sums of a shared row, sixteen elements at a time. Thread 0 has the last of the sixteen elements, so
/// that the sums before an element come from threads with higher numbers.
class SumRow {
public:
  SumRow(KernelBuilder &kb, device::CumSumOp op)
      : kb(kb), op(op), element(kb.operandType(0).getElementType()), type(registerType(element)),
        view(kb.operandType(0), op.getAxis()) {}

  void emit(Value base) {
    Value place = kb.sub(kb.constant(kRowThreads - 1), kb.sharedLane());
    Dim rest = mod(view.axis, kRowThreads), whole = view.axis - rest;
    Value carried =
        kb.forLoop(kb.constant(0), kb.index(whole), kRowThreads, kb.zero(type), [&](Value i, ValueRange old) {
          return SmallVector<Value>{chunk(base, kb.add(i, place), Value(), old[0])};
        })[0];
    auto last = [&] {
      Value k = kb.add(place, whole);
      chunk(base, k, kb.less(k, kb.index(view.axis)), carried);
    };
    if (!rest.is(0)) {
      rest.isKnown() ? last() : kb.ifThen(kb.less(kb.constant(0), kb.index(rest)), last);
    }
  }

private:
  Value add(Value x, Value y) {
    return isa<FloatType>(type) ? Value(arith::AddFOp::create(kb.b, x, y)) : Value(arith::AddIOp::create(kb.b, x, y));
  }
  /// Returns |value| of the thread |distance| above this one, or 0 if that thread does not exist.
  Value before(Value value, unsigned distance) {
    Value isThere = kb.less(kb.sharedLane(), kb.constant(kRowThreads - distance));
    return choose(kb, isThere, above(kb, value, distance), kb.zero(type));
  }

  /// Stores this thread's result, for element |k|, and returns the sum up to the end of the chunk.
  Value chunk(Value base, Value k, Value mask, Value carried) {
    Value zero = kb.zero(type), own = mask ? kb.min(k, kb.index(view.axis - 1)) : k;
    own = op.getReverse() ? kb.sub(kb.index(view.axis - 1), own) : own;
    Value at = kb.add(base, kb.mul(own, view.inner));
    Value sum = keepActive(kb, mask, kb.loadElements(element, 0, kb.operand(0), at), zero);
    for (unsigned distance = 1; distance < kRowThreads; distance *= 2) {
      sum = add(before(sum, distance), sum);
    }
    Value result = add(carried, op.getExclusive() ? before(sum, 1) : sum);
    Value total = exchange(kb, sum, [&](Value bits) { return kb.target.broadcast(kb, bits, kb.constant(0)); });
    auto store = [&] {
      kb.storeElements(element, result, kb.result(), kb.sub(at, kb.sharedLane())); // storeElements adds the lane again
    };
    mask ? kb.ifThen(mask, store) : store();
    return add(carried, total);
  }

  KernelBuilder &kb;
  device::CumSumOp op;
  Type element, type;
  AxisView view;
};

} // namespace

bool emitSharedArgReduce(KernelBuilder &kb, device::ArgReduceOp op) {
  AxisView view(kb.operandType(0), op.getAxis());
  if (!isShared(kb, view)) {
    return false;
  }
  kb.forSharedRows(view.lines(), [&](Value item) {
    SmallVector<Value> at = delinearize(kb, item, {view.outer, view.inner});
    Value index = ArgRow(kb, op).emit(kb.add(kb.mul(at[0], view.axis * view.inner), at[1]));
    kb.inFirstThread([&] { kb.store(index, kb.result(), item); });
  });
  return true;
}

bool emitSharedCumSum(KernelBuilder &kb, device::CumSumOp op) {
  AxisView view(kb.operandType(0), op.getAxis());
  bool isOrdered = kb.exact && isa<FloatType>(kb.operandType(0).getElementType());
  if (isOrdered || !view.axis.isKnown() || !isShared(kb, view)) {
    return false;
  }
  kb.forSharedRows(view.lines(), [&](Value item) {
    SmallVector<Value> at = delinearize(kb, item, {view.outer, view.inner});
    SumRow(kb, op).emit(kb.add(kb.mul(at[0], view.axis * view.inner), at[1]));
  });
  return true;
}

bool emitRankedTopK(KernelBuilder &kb, device::TopKOp op) {
  AxisView view(kb.operandType(0), op.getAxis());
  if (!kb.target.tileIsThread || !view.axis.isKnown() || view.lines().is(0)) {
    return false;
  }
  Type element = kb.operandType(0).getElementType();
  Dim k = Shape(kb.resultType())[op.getAxis()];
  constexpr int64_t kUnrolled = 4; // independent loads in flight
  kb.forTiles(view.outer * view.axis * view.inner, [&](Value tile) {
    SmallVector<Value> at = delinearize(kb, tile, {view.outer, view.axis, view.inner});
    Value base = kb.add(kb.mul(at[0], view.axis * view.inner), at[2]), own = at[1];
    auto load = [&](Value i) {
      return kb.loadElements(element, 0, kb.operand(0), kb.add(base, kb.mul(i, view.inner)));
    };
    Value value = load(own), one = kb.constant(1), zero = kb.constant(0);
    auto count = [&](Value i, Value ahead) {
      Value other = load(i);
      Value isAhead = comesBefore(kb, element, other, value, op.getLargest());
      Value isBehind = comesBefore(kb, element, value, other, op.getLargest());
      Value isEarlier = choose(kb, isBehind, kb.less(one, zero), kb.less(i, own)); // among equal elements
      return kb.add(ahead, choose(kb, either(kb, isAhead, isEarlier), one, zero));
    };
    int64_t axis = view.axis.value(), whole = axis / kUnrolled * kUnrolled;
    Value rank = kb.forLoop(zero, kb.constant(whole), kUnrolled, zero, [&](Value i, ValueRange old) {
      Value ahead = old[0];
      for (int64_t n = 0; n < kUnrolled; ++n) {
        ahead = count(kb.add(i, n), ahead);
      }
      return SmallVector<Value>{ahead};
    })[0];
    for (int64_t i = whole; i < axis; ++i) {
      rank = count(kb.constant(i), rank);
    }
    kb.ifThen(kb.less(rank, kb.index(k)), [&] {
      Value to = kb.add(kb.mul(kb.add(kb.mul(at[0], k), rank), view.inner), at[2]);
      kb.storeElements(element, value, kb.result(0), to);
      kb.store(own, kb.result(1), to);
    });
  });
  return true;
}

} // namespace tessera::kernels

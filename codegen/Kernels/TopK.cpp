//===- TopK.cpp - Kernels that keep the best elements so far --------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A sorted list holds the best elements so far. An element that comes before the last of a full list takes its place in
// it, behind those it is equal to. Along a contiguous axis, the elements are compared with the last one a vector at a
// time. A short list stays in registers until the row ends; a longer one lies in the results, where places are counted
// and the rest of the list moves a vector at a time, too.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/Order.h"
#include "codegen/Kernels/Requantise.h"
#include "codegen/Kernels/Rows.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

constexpr int64_t kLanes = 16;

/// Base of the emitters of both kinds of lists: the current row, and masks as integers.
class TopKEmitter {
public:
  TopKEmitter(KernelBuilder &kb, device::TopKOp op)
      : kb(kb), element(kb.operandType(0).getElementType()), view(kb.operandType(0), op.getAxis()),
        k(Shape(kb.resultType())[op.getAxis()]), largest(op.getLargest()),
        isContiguous(view.inner.is(1) && !kb.target.tileIsThread) {}

  /// Calls |row| for each row, of which |from| and |to| are the first elements in x and in the results.
  void forEachRow(function_ref<void()> row) {
    forItems(kb, view.lines(), view.axis * 8, 16384, [&](Value item) {
      SmallVector<Value> at = delinearize(kb, item, {view.outer, view.inner});
      from = kb.add(kb.mul(at[0], view.axis * view.inner), at[1]);
      to = kb.add(kb.mul(at[0], k * view.inner), at[1]);
      row();
    });
  }

protected:
  /// The list holds the first k elements at first; the others follow in runs of kLanes, and a rest.
  Dim runs() const { return isContiguous ? floorDiv(view.axis - k, kLanes) : Dim(0); }
  Value last() { return kb.index(k - 1); }
  Value behindRuns() { return kb.index(k + runs() * kLanes); }

  Value load(Value i) { return kb.loadElements(element, 0, kb.operand(0), kb.add(from, kb.mul(i, view.inner))); }
  Value isBefore(Value x, Value y) { return comesBefore(kb, element, x, y, largest); }
  Value widen(Value number) { return arith::ExtUIOp::create(kb.b, kb.b.getI64Type(), number); }
  Value countOf(Value bits) { return widen(emitIntrinsic(kb, "llvm.ctpop", bits.getType(), bits)); }

  Value negate(Value mask) {
    Value all = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(cast<VectorType>(mask.getType()), true));
    return arith::XOrIOp::create(kb.b, mask, all);
  }

  /// Calls |visit| for those of kLanes neighbours from |begin| on that come before |last|, with the values it returned.
  SmallVector<Value> overRun(Value begin, Value last, ValueRange carried,
                             function_ref<SmallVector<Value>(Value i, ValueRange old)> visit) {
    Value values = kb.loadElements(element, kLanes, kb.operand(0), kb.add(from, begin));
    Value better = bitsOfMask(kb, isBefore(values, kb.splat(last, kLanes))), none = kb.zero(better.getType());
    auto overBits = [&] {
      SmallVector<Value> state(carried);
      state.push_back(better);
      state = kb.forLoop(kb.constant(0), countOf(better), 1, state, [&](Value, ValueRange old) {
        Value left = old.back(), isDefined = arith::ConstantOp::create(kb.b, kb.b.getBoolAttr(false));
        Value lane = emitIntrinsic(kb, "llvm.cttz", left.getType(), {left, isDefined});
        SmallVector<Value> next = visit(kb.add(begin, widen(lane)), old.drop_back());
        Value one = arith::ConstantOp::create(kb.b, kb.b.getIntegerAttr(left.getType(), 1));
        next.push_back(arith::AndIOp::create(kb.b, left, arith::SubIOp::create(kb.b, left, one)));
        return next;
      });
      state.pop_back();
      return state;
    };
    Value isAny = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ne, better, none);
    if (carried.empty()) {
      kb.ifThen(isAny, [&] { overBits(); });
      return {};
    }
    return kb.ifElseAll(isAny, overBits, carried);
  }

  KernelBuilder &kb;
  Type element;
  AxisView view;
  Dim k; ///< at most the size of the axis
  bool largest, isContiguous;
  Value from, to;
};

/// A list of at most kLanes elements in registers: values and indices; what lies behind the list is anything.
class RegisterTopK : public TopKEmitter {
public:
  using TopKEmitter::TopKEmitter;

  bool fits() const { return isContiguous && k.isKnown() && k.value() <= kLanes; }

  void emit() {
    forEachRow([&] {
      Type type = registerType(element), i64 = kb.b.getI64Type();
      SmallVector<Value> list = {kb.zero(VectorType::get({kLanes}, type)), kb.zero(VectorType::get({kLanes}, i64))};
      list = kb.forLoop(kb.constant(0), kb.index(k), 1, list,
                        [&](Value i, ValueRange old) { return insert(i, /*count=*/i, old); });
      list = kb.forLoop(kb.constant(0), kb.index(runs()), 1, list, [&](Value run, ValueRange old) {
        Value last = vector::ExtractOp::create(kb.b, old[0], k.value() - 1);
        return overRun(kb.add(kb.mul(run, kLanes), k), last, old, visit());
      });
      list = kb.forLoop(behindRuns(), kb.index(view.axis), 1, list, visit());
      store(list);
    });
  }

private:
  std::function<SmallVector<Value>(Value, ValueRange)> visit() {
    return [this](Value i, ValueRange list) { return insert(i, kb.index(k), list); };
  }

  /// The list of |count| elements with element |i| in its place, which may be the one behind the end.
  SmallVector<Value> insert(Value i, Value count, ValueRange list) {
    // Lane l of |passed| says what lane l - 1 of |stays| does, without waiting for it.
    Value value = kb.splat(load(i), kLanes), moved = shifted(list[0]);
    Value stays = stayingIn(value, list[0], count);
    Value passed =
        arith::OrIOp::create(kb.b, stayingIn(value, moved, kb.add(count, 1)), kb.maskBelow(kLanes, kb.constant(1)));
    auto placed = [&](Value old, Value other, Value moved) {
      Value behind = arith::SelectOp::create(kb.b, passed, other, moved);
      return Value(arith::SelectOp::create(kb.b, stays, old, behind));
    };
    return {placed(list[0], value, moved), placed(list[1], kb.splat(i, kLanes), shifted(list[1]))};
  }

  /// The lanes among the first |count| of |list| that |value| does not come before.
  Value stayingIn(Value value, Value list, Value count) {
    return arith::AndIOp::create(kb.b, negate(isBefore(value, list)), kb.maskBelow(kLanes, count));
  }

  /// |vector| with each lane moved one back.
  Value shifted(Value vector) {
    SmallVector<int64_t> lanes = {0};
    for (int64_t lane = 0; lane + 1 < kLanes; ++lane) {
      lanes.push_back(lane);
    }
    return vector::ShuffleOp::create(kb.b, vector, vector, lanes);
  }

  void store(ArrayRef<Value> list) {
    for (int64_t place = 0; place < k.value(); ++place) {
      Value to = kb.add(this->to, place);
      kb.storeElements(element, vector::ExtractOp::create(kb.b, list[0], place), kb.result(0), to);
      kb.store(vector::ExtractOp::create(kb.b, list[1], place), kb.result(1), to);
    }
  }
};

/// A list in the results.
class MemoryTopK : public TopKEmitter {
public:
  using TopKEmitter::TopKEmitter;

  void emit() {
    forEachRow([&] {
      kb.forLoop(0, k, 1, [&](Value i) { insert(load(i), i, /*count=*/i); });
      kb.forLoop(0, runs(), 1, [&](Value run) {
        Value begin = kb.add(kb.mul(run, kLanes), k);
        overRun(begin, held(last()), {}, [&](Value i, ValueRange) {
          visit(i);
          return SmallVector<Value>();
        });
      });
      kb.forLoop(behindRuns(), kb.index(view.axis), 1, [&](Value i) { visit(i); });
    });
  }

private:
  /// Element |i|, with a full list.
  void visit(Value i) {
    Value value = load(i);
    kb.ifThen(isBefore(value, held(last())), [&] { insert(value, i, kb.index(k)); });
  }

  /// Puts |value|, element |index|, into a list of |count|, from which the last element falls if it is full.
  void insert(Value value, Value index, Value count) {
    Value place = placeOf(value, count), end = kb.min(count, last());
    shift(place, end);
    kb.storeElements(element, value, kb.result(0), slot(place));
    kb.store(index, kb.result(1), slot(place));
  }

  /// How many of the list's first |count| elements stay in front of |value|: it comes before none of them.
  Value placeOf(Value value, Value count) {
    Value place = kb.constant(0), begin = kb.constant(0);
    if (isContiguous) {
      begin = kb.mul(kb.div(count, kLanes), kLanes);
      place = kb.forLoop(kb.constant(0), begin, kLanes, place, [&](Value i, ValueRange old) {
        return SmallVector<Value>{kb.add(old[0], stayingLanes(value, i, Value()))};
      })[0];
      if (kb.target.hasMasks()) {
        Value mask = kb.maskBelow(kLanes, kb.sub(count, begin));
        return kb.add(place, stayingLanes(value, begin, mask));
      }
    }
    return kb.forLoop(begin, count, 1, place, [&](Value i, ValueRange old) {
      Value stays = arith::SelectOp::create(kb.b, isBefore(value, held(i)), kb.constant(0), kb.constant(1));
      return SmallVector<Value>{kb.add(old[0], stays)};
    })[0];
  }

  /// How many of the kLanes elements of the list from |begin| on, or of those in |mask|, stay in front of |value|.
  Value stayingLanes(Value value, Value begin, Value mask) {
    Value list = kb.loadElements(element, kLanes, kb.result(0), slot(begin), mask);
    Value stays = negate(isBefore(kb.splat(value, kLanes), list));
    return countOf(bitsOfMask(kb, mask ? Value(arith::AndIOp::create(kb.b, stays, mask)) : stays));
  }

  /// Moves the list's elements [|begin|, |end|) one place back, the last ones first.
  void shift(Value begin, Value end) {
    Value left = kb.sub(end, begin);
    if (isContiguous) {
      Value runs = kb.div(left, kLanes);
      kb.forLoop(kb.constant(0), runs, 1,
                 [&](Value run) { move(kb.sub(end, kb.mul(kb.add(run, 1), kLanes)), kLanes, Value()); });
      left = kb.sub(left, kb.mul(runs, kLanes));
      if (kb.target.hasMasks()) {
        return move(begin, kLanes, kb.maskBelow(kLanes, left));
      }
    }
    kb.forLoop(kb.constant(0), left, 1,
               [&](Value step) { move(kb.sub(kb.add(begin, left), kb.add(step, 1)), /*lanes=*/0, Value()); });
  }

  /// Moves the element at |place|, or |lanes| from there on, one place back.
  void move(Value place, unsigned lanes, Value mask) {
    Type i64 = kb.b.getI64Type();
    Value source = slot(place), target = slot(kb.add(place, 1));
    Value values = kb.loadElements(element, lanes, kb.result(0), source, mask);
    Value indices = kb.loadElements(i64, lanes, kb.result(1), source, mask);
    kb.storeElements(element, values, kb.result(0), target, mask);
    kb.storeElements(i64, indices, kb.result(1), target, mask);
  }

  Value held(Value place) { return kb.loadElements(element, 0, kb.result(0), slot(place)); }
  Value slot(Value place) { return kb.add(to, kb.mul(place, view.inner)); }
};

} // namespace

void emitSortedTopK(KernelBuilder &kb, device::TopKOp op) {
  RegisterTopK inRegisters(kb, op);
  inRegisters.fits() ? inRegisters.emit() : MemoryTopK(kb, op).emit();
}

} // namespace tessera::kernels

//===- Suppression.cpp - Kernel of non-maximum suppression ----------------===//
// SPDX-License-Identifier: Apache-2.0
// One item per batch entry and class. A list in scratch holds the remaining candidates in index order. Each pass over
// the list removes the candidates that overlap the last selected box and finds the best of the rest. If threads share
// rows, an item has the threads of kBlockRows rows: each thread keeps flags for its candidates, and the best candidates
// of all threads are compared.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceMoveOps.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace tessera::kernels {
namespace {

using Float = arith::CmpFPredicate;

struct Span {
  Value low, high;
};

/// Spans of a box in x and y, and its area.
struct Box {
  Span x, y;
  Value area;
};

class Suppression {
public:
  Suppression(KernelBuilder &kb, device::NonMaxSuppressionOp op)
      : kb(kb), b(kb.b), op(op), items(Shape(kb.operandType(1))[0] * Shape(kb.operandType(1))[1]),
        classes(Shape(kb.operandType(1))[1]), count(Shape(kb.operandType(1))[2]), k(op.getK()), f32(b.getF32Type()) {}

  void emit() {
    if (kb.target.shuffle && !countElements(kb.operandType(1)).is(0)) {
      return emitShared();
    }
    kb.setScratchBytes(maxOf(count) * static_cast<int64_t>(sizeof(int64_t)));
    forItems(kb, items, count * 4, 16384, [&](Value item) {
      scores = kb.mul(item, count);
      boxes = kb.mul(kb.div(item, classes), count * 4);
      Value to = kb.mul(item, k), none = kb.constant(-1);
      kb.forLoop(0, k, 1, [&](Value p) { kb.store(none, kb.result(), kb.add(to, p)); });
      SmallVector<Value> left = collect();
      Value limit = kb.min(kb.load(b.getI64Type(), kb.operand(2), kb.constant(0)), kb.constant(k));
      // Once no candidates are left, the box is -1 and further passes do nothing.
      kb.forLoop(kb.constant(0), limit, 1, left, [&](Value p, ValueRange old) {
        kb.store(old[1], kb.result(), kb.add(to, p));
        return suppress(old[0], old[1]);
      });
    });
  }

private:
  Value compare(Float predicate, Value x, Value y) { return arith::CmpFOp::create(b, predicate, x, y); }
  Value select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
  Value both(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value loadFloat(unsigned operand, Value index) { return kb.load(f32, kb.operand(operand), index); }

  /// Appends box |j| to the list of |size| entries if it |stays|, and makes it the best if its score is higher. State:
  /// size, best box or -1, its score.
  SmallVector<Value> append(Value j, Value stays, ValueRange old) {
    kb.store(j, kb.scratch(), old[0]);
    Value score = loadFloat(1, kb.add(scores, j));
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, old[1], kb.constant(0));
    Value better = both(stays, arith::OrIOp::create(b, first, compare(Float::OGT, score, old[2])));
    return {kb.add(old[0], select(stays, kb.constant(1), kb.constant(0))), select(better, j, old[1]),
            select(better, score, old[2])};
  }

  /// Condition for candidates: a score above |least|, or any number if |least| is -infinity.
  struct Threshold {
    Value least, infinity, all;
  };
  Threshold threshold() {
    Value least = loadFloat(4, kb.constant(0));
    Value infinity = kb.floatConstant(f32, -std::numeric_limits<double>::infinity());
    return {least, infinity, compare(Float::OEQ, least, infinity)};
  }
  Value isAbove(const Threshold &t, Value score) {
    return arith::OrIOp::create(b, compare(Float::OGT, score, t.least),
                                both(t.all, compare(Float::OEQ, score, t.infinity)));
  }

  /// Builds the list of all candidates.
  SmallVector<Value> collect() {
    Threshold above = threshold();
    return kb.forLoop(kb.constant(0), kb.index(count), 1, start(), [&](Value j, ValueRange old) {
      return append(j, isAbove(above, loadFloat(1, kb.add(scores, j))), old);
    });
  }

  // With the threads of a block

  static constexpr int64_t kThreads = kBlockRows * kRowThreads;
  static constexpr int64_t kPlaces = 2 * kBlockRows; ///< slots for the best candidates of the rows, for two passes

  void emitShared() {
    int64_t each = llvm::alignTo(llvm::divideCeil(maxOf(count), kThreads) + kPlaces * 8 / kThreads, 8);
    kb.setScratchBytes(each);
    kb.forSharedRows(items * kBlockRows, [&](Value row) {
      Value item = kb.div(row, kBlockRows), to = kb.mul(item, k);
      scores = kb.mul(item, count);
      boxes = kb.mul(kb.div(item, classes), count * 4);
      team = kb.rem(row, kBlockRows);
      thread = kb.add(kb.mul(team, kRowThreads), kb.sharedLane());
      places = kb.element(f32, kb.scratch(), kb.mul(thread, -each / 4)); // scratch of the block's first thread
      flags = kb.element(b.getI8Type(), places, kb.constant(kPlaces * 8));
      // Threads beyond the last slot store the same value to the last slot: no branch separates the threads of a warp.
      kb.forLoop(0, k, kThreads, [&](Value p) {
        kb.store(kb.constant(-1), kb.result(), kb.add(to, kb.min(kb.add(p, thread), kb.constant(k - 1))));
      });
      Threshold above = threshold();
      Best best = bestOfAll(kb.constant(1), [&](Value, Value score) { return isAbove(above, score); });
      Value iou = loadFloat(3, kb.constant(0));
      Value limit = kb.min(kb.load(b.getI64Type(), kb.operand(2), kb.constant(0)), kb.constant(k));
      kb.forLoop(kb.constant(0), limit, 1, {best.index, best.score}, [&](Value p, ValueRange old) {
        Value chosen = arith::ExtSIOp::create(b, b.getI64Type(), old[0]);
        kb.store(chosen, kb.result(), kb.add(to, p));
        Box box = loadBox(kb.max(chosen, kb.constant(0)));
        Best next = bestOfAll(p, [&](Value j, Value) {
          Value other = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, j, chosen);
          Value apart = arith::XOrIOp::create(b, overlaps(box, loadBox(clamped(j)), iou), truth());
          return both(kb.load(b.getI1Type(), flags, j), both(other, apart));
        });
        return SmallVector<Value>{next.index, next.score};
      });
    });
  }

  struct Best {
    Value index, score; ///< |index| is i32, -1: none
  };

  Value truth() { return arith::ConstantOp::create(b, b.getBoolAttr(true)); }
  Value clamped(Value j) { return kb.min(j, kb.index(count - 1)); }

  /// Flags this thread's candidates for which |stays| is true and returns the best candidate of all threads, the first
  /// of equal ones. Passes alternate between two sets of slots (parity of |trip|), so that one barrier per pass
  /// suffices.
  Best bestOfAll(Value trip, function_ref<Value(Value j, Value score)> stays) {
    Value none = arith::TruncIOp::create(b, b.getI32Type(), kb.constant(-1));
    SmallVector<Value> start = {none, kb.zero(f32)};
    SmallVector<Value> found =
        kb.forLoop(kb.constant(0), kb.index(count), kThreads, start, [&](Value i, ValueRange old) {
          Value j = kb.add(i, thread), score = loadFloat(1, kb.add(scores, clamped(j)));
          Value isThere = both(kb.less(j, kb.index(count)), stays(j, score));
          kb.store(isThere, flags, j);
          Value index = arith::TruncIOp::create(b, b.getI32Type(), j);
          Best best = better({old[0], old[1]}, {select(isThere, index, none), score});
          return SmallVector<Value>{best.index, best.score};
        });
    Best best = {found[0], found[1]};
    for (unsigned distance = kRowThreads / 2; distance > 0; distance /= 2) {
      best = better(best, {kb.target.shuffle(kb, best.index, distance), kb.target.shuffle(kb, best.score, distance)});
    }
    best = {kb.target.broadcast(kb, best.index, kb.constant(0)), kb.target.broadcast(kb, best.score, kb.constant(0))};
    Value place = kb.mul(kb.rem(trip, 2), kPlaces);
    auto at = [&](Value row) { return kb.add(place, kb.mul(row, 2)); };
    kb.store(best.index, places, at(team));
    kb.store(best.score, places, kb.add(at(team), 1));
    kb.target.barrier(kb);
    for (int64_t row = 0; row < kBlockRows; ++row) {
      Value from = at(kb.constant(row));
      Best other = {kb.load(b.getI32Type(), places, from), kb.load(f32, places, kb.add(from, 1))};
      best = row ? better(best, other) : other;
    }
    return best;
  }

  Best better(Best p, Best q) {
    Value zero = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
    auto less = [&](Value x, Value y) -> Value { return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y); };
    Value tie = both(compare(Float::OEQ, q.score, p.score), less(q.index, p.index));
    Value ahead = arith::OrIOp::create(b, compare(Float::OGT, q.score, p.score), tie);
    Value isThere = arith::XOrIOp::create(b, less(q.index, zero), truth());
    Value isTaken = both(isThere, arith::OrIOp::create(b, less(p.index, zero), ahead));
    return {select(isTaken, q.index, p.index), select(isTaken, q.score, p.score)};
  }

  // With one thread

  /// Removes |best| and the boxes that overlap it from the list, in place.
  SmallVector<Value> suppress(Value size, Value best) {
    Value iou = loadFloat(3, kb.constant(0));
    Box chosen = loadBox(kb.max(best, kb.constant(0)));
    return kb.forLoop(kb.constant(0), size, 1, start(), [&](Value i, ValueRange old) {
      Value j = kb.load(b.getI64Type(), kb.scratch(), i);
      Value other = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, j, best);
      Value overlap = overlaps(chosen, loadBox(j), iou);
      Value apart = arith::XOrIOp::create(b, overlap, arith::ConstantOp::create(b, b.getBoolAttr(true)));
      return append(j, both(other, apart), old);
    });
  }

  SmallVector<Value> start() { return {kb.constant(0), kb.constant(-1), kb.zero(f32)}; }

  Box loadBox(Value j) {
    Value at = kb.add(boxes, kb.mul(j, 4));
    auto number = [&](int64_t i) { return loadFloat(0, kb.add(at, i)); };
    Box box = op.getCenter() ? Box{centerSpan(number(0), number(2)), centerSpan(number(1), number(3)), {}}
                             : Box{cornerSpan(number(1), number(3)), cornerSpan(number(0), number(2)), {}};
    box.area = arith::MulFOp::create(b, length(box.x), length(box.y));
    return box;
  }

  Span cornerSpan(Value p, Value q) {
    Value turned = compare(Float::OGE, p, q);
    return {select(turned, q, p), select(turned, p, q)};
  }

  Span centerSpan(Value center, Value size) {
    Value half = arith::DivFOp::create(b, size, kb.floatConstant(f32, 2));
    return {arith::SubFOp::create(b, center, half), arith::AddFOp::create(b, center, half)};
  }

  Value length(Span span) { return arith::SubFOp::create(b, span.high, span.low); }

  Span intersect(Span p, Span q) {
    return {select(compare(Float::OLT, p.low, q.low), q.low, p.low),
            select(compare(Float::OLT, q.high, p.high), q.high, p.high)};
  }

  /// Returns an i1: the boxes overlap by more than |iou|. Computes in the order of the reference
  /// (ReferenceSuppression.cpp).
  Value overlaps(const Box &p, const Box &q, Value iou) {
    Span x = intersect(p.x, q.x), y = intersect(p.y, q.y);
    Value common = arith::MulFOp::create(b, length(x), length(y));
    Value joint = arith::SubFOp::create(b, arith::AddFOp::create(b, p.area, q.area), common);
    Value zero = kb.zero(f32);
    Value result = compare(Float::OGT, arith::DivFOp::create(b, common, joint), iou);
    for (Value positive : {common, p.area, q.area, joint}) {
      result = both(result, compare(Float::OGT, positive, zero));
    }
    return both(result, both(compare(Float::OGT, x.high, x.low), compare(Float::OGT, y.high, y.low)));
  }

  KernelBuilder &kb;
  ImplicitLocOpBuilder &b;
  device::NonMaxSuppressionOp op;
  const Dim items, classes, count;
  const int64_t k;
  const Type f32;
  Value scores, boxes; ///< offsets of the item's first score and of its batch entry's first box
  Value team, thread;  ///< this thread's row among the item's rows, and its number among the item's threads
  Value places, flags; ///< in the item's scratch: kPlaces pairs of index and score, and one byte per candidate
};

struct NonMaxSuppressionModel : KernelInterface::ExternalModel<NonMaxSuppressionModel, device::NonMaxSuppressionOp> {
  bool acceptsOpenSizes(Operation *op) const {
    Shape boxes = op->getOperand(0), scores = op->getOperand(1);
    return sameSize(boxes[0], scores[0]) && sameSize(boxes[1], scores[2]);
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    Suppression(kb, cast<device::NonMaxSuppressionOp>(op)).emit();
    return success();
  }
};

} // namespace

void attachSuppressionModels(MLIRContext *context) {
  device::NonMaxSuppressionOp::attachInterface<NonMaxSuppressionModel>(*context);
}

} // namespace tessera::kernels

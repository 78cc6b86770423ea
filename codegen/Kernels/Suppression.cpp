//===- Suppression.cpp - Kernel of non-maximum suppression ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// One item per batch entry and class. A list in scratch holds the candidates left, in the order of their numbers; each
// trip over it takes out what overlaps the box chosen last, and finds the best of the rest.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceMoveOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <limits>

using namespace mlir;

namespace tessera::kernels {
namespace {

using Float = arith::CmpFPredicate;

struct Span {
  Value low, high;
};

/// The spans of a box and its area.
struct Box {
  Span x, y;
  Value area;
};

class Suppression {
public:
  Suppression(KernelBuilder &kb, device::NonMaxSuppressionOp op)
      : kb(kb), b(kb.b), op(op), classes(kb.operandType(1).getDimSize(1)), count(kb.operandType(1).getDimSize(2)),
        k(op.getK()), f32(b.getF32Type()) {}

  void emit() {
    kb.setScratchBytes(count * static_cast<int64_t>(sizeof(int64_t)));
    forItems(kb, kb.operandType(1).getDimSize(0) * classes, count * 4, 16384, [&](Value item) {
      scores = kb.mul(item, count);
      boxes = kb.mul(kb.div(item, classes), count * 4);
      Value to = kb.mul(item, k), none = kb.constant(-1);
      kb.forLoop(0, k, 1, [&](Value p) { kb.store(none, kb.result(), kb.add(to, p)); });
      SmallVector<Value> left = collect();
      Value limit = kb.min(kb.load(b.getI64Type(), kb.operand(2), kb.constant(0)), kb.constant(k));
      // Without candidates the box is -1 and the trips do nothing more.
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

  /// Adds box |j| behind the list's |size| entries if it |stays|, and makes it the best if its score is higher:
  /// size, best box or -1, its score.
  SmallVector<Value> append(Value j, Value stays, ValueRange old) {
    kb.store(j, kb.scratch(), old[0]);
    Value score = loadFloat(1, kb.add(scores, j));
    Value first = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, old[1], kb.constant(0));
    Value better = both(stays, arith::OrIOp::create(b, first, compare(Float::OGT, score, old[2])));
    return {kb.add(old[0], select(stays, kb.constant(1), kb.constant(0))), select(better, j, old[1]),
            select(better, score, old[2])};
  }

  /// The list of all candidates.
  SmallVector<Value> collect() {
    Value least = loadFloat(4, kb.constant(0));
    Value infinity = kb.floatConstant(f32, -std::numeric_limits<double>::infinity());
    Value all = compare(Float::OEQ, least, infinity);
    return kb.forLoop(kb.constant(0), kb.constant(count), 1, start(), [&](Value j, ValueRange old) {
      Value score = loadFloat(1, kb.add(scores, j));
      Value stays =
          arith::OrIOp::create(b, compare(Float::OGT, score, least), both(all, compare(Float::OEQ, score, infinity)));
      return append(j, stays, old);
    });
  }

  /// The list without |best| and what overlaps it; it is rewritten in place.
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

  /// In the reference's order of operations (ReferenceSuppression.cpp).
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
  const int64_t classes, count, k;
  const Type f32;
  Value scores, boxes; ///< of the item: offsets of its first score and of its batch entry's first box
};

struct NonMaxSuppressionModel : KernelInterface::ExternalModel<NonMaxSuppressionModel, device::NonMaxSuppressionOp> {
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

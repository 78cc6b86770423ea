//===- Softmax.cpp - Softmax kernels --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

/// Emits softmax over x as [outer, axis, inner]. With inner = 1 the lanes are elements of one row, otherwise neighbours
/// in |inner| with a softmax each. Three passes: maximum; e^(x - max), stored in y, and their sum; scaling.
class SoftmaxEmitter {
public:
  SoftmaxEmitter(KernelBuilder &kb, device::SoftmaxOp op)
      : kb(kb), element(kb.operandType(0).getElementType()), log(op.getLog()) {
    type = registerType(element);
    Shape shape(kb.operandType(0));
    for (int64_t d = 0; d < int64_t(shape.rank()); ++d) {
      (d < int64_t(op.getAxis()) ? outer : d == int64_t(op.getAxis()) ? axis : inner) *= shape[d];
    }
    lanes = kb.exact ? kExactLanes : kb.target.lanes(type.getIntOrFloatBitWidth());
  }

  void emit() {
    if (inner.is(1)) {
      return isGrouped() ? emitGroups()
                         : forRows(kb, outer, axis, 4096, type, lanes, [&](Value index) { rows(kb.mul(index, axis)); });
    }
    Dim columns = ceilDiv(inner, lanes);
    forItems(kb, outer * columns, axis * lanes, 4096, [&](Value index) { column(index, columns); });
  }

private:
  Value maximum(Value x, Value y) { return emitExtremum(kb, element, x, y, false); }
  Value sum(Value x, Value y) { return arith::AddFOp::create(kb.b, x, y); }
  Value load(Value offset, Value mask) { return kb.loadElements(element, lanes, kb.operand(0), offset, mask); }
  Type vectorType() { return kb.lanesOf(type, lanes); }

  /// Rows are computed side by side where that many are at hand: one alone waits for its maximum, for its sum and for
  /// the quotient, each a chain of some fifty cycles.
  int64_t rowsAtOnce() { return kb.target.hasMasks() ? 4 : 2; }
  bool isGrouped() {
    return !kb.target.tileIsThread && likelyOf(outer) >= rowsAtOnce() && likelyOf(axis) <= 64 * lanes;
  }

  void emitGroups() {
    int64_t count = rowsAtOnce();
    Dim groups = floorDiv(outer, count), rest = mod(outer, count);
    forItems(kb, groups + rest, count * axis, 4096, [&](Value item) {
      auto group = [&] {
        SmallVector<Value> bases;
        for (int64_t n = 0; n < count; ++n) {
          bases.push_back(kb.mul(kb.add(kb.mul(item, count), n), axis));
        }
        rows(bases);
      };
      if (rest.is(0)) {
        return group();
      }
      kb.ifThen(kb.less(item, kb.index(groups)), group);
      kb.ifThen(kb.less(kb.index(groups - 1), item),
                [&] { rows(kb.mul(kb.add(item, groups * count - groups), axis)); });
    });
  }

  /// Calls |body| for the vectors of each row; the last one is masked. |carried|: a value for each row, or none.
  SmallVector<Value> overRows(ValueRange bases, ValueRange carried,
                              function_ref<Value(unsigned row, Value offset, Value mask, Value carried)> body) {
    auto all = [&](Value i, Value mask, ValueRange old) {
      SmallVector<Value> next;
      for (auto [n, base] : llvm::enumerate(bases)) {
        Value value = body(n, kb.add(base, i), mask, old.empty() ? Value() : old[n]);
        if (!old.empty()) {
          next.push_back(value);
        }
      }
      return next;
    };
    return kernels::overRow(kb, axis, lanes, llvm::to_vector(carried), all);
  }

  void rows(ValueRange bases) {
    Value lowest = lowestValue(kb, element, vectorType(), false), zeros = kb.zero(vectorType());
    SmallVector<Value> lowestOfRows(bases.size(), lowest), zerosOfRows(bases.size(), zeros);
    SmallVector<Value> best = overRows(bases, lowestOfRows, [&](unsigned, Value offset, Value mask, Value old) {
      return maximum(old, keepActive(kb, mask, load(offset, mask), lowest));
    });
    for (Value &each : best) {
      each = kb.splat(reduceLanes(kb, each, [&](Value x, Value y) { return maximum(x, y); }), lanes);
    }
    SmallVector<Value> last = overRows(bases, zerosOfRows, [&](unsigned row, Value offset, Value mask, Value old) {
      Value power = emitExpOfNegative(kb, arith::SubFOp::create(kb.b, load(offset, mask), best[row]));
      if (!log) {
        kb.storeElements(element, power, kb.result(), offset, mask);
      }
      return sum(old, keepActive(kb, mask, power, zeros));
    });
    for (Value &each : last) {
      each = kb.splat(finalFactor(reduceLanes(kb, each, [&](Value x, Value y) { return sum(x, y); })), lanes);
    }
    overRows(bases, {}, [&](unsigned row, Value offset, Value mask, Value) {
      finish(offset, mask, best[row], last[row]);
      return Value();
    });
  }

  void column(Value index, Dim columns) {
    SmallVector<Value> at = delinearize(kb, index, ArrayRef<Dim>{outer, columns});
    Value lane = kb.mul(at[1], lanes);
    Value base = kb.add(kb.mul(at[0], axis * inner), lane);
    Value mask = isMultipleOf(inner, lanes) ? Value() : kb.maskBelow(lanes, kb.sub(kb.index(inner), lane));
    auto overAxis = [&](Value carried, function_ref<Value(Value, Value)> body) {
      return kb.forLoop(kb.constant(0), kb.index(axis), 1, carried, [&](Value i, ValueRange old) {
        return SmallVector<Value>{body(kb.add(base, kb.mul(i, inner)), old[0])};
      })[0];
    };
    Value best = overAxis(lowestValue(kb, element, vectorType(), false),
                          [&](Value offset, Value old) { return maximum(old, load(offset, mask)); });
    Value total = overAxis(kb.zero(vectorType()), [&](Value offset, Value old) {
      Value power = emitExpOfNegative(kb, arith::SubFOp::create(kb.b, load(offset, mask), best));
      if (!log) {
        kb.storeElements(element, power, kb.result(), offset, mask);
      }
      return sum(old, power);
    });
    Value last = finalFactor(total);
    overAxis(last, [&](Value offset, Value old) {
      finish(offset, mask, best, last);
      return old;
    });
  }

  /// Returns 1 / sum or, for log-softmax, log(sum).
  Value finalFactor(Value total) {
    return log ? emitLog(kb, total) : Value(arith::DivFOp::create(kb.b, kb.floatConstant(total.getType(), 1.0), total));
  }

  void finish(Value offset, Value mask, Value best, Value factor) {
    Value result;
    if (log) {
      result = arith::SubFOp::create(kb.b, arith::SubFOp::create(kb.b, load(offset, mask), best), factor);
    } else {
      result = arith::MulFOp::create(kb.b, kb.loadElements(element, lanes, kb.result(), offset, mask), factor);
    }
    kb.storeElements(element, result, kb.result(), offset, mask);
  }

  KernelBuilder &kb;
  Type element, type;
  bool log;
  Dim outer = 1, axis = 1, inner = 1;
  unsigned lanes;
};

struct SoftmaxModel : KernelInterface::ExternalModel<SoftmaxModel, device::SoftmaxOp> {
  bool acceptsOpenSizes(Operation *op) const { return sameSizes(op->getOperand(0), op->getResult(0)); }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (device::isBlocked(kb.operandType(0)) || device::isBlocked(kb.resultType())) {
      return op->emitError("internal error: softmax of a blocked tensor");
    }
    SoftmaxEmitter(kb, cast<device::SoftmaxOp>(op)).emit();
    return success();
  }
};

} // namespace

void attachSoftmaxModels(MLIRContext *context) { device::SoftmaxOp::attachInterface<SoftmaxModel>(*context); }

} // namespace tessera::kernels

//===- Attention.cpp - Scaled dot-product attention kernels ---------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A tile is some rows of q under one k and v. It
// transposes k into scratch, then per four rows: scores, softmax and the product with v, all in scratch.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/AttentionShape.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"
#include "device_dialect/IR/DeviceComputeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {

AttentionShape::AttentionShape(KernelBuilder &kb, double scale, bool isMasked)
    : kb(kb), scale(scale), isMasked(isMasked), q(kb.operandType(0)), k(kb.operandType(1)), v(kb.operandType(2)),
      y(kb.resultType()) {
  int64_t rank = q.getRank();
  queries = q.getDimSize(rank - 2);
  depth = q.getDimSize(rank - 1);
  keys = k.getDimSize(k.getRank() - 2);
  features = v.getDimSize(v.getRank() - 1);
}

Value AttentionShape::matrixBase(RankedTensorType tensor, ArrayRef<Value> at) const {
  Strides strides(tensor);
  int64_t missing = int64_t(at.size()) + 2 - tensor.getRank();
  Value base = kb.constant(0);
  for (int64_t d = 0; d + 2 < tensor.getRank(); ++d) {
    if (tensor.getDimSize(d) != 1) {
      base = kb.add(base, kb.mul(at[d + missing], strides.dims[d]));
    }
  }
  return base;
}

Value AttentionShape::loadMask(ArrayRef<Value> at, Value row, Value key, unsigned lanes, Value active) const {
  RankedTensorType type = kb.operandType(3);
  SmallVector<Value> indices(at);
  indices.append({row, key});
  int64_t missing = int64_t(indices.size()) - type.getRank();
  SmallVector<Value> own;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    own.push_back(type.getDimSize(d) == 1 ? kb.constant(0) : indices[d + missing]);
  }
  int64_t stride = type.getRank() && type.getShape().back() != 1 ? 1 : 0;
  return loadLanes(kb, type.getElementType(), kb.operand(3), stride, VectorStep{{}, active, lanes},
                   Strides(type).offset(kb, own));
}

namespace {

/// For every element type.
class AttentionEmitter : AttentionShape {
public:
  explicit AttentionEmitter(const AttentionShape &shape)
      : AttentionShape(shape), rowsAtOnce(kb.exact && kb.target.hasMasks() ? 8 : 4), element(y.getElementType()),
        type(registerType(element)) {
    lanes = kb.exact ? kExactLanes : 2 * kb.target.lanes(type.getIntOrFloatBitWidth());
    keysPadded = llvm::alignTo(keys, lanes);
  }

  void emit() {
    SmallVector<int64_t> space(y.getShape().drop_back(2));
    int64_t batch = product(space);
    // Few batches: their rows are cut too, at the price of transposing k again.
    int64_t parts = std::clamp<int64_t>(16 / std::max<int64_t>(1, batch), 1, llvm::divideCeil(queries, 4 * rowsAtOnce));
    int64_t rows = llvm::alignTo(llvm::divideCeil(queries, parts), rowsAtOnce);
    parts = llvm::divideCeil(queries, rows);
    space.push_back(parts);
    kb.setScratchBytes((depth + rowsAtOnce) * keysPadded * (type.getIntOrFloatBitWidth() / 8));
    scores = kb.element(type, kb.scratch(), kb.constant(depth * keysPadded));
    kb.forTiles(batch * parts, [&](Value tile) {
      SmallVector<Value> at = delinearize(kb, tile, space);
      Value first = kb.mul(at.pop_back_val(), rows);
      transposeKeys(matrixBase(k, at));
      kb.forLoop(first, kb.min(kb.add(first, rows), kb.constant(queries)), rowsAtOnce,
                 [&](Value row) { emitRows(at, row); });
    });
  }

private:
  VectorType vectorType() { return VectorType::get({int64_t(lanes)}, type); }

  /// scratch[e][t] = k[t][e]; columns up to keysPadded are zero.
  void transposeKeys(Value base) {
    kb.forLoop(0, depth, 1, [&](Value e) {
      Value to = kb.mul(e, keysPadded);
      overRow(kb, keys, lanes, [&](Value t, Value mask) {
        Value from = kb.add(base, kb.add(kb.mul(t, depth), e));
        Value column = loadLanes(kb, element, kb.operand(1), depth, VectorStep{{}, mask, lanes}, from);
        kb.store(column, kb.scratch(), kb.add(to, t));
      });
    });
  }

  /// Rows beyond the last repeat it; they are not stored.
  Value clampedRow(Value row, int64_t r) { return kb.min(kb.add(row, r), kb.constant(queries - 1)); }

  void emitRows(ArrayRef<Value> at, Value row) {
    Value qBase = matrixBase(q, at);
    kb.forLoop(0, keysPadded, lanes, [&](Value t) {
      SmallVector<Value> sums(rowsAtOnce, kb.zero(vectorType()));
      sums = kb.forLoop(kb.constant(0), kb.constant(depth), 1, sums, [&](Value e, ValueRange old) {
        Value keysVector = kb.load(vectorType(), kb.scratch(), kb.add(kb.mul(e, keysPadded), t));
        SmallVector<Value> next;
        for (int64_t r = 0; r < rowsAtOnce; ++r) {
          Value offset = kb.add(qBase, kb.add(kb.mul(clampedRow(row, r), depth), e));
          Value factor = kb.splat(kb.loadElements(element, 0, kb.operand(0), offset), lanes);
          next.push_back(emitFma(kb, factor, keysVector, old[r]));
        }
        return next;
      });
      Value mask = keys % lanes ? kb.maskBelow(lanes, kb.sub(kb.constant(keys), t)) : Value();
      Value scales = kb.floatConstant(vectorType(), scale);
      for (int64_t r = 0; r < rowsAtOnce; ++r) {
        Value score = arith::MulFOp::create(kb.b, sums[r], scales);
        if (isMasked) {
          score = arith::AddFOp::create(kb.b, score, loadMask(at, clampedRow(row, r), t, lanes, mask));
        }
        kb.store(score, scores, kb.add(t, r * keysPadded));
      }
    });
    SmallVector<Value> factors;
    for (int64_t r = 0; r < rowsAtOnce; ++r) {
      factors.push_back(softmaxRow(kb.constant(r * keysPadded)));
    }
    multiplyValues(at, row, factors);
  }

  /// Replaces a row of scores by e^(score - maximum); returns 1 / their sum.
  Value softmaxRow(Value base) {
    Value lowest = lowestValue(kb, element, vectorType(), false), zeros = kb.zero(vectorType());
    auto load = [&](Value i) { return kb.load(vectorType(), scores, kb.add(base, i)); };
    auto maximum = [&](Value a, Value b) { return emitExtremum(kb, type, a, b, false); };
    Value best = overRow(kb, keys, lanes, lowest, [&](Value i, Value mask, ValueRange old) {
      return SmallVector<Value>{maximum(old[0], keepActive(kb, mask, load(i), lowest))};
    })[0];
    best = kb.splat(reduceLanes(kb, best, maximum), lanes);
    Value total = overRow(kb, keys, lanes, zeros, [&](Value i, Value mask, ValueRange old) {
      Value power = keepActive(kb, mask, emitExpOfNegative(kb, arith::SubFOp::create(kb.b, load(i), best)), zeros);
      kb.store(power, scores, kb.add(base, i));
      return SmallVector<Value>{arith::AddFOp::create(kb.b, old[0], power)};
    })[0];
    total = reduceLanes(kb, total, [&](Value a, Value b) { return arith::AddFOp::create(kb.b, a, b); });
    return arith::DivFOp::create(kb.b, kb.floatConstant(type, 1.0), total);
  }

  void multiplyValues(ArrayRef<Value> at, Value row, ArrayRef<Value> factors) {
    Value vBase = matrixBase(v, at), yBase = matrixBase(y, at);
    overRow(kb, features, lanes, [&](Value f, Value mask) {
      SmallVector<Value> sums(rowsAtOnce, kb.zero(vectorType()));
      sums = kb.forLoop(kb.constant(0), kb.constant(keys), 1, sums, [&](Value t, ValueRange old) {
        Value values =
            kb.loadElements(element, lanes, kb.operand(2), kb.add(vBase, kb.add(kb.mul(t, features), f)), mask);
        SmallVector<Value> next;
        for (int64_t r = 0; r < rowsAtOnce; ++r) {
          Value factor = kb.splat(kb.load(type, scores, kb.add(t, r * keysPadded)), lanes);
          next.push_back(emitFma(kb, factor, values, old[r]));
        }
        return next;
      });
      for (int64_t r = 0; r < rowsAtOnce; ++r) {
        Value target = kb.add(row, r);
        auto store = [&] {
          Value value = arith::MulFOp::create(kb.b, sums[r], kb.splat(factors[r], lanes));
          kb.storeElements(element, value, kb.result(), kb.add(yBase, kb.add(kb.mul(target, features), f)), mask);
        };
        queries % rowsAtOnce ? kb.ifThen(kb.less(target, kb.constant(queries)), store) : store();
      }
    });
  }

  const int64_t rowsAtOnce;
  Type element, type;
  int64_t keysPadded;
  unsigned lanes;
  Value scores;
};

struct AttentionModel : KernelInterface::ExternalModel<AttentionModel, device::AttentionOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    auto attention = cast<device::AttentionOp>(op);
    AttentionShape shape(kb, attention.getScale().convertToDouble(), attention.getMask() != nullptr);
    if (kb.target.shuffle && shape.y.getNumElements() * shape.keys * shape.depth > 0) {
      emitSharedAttention(shape);
    } else {
      AttentionEmitter(shape).emit();
    }
    return success();
  }
};

} // namespace

void attachAttentionModels(MLIRContext *context) { device::AttentionOp::attachInterface<AttentionModel>(*context); }

} // namespace tessera::kernels

//===- Attention.cpp - Scaled dot-product attention kernels ---------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each tile computes a few rows of q under one k and v. The kernel transposes k into scratch; then, for every four or
// eight rows, it computes scores, softmax and the contraction with v, keeping scores and powers in scratch.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/AttentionShape.h"
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"
#include "device_dialect/IR/DeviceComputeOps.h"
#include "top_dialect/IR/MaskedRows.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::kernels {

AttentionShape::Matrices::Matrices(device::AttentionOp op, unsigned index) {
  if (op.getViews()) {
    device::AttentionOp::View view = op.view(index);
    sizes = Shape(view.sizes).dims(), strides = Shape(view.strides).dims(), offset = view.offset;
    return;
  }
  auto type = cast<RankedTensorType>(index < 3 ? op.getOperand(index).getType() : op.getY().getType());
  sizes = op.viewSizes(index), strides = Strides(type).dims, offset = 0;
}

AttentionShape::AttentionShape(KernelBuilder &kb)
    : kb(kb), q(cast<device::AttentionOp>(kb.op()), 0), k(cast<device::AttentionOp>(kb.op()), 1),
      v(cast<device::AttentionOp>(kb.op()), 2), y(cast<device::AttentionOp>(kb.op()), 3), queries(q.sizes.end()[-2]),
      keys(k.sizes.end()[-2]), depth(q.sizes.back().value()), features(v.sizes.back().value()) {
  auto op = cast<device::AttentionOp>(kb.op());
  scale = op.getScale().convertToDouble(), isMasked = op.getMask() != nullptr;
  zeroesMaskedRows = top::zeroesMaskedRows(op);
  if (op.isOfIntegers()) {
    levels = *op.getLevels(), valueScale = op.getValueScale()->convertToDouble();
  }
}

Type AttentionShape::sumType(int64_t count, int64_t reach) const {
  constexpr int64_t kExact = int64_t(1) << 24;
  return count * reach * 128 <= kExact ? Type(kb.b.getF32Type()) : kb.b.getI32Type();
}

Value AttentionShape::convert(Value value, Type type) const {
  Type from = getElementTypeOrSelf(value.getType()), to = type;
  if (auto vector = dyn_cast<VectorType>(value.getType())) {
    to = vector.clone(type);
  }
  return from == type           ? value
         : isa<FloatType>(from) ? Value(arith::FPToSIOp::create(kb.b, to, value))
         : isa<FloatType>(type) ? Value(arith::SIToFPOp::create(kb.b, to, value))
                                : Value(arith::ExtSIOp::create(kb.b, to, value));
}

Value AttentionShape::rounded(Value power) const {
  Value steps = kb.floatConstant(power.getType(), double(levels));
  return math::RoundEvenOp::create(kb.b, arith::MulFOp::create(kb.b, power, steps));
}

/// Returns |value|, but |other| in elements where |value| equals |special|.
static Value replaced(KernelBuilder &kb, Value value, double special, double other) {
  auto number = [&](double of) { return kb.floatConstant(value.getType(), of); };
  Value isSpecial = arith::CmpFOp::create(kb.b, arith::CmpFPredicate::OEQ, value, number(special));
  return arith::SelectOp::create(kb.b, isSpecial, number(other), value);
}

Value AttentionShape::referenceOf(Value best) const {
  if (!zeroesMaskedRows) {
    return best;
  }
  // If every score is -inf, subtracting a finite number leaves -inf, whose exponential is 0.
  const auto &semantics = cast<FloatType>(getElementTypeOrSelf(best.getType())).getFloatSemantics();
  double lowest = APFloat::getLargest(semantics, /*Negative=*/true).convertToDouble();
  return replaced(kb, best, -std::numeric_limits<double>::infinity(), lowest);
}

Value AttentionShape::factorOf(Value total) const {
  // Without keys, sums over v are 0, and so is their total.
  Value divisor = zeroesMaskedRows || minOf(keys) < 1 ? replaced(kb, total, 0.0, 1.0) : total;
  return arith::DivFOp::create(kb.b, kb.floatConstant(total.getType(), valueScale), divisor);
}

Value AttentionShape::stored(Value value) const {
  return applyEpilogue(kb, cast<device::EpilogueInterface>(*kb.op()), value);
}

bool AttentionShape::Matrices::begin(int64_t elements) const {
  bool is = offset % elements == 0;
  for (size_t d = 0; d + 1 < sizes.size(); ++d) {
    is &= sizes[d].is(1) || isMultipleOf(strides[d], elements);
  }
  return is;
}

Value AttentionShape::matrixBase(const Matrices &matrices, ArrayRef<Value> at) const {
  Value base = kb.constant(matrices.offset);
  for (auto [d, index] : llvm::enumerate(at)) {
    if (!matrices.sizes[d].is(1)) {
      base = kb.add(base, kb.mul(index, matrices.strides[d]));
    }
  }
  return base;
}

Value AttentionShape::maskOffset(ArrayRef<Value> at, Value row, Value key) const {
  RankedTensorType type = kb.operandType(3);
  SmallVector<Value> indices(at);
  indices.append({row, key});
  int64_t missing = int64_t(indices.size()) - type.getRank();
  SmallVector<Value> own;
  for (int64_t d = 0; d < type.getRank(); ++d) {
    own.push_back(Shape(type)[d].is(1) ? kb.constant(0) : indices[d + missing]);
  }
  return Strides(type).offset(kb, own);
}

Value AttentionShape::loadMask(ArrayRef<Value> at, Value row, Value key, unsigned lanes, Value active) const {
  RankedTensorType type = kb.operandType(3);
  int64_t stride = type.getRank() && !Shape(type).back().is(1) ? 1 : 0;
  return loadLanes(kb, type.getElementType(), kb.operand(3), stride, VectorStep{{}, active, lanes},
                   maskOffset(at, row, key));
}

namespace {

/// Emits attention for every element type, one launch tile for some rows of q.
class AttentionEmitter : AttentionShape {
public:
  explicit AttentionEmitter(const AttentionShape &shape)
      : AttentionShape(shape), rowsAtOnce(kb.exact && kb.target.hasMasks() ? 8 : 4),
        element(isOfIntegers() ? kb.b.getF32Type() : kb.resultType().getElementType()), type(registerType(element)),
        scoreSum(isOfIntegers() ? scoreSumType() : type), valueSum(isOfIntegers() ? valueSumType() : type) {
    lanes = kb.exact ? kExactLanes : 2 * kb.target.lanes(type.getIntOrFloatBitWidth());
    keysPadded = ceilDiv(keys, lanes) * lanes;
  }

  void emit() {
    SmallVector<Dim> space(batchDims());
    // With few batches the rows are split too; each split has to transpose k again.
    int64_t splits = std::max<int64_t>(1, 16 / std::max<int64_t>(1, likelyOf(multiply(space))));
    int64_t likely = std::max<int64_t>(1, likelyOf(queries));
    int64_t parts = std::min<int64_t>(splits, llvm::divideCeil(likely, 4 * rowsAtOnce));
    int64_t rows = llvm::alignTo(llvm::divideCeil(likely, parts), rowsAtOnce);
    space.push_back(ceilDiv(queries, rows));
    kb.setScratchBytes((depth + rowsAtOnce) * maxOf(keysPadded) * (type.getIntOrFloatBitWidth() / 8));
    scores = kb.element(type, kb.scratch(), kb.index(depth * keysPadded));
    kb.forTiles(multiply(space), [&](Value tile) {
      SmallVector<Value> at = delinearize(kb, tile, space);
      Value first = kb.mul(at.pop_back_val(), rows);
      transposeKeys(matrixBase(k, at));
      kb.forLoop(first, kb.min(kb.add(first, rows), kb.index(queries)), rowsAtOnce,
                 [&](Value row) { emitRows(at, row); });
    });
  }

private:
  VectorType vectorType() { return vectorOf(type); }
  VectorType vectorOf(Type of) { return VectorType::get({int64_t(lanes)}, of); }
  /// Converts a loaded operand element to |of|, the type of the sums, in integer attention; floats pass through.
  Value factor(Value loaded, Type of) { return isOfIntegers() ? convert(loaded, of) : loaded; }
  /// Converts a sum to |type|, in which scores and results are computed.
  Value single(Value sum) { return isOfIntegers() ? convert(sum, type) : sum; }
  Type elementOf(unsigned operand) { return kb.operandType(operand).getElementType(); }

  /// scratch[e][t] = k[t][e]; columns up to keysPadded are zero.
  void transposeKeys(Value base) {
    kb.forLoop(0, depth, 1, [&](Value e) {
      Value to = kb.mul(e, keysPadded);
      overRow(kb, keys, lanes, [&](Value t, Value mask) {
        Value from = kb.add(base, kb.add(kb.mul(t, k.rowStride()), e));
        Value column = loadLanes(kb, elementOf(1), kb.operand(1), k.rowStride(), VectorStep{{}, mask, lanes}, from);
        kb.store(factor(column, scoreSum), kb.scratch(), kb.add(to, t));
      });
    });
  }

  /// Returns the index of row |row| + |r|; rows beyond the last one repeat the last row and are not stored.
  Value clampedRow(Value row, int64_t r) { return kb.min(kb.add(row, r), kb.index(queries - 1)); }

  void emitRows(ArrayRef<Value> at, Value row) {
    Value qBase = matrixBase(q, at);
    kb.forLoop(0, keysPadded, lanes, [&](Value t) {
      SmallVector<Value> sums(rowsAtOnce, kb.zero(vectorOf(scoreSum)));
      sums = kb.forLoop(kb.constant(0), kb.constant(depth), 1, sums, [&](Value e, ValueRange old) {
        Value keysVector = kb.load(vectorOf(scoreSum), kb.scratch(), kb.add(kb.mul(e, keysPadded), t));
        SmallVector<Value> next;
        for (int64_t r = 0; r < rowsAtOnce; ++r) {
          Value offset = kb.add(qBase, kb.add(kb.mul(clampedRow(row, r), q.rowStride()), e));
          Value query = factor(kb.loadElements(elementOf(0), 0, kb.operand(0), offset), scoreSum);
          next.push_back(addProduct(kb.splat(query, lanes), keysVector, old[r]));
        }
        return next;
      });
      Value mask = isMultipleOf(keys, lanes) ? Value() : kb.maskBelow(lanes, kb.sub(kb.index(keys), t));
      Value scales = kb.floatConstant(vectorType(), scale);
      for (int64_t r = 0; r < rowsAtOnce; ++r) {
        Value score = arith::MulFOp::create(kb.b, single(sums[r]), scales);
        if (isMasked) {
          score = arith::AddFOp::create(kb.b, score, loadMask(at, clampedRow(row, r), t, lanes, mask));
        }
        kb.store(score, scores, kb.add(t, r * keysPadded));
      }
    });
    SmallVector<Value> factors;
    for (int64_t r = 0; r < rowsAtOnce; ++r) {
      factors.push_back(softmaxRow(kb.index(r * keysPadded)));
    }
    multiplyValues(at, row, factors);
  }

  /// Replaces a row of scores by e^(score - maximum); returns factorOf() their sum.
  Value softmaxRow(Value base) {
    Value lowest = lowestValue(kb, element, vectorType(), false), zeros = kb.zero(vectorType());
    auto load = [&](Value i) { return kb.load(vectorType(), scores, kb.add(base, i)); };
    auto maximum = [&](Value a, Value b) { return emitExtremum(kb, type, a, b, false); };
    Value best = overRow(kb, keys, lanes, lowest, [&](Value i, Value mask, ValueRange old) {
      return SmallVector<Value>{maximum(old[0], keepActive(kb, mask, load(i), lowest))};
    })[0];
    best = kb.splat(referenceOf(reduceLanes(kb, best, maximum)), lanes);
    Value total = overRow(kb, keys, lanes, zeros, [&](Value i, Value mask, ValueRange old) {
      Value power = emitExpOfNegative(kb, arith::SubFOp::create(kb.b, load(i), best));
      power = keepActive(kb, mask, isOfIntegers() ? rounded(power) : power, zeros);
      kb.store(factor(power, valueSum), scores, kb.add(base, i));
      return SmallVector<Value>{arith::AddFOp::create(kb.b, old[0], power)};
    })[0];
    total = reduceLanes(kb, total, [&](Value a, Value b) { return arith::AddFOp::create(kb.b, a, b); });
    return factorOf(total);
  }

  /// Returns x * y + sum. Integer attention multiplies in f32 or i32, whichever is exact.
  Value addProduct(Value x, Value y, Value sum) {
    return isOfIntegers() ? emitMultiplyAdd(kb, x, y, sum) : emitFma(kb, x, y, sum);
  }

  void multiplyValues(ArrayRef<Value> at, Value row, ArrayRef<Value> factors) {
    Value vBase = matrixBase(v, at), yBase = matrixBase(y, at);
    overRow(kb, features, lanes, [&](Value f, Value mask) {
      SmallVector<Value> sums(rowsAtOnce, kb.zero(vectorOf(valueSum)));
      sums = kb.forLoop(kb.constant(0), kb.index(keys), 1, sums, [&](Value t, ValueRange old) {
        Value values = kb.loadElements(elementOf(2), lanes, kb.operand(2),
                                       kb.add(vBase, kb.add(kb.mul(t, v.rowStride()), f)), mask);
        values = factor(values, valueSum);
        SmallVector<Value> next;
        for (int64_t r = 0; r < rowsAtOnce; ++r) {
          Value power = kb.splat(kb.load(valueSum, scores, kb.add(t, r * keysPadded)), lanes);
          next.push_back(addProduct(power, values, old[r]));
        }
        return next;
      });
      for (int64_t r = 0; r < rowsAtOnce; ++r) {
        Value target = kb.add(row, r);
        auto store = [&] {
          Value value = arith::MulFOp::create(kb.b, single(sums[r]), kb.splat(factors[r], lanes));
          kb.storeElements(resultElement(), stored(value), kb.result(),
                           kb.add(yBase, kb.add(kb.mul(target, y.rowStride()), f)), mask);
        };
        isMultipleOf(queries, rowsAtOnce) ? store() : kb.ifThen(kb.less(target, kb.index(queries)), store);
      }
    });
  }

  const int64_t rowsAtOnce;
  Type element, type;
  Type scoreSum, valueSum; ///< accumulator types of q k^T and of the contraction with v
  Dim keysPadded = 0;      ///< keys, rounded up to whole vectors
  unsigned lanes;
  Value scores;
};

/// Returns true if each size of |operand|, aligned at the right, is known to be 1 or the size in |sizes|.
bool broadcasts(ArrayRef<Dim> operand, ArrayRef<Dim> sizes) {
  return operand.size() <= sizes.size() &&
         llvm::all_of(llvm::zip_equal(operand, sizes.take_back(operand.size())), [](auto pair) {
           return std::get<0>(pair).is(1) || sameSize(std::get<0>(pair), std::get<1>(pair));
         });
}

struct AttentionModel : KernelInterface::ExternalModel<AttentionModel, device::AttentionOp> {
  bool acceptsOpenSizes(Operation *operation) const {
    auto op = cast<device::AttentionOp>(operation);
    SmallVector<Dim> q = op.viewSizes(0), k = op.viewSizes(1), v = op.viewSizes(2), y = op.viewSizes(3);
    SmallVector<Dim> scores(q), result(q);
    scores.back() = k.end()[-2], result.back() = v.back();
    return q.back().isKnown() && v.back().isKnown() && sameSize(q.back(), k.back()) &&
           sameSize(k.end()[-2], v.end()[-2]) && broadcasts(ArrayRef(k).drop_back(2), ArrayRef(q).drop_back(2)) &&
           broadcasts(ArrayRef(v).drop_back(2), ArrayRef(q).drop_back(2)) &&
           llvm::all_of(llvm::zip_equal(y, result),
                        [](auto pair) { return sameSize(std::get<0>(pair), std::get<1>(pair)); }) &&
           (!op.getMask() || broadcasts(Shape(op.getMask()).dims(), scores));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    AttentionShape shape(kb);
    bool isEmpty = countElements(kb.resultType()).is(0) || shape.keys.is(0) || shape.depth == 0;
    if (kb.target.shuffle && !isEmpty) {
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

//===- Reduce.cpp - Reduction kernels -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Lanes are neighbouring results if these are contiguous in x (channels of a block, or an unreduced innermost dim),
// otherwise neighbouring terms of one result, otherwise there is one lane.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

class ReduceEmitter {
public:
  ReduceEmitter(KernelBuilder &kb, device::ReduceOp op)
      : kb(kb), op(op), x(kb.operandType(0)), y(kb.resultType()), epilogue(kb, cast<device::EpilogueInterface>(*op)),
        accumulator(registerType(op.getAccumulatorType())), accumulatorElement(op.getAccumulatorType()) {
    reduced.assign(x.getRank(), false);
    for (int64_t axis : op.getAxes()) {
      reduced[axis] = true;
    }
  }

  void emit() {
    int64_t last = x.getRank() - 1;
    bool ordered = op.getKind() == device::ReduceKind::sum || op.getKind() == device::ReduceKind::prod;
    if (kb.exact && ordered && isa<FloatType>(accumulator) && last >= 0 && reduced[last]) {
      bool byChannel = device::isBlocked(x) && !reduced[1];
      if (byChannel && kb.target.shuffle && accumulator.isF32() && !countElements(y).is(0)) {
        return inOrderByThreads();
      }
      return device::isBlocked(x) || device::isBlocked(y) ? inOrder(byChannel) : alongTerms();
    }
    if (device::isBlocked(x) && !reduced[1]) {
      return acrossResults(1, channelLanes(kb, x));
    }
    if (!device::isBlocked(x) && !device::isBlocked(y) && last >= 0) {
      if (reduced[last]) {
        return alongTerms();
      }
      if (maxOf(Shape(y)[last]) > 1) {
        return acrossResults(last, 2 * kb.target.lanes(32));
      }
    }
    scalar();
  }

private:
  Type valueType(unsigned lanes) { return lanes ? Type(VectorType::get({int64_t(lanes)}, accumulator)) : accumulator; }

  Value neutral(Type type) {
    switch (op.getKind()) {
    case device::ReduceKind::sum:
      return kb.zero(type);
    case device::ReduceKind::prod:
      return one(type);
    case device::ReduceKind::max:
    case device::ReduceKind::min:
      return lowestValue(kb, orderType(), type, op.getKind() == device::ReduceKind::min);
    }
    llvm_unreachable("covered switch");
  }

  Value one(Type type) {
    if (isa<FloatType>(accumulator)) {
      return kb.floatConstant(type, 1.0);
    }
    TypedAttr attribute = IntegerAttr::get(accumulator, 1);
    if (auto vector = dyn_cast<VectorType>(type)) {
      attribute = DenseElementsAttr::get(vector, Attribute(attribute));
    }
    return arith::ConstantOp::create(kb.b, attribute);
  }

  /// Returns the type whose sign decides how integers compare: x's, unless a prologue changes it.
  Type orderType() { return op.getPrologue().empty() ? x.getElementType() : accumulatorElement; }

  Value combine(Value a, Value b) {
    bool isFloat = isa<FloatType>(accumulator);
    switch (op.getKind()) {
    case device::ReduceKind::sum:
      return isFloat ? Value(arith::AddFOp::create(kb.b, a, b)) : Value(arith::AddIOp::create(kb.b, a, b));
    case device::ReduceKind::prod:
      return isFloat ? Value(arith::MulFOp::create(kb.b, a, b)) : Value(arith::MulIOp::create(kb.b, a, b));
    case device::ReduceKind::max:
    case device::ReduceKind::min:
      return emitExtremum(kb, orderType(), a, b, op.getKind() == device::ReduceKind::min, kb.exact);
    }
    llvm_unreachable("covered switch");
  }

  Value term(Value loaded) { return emitScalarRegion(kb, op.getPrologue(), loaded); }

  /// Emits loops over the reduced dims from |d| on and sets their entries in |indices|, which covers all dims.
  Value overTerms(int64_t d, SmallVector<Value> &indices, Value sum, function_ref<Value(Value)> body) {
    while (d < x.getRank() && !reduced[d]) {
      ++d;
    }
    if (d == x.getRank()) {
      return body(sum);
    }
    return kb.forLoop(kb.constant(0), kb.index(Shape(x)[d]), 1, sum, [&](Value i, ValueRange old) {
      indices[d] = i;
      return SmallVector<Value>{overTerms(d + 1, indices, old[0], body)};
    })[0];
  }

  SmallVector<Value> resultIndices(Value item) { return delinearize(kb, item, Shape(y).dims()); }

  /// Returns the result indices of |item| in a space of |sizes|, which counts dim |laneDim| in units of |lanes|.
  SmallVector<Value> resultIndices(Value item, ArrayRef<Dim> sizes, int64_t laneDim, int64_t lanes) {
    SmallVector<Value> indices = delinearize(kb, item, sizes);
    if (laneDim >= 0) {
      indices[laneDim] = kb.mul(indices[laneDim], lanes);
    }
    return indices;
  }

  /// Returns the number of terms of one result.
  Dim terms() {
    Dim product = 1;
    for (int64_t axis : op.getAxes()) {
      product *= Shape(x)[axis];
    }
    return product;
  }

  void acrossResults(int64_t laneDim, int64_t lanes) {
    SmallVector<Dim> sizes = Shape(y).dims();
    Dim extent = sizes[laneDim], written = device::isBlocked(y) ? paddedChannels(y) : extent;
    bool isPartial = !isMultipleOf(written, lanes) || !sameSize(written, extent);
    sizes[laneDim] = ceilDiv(written, lanes);
    forItems(kb, multiply(sizes), terms() * lanes, 32768, [&](Value item) {
      SmallVector<Value> at = resultIndices(item, sizes, laneDim, lanes);
      Value mask = isPartial ? kb.maskBelow(lanes, kb.sub(kb.index(extent), at[laneDim])) : Value();
      SmallVector<Value> indices = at;
      // Lanes beyond the extent are padding of x's block, or masked.
      Value loadMask = device::isBlocked(x) ? Value() : mask;
      Value sum = overTerms(0, indices, neutral(valueType(lanes)), [&](Value old) {
        Value loaded =
            kb.loadElements(x.getElementType(), lanes, kb.operand(0), Strides(x).offset(kb, indices), loadMask);
        return combine(old, term(loaded));
      });
      epilogue.store(sum, at, laneDim, mask, /*padding=*/device::isBlocked(y));
    });
  }

  /// Reduces along the innermost dims, whose joint extent is one contiguous row.
  void alongTerms() {
    Dim row = 1;
    int64_t first = x.getRank();
    while (first > 0 && reduced[first - 1]) {
      row *= Shape(x)[--first];
    }
    unsigned lanes = kb.exact ? kExactLanes : 4 * kb.target.lanes(32);
    forRows(kb, countElements(y), terms(), 32768, accumulator, lanes, [&](Value item) {
      SmallVector<Value> at = resultIndices(item);
      SmallVector<Value> indices = at;
      Value start = neutral(kb.sharedLane() ? accumulator : valueType(lanes));
      // Loop over reduced dims before |first|; iterate over the row in vectors.
      std::vector<bool> outer(reduced.begin(), reduced.begin() + first);
      std::swap(reduced, outer);
      reduced.resize(x.getRank(), false);
      Value sum = overTerms(0, indices, start, [&](Value old) {
        Value base = Strides(x).offset(kb, indices);
        return overRow(kb, row, lanes, old, [&](Value i, Value mask, ValueRange sums) {
          Value value = term(kb.loadElements(x.getElementType(), lanes, kb.operand(0), kb.add(base, i), mask));
          return SmallVector<Value>{combine(sums[0], keepActive(kb, mask, value, start))};
        })[0];
      });
      std::swap(reduced, outer);
      Value total = reduceLanes(kb, sum, [&](Value a, Value b) { return combine(a, b); });
      kb.inFirstThread([&] { epilogue.store(total, at, -1, Value()); });
    });
  }

  /// Adds in the order of alongTerms() if the row is not contiguous: computes 16 partial sums one after the other.
  /// Lanes are the channels of a block, if x is blocked.
  void inOrder(bool byChannel) {
    int64_t lanes = byChannel ? Strides(x).block : 0, laneDim = byChannel ? 1 : -1, first = x.getRank();
    while (first > 0 && reduced[first - 1]) {
      --first;
    }
    SmallVector<Dim> sizes = Shape(y).dims(), run = Shape(x).dropFront(first).dims();
    Dim extent = byChannel ? sizes[1] : 0;
    if (byChannel) {
      sizes[1] = ceilDiv(extent, lanes);
    }
    std::vector<bool> outer(reduced.begin(), reduced.begin() + first);
    outer.resize(x.getRank(), false);
    forItems(kb, multiply(sizes), terms() * std::max<int64_t>(lanes, 1), 32768, [&](Value item) {
      SmallVector<Value> at = resultIndices(item, sizes, laneDim, std::max<int64_t>(lanes, 1));
      SmallVector<Value> partial;
      for (int64_t p = 0; p < kExactLanes; ++p) {
        SmallVector<Value> indices = at;
        std::swap(reduced, outer);
        partial.push_back(overTerms(0, indices, neutral(valueType(lanes)), [&](Value old) {
          return kb.forLoop(kb.constant(p), kb.index(multiply(run)), kExactLanes, old, [&](Value i, ValueRange sums) {
            llvm::copy(delinearize(kb, i, run), indices.begin() + first);
            Value loaded = kb.loadElements(x.getElementType(), lanes, kb.operand(0), Strides(x).offset(kb, indices));
            return SmallVector<Value>{combine(sums[0], term(loaded))};
          })[0];
        }));
        std::swap(reduced, outer);
      }
      for (unsigned half = kExactLanes / 2; half > 0; half /= 2) {
        for (unsigned i = 0; i < half; ++i) {
          partial[i] = combine(partial[i], partial[i + half]);
        }
      }
      Value mask = byChannel && !isMultipleOf(extent, lanes)
                       ? kb.maskBelow(lanes, kb.sub(kb.index(extent), at[laneDim]))
                       : Value();
      epilogue.store(partial[0], at, laneDim, mask, /*padding=*/device::isBlocked(y));
      if (!byChannel) {
        storePadding(at);
      }
    });
  }

  /// Computes inOrder() over the channels of a block on shared threads: each of kExactLanes threads holds one partial
  /// sum of some channels.
  void inOrderByThreads() {
    const int64_t run = channelLanes(kb, x);
    int64_t first = x.getRank();
    while (first > 0 && reduced[first - 1]) {
      --first;
    }
    SmallVector<Dim> sizes = Shape(y).dims(), row = Shape(x).dropFront(first).dims();
    sizes[1] = ceilDiv(sizes[1], run);
    std::vector<bool> outer(reduced.begin(), reduced.begin() + first);
    outer.resize(x.getRank(), false);
    unsigned lanes = kExactLanes;
    forRows(kb, multiply(sizes), 1, 1, accumulator, lanes, [&](Value item) {
      SmallVector<Value> at = resultIndices(item, sizes, 1, run), indices = at;
      Value start = neutral(valueType(run));
      std::swap(reduced, outer);
      Value sum = overTerms(0, indices, start, [&](Value old) {
        return overRow(kb, multiply(row), lanes, old, [&](Value i, Value mask, ValueRange sums) {
          Value position = kb.add(i, kb.sharedLane()), last = kb.index(multiply(row) - 1);
          llvm::copy(delinearize(kb, mask ? kb.min(position, last) : position, row), indices.begin() + first);
          Value value = term(kb.loadRun(x.getElementType(), run, kb.operand(0), Strides(x).offset(kb, indices)));
          return SmallVector<Value>{combine(sums[0], keepActive(kb, mask, value, start))};
        })[0];
      });
      std::swap(reduced, outer);
      SmallVector<Value> totals;
      for (int64_t i = 0; i < run; ++i) {
        Value own = vector::ExtractOp::create(kb.b, sum, i);
        totals.push_back(reduceLanes(kb, own, [&](Value a, Value b) { return combine(a, b); }));
      }
      kb.inFirstThread([&] {
        for (auto [i, total] : llvm::enumerate(totals)) {
          SmallVector<Value> place = at;
          place[1] = kb.add(at[1], int64_t(i));
          kb.ifThen(kb.less(place[1], kb.constant(Shape(y)[1].value())), [&, sum = total] {
            epilogue.store(sum, place, -1, Value());
            storePadding(place);
          });
        }
      });
    });
  }

  void scalar() {
    forItems(kb, countElements(y), terms(), 8192, [&](Value item) {
      SmallVector<Value> at = resultIndices(item);
      SmallVector<Value> indices = at;
      Value sum = overTerms(0, indices, neutral(accumulator), [&](Value old) {
        return combine(old,
                       term(kb.loadElements(x.getElementType(), 0, kb.operand(0), Strides(x).offset(kb, indices))));
      });
      epilogue.store(sum, at, -1, Value());
      storePadding(at);
    });
  }

  /// Zeroes the padding lanes of a blocked result, together with its last channel.
  void storePadding(ArrayRef<Value> at) {
    if (!device::isBlocked(y) || Shape(y)[1].value() % Strides(y).block == 0) {
      return;
    }
    int64_t channels = Shape(y)[1].value();
    Value isLast = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, at[1], kb.constant(channels - 1));
    kb.ifThen(isLast, [&] {
      for (int64_t c = channels; c % Strides(y).block; ++c) {
        SmallVector<Value> padding(at);
        padding[1] = kb.constant(c);
        kb.storeElements(y.getElementType(), kb.zero(registerType(y.getElementType())), kb.result(),
                         Strides(y).offset(kb, padding));
      }
    });
  }

  KernelBuilder &kb;
  device::ReduceOp op;
  RankedTensorType x, y;
  EpilogueStore epilogue;
  Type accumulator, accumulatorElement;
  std::vector<bool> reduced;
};

struct ReduceModel : KernelInterface::ExternalModel<ReduceModel, device::ReduceOp> {
  bool acceptsOpenSizes(Operation *op) const {
    auto reduce = cast<device::ReduceOp>(op);
    Shape x(op->getOperand(0)), y(op->getResult(0));
    auto isSame = [&](int64_t d) {
      return llvm::is_contained(reduce.getAxes(), d) ? y[d].is(1) : sameSize(x[d], y[d]);
    };
    return x.rank() == y.rank() && llvm::all_of(llvm::seq<int64_t>(0, x.rank()), isSame) &&
           broadcastsProvably(cast<device::EpilogueInterface>(op));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    ReduceEmitter(kb, cast<device::ReduceOp>(op)).emit();
    return success();
  }
};

} // namespace

void attachReduceModels(MLIRContext *context) { device::ReduceOp::attachInterface<ReduceModel>(*context); }

} // namespace tessera::kernels

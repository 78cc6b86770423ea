//===- Gather.cpp - Kernels that read by index ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Indexing.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {

Value loadIndex(KernelBuilder &kb, unsigned operand, Value offset, Dim size) {
  Type type = kb.operandType(operand).getElementType();
  Value index = kb.loadElements(type, 0, kb.operand(operand), offset);
  if (!index.getType().isInteger(64)) {
    index = arith::ExtSIOp::create(kb.b, kb.b.getI64Type(), index);
  }
  Value wrapped = arith::SelectOp::create(kb.b, kb.less(index, kb.constant(0)), kb.add(index, size), index);
  return kb.max(kb.min(wrapped, kb.index(size - 1)), kb.constant(0));
}

Type storageElement(KernelBuilder &kb, Type elementType) {
  return kb.b.getIntegerType(8 * device::elementBytes(elementType));
}

void copyRow(KernelBuilder &kb, Type elementType, Dim size, Value from, Value fromOffset, Value to, Value toOffset) {
  Type storage = storageElement(kb, elementType);
  if (maxOf(size) < 4) {
    return kb.forLoop(
        0, size, 1, [&](Value i) { kb.store(kb.load(storage, from, kb.add(fromOffset, i)), to, kb.add(toOffset, i)); });
  }
  unsigned lanes = std::min<int64_t>(kb.target.lanes(storage.getIntOrFloatBitWidth()), llvm::PowerOf2Ceil(maxOf(size)));
  overRow(kb, size, lanes, [&](Value i, Value mask) {
    kb.storeElements(storage, kb.loadElements(storage, lanes, from, kb.add(fromOffset, i), mask), to,
                     kb.add(toOffset, i), mask);
  });
}

/// Copies a row as copyRow does, or stores zeros if |choices|, the number of rows to choose from, is 0.
static void copyChosenRow(KernelBuilder &kb, Type element, Dim size, Dim choices, Value fromOffset, Value toOffset) {
  auto copy = [&] { copyRow(kb, element, size, kb.operand(0), fromOffset, kb.result(), toOffset); };
  if (minOf(choices) > 0) {
    return copy();
  }
  kb.ifThen(kb.less(kb.constant(0), kb.index(choices)), copy);
  kb.ifThen(kb.less(kb.index(choices), kb.constant(1)), [&] {
    Type storage = storageElement(kb, element);
    kb.forLoop(0, size, 1, [&](Value i) { kb.store(kb.zero(storage), kb.result(), kb.add(toOffset, i)); });
  });
}

/// Copies |count| rows of |size| elements from operand 0, each from the offset that |from| returns for its number, out
/// of |choices| rows. Where a tile is a thread, it copies at most 16 bytes: threads of one row then access neighbouring
/// addresses.
static void copyRows(KernelBuilder &kb, Dim count, Dim size, Dim choices, function_ref<Value(Value row)> from) {
  constexpr int64_t kThreadBytes = 16;
  Type element = kb.resultType().getElementType();
  Dim run = size;
  if (kb.target.tileIsThread && size.isKnown() && !size.is(0)) {
    run = std::gcd(size.value(), std::max<int64_t>(1, kThreadBytes / device::elementBytes(element)));
  }
  int64_t runs = size.isKnown() && !size.is(0) ? size.value() / run.value() : 1;
  forItems(kb, count * runs, run, 16384, [&](Value item) {
    Value row = runs == 1 ? item : kb.div(item, runs), offset = from(row);
    offset = runs == 1 ? offset : kb.add(offset, kb.mul(kb.rem(item, runs), run));
    copyChosenRow(kb, element, run, choices, offset, kb.mul(item, run));
  });
}

Value tupleOffset(KernelBuilder &kb, unsigned operand, Value start, int64_t count, ArrayRef<Dim> sizes,
                  ArrayRef<Dim> strides) {
  Value offset = kb.constant(0);
  for (int64_t i = 0; i < count; ++i) {
    Value index = loadIndex(kb, operand, kb.add(start, i), sizes[i]);
    offset = kb.add(offset, kb.mul(index, strides[i]));
  }
  return offset;
}

namespace {

struct GatherModel : KernelInterface::ExternalModel<GatherModel, device::GatherOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    auto [outer, size, inner] = splitAt(op);
    Dim indices = countElements(kb.operandType(1));
    copyRows(kb, outer * indices, inner, size, [&, outer = outer, size = size, inner = inner](Value item) {
      SmallVector<Value> at = delinearize(kb, item, {outer, indices});
      return kb.mul(kb.add(kb.mul(at[0], size), loadIndex(kb, 1, at[1], size)), inner);
    });
    return success();
  }

  bool acceptsOpenSizes(Operation *op) const {
    auto [outer, size, inner] = splitAt(op);
    return sameSize(countElements(op->getResult(0)), outer * countElements(op->getOperand(1)) * inner);
  }

  /// Returns the elements of the operand before, along and behind the axis.
  static std::array<Dim, 3> splitAt(Operation *op) {
    int64_t axis = cast<device::GatherOp>(op).getAxis();
    SmallVector<Dim> shape = Shape(op->getOperand(0)).dims();
    return {multiply(ArrayRef(shape).take_front(axis)), shape[axis], multiply(ArrayRef(shape).drop_front(axis + 1))};
  }
};

struct GatherElementsModel : KernelInterface::ExternalModel<GatherElementsModel, device::GatherElementsOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    int64_t axis = cast<device::GatherElementsOp>(op).getAxis(), last = kb.resultType().getRank() - 1;
    RankedTensorType x = kb.operandType(0), y = kb.resultType();
    Type storage = storageElement(kb, y.getElementType());
    // The innermost dim is cut into runs, so that only its index changes from element to element.
    Dim width = Shape(y)[last];
    int64_t run = std::min(maxOf(width), kMostInRun);
    SmallVector<Dim> space = Shape(y).dims();
    space[last] = ceilDiv(width, std::max<int64_t>(run, 1));
    Strides strides(x);
    forItems(kb, multiply(space), run, 4096, [&](Value item) {
      SmallVector<Value> at = delinearize(kb, item, space);
      Value first = kb.mul(at[last], run), to = kb.constant(0);
      for (auto [index, size] : llvm::zip_equal(ArrayRef(at).drop_back(), Shape(y).dropBack().dims())) {
        to = kb.add(kb.mul(to, size), index);
      }
      to = kb.mul(to, width);
      at[axis] = kb.constant(0), at[last] = kb.constant(0);
      Value from = strides.offset(kb, at);
      Value end = kb.min(kb.add(first, run), kb.index(width));
      if (axis == last && kb.target.hasMasks() && storage.getIntOrFloatBitWidth() >= 32) {
        return gatherRun(kb, storage, from, to, first, end);
      }
      kb.forLoop(first, end, 1, [&](Value i) {
        Value offset = kb.mul(loadIndex(kb, 1, kb.add(to, i), Shape(x)[axis]), strides.dims[axis]);
        offset = axis == last ? offset : kb.add(offset, i);
        kb.store(kb.load(storage, kb.operand(0), kb.add(from, offset)), kb.result(), kb.add(to, i));
      });
    });
    return success();
  }

  bool acceptsOpenSizes(Operation *op) const { return sameSizes(op->getOperand(1), op->getResult(0)); }

private:
  static constexpr int64_t kLanes = 16;

  /// Emits elements [|first|, |end|) of a row of the result, which begins at |to|, from the row of x at |from|.
  static void gatherRun(KernelBuilder &kb, Type storage, Value from, Value to, Value first, Value end) {
    ImplicitLocOpBuilder &b = kb.b;
    bool isWhole = isMultipleOf(Shape(kb.resultType()).back(), kLanes);
    auto wide = VectorType::get({kLanes}, b.getI64Type());
    Value size = kb.splat(kb.index(Shape(kb.operandType(0)).back()), kLanes), zero = kb.zero(wide);
    Value last = arith::SubIOp::create(b, size, kb.splat(kb.constant(1), kLanes));
    kb.forLoop(first, end, kLanes, [&](Value i) {
      Value mask = isWhole ? Value() : kb.maskBelow(kLanes, kb.sub(end, i));
      Value index = kb.loadElements(kb.operandType(1).getElementType(), kLanes, kb.operand(1), kb.add(to, i), mask);
      index = index.getType() == wide ? index : Value(arith::ExtSIOp::create(b, wide, index));
      Value isNegative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, index, zero);
      index = arith::SelectOp::create(b, isNegative, arith::AddIOp::create(b, index, size), index);
      index = arith::MaxSIOp::create(b, arith::MinSIOp::create(b, index, last), zero);
      Value values = kb.gather(VectorType::get({kLanes}, storage), kb.operand(0), from, index, mask);
      kb.storeElements(storage, values, kb.result(), kb.add(to, i), mask);
    });
  }

private:
  static constexpr int64_t kMostInRun = 1024;
};

struct GatherNdModel : KernelInterface::ExternalModel<GatherNdModel, device::GatherNdOp> {
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    if (failed(requireRowMajor(op))) {
      return failure();
    }
    RankedTensorType x = kb.operandType(0);
    auto [batches, perBatch, inner] = splitAt(op);
    int64_t batchDims = cast<device::GatherNdOp>(op).getBatchDims(), tuple = Shape(kb.operandType(1)).back().value();
    SmallVector<Dim> dims = Shape(x).dropFront(batchDims).dims();
    Dim batchStride = countElements(Shape(x).dropFront(batchDims));
    Strides strides(x);
    Dim choices = multiply(ArrayRef(dims).take_front(tuple));
    copyRows(kb, batches * perBatch, inner, choices, [&, perBatch = perBatch](Value item) {
      Value batch = kb.div(item, perBatch);
      Value offset = tupleOffset(kb, 1, kb.mul(item, tuple), tuple, dims, ArrayRef(strides.dims).drop_front(batchDims));
      return kb.add(kb.mul(batch, batchStride), offset);
    });
    return success();
  }

  bool acceptsOpenSizes(Operation *op) const {
    if (!Shape(op->getOperand(1)).back().isKnown()) {
      return false;
    }
    auto [batches, perBatch, inner] = splitAt(op);
    return sameSize(countElements(op->getResult(0)), batches * perBatch * inner);
  }

  /// Returns the number of batches, of tuples in a batch, and of elements that each tuple selects.
  static std::array<Dim, 3> splitAt(Operation *op) {
    int64_t batchDims = cast<device::GatherNdOp>(op).getBatchDims();
    Shape x = op->getOperand(0), indices = op->getOperand(1);
    SmallVector<Dim> sizes = x.dims(), tuples = indices.dropBack().dims();
    return {multiply(ArrayRef(sizes).take_front(batchDims)), multiply(ArrayRef(tuples).drop_front(batchDims)),
            countElements(x.dropFront(batchDims + indices.back().value()))};
  }
};

} // namespace

void attachGatherModels(MLIRContext *context) {
  device::GatherOp::attachInterface<GatherModel>(*context);
  device::GatherElementsOp::attachInterface<GatherElementsModel>(*context);
  device::GatherNdOp::attachInterface<GatherNdModel>(*context);
}

} // namespace tessera::kernels

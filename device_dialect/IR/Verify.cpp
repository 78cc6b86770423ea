//===- Verify.cpp - Helpers of the op verifiers ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/Verify.h"
#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"

using namespace mlir;

namespace tessera::device::verify {

std::string printDims(ArrayRef<Dim> dims) {
  if (dims.empty()) {
    return "scalar";
  }
  std::string text;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    text += i ? "x" : "";
    text += toText(dim);
  }
  return text;
}

static bool agree(ArrayRef<Dim> a, ArrayRef<Dim> b) {
  return a.size() == b.size() &&
         llvm::all_of(llvm::zip(a, b), [](auto pair) { return verify::agree(std::get<0>(pair), std::get<1>(pair)); });
}

LogicalResult dims(Operation *op, Value value, ArrayRef<Dim> expected, StringRef what, StringRef label) {
  SmallVector<Dim> actual = Shape(value).dims();
  if (agree(actual, expected)) {
    return success();
  }
  return op->emitOpError() << what << " has dims " << printDims(actual) << ", expected " << printDims(expected) << " ("
                           << label << ")";
}

LogicalResult axis(Operation *op, int64_t axis, int64_t rank, StringRef label) {
  if (axis >= 0 && axis < rank) {
    return success();
  }
  return op->emitOpError() << "axis " << axis << " is outside 0.." << rank - 1 << " (" << label << ")";
}

LogicalResult axes(Operation *op, ArrayRef<int64_t> axes, int64_t rank, StringRef label) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (failed(axis(op, axes[i], rank, label))) {
      return failure();
    }
    if (i && axes[i] <= axes[i - 1]) {
      return op->emitOpError() << "axes are not sorted and unique: " << axes[i] << " after " << axes[i - 1] << " ("
                               << label << ")";
    }
  }
  return success();
}

LogicalResult entries(Operation *op, ArrayRef<int64_t> values, size_t count, int64_t least, StringRef what,
                      StringRef label) {
  if (values.size() != count) {
    return op->emitOpError() << what << " has " << values.size() << " entries, expected " << count << " (" << label
                             << ")";
  }
  for (int64_t value : values) {
    if (value < least) {
      return op->emitOpError() << what << " holds " << value << ", allowed from " << least << " (" << label << ")";
    }
  }
  return success();
}

LogicalResult indexType(Operation *op, Value indices, StringRef label) {
  Type type = typeOf(indices).getElementType();
  if (type.isSignlessInteger(32) || type.isSignlessInteger(64)) {
    return success();
  }
  return op->emitOpError() << "indices are " << type << ", allowed i32 and i64 (" << label << ")";
}

LogicalResult broadcasts(Operation *op, ArrayRef<Dim> from, ArrayRef<Dim> to, StringRef what, StringRef label) {
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    Dim dim = from[from.size() - 1 - i];
    fits = dim.is(1) || verify::agree(dim, to[to.size() - 1 - i]);
  }
  if (fits) {
    return success();
  }
  return op->emitOpError() << what << " has dims " << printDims(from) << ", which do not broadcast to " << printDims(to)
                           << " (" << label << ")";
}

LogicalResult sameType(Operation *op, Value a, Value b, StringRef label) {
  RankedTensorType typeA = typeOf(a), typeB = typeOf(b);
  if (typeA.getElementType() == typeB.getElementType() && agree(Shape(typeA).dims(), Shape(typeB).dims())) {
    return success();
  }
  return op->emitOpError() << "operand and result types differ: " << typeA << " and " << typeB << " (" << label << ")";
}

static LogicalResult scalarBody(Operation *op, Block &block, StringRef what, StringRef label) {
  for (Operation &inner : block.without_terminator()) {
    if (!OpTrait::hasElementwiseMappableTraits(&inner) && !inner.hasTrait<OpTrait::ConstantLike>()) {
      InFlightDiagnostic error = op->emitOpError() << what << " holds '" << inner.getName()
                                                   << "', which does not map elementwise (" << label << ")";
      error.attachNote(inner.getLoc()) << "the op";
      return error;
    }
  }
  return success();
}

LogicalResult scalarRegion(Operation *op, Region &region, TypeRange arguments, Type result, StringRef what,
                           StringRef label) {
  if (!region.hasOneBlock()) {
    return op->emitOpError() << what << " has " << std::distance(region.begin(), region.end()) << " blocks, allowed 1 ("
                             << label << ")";
  }
  Block &block = region.front();
  if (block.getNumArguments() != arguments.size()) {
    return op->emitOpError() << what << " takes " << block.getNumArguments() << " arguments, expected "
                             << arguments.size() << " (" << label << ")";
  }
  for (auto [i, types] : llvm::enumerate(llvm::zip(block.getArgumentTypes(), arguments))) {
    auto [actual, expected] = types;
    if (actual != expected) {
      return op->emitOpError() << what << " argument " << i << " is " << actual << ", expected " << expected << " ("
                               << label << ")";
    }
  }
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getValues().size() != 1) {
    return op->emitOpError() << what << " does not end in a device.yield of one value (" << label << ")";
  }
  Type yielded = yield.getValues().front().getType();
  if (result && yielded != result) {
    return op->emitOpError() << what << " yields " << yielded << ", expected " << result << " (" << label << ")";
  }
  return scalarBody(op, block, what, label);
}

LogicalResult epilogue(Operation *op, StringRef label) {
  auto owner = cast<EpilogueInterface>(op);
  Region &region = owner.getEpilogueRegion();
  RankedTensorType result = typeOf(op->getResult(0));
  if (region.empty()) {
    if (!owner.getEpilogueOperands().empty()) {
      return op->emitOpError() << "extra operands without an epilogue (" << label << ")";
    }
    if (owner.getAccumulatorType() != scalarType(result.getElementType())) {
      return op->emitOpError() << "accumulates " << owner.getAccumulatorType() << " but stores "
                               << result.getElementType() << " without an epilogue that converts (" << label << ")";
    }
    return success();
  }
  SmallVector<Type> arguments{owner.getAccumulatorType()};
  for (Value extra : owner.getEpilogueOperands()) {
    arguments.push_back(scalarType(typeOf(extra).getElementType()));
    if (failed(broadcasts(op, Shape(extra).dims(), Shape(result).dims(), "extra operand", label))) {
      return failure();
    }
  }
  return scalarRegion(op, region, arguments, scalarType(result.getElementType()), "epilogue", label);
}

} // namespace tessera::device::verify

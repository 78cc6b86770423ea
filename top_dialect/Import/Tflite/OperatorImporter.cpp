//===- OperatorImporter.cpp - Access of a handler to its operator ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Tflite/Quantisation.h"
#include "top_dialect/Reference/Evaluator.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

namespace tessera::top::tflite_import {

/// Limit in bytes of the integers that the importer computes.
static constexpr int64_t kMaxFolded = int64_t(1) << 20;

static std::string describe(const OperatorImporter &n) {
  std::string output = n.numOutputs() ? tensorName(n.file, n.op.outputs()->Get(0)) : "";
  return n.file.operatorName(n.op) + " '" + output + "': ";
}

void OperatorImporter::fail(const llvm::Twine &message) { b.fail(describe(*this) + message); }

void OperatorImporter::fail(llvm::Error cause) { b.fail(prefixed(std::move(cause), describe(*this))); }

void OperatorImporter::unsupported(const llvm::Twine &message) { b.fail(top::unsupported(describe(*this) + message)); }

Value OperatorImporter::input(unsigned i) {
  if (!failed() && !hasInput(i)) {
    fail(llvm::formatv("it lacks input {0}", i));
  }
  Value value = failed() ? Value() : values.lookup(op.inputs()->Get(i));
  if (!failed() && !value) {
    fail("no operator before it computes '" + tensorName(file, op.inputs()->Get(i)) + "'");
  }
  if (value && dequantises && isQuantised(file.tensor(op.inputs()->Get(i)))) {
    return dequantise(value, i);
  }
  return value ? value : b.scalar(b.f32(), 0);
}

Value OperatorImporter::dequantise(Value x, unsigned i) {
  auto found = quantisationOf(file.tensor(op.inputs()->Get(i)));
  if (!found) {
    fail(prefixed(found.takeError(), "'" + tensorName(file, op.inputs()->Get(i)) + "': "));
    return x;
  }
  Ints dims;
  if (found->isPerChannel()) {
    dims.assign(rank(x), 1);
    dims[found->axis] = int64_t(found->scales.size());
  }
  auto type = llvm::cast<mlir::RankedTensorType>(x.getType());
  HostTensor zeros(type.getElementType(), dims);
  size_t bytes = zeros.getBytes().size() / found->zeros.size();
  for (auto [at, zero] : llvm::enumerate(found->zeros)) {
    std::memcpy(zeros.getBytes().data() + at * bytes, &zero, bytes);
  }
  Value zero = b.constant(zeros.getType(), std::vector<char>(zeros.getBytes().begin(), zeros.getBytes().end()), "zero");
  return create<DequantizeOp>(x, b.constant(dims, found->scales, "scale"), zero, 0);
}

llvm::SmallVector<Value> OperatorImporter::inputs() {
  return llvm::map_to_vector(llvm::seq(numInputs()), [&](unsigned i) { return input(i); });
}

Ints OperatorImporter::constantInts(unsigned i, llvm::StringRef what) {
  auto ints = getConstantInts(input(i));
  if (!ints && !failed()) {
    unsupported(what + " is computed by the network; supported are constants");
  }
  return ints ? Ints(*ints) : Ints();
}

int64_t OperatorImporter::constantInt(unsigned i, llvm::StringRef what) {
  Ints ints = constantInts(i, what);
  if (ints.size() != 1 && !failed()) {
    fail(what + " has " + llvm::Twine(ints.size()) + " elements; expected 1");
  }
  return ints.size() == 1 ? ints.front() : 0;
}

llvm::ArrayRef<int64_t> OperatorImporter::shape(Value value) { return Shape(value).values(); }

mlir::Type OperatorImporter::elementType(Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType()).getElementType();
}

int64_t OperatorImporter::normalizeAxis(int64_t axis, int64_t rank) {
  int64_t normal = axis < 0 ? axis + rank : axis;
  if (normal < 0 || normal >= rank) {
    fail(llvm::formatv("axis {0} is not within rank {1}", axis, rank));
    return 0;
  }
  return normal;
}

bool OperatorImporter::requireRank(Value value, int64_t wanted) {
  if (!failed() && rank(value) != wanted) {
    fail(llvm::formatv("an operand has rank {0}; expected {1}", rank(value), wanted));
  }
  return !failed();
}

llvm::SmallVector<Dim> OperatorImporter::toSizes(llvm::ArrayRef<int64_t> dims) {
  return llvm::SmallVector<Dim>(dims.begin(), dims.end());
}

Value OperatorImporter::slice(Value x, llvm::ArrayRef<int64_t> starts, llvm::ArrayRef<int64_t> sizes,
                              llvm::ArrayRef<int64_t> steps) {
  return create<SliceOp>(x, starts, sizes, steps);
}

Value OperatorImporter::cast(Value x, mlir::Type type) { return elementType(x) == type ? x : create<CastOp>(x, type); }

Value OperatorImporter::expand(Value x, llvm::ArrayRef<int64_t> dims) {
  return shape(x) == dims ? x : create<ExpandOp>(x, Value(), dims);
}

Value OperatorImporter::clip(Value x, double low, double high) {
  return create<ClipOp>(x, llvm::APFloat(low), llvm::APFloat(high));
}

Value OperatorImporter::activate(Value x, tflite::ActivationFunctionType activation) {
  using Kind = tflite::ActivationFunctionType;
  if (activation == Kind::NONE || failed()) {
    return x;
  }
  if (!isFloat(x)) {
    unsupported("a fused activation of integers is not supported");
    return x;
  }
  switch (activation) {
  case Kind::RELU:
    return create<ReluOp>(x);
  case Kind::RELU_N1_TO_1:
    return clip(x, -1, 1);
  case Kind::RELU6:
    return clip(x, 0, 6);
  default:
    unsupported(llvm::formatv("the fused activation {0} is not supported; supported are RELU, RELU6 and RELU_N1_TO_1",
                              int(activation)));
    return x;
  }
}

Value OperatorImporter::fold(Value value) {
  mlir::Operation *creator = value.getDefiningOp();
  auto type = llvm::cast<mlir::RankedTensorType>(value.getType());
  if (failed() || !creator || creator->getNumOperands() == 0 || !llvm::isa<mlir::IntegerType>(type.getElementType()) ||
      !llvm::all_of(creator->getOperands(), isConstant) || byteSize(type) < 0 || byteSize(type) > kMaxFolded) {
    return value;
  }
  llvm::SmallVector<HostTensor> operands, outputs;
  for (Value operand : creator->getOperands()) {
    auto data = getConstantData(operand);
    operands.push_back(HostTensor::borrow(data->type, data->bytes, data->owner));
  }
  llvm::SmallVector<const HostTensor *> pointers;
  for (const HostTensor &operand : operands) {
    pointers.push_back(&operand);
  }
  if (mlir::failed(evaluateOp(creator, pointers, outputs))) {
    return value;
  }
  Value constant =
      createConstant(b.getBuilder(), creator->getLoc(), outputs.front().getType(), outputs.front().getBytes(), "shape");
  creator->erase();
  return constant;
}

void OperatorImporter::setOutput(unsigned i, Value value) {
  if (failed()) {
    return;
  }
  if (i >= numOutputs()) {
    fail(llvm::formatv("it lacks output {0}", i));
    return;
  }
  int32_t index = op.outputs()->Get(i);
  if (elementType(value) != tflite_import::elementType(file.tensor(index).type(), b.getBuilder().getContext())) {
    fail("the element type of '" + tensorName(file, index) + "' does not fit its operands");
    return;
  }
  if (!values.try_emplace(index, value).second) {
    fail("'" + tensorName(file, index) + "' is computed twice");
    return;
  }
  // A value that another operator computes keeps its name. Constants are not layers.
  mlir::Operation *creator = value.getDefiningOp();
  if (creator && creator->getNumResults() == 1 && !isConstant(value) && getTensorName(value).empty()) {
    setTensorNames(creator, {tensorName(file, index)});
  }
}

Handler findHandler(tflite::BuiltinOperator code) {
  for (llvm::ArrayRef<HandlerEntry> family :
       {convolutionHandlers(), elementwiseHandlers(), shapeHandlers(), indexHandlers(), reductionHandlers()}) {
    for (const HandlerEntry &entry : family) {
      if (entry.code == code) {
        return entry.handler;
      }
    }
  }
  return nullptr;
}

} // namespace tessera::top::tflite_import

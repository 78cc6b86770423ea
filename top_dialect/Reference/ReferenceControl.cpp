//===- ReferenceControl.cpp - If and loop ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Evaluator.h"
#include "top_dialect/Reference/Support.h"

#include <limits>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::failure;
using llvm::LogicalResult;
using llvm::success;

namespace {

bool isTrue(const HostTensor &condition) { return read<int64_t>(condition)[0] != 0; }

HostTensor makeScalar(mlir::BlockArgument argument, int64_t value) {
  auto type = llvm::cast<mlir::RankedTensorType>(argument.getType());
  HostTensor tensor(type.getElementType(), Dims(type.getRank(), 1));
  write(std::vector<int64_t>{value}, tensor);
  return tensor;
}

/// Stacks tensors of equal shape along a new leading dim. If there are none, uses the shape of `yielded`.
LogicalResult stack(mlir::Operation *op, llvm::ArrayRef<HostTensor> parts, mlir::RankedTensorType yielded,
                    HostTensor &result) {
  Dims shape(parts.empty() ? yielded.getShape() : parts[0].getShape());
  llvm::replace(shape, mlir::ShapedType::kDynamic, int64_t(0));
  for (const HostTensor &part : parts) {
    if (part.getShape() != DimsRef(shape)) {
      return op->emitOpError("scanned value changes its type from ") << parts[0].getType() << " to " << part.getType();
    }
  }
  shape.insert(shape.begin(), parts.size());
  result = HostTensor(yielded.getElementType(), shape);
  char *to = result.getBytes().data();
  for (const HostTensor &part : parts) {
    to = std::copy(part.getBytes().begin(), part.getBytes().end(), to);
  }
  return success();
}

template <typename Op>
LogicalResult evaluateAlone(Op op, Inputs inputs, Outputs outputs) {
  llvm::SmallVector<HostTensor> results;
  if (failed(evaluateOp(op, inputs, results))) {
    return failure();
  }
  llvm::move(results, outputs.begin());
  return success();
}

} // namespace

LogicalResult IfOp::evaluate(Inputs inputs, Outputs outputs) { return evaluateAlone(*this, inputs, outputs); }

LogicalResult LoopOp::evaluate(Inputs inputs, Outputs outputs) { return evaluateAlone(*this, inputs, outputs); }

LogicalResult Evaluator::runIf(IfOp op, const HostTensor &condition, Tensors &outputs) {
  mlir::Region &region = isTrue(condition) ? op.getThenRegion() : op.getElseRegion();
  return runBlock(region.front(), outputs);
}

LogicalResult Evaluator::runLoop(LoopOp op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs) {
  const HostTensor *tripCount = operand(op, inputs, 0), *condition = operand(op, inputs, 1);
  int64_t trips = tripCount ? read<int64_t>(*tripCount)[0] : std::numeric_limits<int64_t>::max();
  bool running = condition ? isTrue(*condition) : true;
  size_t carriedCount = op.getInit().size();
  Tensors carried;
  for (const HostTensor *initial : inputs.take_back(carriedCount)) {
    carried.push_back(*initial);
  }
  mlir::Block &body = op.getBody().front();
  mlir::Operation *yield = body.getTerminator();
  llvm::SmallVector<llvm::SmallVector<HostTensor>> scanned(yield->getNumOperands() - 1 - carriedCount);

  mlir::TypeRange argumentTypes = mlir::ValueRange(body.getArguments().drop_front(2)).getTypes();
  for (int64_t i = 0; i < trips && running; ++i) {
    if (failed(setSymbols(op, argumentTypes, carried))) {
      return failure();
    }
    tensors.insert_or_assign(body.getArgument(0), makeScalar(body.getArgument(0), i));
    tensors.insert_or_assign(body.getArgument(1), makeScalar(body.getArgument(1), running));
    for (auto [argument, value] : llvm::zip_equal(body.getArguments().drop_front(2), carried)) {
      tensors.insert_or_assign(argument, std::move(value));
    }
    Tensors yielded;
    if (failed(runBlock(body, yielded))) {
      return failure();
    }
    running = isTrue(yielded[0]);
    for (size_t k = 0; k < carriedCount; ++k) {
      carried[k] = std::move(yielded[1 + k]);
    }
    for (size_t k = 0; k < scanned.size(); ++k) {
      scanned[k].push_back(std::move(yielded[1 + carriedCount + k]));
    }
  }
  outputs = std::move(carried);
  for (auto [k, parts] : llvm::enumerate(scanned)) {
    auto type = llvm::cast<mlir::RankedTensorType>(yield->getOperand(1 + carriedCount + k).getType());
    if (failed(stack(op, parts, type, outputs.emplace_back()))) {
      return failure();
    }
  }
  return success();
}

//===- Constraints.cpp - Constraints of TopToDevice on Top ops ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Constraints.h"
#include "device_dialect/IR/Verify.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"

using namespace mlir;

namespace tessera::device {

static std::optional<Violation> checkControlFlow(Operation *op) {
  if (isa<top::IfOp, top::LoopOp>(op)) {
    return Violation{"a region decided at run time", "no regions"};
  }
  return std::nullopt;
}

static std::optional<Violation> checkStaticShape(Operation *op) {
  auto dynamic = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return !type || !type.hasStaticShape();
  };
  for (auto [kind, values] : {std::pair("operand", SmallVector<Value>(op->getOperands())),
                              std::pair("result", SmallVector<Value>(op->getResults()))}) {
    auto *found = llvm::find_if(values, dynamic);
    if (found != values.end()) {
      std::string text;
      llvm::raw_string_ostream(text) << kind << " of type " << found->getType();
      return Violation{text, "static dims"};
    }
  }
  return std::nullopt;
}

static std::optional<Violation> checkDataIndependentShape(Operation *op) {
  // The size of the result depends on an operand that is still unknown at compile time.
  if (isa<top::NonZeroOp, top::RangeOp, top::ConstantOfShapeOp>(op)) {
    return Violation{"result dims computed from values at run time", "dims known at compile time"};
  }
  return std::nullopt;
}

static std::optional<Violation> checkElementType(Operation *op) {
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && !tensor.getElementType().isIntOrFloat()) {
      std::string text;
      llvm::raw_string_ostream(text) << "elements " << tensor.getElementType();
      return Violation{text, "integer and float elements"};
    }
  }
  return std::nullopt;
}

ArrayRef<Constraint> getTopToDeviceConstraints() {
  static constexpr Constraint constraints[] = {
      {"control_flow", "The op holds no region that is chosen or repeated at run time.",
       "make its condition or number of iterations a constant: if an input of the model decides it, with "
       "model_transform --input_values NAME=VALUE; or end the model before it with --output_names",
       checkControlFlow},
      {"data_dependent_shape", "The dims of the result do not depend on run-time values.",
       "if an input of the model decides them, make it a constant with model_transform --input_values NAME=VALUE, or "
       "end the model before it with --output_names",
       checkDataIndependentShape},
      {"static_shape", "All dims are known.",
       "fix the sizes of inputs by model_transform --input_shapes; a size that is computed from values, as after "
       "NonZero, cannot be fixed this way: end the model before it with --output_names",
       checkStaticShape},
      {"element_type", "Elements are integers or floats.", "convert the tensor before the network", checkElementType},
  };
  return constraints;
}

static void report(Operation *op, const Constraint &constraint, const Violation &violation) {
  std::string name = top::getDisplayName(op->getLoc());
  op->emitError() << "cannot lower '" << op->getName() << "' of node '" << name << "': " << violation.actual
                  << ", allowed: " << violation.allowed << " (" << constraint.name << "); " << constraint.advice;
}

LogicalResult checkLowerable(Operation *root) {
  bool ok = true;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa_and_present<top::TopDialect>(op->getDialect()) || isa<top::YieldOp>(op)) {
      return WalkResult::advance();
    }
    for (const Constraint &constraint : getTopToDeviceConstraints()) {
      if (std::optional<Violation> violation = constraint.check(op)) {
        report(op, constraint, *violation);
        ok = false;
        // Ops inside an unsupported region are not reported separately.
        return WalkResult::skip();
      }
    }
    return WalkResult::advance();
  });
  return success(ok);
}

} // namespace tessera::device

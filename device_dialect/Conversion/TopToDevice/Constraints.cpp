//===- Constraints.cpp - Constraints of TopToDevice on Top ops ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Conversion/TopToDevice/Constraints.h"
#include "device_dialect/IR/Verify.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/ResizeTaps.h"

using namespace mlir;

namespace tessera::device {

static std::optional<Violation> checkControlFlow(Operation *op) {
  if (isa<top::IfOp, top::LoopOp>(op)) {
    return Violation{"a region decided at run time", "no regions"};
  }
  return std::nullopt;
}

/// Checks that the sizes of values from two paths are equal, or symbols that control flow sets.
static bool canStore(Value to, Value from) { return top::findUpdates(to.getType(), from.getType()).has_value(); }

static std::optional<Violation> checkLoopSizes(top::LoopOp loop) {
  size_t carried = loop.getInit().size();
  ValueRange yielded = loop.getBody().front().getTerminator()->getOperands();
  for (auto [i, init] : llvm::enumerate(loop.getInit())) {
    Value argument = loop.getBody().getArgument(unsigned(2 + i)), result = loop.getResult(unsigned(i));
    if (!canStore(result, init) || !canStore(argument, result) || !canStore(result, yielded[1 + i])) {
      return Violation{"carried value " + std::to_string(i) + " changes its size from pass to pass, without a bound",
                       "carried values of one size, or with a largest size"};
    }
  }
  for (auto [i, result] : llvm::enumerate(loop.getResults().drop_front(carried))) {
    if (!Shape(result).isDetermined()) {
      return Violation{"it stacks a value of each pass in output " + std::to_string(carried + i) +
                           ", whose size is not known before the loop",
                       "values of one size"};
    }
  }
  return std::nullopt;
}

/// Checks that the sizes of what an if returns, or a loop carries, have a bound.
static std::optional<Violation> checkControlFlowSizes(Operation *op) {
  if (auto branch = dyn_cast<top::IfOp>(op)) {
    for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()}) {
      for (auto [i, value] : llvm::enumerate(region->front().getTerminator()->getOperands())) {
        if (!canStore(branch.getResult(unsigned(i)), value)) {
          return Violation{"its branches return result " + std::to_string(i) + " in sizes without a bound",
                           "sizes with a bound"};
        }
      }
    }
  }
  if (auto loop = dyn_cast<top::LoopOp>(op)) {
    return checkLoopSizes(loop);
  }
  return std::nullopt;
}

static std::optional<Violation> checkKnownShape(Operation *op) {
  auto dynamic = [](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return !type || !Shape(type).isDetermined();
  };
  for (auto [kind, values] : {std::pair("operand", SmallVector<Value>(op->getOperands())),
                              std::pair("result", SmallVector<Value>(op->getResults()))}) {
    auto *found = llvm::find_if(values, dynamic);
    if (found != values.end()) {
      std::string text;
      llvm::raw_string_ostream(text) << kind << " of type " << found->getType();
      return Violation{text, "dims that are numbers or expressions of the inputs' sizes"};
    }
  }
  return std::nullopt;
}

/// Returns a violation for the first of |sizes| from |first| on that is symbolic.
static std::optional<Violation> rejectSymbolic(StringRef what, Shape sizes, size_t first = 0) {
  for (size_t d = first; d < sizes.rank(); ++d) {
    if (!sizes[d].isKnown()) {
      return Violation{"dim " + std::to_string(d) + " of " + what.str() + " is " + toText(sizes[d]), "a number"};
    }
  }
  return std::nullopt;
}

static std::optional<Violation> checkResized(top::ResizeOp op) {
  Shape x = op.getX(), y = op.getY();
  auto type = cast<RankedTensorType>(op.getX().getType());
  if (!isa<FloatType>(type.getElementType()) && op.getMode() != top::ResizeMode::nearest) {
    return Violation{"it interpolates integers in mode " + top::stringifyResizeMode(op.getMode()).str(),
                     "floats (insert a Cast before and behind it), or mode nearest"};
  }
  for (size_t d = 0; d < x.rank(); ++d) {
    bool isKnown = x[d].isKnown() && y[d].isKnown();
    if (!isKnown && !top::findRepetition(op, unsigned(d)) && !top::hasNeighbouringTaps(op)) {
      return Violation{
          "dim " + std::to_string(d) + " of " + toText(x[d]) + " is resized to " + toText(y[d]) + " in mode " +
              top::stringifyResizeMode(op.getMode()).str(),
          "numbers, mode linear without antialias, exclude_outside and regions, or elements repeated up to "
          "64 times (mode nearest, an integer as scale)"};
    }
  }
  return std::nullopt;
}

static std::optional<Violation> checkPadded(top::PadOp op) {
  Shape x = op.getX();
  for (size_t d = 0; d < x.rank() && op.getMode() != top::PadMode::constant; ++d) {
    bool isPadded = op.getPads()[d] != 0 || op.getPads()[d + x.rank()] != 0;
    if (isPadded && !x[d].isKnown()) {
      return Violation{"dim " + std::to_string(d) + " of " + toText(x[d]) + " is padded with its own elements",
                       "numbers in dims that are padded in modes other than constant"};
    }
  }
  return std::nullopt;
}

static std::optional<Violation> checkExpanded(top::ExpandOp op) {
  Shape x = op.getX(), y = op.getY();
  for (size_t d = 0; d < x.rank(); ++d) {
    Dim to = y[y.rank() - x.rank() + d];
    if (!x[d].is(1) && !sameSize(x[d], to)) {
      return Violation{"dim " + std::to_string(d) + " of " + toText(x[d]) + " is expanded to " + toText(to),
                       "dims that are known to be 1 or equal"};
    }
  }
  return std::nullopt;
}

/// Checks that a mean of integers never divides by zero, which would end the process.
static std::optional<Violation> checkMean(top::ReduceOp op) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  for (int64_t axis : op.getAxes()) {
    Dim size = Shape(x)[axis];
    if (x.getElementType().isInteger() && !size.isKnown() && minOf(size) < 1) {
      return Violation{"the mean of integers along dim " + std::to_string(axis) + " of " + toText(size),
                       "dims of at least one element"};
    }
  }
  return std::nullopt;
}

/// Checks that dims whose diagonal an einsum takes are numbers.
static std::optional<Violation> checkDiagonals(top::EinsumOp op) {
  SmallVector<StringRef> terms;
  op.getEquation().split("->").first.split(terms, ',');
  for (auto [term, input] : llvm::zip_equal(terms, op.getInputs())) {
    for (auto [d, letter] : llvm::enumerate(term)) {
      Dim size = Shape(input)[d];
      if (term.count(letter) > 1 && !size.isKnown()) {
        return Violation{"the diagonal of dims of " + toText(size), "numbers in dims whose letter occurs twice"};
      }
    }
  }
  return std::nullopt;
}

/// Checks the sizes that the lowering of an op needs as numbers.
static std::optional<Violation> checkSymbolicSizes(Operation *op) {
  if (auto shape = dyn_cast<top::ShapeOp>(op)) {
    return rejectSymbolic("x", shape.getX());
  }
  if (auto conv = dyn_cast<top::ConvOp>(op)) {
    std::optional<Violation> found = rejectSymbolic("the weights", conv.getW());
    return found ? found : rejectSymbolic("x", Shape(conv.getX()).dropBack(Shape(conv.getX()).rank() - 2), 1);
  }
  if (auto conv = dyn_cast<top::ConvTransposeOp>(op)) {
    std::optional<Violation> found = rejectSymbolic("the weights", conv.getW());
    return found ? found : rejectSymbolic("x", Shape(conv.getX()).dropBack(Shape(conv.getX()).rank() - 2), 1);
  }
  if (auto resize = dyn_cast<top::ResizeOp>(op)) {
    return checkResized(resize);
  }
  if (auto pad = dyn_cast<top::PadOp>(op)) {
    return checkPadded(pad);
  }
  if (auto expand = dyn_cast<top::ExpandOp>(op)) {
    return checkExpanded(expand);
  }
  if (auto reduce = dyn_cast<top::ReduceOp>(op); reduce && reduce.getKind() == top::ReduceKind::mean) {
    return checkMean(reduce);
  }
  if (auto tri = dyn_cast<top::TriluOp>(op)) {
    return rejectSymbolic("x", tri.getX(), Shape(tri.getX()).rank() - 2);
  }
  if (isa<top::GroupNormOp, top::LrnOp>(op)) {
    Shape x = op->getOperand(0);
    return rejectSymbolic("x", x.dropBack(x.rank() - 2), 1);
  }
  if (auto rope = dyn_cast<top::RopeOp>(op)) {
    return rejectSymbolic("x", rope.getX(), Shape(rope.getX()).rank() - 1);
  }
  if (auto einsum = dyn_cast<top::EinsumOp>(op)) {
    return checkDiagonals(einsum);
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
      {"control_flow_size", "Branches return, and loops carry, values whose sizes have a bound.",
       "pad the value to a fixed size in the model; if an input of the model decides the branch or the number of "
       "passes, make it a constant with model_transform --input_values NAME=VALUE",
       checkControlFlowSizes},
      {"data_dependent_shape", "The dims of the result do not depend on run-time values.",
       "if an input of the model decides them, make it a constant with model_transform --input_values NAME=VALUE, or "
       "end the model before it with --output_names",
       checkDataIndependentShape},
      {"static_shape", "All dims are known, or expressions of sizes that --dims declares.",
       "fix the sizes of inputs by model_transform --input_shapes, or give their range with --dims; a size that is "
       "computed from values, as after NonZero, cannot be fixed this way: end the model before it with --output_names",
       checkKnownShape},
      {"symbolic_size", "Sizes that decide how the op is computed are numbers.",
       "fix this size with model_transform --input_shapes, or give --dims a single value", checkSymbolicSizes},
      {"element_type", "Elements are integers or floats.", "convert the tensor before the network", checkElementType},
  };
  return constraints;
}

static void report(Operation *op, const Constraint &constraint, const Violation &violation) {
  std::string name = top::getDisplayName(op->getLoc());
  op->emitError() << "cannot lower '" << op->getName() << "' of node '" << name << "': " << violation.actual
                  << ", allowed: " << violation.allowed << " (" << constraint.name << "); " << constraint.advice;
}

LogicalResult checkLowerable(Operation *root, bool isSplit) {
  bool ok = true;
  root->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa_and_present<top::TopDialect>(op->getDialect()) || isa<top::YieldOp>(op)) {
      return WalkResult::advance();
    }
    for (const Constraint &constraint : getTopToDeviceConstraints()) {
      if (isSplit && constraint.check == checkControlFlow) {
        continue;
      }
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

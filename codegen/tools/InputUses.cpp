//===- InputUses.cpp - Uses of a network input ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/InputUses.h"

#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <limits>
#include <set>

using namespace mlir;

namespace tessera::tool {
namespace {

bool isInteger(Value value) { return getElementTypeOrSelf(value.getType()).isInteger(); }

/// Returns true if the elements of `use` reach the op's results unchanged.
bool isMoved(OpOperand &use) {
  Operation *op = use.getOwner();
  if (auto cast = dyn_cast<top::CastOp>(op)) {
    return isInteger(cast.getX()) && isInteger(cast.getY());
  }
  if (isa<top::GatherOp, top::GatherElementsOp, top::GatherNdOp, top::PadOp, top::ExpandOp, top::TileOp,
          top::ReshapeOp>(op)) {
    return use.getOperandNumber() == 0;
  }
  return isa<top::TransposeOp, top::ConcatOp, top::SliceOp>(op) ||
         (isa<top::WhereOp>(op) && use.getOperandNumber() != 0);
}

/// Returns the number of elements that the indices in `use` choose from; nullopt if `use` holds no indices.
std::optional<int64_t> indexedElements(OpOperand &use) {
  constexpr unsigned kIndices = 1;
  Operation *op = use.getOwner();
  auto dimOf = [](Value x, int64_t axis) { return cast<RankedTensorType>(x.getType()).getDimSize(axis); };
  auto smallest = [](Value x) {
    ArrayRef<int64_t> dims = cast<RankedTensorType>(x.getType()).getShape();
    return dims.empty() ? 1 : *llvm::min_element(dims);
  };
  if (auto oneHot = dyn_cast<top::OneHotOp>(op)) {
    return use.getOperandNumber() == 0 ? std::optional<int64_t>(oneHot.getDepth()) : std::nullopt;
  }
  if (use.getOperandNumber() != kIndices) {
    return std::nullopt;
  }
  return llvm::TypeSwitch<Operation *, std::optional<int64_t>>(op)
      .Case<top::GatherOp, top::GatherElementsOp, top::ScatterElementsOp>(
          [&](auto gather) { return dimOf(gather.getX(), gather.getAxis()); })
      .Case<top::GatherNdOp, top::ScatterNdOp>([&](auto gather) { return smallest(gather.getX()); })
      .Default(std::nullopt);
}

bool isIntegerDivisor(OpOperand &use) {
  return isa<top::DivOp, top::ModOp>(use.getOwner()) && use.getOperandNumber() == 1 && isInteger(use.get());
}

/// Returns true if `use` may have any value and the op computes with its elements.
bool takesAnyValue(OpOperand &use) {
  Operation *op = use.getOwner();
  if (op->hasTrait<OpTrait::ReturnLike>() || isa<top::ScalarInterface>(op) || isMoved(use)) {
    return true;
  }
  bool isFloat = !isInteger(use.get());
  if (isa<top::ReduceOp, top::ArgReduceOp, top::TopKOp, top::CumSumOp, top::MatMulOp, top::NonZeroOp, top::TriluOp,
          top::DepthToSpaceOp, top::SpaceToDepthOp, top::ConvOp, top::MaxPoolOp, top::ShapeOp>(op)) {
    return true;
  }
  return isFloat && op->getNumRegions() == 0 && !isa<top::RangeOp>(op);
}

/// Returns true if the magnitude of `result` depends on that of the op's operands. The position that ArgMax returns
/// does not: it lies within its dim for any operand.
bool passesOn(OpResult result) {
  Operation *op = result.getOwner();
  bool isIndex = isa<top::TopKOp>(op) && result.getResultNumber() == 1;
  return !isIndex &&
         !isa<top::ArgReduceOp, top::NonZeroOp, top::NonMaxSuppressionOp, top::ShapeOp, top::IsNanOp, top::IsInfOp>(op);
}

struct Uses {
  int64_t indexBelow = std::numeric_limits<int64_t>::max();
  bool isDivisor = false, isFixed = false;
  std::set<std::string> reaches;

  void add(OpOperand &use, bool isDirect) {
    reaches.insert(use.getOwner()->getName().stripDialect().str());
    std::optional<int64_t> elements = indexedElements(use);
    if (elements && isDirect && *elements > 0) {
      indexBelow = std::min(indexBelow, *elements);
    } else if (isIntegerDivisor(use) && isDirect) {
      isDivisor = true;
    } else if (elements || isIntegerDivisor(use) || !takesAnyValue(use)) {
      isFixed = true;
    }
  }
};

} // namespace

llvm::json::Object describeUses(Value input) {
  Uses uses;
  llvm::MapVector<Value, bool> reached; // and whether the value has the input's elements
  reached.insert({input, true});
  for (size_t i = 0; i < reached.size(); ++i) {
    auto [value, isDirect] = *(reached.begin() + i);
    for (OpOperand &use : value.getUses()) {
      uses.add(use, isDirect);
      for (OpResult result : use.getOwner()->getResults()) {
        if (passesOn(result)) {
          reached.insert({result, isDirect && isMoved(use)});
        }
      }
    }
  }
  llvm::json::Object object{{"reaches", llvm::json::Array(uses.reaches)}};
  if (uses.indexBelow != std::numeric_limits<int64_t>::max()) {
    object["index_below"] = uses.indexBelow;
  }
  if (uses.isDivisor) {
    object["divisor"] = true;
  }
  if (uses.isFixed) {
    object["fixed"] = true;
  }
  return object;
}

} // namespace tessera::tool

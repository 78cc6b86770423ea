//===- FuseCopies.cpp - Decides which copies and maps are fused -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Emission/RowFusionInterface.h"
#include "codegen/Npu/Schedule/LocalSchedule.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::npu {
#define GEN_PASS_DEF_FUSECOPIESPASS
#include "codegen/Npu/Passes.h.inc"
} // namespace tessera::npu

using namespace mlir;

namespace tessera::npu {
namespace {

void setFused(Operation *op, FusedInto into, int64_t target = -1) {
  op->setAttr(NpuDialect::kFusedAttr, FusedAttr::get(op->getContext(), into, target));
}

struct FuseCopies : ChipPass<impl::FuseCopiesPassBase<FuseCopies>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    eraseSchedule(getOperation()); // the schedule refers to other layers
    for (Operation &op : body) {
      op.removeAttr(NpuDialect::kFusedAttr);
    }
    for (auto copy : body.getOps<device::CopyOp>()) {
      fuseIntoReaders(copy);
    }
    for (Operation &op : body) {
      if (auto each = dyn_cast<RowFusionInterface>(op); each && each.worksOnRows()) {
        fuseBehind(each);
      }
    }
  }

private:
  bool reads(OpOperand *use, const StridedView &view) const {
    return fusion::canRead(*use, view) && cast<RowFusionInterface>(use->getOwner()).paysToRead(*use, view, chip());
  }

  void fuseIntoReaders(device::CopyOp copy) {
    SmallVector<OpOperand *> readers;
    fusion::findReaders(copy.getY(), readers);
    if (!fusion::isView(copy) || readers.empty()) {
      return;
    }
    StridedView source = fusion::sourceOf(copy);
    if (llvm::all_of(readers, [&](OpOperand *use) { return reads(use, source); })) {
      setFused(copy, FusedInto::readers);
      ++numCopies;
    }
  }

  void fuseBehind(RowFusionInterface op) {
    Value result = op->getResult(0);
    device::MapOp map = fusion::findMap(op, chip());
    if (map && !map->hasAttr(NpuDialect::kFusedAttr)) {
      llvm::Expected<Instructions> program = fusion::programOfMap(map);
      if (program) {
        setFused(map, FusedInto::producer);
        result = map.getY();
        ++numMaps;
      } else {
        llvm::consumeError(program.takeError());
      }
    }
    fuseCopiesOf(op, result);
  }

  /// Fuses the copies of |result| into |op|. The result needs its own storage if a reader can find it in none of the
  /// copies.
  void fuseCopiesOf(RowFusionInterface op, Value result) {
    SmallVector<OpOperand *> readers, others;
    fusion::findReaders(result, readers);
    SmallVector<std::pair<device::CopyOp, StridedView>> copies;
    for (OpOperand *use : readers) {
      auto copy = dyn_cast<device::CopyOp>(use->getOwner());
      bool isIndependent = copy && fusion::isView(copy) && !fusion::getFused(copy);
      std::optional<StridedView> view = isIndependent ? fusion::resultOf(copy) : std::nullopt;
      if (view && op.canStore(*view)) {
        copies.emplace_back(copy, std::move(*view));
      } else {
        others.push_back(use);
      }
    }
    bool isFound =
        !copies.empty() && llvm::all_of(others, [&](OpOperand *use) { return reads(use, copies.front().second); });
    if (!op.storesTwice() && (!isFound || copies.size() != 1)) {
      return;
    }
    for (auto [index, copy] : llvm::enumerate(copies)) {
      setFused(copy.first, FusedInto::producer, int64_t(index) + !isFound);
      ++numCopies;
    }
  }
};

/// Returns the reason why a copy or a map cannot be fused as its attribute says, or an empty string.
std::string reasonAgainst(Operation *op, FusedAttr fused) {
  if (fused.getInto() == FusedInto::producer) {
    return "";
  }
  if (auto map = dyn_cast<device::MapOp>(op)) {
    return fusion::findMapReader(map) ? ""
                                      : "is fused into its readers, but is not a map of a function argument that "
                                        "only a convolution reads";
  }
  auto copy = dyn_cast<device::CopyOp>(op);
  if (!copy || !fusion::isView(copy)) {
    return "is fused into its readers, but is not a copy of a single piece into the workspace";
  }
  SmallVector<OpOperand *> readers;
  fusion::findReaders(copy.getY(), readers);
  StridedView source = fusion::sourceOf(copy);
  auto cannot = llvm::find_if(readers, [&](OpOperand *use) { return !fusion::canRead(*use, source); });
  return cannot == readers.end()
             ? ""
             : ("is fused into its readers, but '" + (*cannot)->getOwner()->getName().getStringRef() +
                "' cannot read operand " + Twine((*cannot)->getOperandNumber()) + " as it lies")
                   .str();
}

/// Checks the copies and maps that are fused behind an op, and removes them from |left|.
LogicalResult verifyBehind(RowFusionInterface op, const Chip &chip, llvm::DenseSet<Operation *> &left) {
  Value result = op->getResult(0);
  if (device::MapOp map = fusion::fusedMapOf(op)) {
    llvm::Expected<Instructions> program = fusion::programOfMap(map);
    bool hasProgram = bool(program);
    llvm::consumeError(program.takeError());
    if (fusion::findMap(op, chip) != map || !hasProgram) {
      return map.emitError("is fused into '") << op->getName() << "', which cannot compute it";
    }
    left.erase(map);
    result = map.getY();
  }
  SmallVector<device::CopyOp> copies = fusion::fusedCopiesOf(result);
  for (auto [index, copy] : llvm::enumerate(copies)) {
    int64_t first = fusion::getFused(copies.front()).getTarget(), target = fusion::getFused(copy).getTarget();
    if (first > 1 || target != first + int64_t(index)) {
      return copy.emitError("is destination ") << target << " of the result of '" << op->getName() << "', expected "
                                               << std::min<int64_t>(first, 1) + int64_t(index);
    }
    std::optional<StridedView> view = fusion::isView(copy) ? fusion::resultOf(copy) : std::nullopt;
    if (!view || !op.canStore(*view)) {
      return copy.emitError("is fused into '") << op->getName() << "', which cannot store its result with this layout";
    }
    left.erase(copy);
  }
  if (!copies.empty() && !op.storesTwice() &&
      (copies.size() != 1 || fusion::getFused(copies.front()).getTarget() != 0)) {
    return copies.front().emitError("is fused into '")
           << op->getName() << "', which stores its result once: only one copy can be fused, as destination 0";
  }
  SmallVector<OpOperand *> readers;
  fusion::findReaders(result, readers);
  bool isAlias = !copies.empty() && fusion::getFused(copies.front()).getTarget() == 0;
  for (OpOperand *use : readers) {
    auto copy = dyn_cast<device::CopyOp>(use->getOwner());
    if (isAlias && !llvm::is_contained(copies, copy) && !fusion::canRead(*use, *fusion::resultOf(copies.front()))) {
      return op->emitError("does not have its own storage, but '")
             << use->getOwner()->getName() << "' cannot read operand " << use->getOperandNumber()
             << " from the copy that is destination 0";
    }
  }
  return success();
}

} // namespace

LogicalResult verifyFused(func::FuncOp function, const Chip &chip) {
  llvm::DenseSet<Operation *> left; // ops fused into a producer that has not been found yet
  for (Operation &op : function.getBody().front()) {
    FusedAttr fused = fusion::getFused(&op);
    if (std::string reason = fused ? reasonAgainst(&op, fused) : ""; !reason.empty()) {
      return op.emitError(reason);
    }
    if (fused && fused.getInto() == FusedInto::producer) {
      left.insert(&op);
    }
  }
  for (Operation &op : function.getBody().front()) {
    auto each = dyn_cast<RowFusionInterface>(op);
    if (each && each.worksOnRows() && failed(verifyBehind(each, chip, left))) {
      return failure();
    }
  }
  for (Operation &op : function.getBody().front()) {
    if (left.contains(&op)) {
      return op.emitError(
          "is fused into the op that computes its operand, but that is not a norm, an attention or a matmul on rows");
    }
  }
  return success();
}

std::unique_ptr<Pass> createFuseCopiesPass(const Chip &chip) { return std::make_unique<FuseCopies>(chip); }

} // namespace tessera::npu

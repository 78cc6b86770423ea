//===- FunctionEmission.cpp - Emits a device function ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/FunctionEmission.h"

#include "codegen/Npu/Emission/EmissionInterface.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;

/// Joins the messages of an error, each once, because operands may share a reason.
static std::string reasonsOf(llvm::Error error) {
  SmallVector<std::string> reasons;
  llvm::handleAllErrors(std::move(error), [&](const llvm::ErrorInfoBase &each) { reasons.push_back(each.message()); });
  reasons.erase(llvm::unique(reasons), reasons.end());
  return llvm::join(reasons, "; ");
}

FunctionEmission::FunctionEmission(func::FuncOp function, CommandStream &stream, ValuePlan &plan,
                                   const GroupPlan *groups)
    : function(function), stream(stream), plan(plan), groups(groups), fusedOps(function, stream.chip), tiler(stream),
      operands(function, stream, plan, fusedOps, /*surveys=*/!groups), copies(function, stream.chip),
      context{stream.chip, stream, tiler, operands, plan, fusedOps, copies} {
  tiler.surveys = !groups;
}

std::string FunctionEmission::nameOf(Operation *op) const {
  SmallVector<Operation *> ops = fusedOps.readThrough(op);
  ops.push_back(op);
  if (const FusedOps::FusedConsumers *consumers = fusedOps.consumersOf(op)) {
    llvm::append_range(ops, consumers->ops);
  }
  SmallVector<std::string> names;
  for (Operation *each : ops) {
    if (std::string name = top::getDisplayName(each->getLoc()); !llvm::is_contained(names, name)) {
      names.push_back(name);
    }
  }
  return llvm::join(names, "+");
}

/// Checks that all tensors have elements, because commands process at least one. This is rare: the Top passes replace
/// empty tensors by constants.
static llvm::Error checkElements(Operation *op) {
  for (mlir::Type type : llvm::concat<const mlir::Type>(op->getOperandTypes(), op->getResultTypes())) {
    if (cast<RankedTensorType>(type).getNumElements() == 0) {
      return reject("has a tensor without elements, at least one is needed");
    }
  }
  return llvm::Error::success();
}

llvm::Error FunctionEmission::emit(Operation *op) {
  if (llvm::Error empty = checkElements(op)) {
    return empty;
  }
  auto model = dyn_cast<EmissionInterface>(op);
  if (!model) {
    llvm::Error types = checkElementTypes(op, stream.chip);
    return types ? std::move(types) : reject("is not supported on the NPU yet");
  }
  llvm::Error types = model.checkTypes(stream.chip);
  return types ? std::move(types) : model.emit(context);
}

/// Copies outputs that share the memory of another output.
llvm::Error FunctionEmission::emitOutputs() {
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
    std::optional<device::Address> address = device::getAddress(value);
    if (address && address->memory == int64_t(index) + 1 && address->offset == 0) {
      continue;
    }
    if (llvm::Error error = emitOutput(unsigned(index), value)) {
      rejectedOutput = value.getDefiningOp();
      return error;
    }
  }
  return llvm::Error::success();
}

/// Copies an output from off-chip memory as a flat row of elements. No op uses this view, so it never applies to a
/// resident value. If the chip does not support the element type, bytes are copied.
llvm::Error FunctionEmission::emitOutput(unsigned index, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<Type> bytes = npu::typeOf(type.getElementType()) ? std::nullopt : std::optional(Type::u8);
  llvm::Expected<TileView> from = operands.placeFlat(value, bytes ? top::byteSize(type) : type.getNumElements(), bytes);
  if (!from) {
    return from.takeError();
  }
  hw::copy_command copy;
  copy.x = copy.y = from->tensor, copy.shape = from->shape;
  copy.y.region = Region(size_t(Region::io) + function.getNumArguments() + index), copy.y.offset = 0;
  copy.y.lane = 0;
  stream.beginLayer("output");
  Tile tile;
  tile.stores.push_back(hw::encode(copy));
  stream.append({tile}, false);
  return llvm::Error::success();
}

/// Emits one op with the local memory that the plan leaves for it.
llvm::Error FunctionEmission::emitWith(Operation *op, llvm::function_ref<llvm::Error()> emit) {
  operands.enter(op, number);
  tiler.minimum = tiler.used = tiler.liveAcross = tiler.appends = 0;
  tiler.budget = stream.chip.laneBytes - plan.bytesAt(number);
  tiler.overlaps = !plan.isSingleBuffered(number);
  llvm::Error error = emit();
  if (tiler.surveys) {
    plan.noteOp(number, op, tiler.whole, tiler.appends, tiler.minimum, tiler.used, tiler.liveAcross);
  } else if (error && spillUntilFits(number)) {
    llvm::consumeError(std::move(error));
    error = llvm::Error::success();
  }
  return error;
}

llvm::Error FunctionEmission::emitGroup(const SliceGroup &group, ArrayRef<Operation *> ops) {
  for (Operation *op : ops) {
    stream.beginLayer(top::getDisplayName(op->getLoc()));
  }
  std::vector<std::vector<TileView>> shared(ops.size());
  std::vector<bool> begun(ops.size(), false);
  uint32_t before = ~0u;
  operands.openGroup(group.last);
  for (const std::vector<SlicePart> &slice : group.parts) {
    for (size_t k = 0; k < ops.size(); ++k) {
      const SlicePart &part = slice[k];
      if (part.computes.isEmpty()) {
        continue;
      }
      number = group.first + uint32_t(k);
      stream.enterLayer(number);
      tiler.sliceIteration.emplace(Tiler::SliceIteration{part.computes.begin, part.computes.end,
                                                         operands.openSlice(group, ops[k], part.holds), shared[k],
                                                         !begun[k], before == number || before == ~0u});
      llvm::Error error = emitWith(ops[k], [&] { return emit(ops[k]); });
      tiler.sliceIteration.reset();
      if (error) {
        return error;
      }
      begun[k] = true, before = number;
    }
  }
  operands.closeGroup();
  number = group.last;
  for (Operation *op : ops) {
    if (llvm::Error error = copies.emitBehind(op, number, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Emits the parts of copies that follow an op or the ops fused into it.
llvm::Error FunctionEmission::emitCopiesBehind(Operation *op) {
  SmallVector<Operation *> ops = {op};
  if (const FusedOps::FusedConsumers *consumers = fusedOps.consumersOf(op)) {
    llvm::append_range(ops, consumers->ops);
  }
  for (Operation *each : ops) {
    if (llvm::Error error = copies.emitBehind(each, number, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Returns the ops to emit: all except constants, ops that are pure address assignment, and fused ops.
SmallVector<Operation *> FunctionEmission::emittedOps() {
  SmallVector<Operation *> ops;
  for (Operation &op : function.getBody().front().without_terminator()) {
    bool isConstant = op.getNumResults() == 1 && device::getConstantRoot(op.getResult(0));
    if (!isConstant && !device::isElided(&op) && !fusedOps.isFused(&op)) {
      ops.push_back(&op);
    }
  }
  return ops;
}

LogicalResult FunctionEmission::run() {
  SmallVector<Operation *> ops = emittedOps();
  for (number = 0; number < ops.size(); ++number) {
    Operation *op = ops[number];
    progress(number, ops.size());
    llvm::Error error = llvm::Error::success();
    if (const SliceGroup *group = groups ? groups->at(number) : nullptr) {
      error = emitGroup(*group, ArrayRef(ops).slice(number, group->last - group->first + 1));
    } else {
      stream.beginLayer(nameOf(op));
      error = emitWith(op, [&] {
        llvm::Error failed = emit(op);
        return failed ? std::move(failed) : emitCopiesBehind(op);
      });
    }
    if (error) {
      unsupportedOps.push_back({ops[number], reasonsOf(std::move(error))});
    }
  }
  if (llvm::Error error = emitWith(nullptr, [&] { return emitOutputs(); })) {
    unsupportedOps.push_back({rejectedOutput, reasonsOf(std::move(error))});
  }
  return success(unsupportedOps.empty());
}

} // namespace tessera::npu

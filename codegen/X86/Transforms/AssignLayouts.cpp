//===- AssignLayouts.cpp - Channel-blocked or row-major, per tensor -------===//
// SPDX-License-Identifier: Apache-2.0
//
// One walk in program order. Convolutions with a fast kernel write blocks; ops that work in either layout follow their
// main input; everything else is row-major. Then each operand that lies otherwise than wanted is converted, once per
// tensor and block.
//===----------------------------------------------------------------------===//
#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
namespace {

/// What an op wants of one operand.
enum class Wanted { RowMajor, Blocked, Any };

/// The decision for one op.
struct Choice {
  bool blockedResult = false;
  SmallVector<Wanted> operands;
};

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Only image-like tensors of f32, f16, bf16, i8, ui8 and i16 are ever blocked.
bool canBlock(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto fits = [](Type element) {
    return element.isF32() || device::isNarrowFloat(element) || isIntegerOperand(element);
  };
  return type && type.getRank() == 4 && fits(type.getElementType()) && type.hasStaticShape() &&
         type.getNumElements() > 0;
}

bool blocked(Value value) { return device::isBlocked(value.getType()); }

/// Whether |user| takes a blocked operand without a conversion, as far as can be told before its own decision.
bool takesBlocked(Operation *user) {
  auto layouts = dyn_cast<device::LayoutInterface>(user);
  return layouts && canBlock(user->getResult(0)) && layouts.canWriteBlocks();
}

bool anyUserTakesBlocked(Value value) { return llvm::any_of(value.getUsers(), takesBlocked); }

/// Whether blocks pay for the result of |op|: an operand that it walks together with its result is blocked, and
/// somebody wants them behind it, or else putting them off is no cheaper before it.
bool wantsBlocks(device::LayoutInterface op) {
  Value result = op->getResult(0);
  auto operands = op->getOpOperands();
  auto carried =
      llvm::find_if(operands, [&](OpOperand &operand) { return op.carriesLayout(operand) && blocked(operand.get()); });
  if (carried == operands.end() || !canBlock(result) || !op.canWriteBlocks()) {
    return false;
  }
  bool converts = op.getOperandLayout(*carried, /*blockedResult=*/false) == device::OperandLayout::Any;
  bool grows = typeOf(carried->get()).getNumElements() < typeOf(result).getNumElements();
  return !(converts || grows) || anyUserTakesBlocked(result);
}

class AssignLayouts : public impl::AssignLayoutsPassBase<AssignLayouts> {
public:
  using AssignLayoutsPassBase::AssignLayoutsPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (auto conv = dyn_cast<device::ConvOp>(op)) {
        mergeGroups(conv);
        splitEpilogue(conv);
      }
    }
    ops.clear();
    // Pre-order: an op is decided after everything before it, and before the ops of its regions.
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (op->getParentOp() && !isa<ModuleOp, func::FuncOp>(op)) {
        apply(op, decide(op));
      }
    }
  }

private:
  Choice decide(Operation *op) {
    Choice choice;
    choice.operands.assign(op->getNumOperands(), Wanted::RowMajor);
    if (auto conv = dyn_cast<device::ConvOp>(op)) {
      decideConv(conv, choice);
    } else if (auto layouts = dyn_cast<device::LayoutInterface>(op)) {
      choice.blockedResult = wantsBlocks(layouts);
      for (OpOperand &operand : op->getOpOperands()) {
        choice.operands[operand.getOperandNumber()] = wantedOf(layouts, operand, choice.blockedResult);
      }
    }
    return choice;
  }

  static Wanted wantedOf(device::LayoutInterface op, OpOperand &operand, bool blockedResult) {
    Wanted asResult = blockedResult ? Wanted::Blocked : Wanted::RowMajor;
    switch (op.getOperandLayout(operand, blockedResult)) {
    case device::OperandLayout::RowMajor:
      return Wanted::RowMajor;
    case device::OperandLayout::AsResult:
      return asResult;
    case device::OperandLayout::Any:
      break;
    }
    // Parts of a concatenation that stays blocked are so too; constants stay as they are.
    bool follows = blockedResult && op.carriesLayout(operand) && canBlock(operand.get());
    return follows && !top::isConstant(operand.get()) ? Wanted::Blocked : Wanted::Any;
  }

  void decideConv(device::ConvOp conv, Choice &choice) {
    std::optional<ConvChoice> fast;
    if (canBlock(conv.getX())) {
      fast = chooseConvAlgorithm(conv, vectorBytes, winograd);
    }
    bool constants = top::isConstant(conv.getW()) && (!isByte(typeOf(conv.getX()).getElementType()) ||
                                                      !conv.getBias() || top::isConstant(conv.getBias()));
    if (!fast || !constants) {
      return;
    }
    choice.blockedResult = true;
    ConvWeightDims dims = weightDims(conv);
    // Few channels are read as rows of the image: blocks would be mostly padding.
    bool few = dims.groupC <= 4 || (dims.groupC < kBlock && dims.kw > 1);
    bool rows = fast->algorithm == ConvAlgorithm::direct && dims.groups == 1 && few && !blocked(conv.getX());
    choice.operands[0] = rows ? Wanted::RowMajor : Wanted::Blocked;
    conv->setAttr(X86Dialect::kAlgorithmAttr, AlgorithmAttr::get(&getContext(), fast->algorithm, fast->outputTile));
    for (OpOperand &extra : conv.getExtrasMutable()) {
      choice.operands[extra.getOperandNumber()] =
          wantedOf(cast<device::LayoutInterface>(*conv), extra, /*blockedResult=*/true);
    }
  }

  void apply(Operation *op, const Choice &choice) {
    for (OpOperand &operand : op->getOpOperands()) {
      Wanted wanted = choice.operands[operand.getOperandNumber()];
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || wanted == Wanted::Any || device::isBlocked(type) == (wanted == Wanted::Blocked)) {
        continue;
      }
      operand.set(convert(operand.get(), wanted == Wanted::Blocked, op));
    }
    if (choice.blockedResult) {
      op->getResult(0).setType(device::getBlockedType(typeOf(op->getResult(0)), kBlock));
      ++numBlocked;
    }
  }

  /// |value| in the other layout, for |user| and all later ops of its block.
  Value convert(Value value, bool toBlocked, Operation *user) {
    Value &known = converted[{value, user->getBlock()}];
    if (known) {
      return known;
    }
    OpBuilder builder(user);
    RankedTensorType type = typeOf(value);
    RankedTensorType target = toBlocked ? device::getBlockedType(type, kBlock) : device::getRowMajorType(type);
    if (device::sameBytes(type, target)) {
      known = device::ReshapeOp::create(builder, value.getLoc(), target, value);
    } else {
      Attribute piece = device::Piece::identity(0, type.getShape()).get(&getContext());
      known = device::CopyOp::create(builder, value.getLoc(), target, value, builder.getArrayAttr(piece), FloatAttr());
      ++numCopies;
    }
    // The way back is the original.
    converted[{known, user->getBlock()}] = value;
    return converted[{value, user->getBlock()}];
  }

  /// Joins neighbouring groups until they fill whole blocks; the weights between old groups are zero.
  void mergeGroups(device::ConvOp conv) {
    RankedTensorType w = typeOf(conv.getW());
    std::optional<top::TensorData> data;
    bool types = w.getElementType().isF32() || device::isNarrowFloat(w.getElementType()) || isByte(w.getElementType());
    if (!canBlock(conv.getX()) || conv.getGroups() == 1 || conv.getScales() || conv.getPacking() || !types ||
        w.getRank() != 4) {
      return;
    }
    ConvWeightDims dims = weightDims(conv);
    int64_t merge = dims.groupC == 1 && dims.oc == dims.groups ? 1 : groupsToMerge(conv);
    if (merge <= 1 || !(data = top::getConstantData(conv.getW()))) {
      return;
    }
    int64_t taps = dims.kh * dims.kw, groupOc = dims.oc / dims.groups, filter = dims.groupC * taps;
    auto type = RankedTensorType::get({dims.oc, dims.groupC * merge, dims.kh, dims.kw}, w.getElementType());
    int64_t filterBytes = filter * device::elementBytes(w.getElementType());
    std::vector<char> bytes(merge * dims.oc * filterBytes, 0);
    for (int64_t oc = 0; oc < dims.oc; ++oc) {
      int64_t place = oc / groupOc % merge;
      std::copy_n(data->data<char>().data() + oc * filterBytes, filterBytes,
                  bytes.data() + (oc * merge + place) * filterBytes);
    }
    OpBuilder builder(conv);
    conv.getWMutable().set(top::createConstant(builder, conv.getW().getLoc(), type, std::move(bytes), "merged_groups"));
    conv.setGroups(dims.groups / merge);
  }

  /// Moves an epilogue whose operands the kernels cannot read into a map behind the convolution.
  void splitEpilogue(device::ConvOp conv) {
    RankedTensorType y = typeOf(conv.getY());
    bool simple = llvm::all_of(conv.getExtras(), [&](Value extra) { return conv.canReadExtra(extra); });
    if (simple || !canBlock(conv.getX()) || conv.getEpilogue().empty()) {
      return;
    }
    OpBuilder builder(conv->getContext());
    builder.setInsertionPointAfter(conv);
    conv.getY().setType(RankedTensorType::get(y.getShape(), conv.getAccumulatorType()));
    SmallVector<Value> inputs{conv.getY()};
    llvm::append_range(inputs, conv.getExtras());
    auto map = device::MapOp::create(builder, conv.getLoc(), y, inputs);
    map.getBody().takeBody(conv.getEpilogue());
    conv.getExtrasMutable().clear();
    conv.getY().replaceAllUsesExcept(map.getY(), map);
    if (Attribute names = conv->removeAttr("top.outputs")) {
      map->setAttr("top.outputs", names);
    }
  }

  DenseMap<std::pair<Value, Block *>, Value> converted;
};

} // namespace
} // namespace tessera::x86

//===- AssignLayouts.cpp - Channel-blocked or row-major, per tensor -------===//
// SPDX-License-Identifier: Apache-2.0
//
// One walk in program order. Convolutions with a fast kernel write blocks; ops that work in either layout follow their
// main input; everything else is row-major. Then each operand that lies otherwise than wanted is converted, once per
// tensor and block.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/ConvAlgorithm.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera::device {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
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
  auto fits = [](Type element) { return element.isF32() || isNarrowFloat(element) || isIntegerOperand(element); };
  return type && type.getRank() == 4 && fits(type.getElementType()) && type.hasStaticShape() &&
         type.getNumElements() > 0;
}

bool blocked(Value value) { return isBlocked(value.getType()); }

/// A copy whose pieces keep every dim in its place: slices, pads and concatenations.
bool keepsDims(CopyOp copy) {
  for (auto piece : copy.getPieces().getAsRange<PieceAttr>()) {
    for (auto [dim, source] : llvm::enumerate(piece.getSrcDims())) {
      if (source != static_cast<int64_t>(dim)) {
        return false;
      }
    }
  }
  return true;
}

/// Whether |user| takes a blocked operand without a conversion, as far as can be told before its own decision.
bool takesBlocked(Operation *user) {
  return llvm::TypeSwitch<Operation *, bool>(user)
      .Case<ConvOp, PoolOp, MapOp, LutOp, ResizeOp>([](Operation *op) { return canBlock(op->getResult(0)); })
      .Case<ReduceOp>([](ReduceOp op) { return llvm::all_of(op.getAxes(), [](int64_t axis) { return axis >= 2; }); })
      .Case<CopyOp>([](CopyOp op) { return canBlock(op.getY()) && keepsDims(op); })
      .Default([](Operation *) { return false; });
}

bool anyUserTakesBlocked(Value value) { return llvm::any_of(value.getUsers(), takesBlocked); }

class AssignLayouts : public impl::AssignLayoutsPassBase<AssignLayouts> {
public:
  using AssignLayoutsPassBase::AssignLayoutsPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (auto conv = dyn_cast<ConvOp>(op)) {
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
    llvm::TypeSwitch<Operation *>(op)
        .Case<ConvOp>([&](ConvOp conv) { decideConv(conv, choice); })
        .Case<PoolOp>([&](PoolOp pool) { follow(op, choice, blocked(pool.getX()) && canBlock(pool.getY())); })
        .Case<LutOp>([&](LutOp lut) { follow(op, choice, blocked(lut.getX()) && canBlock(lut.getY())); })
        .Case<ResizeOp>([&](ResizeOp resize) {
          bool spatial = llvm::all_of(resize.getAxes(), [](int64_t axis) { return axis >= 2; });
          // A result that nobody wants blocked is converted where it is smaller.
          bool grows = typeOf(resize.getX()).getNumElements() < typeOf(resize.getY()).getNumElements();
          bool useful = !grows || anyUserTakesBlocked(resize.getY());
          follow(op, choice, blocked(resize.getX()) && canBlock(resize.getY()) && spatial && useful);
        })
        .Case<ReduceOp>([&](ReduceOp reduce) {
          bool spatial = llvm::all_of(reduce.getAxes(), [](int64_t axis) { return axis >= 2; });
          follow(op, choice, blocked(reduce.getX()) && canBlock(reduce.getY()) && spatial);
        })
        .Case<MapOp>([&](MapOp map) {
          bool any = llvm::any_of(map.getInputs(), [&](Value input) {
            return blocked(input) && typeOf(input).getShape() == typeOf(map.getY()).getShape();
          });
          follow(op, choice, any && canBlock(map.getY()));
        })
        .Case<CopyOp>([&](CopyOp copy) { decideCopy(copy, choice); })
        .Default([](Operation *) {});
    return choice;
  }

  void decideConv(ConvOp conv, Choice &choice) {
    ConvChoice fast = canBlock(conv.getX()) ? chooseConvAlgorithm(conv, vectorBytes, winograd) : ConvChoice();
    bool constants = top::isConstant(conv.getW()) && (!isByte(typeOf(conv.getX()).getElementType()) ||
                                                      !conv.getBias() || top::isConstant(conv.getBias()));
    if (fast.algorithm == ConvAlgorithm::generic || !constants) {
      return;
    }
    choice.blockedResult = true;
    ConvWeightDims dims = weightDims(conv);
    // Few channels are read as rows of the image: blocks would be mostly padding.
    bool few = dims.groupC <= 4 || (dims.groupC < kChannelBlock && dims.kw > 1);
    bool rows = fast.algorithm == ConvAlgorithm::direct && dims.groups == 1 && few && !blocked(conv.getX());
    choice.operands[0] = rows ? Wanted::RowMajor : Wanted::Blocked;
    conv.setAlgorithm(fast.algorithm);
    for (OpOperand &extra : conv.getExtrasMutable()) {
      bool same =
          typeOf(extra.get()).getShape() == typeOf(conv.getY()).getShape() && typeOf(extra.get()).getNumElements() > 1;
      choice.operands[extra.getOperandNumber()] = same ? Wanted::Blocked : Wanted::Any;
    }
  }

  /// An op that works in either layout. Blocked: operands of the main shapes are blocked, broadcast ones stay.
  void follow(Operation *op, Choice &choice, bool makeBlocked) {
    choice.blockedResult = makeBlocked;
    if (!makeBlocked) {
      return;
    }
    auto shape = typeOf(op->getResult(0)).getShape();
    for (OpOperand &operand : op->getOpOperands()) {
      bool main = operand.getOperandNumber() == 0 && !isa<MapOp>(op);
      bool same = typeOf(operand.get()).getShape() == shape && !top::isConstant(operand.get());
      choice.operands[operand.getOperandNumber()] = main || same ? Wanted::Blocked : Wanted::Any;
    }
  }

  void decideCopy(CopyOp copy, Choice &choice) {
    // Any source layout is read as it is; a concatenation stays in the layout of its parts when someone wants that.
    bool anyBlocked = llvm::any_of(copy.getSources(), blocked);
    choice.blockedResult = anyBlocked && canBlock(copy.getY()) && keepsDims(copy) && anyUserTakesBlocked(copy.getY());
    llvm::fill(choice.operands, Wanted::Any);
    if (!choice.blockedResult) {
      return;
    }
    for (OpOperand &operand : copy->getOpOperands()) {
      if (canBlock(operand.get()) && !top::isConstant(operand.get())) {
        choice.operands[operand.getOperandNumber()] = Wanted::Blocked;
      }
    }
  }

  void apply(Operation *op, const Choice &choice) {
    for (OpOperand &operand : op->getOpOperands()) {
      Wanted wanted = choice.operands[operand.getOperandNumber()];
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || wanted == Wanted::Any || isBlocked(type) == (wanted == Wanted::Blocked)) {
        continue;
      }
      operand.set(convert(operand.get(), wanted == Wanted::Blocked, op));
    }
    if (choice.blockedResult) {
      op->getResult(0).setType(getBlockedType(typeOf(op->getResult(0)), kChannelBlock));
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
    RankedTensorType target = toBlocked ? getBlockedType(type, kChannelBlock) : getRowMajorType(type);
    if (sameBytes(type, target)) {
      known = ReshapeOp::create(builder, value.getLoc(), target, value);
    } else {
      Attribute piece = Piece::identity(0, type.getShape()).get(&getContext());
      known = CopyOp::create(builder, value.getLoc(), target, value, builder.getArrayAttr(piece), FloatAttr());
      ++numCopies;
    }
    // The way back is the original.
    converted[{known, user->getBlock()}] = value;
    return converted[{value, user->getBlock()}];
  }

  /// Joins neighbouring groups until they fill whole blocks; the weights between old groups are zero.
  void mergeGroups(ConvOp conv) {
    RankedTensorType w = typeOf(conv.getW());
    std::optional<top::TensorData> data;
    bool types = w.getElementType().isF32() || isNarrowFloat(w.getElementType()) || isByte(w.getElementType());
    if (!canBlock(conv.getX()) || conv.getGroups() == 1 || conv.getScales() || conv.getPacked() || !types ||
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
    int64_t filterBytes = filter * elementBytes(w.getElementType());
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
  void splitEpilogue(ConvOp conv) {
    RankedTensorType y = typeOf(conv.getY());
    bool simple = llvm::all_of(conv.getExtras(), [&](Value extra) { return isSimpleExtra(typeOf(extra), y); });
    if (simple || !canBlock(conv.getX()) || conv.getEpilogue().empty()) {
      return;
    }
    OpBuilder builder(conv->getContext());
    builder.setInsertionPointAfter(conv);
    conv.getY().setType(RankedTensorType::get(y.getShape(), conv.getAccumulatorType()));
    SmallVector<Value> inputs{conv.getY()};
    llvm::append_range(inputs, conv.getExtras());
    auto map = MapOp::create(builder, conv.getLoc(), y, inputs);
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
} // namespace tessera::device

//===- ChannelFlow.cpp - Which channels must be scaled together ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Equalize/ChannelFlow.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;

namespace tessera::quant {
namespace {

RankedTensorType typeOf(Value value) { return dyn_cast<RankedTensorType>(value.getType()); }

bool isConstantF32(Value value) { return isF32(value) && top::isConstant(value); }

/// Checks that a clamp with an upper limit follows, which does not commute with scaling.
template <typename Op>
bool isClamped(Op op) {
  return op.getRelu() && op.getReluLimit().convertToDouble() > 0;
}

/// Returns the dim of the reshaped `y` to which the dim `axis` of `x` maps, alone or merged with all dims after it; -1
/// if there is none.
int64_t axisAfterReshape(Shape x, Shape y, int64_t axis) {
  if (!x[axis].isKnown()) {
    return -1;
  }
  Dim before = countElements(x.dropBack(x.rank() - axis)), here = 1;
  int64_t size = x[axis].value();
  for (size_t i = 0; i < y.rank(); here *= y[i++]) {
    bool holdsChannels = y[i].isKnown() && y[i].value() >= size && y[i].value() % size == 0;
    if (holdsChannels && sameSize(here, before) &&
        sameSize(countElements(y.dropFront(i)), countElements(x.dropFront(axis)))) {
      int64_t inner = y[i].value() / size; // values of one channel that lie along the dim now
      Dim behind = countElements(y.dropFront(i + 1)) * inner;
      return inner == 1 || sameSize(behind, countElements(x.dropFront(axis + 1))) ? int64_t(i) : -1;
    }
  }
  return -1;
}

/// Returns the non-constant operand of an op with exactly one constant among its first two operands, else null.
Value partner(Operation *op) {
  bool first = top::isConstant(op->getOperand(0)), second = top::isConstant(op->getOperand(1));
  return first == second ? Value() : op->getOperand(first ? 1 : 0);
}

} // namespace

std::optional<ContractionChannels> contractionChannels(Operation *op) {
  bool known = isa<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>(op) && op->getNumOperands() >= 2 &&
               isConstantF32(op->getOperand(1)) && !top::isConstant(op->getOperand(0)) &&
               (!biasOf(op) || isConstantF32(biasOf(op)));
  if (!known) {
    return std::nullopt;
  }
  RankedTensorType w = typeOf(op->getOperand(1));
  if (auto matmul = dyn_cast<top::MatMulOp>(op)) {
    if (matmul.getTransA() || w.getRank() != 2) {
      return std::nullopt;
    }
    int64_t last = typeOf(matmul.getA()).getRank() - 1, k = matmul.getTransB() ? 1 : 0;
    return ContractionChannels{last, last, w.getDimSize(k), w.getDimSize(1 - k), 1, 1, k == 0};
  }
  int64_t taps = ShapedType::getNumElements(w.getShape().drop_front(2));
  if (auto conv = dyn_cast<top::ConvOp>(op)) {
    int64_t groups = conv.getGroups();
    return ContractionChannels{1, 1, w.getDimSize(1) * groups, w.getDimSize(0), groups, taps, false};
  }
  int64_t groups = cast<top::ConvTransposeOp>(op).getGroups();
  return ContractionChannels{1, 1, w.getDimSize(0), w.getDimSize(1) * groups, groups, taps, true};
}

ChannelFlow::ChannelFlow(func::FuncOp function) {
  same.insert(0);
  for (Operation &op : function.getBody().front()) {
    visit(&op);
    op.walk([&](Operation *inner) { // operands of ops inside branches and loops
      if (inner != &op) {
        fixOperands(inner);
      }
    });
  }
  for (auto &[value, channels] : known) {
    for (int &group : channels.groups) {
      group = same.isEquivalent(group, 0) ? 0 : same.getLeaderValue(group);
    }
  }
}

const ChannelFlow::Channels *ChannelFlow::of(Value value) const {
  auto it = known.find(value);
  return it == known.end() ? nullptr : &it->second;
}

void ChannelFlow::visit(Operation *op) {
  if (std::optional<ContractionChannels> contraction = contractionChannels(op)) {
    visitContraction(op, *contraction);
  } else if (auto norm = dyn_cast<top::LayerNormOp>(op)) {
    fixOperands(op);
    int64_t last = typeOf(norm.getX()).getRank() - 1;
    bool takes = int64_t(norm.getAxis()) == last && norm.getScale() && isConstantF32(norm.getScale()) &&
                 (!norm.getBias() || isConstantF32(norm.getBias()));
    if (takes) {
      begin(norm.getY(), last);
    }
  } else if (!passMove(op)) {
    visitElementwise(op);
  }
}

void ChannelFlow::visitContraction(Operation *op, const ContractionChannels &contraction) {
  Value x = op->getOperand(0);
  if (const Channels *channels = of(x);
      channels && (channels->axis != contraction.inputAxis || channels->groups.size() != size_t(contraction.inputs))) {
    fix(x);
  }
  bool clamped = llvm::TypeSwitch<Operation *, bool>(op)
                     .Case<top::ConvOp, top::ConvTransposeOp, top::MatMulOp>([](auto it) { return isClamped(it); })
                     .Default(true);
  if (!clamped) {
    begin(op->getResult(0), contraction.outputAxis);
  }
}

void ChannelFlow::visitElementwise(Operation *op) {
  Value result = op->getNumResults() == 1 ? op->getResult(0) : Value();
  if (!result || kindOf(op) != OpKind::elementwise) {
    fixOperands(op);
    return;
  }
  if (isa<top::ReluOp, top::LeakyReluOp, top::AbsOp, top::NegOp>(op)) {
    if (const Channels *channels = of(op->getOperand(0))) {
      pass(op->getOperand(0), result, channels->axis);
    }
    return;
  }
  if (isa<top::AddOp, top::SubOp>(op) && !partner(op) && op->getOperand(0).getType() == op->getOperand(1).getType()) {
    unite(op->getOperand(0), op->getOperand(1));
    if (const Channels *channels = of(op->getOperand(0)); channels && of(op->getOperand(1))) {
      pass(op->getOperand(0), result, channels->axis);
    }
    return;
  }
  bool byConstant = isa<top::AddOp, top::SubOp, top::MulOp>(op) ||
                    (isa<top::DivOp, top::PReluOp>(op) && top::isConstant(op->getOperand(1)));
  if (Value x = byConstant ? partner(op) : Value(); x && of(x) && x.getType() == result.getType()) {
    pass(x, result, of(x)->axis);
    return;
  }
  // Use the channel dim of the first operand of the same rank that has channels, else the conventional channel dim.
  int64_t rank = typeOf(result).getRank(), axis = rank >= 4 ? 1 : rank - 1;
  for (Value operand : op->getOperands()) {
    if (const Channels *channels = of(operand); channels && typeOf(operand).getRank() == rank) {
      axis = channels->axis;
      break;
    }
  }
  fixOperands(op);
  if (axis >= 0) {
    begin(result, axis);
  }
}

/// Propagates channels through ops that only move values or combine values of one channel.
bool ChannelFlow::passMove(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0 || !isF32(op->getResult(0))) {
    return false;
  }
  Value x = op->getOperand(0), result = op->getResult(0);
  const Channels *channels = of(x);
  if (auto concat = dyn_cast<top::ConcatOp>(op)) {
    int64_t axis = concat.getAxis();
    bool all = llvm::all_of(op->getOperands(), [&](Value v) { return of(v) && of(v)->axis == channels->axis; });
    if (!channels || !all) {
      return false;
    }
    Channels joined = *channels;
    for (Value other : op->getOperands().drop_front()) {
      if (axis == joined.axis) {
        joined.groups.append(of(other)->groups);
      } else {
        unite(x, other);
      }
    }
    known[result] = std::move(joined);
    return true;
  }
  if (!channels) {
    return false;
  }
  int64_t axis = channels->axis;
  auto keepsDim = [&](int64_t at) { return typeOf(result).getDimSize(at) == int64_t(channels->groups.size()); };
  int64_t to =
      llvm::TypeSwitch<Operation *, int64_t>(op)
          .Case<top::MaxPoolOp, top::AvgPoolOp>([&](auto) { return axis == 1 ? int64_t(1) : -1; })
          .Case([&](top::ResizeOp) { return keepsDim(axis) ? axis : -1; })
          .Case([&](top::PadOp pad) {
            bool zeros = pad.getMode() != top::PadMode::constant || pad.getValue().isZero();
            return zeros && keepsDim(axis) ? axis : -1;
          })
          .Case([&](top::SliceOp slice) { return keepsDim(axis) && slice.getSteps()[axis] == 1 ? axis : -1; })
          .Case([&](top::TransposeOp transpose) {
            return int64_t(llvm::find(transpose.getPerm(), axis) - transpose.getPerm().begin());
          })
          .Case([&](top::ReduceOp reduce) -> int64_t {
            bool homogeneous = reduce.getKind() != top::ReduceKind::prod && kindOf(op) != OpKind::other;
            if (!homogeneous || llvm::is_contained(reduce.getAxes(), axis)) {
              return -1;
            }
            return axis -
                   (reduce.getKeepDims() ? 0 : llvm::count_if(reduce.getAxes(), [&](int64_t a) { return a < axis; }));
          })
          .Case([&](top::ReshapeOp) { return axisAfterReshape(typeOf(x), typeOf(result), axis); })
          .Default([](Operation *) { return int64_t(-1); });
  if (to < 0) {
    return false;
  }
  pass(x, result, to);
  return true;
}

void ChannelFlow::begin(Value result, int64_t axis) {
  RankedTensorType type = typeOf(result);
  if (!isF32(result) || axis >= type.getRank() || type.isDynamicDim(axis)) {
    return;
  }
  Channels channels{axis, {}};
  for (int64_t i = 0; i < type.getDimSize(axis); ++i) {
    same.insert(count);
    channels.groups.push_back(count++);
  }
  known[result] = std::move(channels);
  begins.push_back(result);
}

void ChannelFlow::pass(Value from, Value result, int64_t axis) {
  const Channels &channels = known.find(from)->second;
  int64_t size = typeOf(result).getDimSize(axis), inner = size / int64_t(channels.groups.size());
  Channels passed{axis, {}};
  for (int group : channels.groups) {
    passed.groups.append(inner, group);
  }
  known[result] = std::move(passed);
}

void ChannelFlow::unite(Value a, Value b) {
  const Channels *x = of(a), *y = of(b);
  if (!x || !y || x->axis != y->axis || x->groups.size() != y->groups.size()) {
    fix(a);
    fix(b);
    return;
  }
  for (auto [i, j] : llvm::zip_equal(x->groups, y->groups)) {
    same.unionSets(i, j);
  }
}

void ChannelFlow::fix(Value value) {
  if (const Channels *channels = of(value)) {
    for (int group : channels->groups) {
      same.unionSets(group, 0);
    }
  }
}

void ChannelFlow::fixOperands(Operation *op) {
  for (Value operand : op->getOperands()) {
    fix(operand);
  }
}

} // namespace tessera::quant

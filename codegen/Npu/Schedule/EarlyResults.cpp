//===- EarlyResults.cpp - Moves large results to the front ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Results that are computed last are stored while nothing is left to compute. A model's ops stand in the order of its
// file, and a detector's heads, of which the first has the most positions, stand behind all ops that join scales.
// Therefore the ops that only contribute to one part of the results are moved right behind their operands; the
// remaining ops compute while that part is stored.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/ChipPass.h"
#include "device_dialect/IR/DeviceOps.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::npu {
#define GEN_PASS_DEF_EARLYRESULTSPASS
#include "codegen/Npu/Passes.h.inc"

using namespace mlir;

namespace {

/// Least duration of a store that is worth moving ops for, in DMA latencies.
constexpr double kLeastStore = 8;

using Ops = llvm::SetVector<Operation *>;

bool isConstant(Operation *op) { return op->hasTrait<OpTrait::ConstantLike>(); }

int64_t bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? type.getNumElements() * type.getElementTypeBitWidth() / 8 : 0;
}

/// Returns true if the op can stand anywhere behind the definitions of its operands.
bool canMove(Operation *op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  return isPure(op) && captured.empty();
}

class EarlyResults : public ChipPass<impl::EarlyResultsPassBase<EarlyResults>> {
public:
  using ChipPass::ChipPass;

  void runOnOperation() override {
    Block &body = getOperation().getBody().front();
    Ops stores;
    for (Value part : partsOf(*body.getTerminator(), stores)) {
      Ops makers = makersOf(part);
      numEarly += !makers.empty() && bringForward(makers, body, stores);
    }
  }

private:
  /// Returns the values that are results of the function, or that a copy assembles to a result, if they are large
  /// enough. The largest value comes last: of several values that become ready after the same op, it is then
  /// computed first. Adds the ops that only move parts to their results to |stores|.
  SmallVector<Value> partsOf(Operation &terminator, Ops &stores) const {
    SmallVector<Value> parts;
    stores.insert(&terminator);
    auto take = [&](Operation *op) { return llvm::hasSingleElement(op->getUsers()) && stores.insert(op); };
    for (Value result : terminator.getOperands()) {
      Value whole = result;
      for (auto reshape = whole.getDefiningOp<device::ReshapeOp>(); reshape && take(reshape);
           reshape = whole.getDefiningOp<device::ReshapeOp>()) {
        whole = reshape.getX();
      }
      auto copy = whole.getDefiningOp<device::CopyOp>();
      bool hasParts = copy && copy.getSources().size() > 1 && take(copy);
      llvm::append_range(parts, hasParts ? ValueRange(copy.getSources()) : ValueRange(whole));
    }
    double least = kLeastStore * chip().dmaLatency * chip().ddrBytesPerCycle();
    llvm::erase_if(parts, [&](Value part) {
      return !part.getDefiningOp() || isConstant(part.getDefiningOp()) || double(bytesOf(part)) < least;
    });
    std::sort(parts.begin(), parts.end(), [](Value a, Value b) { // of equal sizes, the first in the block comes last
      Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
      return bytesOf(a) != bytesOf(b) ? bytesOf(a) < bytesOf(b) : second->isBeforeInBlock(first);
    });
    return parts;
  }

  /// Returns the ops that only contribute to |part|, in block order. |part| itself may be a result several times.
  static Ops makersOf(Value part) {
    Ops found;
    Operation *last = part.getDefiningOp();
    for (Operation *op = last; op; op = op->getPrevNode()) {
      auto isFound = [&](Operation *user) { return found.contains(user); };
      if (canMove(op) && (op == last || (!op->use_empty() && llvm::all_of(op->getUsers(), isFound)))) {
        found.insert(op);
      }
    }
    auto order = llvm::reverse(found);
    return Ops(order.begin(), order.end());
  }

  /// Moves |makers| behind the last other op that computes an operand of one of them. Returns false if nothing moves.
  bool bringForward(const Ops &makers, Block &body, const Ops &stores) const {
    Operation *behind = nullptr;
    for (Operation *maker : makers) {
      for (Value operand : maker->getOperands()) {
        Operation *op = operand.getDefiningOp();
        bool isOther = op && !isConstant(op) && !makers.contains(op);
        behind = isOther && (!behind || behind->isBeforeInBlock(op)) ? op : behind;
      }
    }
    SmallVector<Operation *> order, moved, passed; // constants are not counted
    for (Operation &op : body.without_terminator()) {
      bool isBefore = behind && !behind->isBeforeInBlock(&op);
      if (!isConstant(&op)) {
        (isBefore ? order : makers.contains(&op) ? moved : passed).push_back(&op);
      }
    }
    bool passes = !passed.empty() && passed.front()->isBeforeInBlock(moved.back());
    const size_t begin = order.size();
    llvm::append_range(order, moved), llvm::append_range(order, passed);
    if (!passes || !haveRoom(order, begin, stores)) {
      return false;
    }
    for (Operation *op : moved) {
      op->moveBefore(passed.front());
      for (Value operand : op->getOperands()) {
        if (Operation *from = operand.getDefiningOp(); from && op->isBeforeInBlock(from)) {
          from->moveBefore(op); // a constant, all of whose other readers stand behind
        }
      }
    }
    return true;
  }

  /// Returns true if the values alive at each op from |begin| on fit the lanes together with the constants of all these
  /// ops, which must be loaded before the DMA is busy storing. Otherwise the store is one transfer among many that
  /// computation waits for.
  bool haveRoom(ArrayRef<Operation *> order, size_t begin, const Ops &stores) const {
    llvm::DenseMap<Operation *, size_t> number;
    for (auto [index, op] : llvm::enumerate(order)) {
      number[op] = index;
    }
    llvm::SmallSetVector<Value, 16> constants;
    std::vector<int64_t> changes(order.size() + 1, 0); // of the bytes per lane that are alive
    for (auto [index, op] : llvm::enumerate(order)) {
      for (Value result : stores.contains(op) ? ValueRange() : ValueRange(op->getResults())) {
        size_t last = index;
        for (Operation *user : result.getUsers()) {
          last = stores.contains(user) ? last
                                       : std::max(last, number.lookup(op->getBlock()->findAncestorOpInBlock(*user)));
        }
        changes[index] += laneBytesOf(result), changes[last + 1] -= laneBytesOf(result);
      }
      for (Value operand : op->getOperands()) {
        if (index >= begin && operand.getDefiningOp() && isConstant(operand.getDefiningOp())) {
          constants.insert(operand);
        }
      }
    }
    int64_t alive = 0, most = 0;
    for (Value constant : constants) {
      alive += bytesOf(constant);
    }
    alive = int64_t(llvm::divideCeil(alive, chip().lanes));
    for (size_t index = 0; index < order.size(); ++index) {
      alive += changes[index];
      most = index < begin ? most : std::max(most, alive);
    }
    return most <= int64_t(chip().laneBytes);
  }

  /// Returns the bytes per lane of a value whose channels are spread over the lanes.
  int64_t laneBytesOf(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t channels = type.getRank() > 1 ? type.getDimSize(1) : 1;
    return channels > 0 ? bytesOf(value) / channels * int64_t(llvm::divideCeil(channels, chip().lanes)) : 0;
  }
};

} // namespace

std::unique_ptr<Pass> createEarlyResultsPass(const Chip &chip) { return std::make_unique<EarlyResults>(chip); }

} // namespace tessera::npu

//===- FuseEpilogues.cpp - Fusing elementwise ops -------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// One walk in program order: when a map is reached, everything before it is already fused. A map becomes part of the
// epilogue of the last op with an epilogue that it reads; otherwise maps that it reads are inlined into it. Body sizes
// are bounded, so the walk is linear.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/ScalarBodies.h"

#include "mlir/IR/TypeUtilities.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/EpilogueFusion.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::device {
#define GEN_PASS_DEF_FUSEEPILOGUESPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
namespace {

/// Limits of what one kernel can contain.
constexpr int64_t kMaxBodyOps = 64;
constexpr size_t kMaxInputs = 8;
/// Largest number of users in which a cheap computation may be repeated.
constexpr int64_t kMaxRepeats = 4;

bool onlyUsedBy(Value value, Operation *user) {
  return llvm::all_of(value.getUsers(), [&](Operation *other) { return other == user; });
}

class FuseEpilogues : public impl::FuseEpiloguesPassBase<FuseEpilogues> {
public:
  using FuseEpiloguesPassBase::FuseEpiloguesPassBase;

  void runOnOperation() override {
    getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) { order[op] = order.size(); });
    SmallVector<MapOp> maps;
    getOperation().walk([&](MapOp map) { maps.push_back(map); });
    for (MapOp map : maps) {
      intoRows ? fuseIntoRows(map) : fuse(map);
    }
  }

private:
  void fuse(MapOp map) {
    // Two reshaped operands could be lifted alternately without end.
    bool lifted = false;
    while (map) {
      // Widen bytes and 16-bit floats in their users, so that the operands read beside a result are smaller.
      if (MapOp next = fuseInput(map, /*onlyOfNarrow=*/true)) {
        map = next;
        continue;
      }
      if (isForUsers(map)) {
        return;
      }
      if (Operation *producer = findProducer(map)) {
        order[producer] = order[map];
        appendToEpilogue(cast<EpilogueInterface>(producer), map);
        ++numEpilogues;
        return;
      }
      MapOp next = fuseInput(map, /*onlyOfNarrow=*/false);
      if (!next && !lifted) {
        next = liftOverReshape(map);
        lifted = true;
      }
      map = next;
    }
  }

  void fuseIntoRows(MapOp map) {
    if (Operation *producer = findProducer(map)) {
      appendToEpilogue(cast<EpilogueInterface>(producer), map);
      ++numEpilogues;
    }
  }

  static bool makesRows(Operation *op) { return isa<NormOp, AttentionOp>(op); }

  static bool isNarrow(Value value) {
    Type element = typeOf(value).getElementType();
    return element.isInteger(8) || element.isInteger(16) || isNarrowFloat(element);
  }

  static bool widens(MapOp map) { return llvm::all_of(map.getInputs(), isNarrow) && !isNarrow(map.getY()); }

  /// Returns true if |map| only widens for one map that will inline it; until then the tensor stays small.
  static bool isForUsers(MapOp map) {
    auto user = map.getY().hasOneUse() ? dyn_cast<MapOp>(*map->user_begin()) : MapOp();
    return user && widens(map) && !map.getInputs().empty() && user->getBlock() == map->getBlock() &&
           canInline(map, user);
  }

  /// Returns the last op whose epilogue |map| can become part of, or null.
  Operation *findProducer(MapOp map) {
    return top::findEpilogueOwner(
        map, [&](Operation *producer) { return canTake(producer, map); },
        [&](Operation *a, Operation *b) { return order[a] < order[b]; });
  }

  /// Returns true if |producer|'s kernel can store y's type. Kernels of integer sums, norms and attention convert at
  /// their end anyway, and storing rounds to narrow floats; other kernels store the type in which they compute.
  static bool canYield(Operation *producer, Value y) {
    auto from = typeOf(producer->getResult(0));
    bool converts = makesRows(producer) || (isa<ConvOp, MatMulOp>(producer) &&
                                            cast<EpilogueInterface>(producer).getAccumulatorType().isInteger(32));
    bool rounds = from.getElementType().isF32() && isNarrowFloat(typeOf(y).getElementType());
    return sameSizes(from, y) && (from == y.getType() || converts || rounds);
  }

  bool canTake(Operation *producer, MapOp map) {
    auto owner = dyn_cast<EpilogueInterface>(producer);
    auto attention = dyn_cast<AttentionOp>(producer);
    if (!owner || makesRows(producer) != intoRows || (integerAttention && attention && !attention.isOfIntegers()) ||
        producer->getBlock() != map->getBlock() || !canYield(producer, map.getY()) ||
        !onlyUsedBy(producer->getResult(0), map)) {
      return false;
    }
    Type result = getElementTypeOrSelf(producer->getResult(0));
    if (owner.getEpilogueRegion().empty() && result != owner.getAccumulatorType()) {
      return false; // storing rounds, and the map must see the rounded value
    }
    int64_t size = bodySize(map.getBody().front());
    size += owner.getEpilogueRegion().empty() ? 0 : bodySize(owner.getEpilogueRegion().front());
    if (size > kMaxBodyOps || owner.getEpilogueOperands().size() + map.getInputs().size() > kMaxInputs) {
      return false;
    }
    return llvm::all_of(map.getInputs(),
                        [&](Value input) { return input == producer->getResult(0) || owner.canReadExtra(input); });
  }

  /// Inlines one map that |map| reads (only a widening one if |onlyOfNarrow|); returns the new map, or null if nothing
  /// changed.
  MapOp fuseInput(MapOp map, bool onlyOfNarrow) {
    for (Value input : map.getInputs()) {
      auto producer = input.getDefiningOp<MapOp>();
      if (!producer || producer->getBlock() != map->getBlock() || !canInline(producer, map) ||
          (onlyOfNarrow && !widens(producer))) {
        continue;
      }
      unsigned at = order[map];
      MapOp fused = inlineProducer(producer, map);
      order[fused] = at;
      if (producer.getY().use_empty()) {
        producer.erase();
      }
      ++numMaps;
      return fused;
    }
    return {};
  }

  static bool canInline(MapOp producer, MapOp map) {
    bool fits = bodySize(producer.getBody().front()) + bodySize(map.getBody().front()) <= kMaxBodyOps &&
                producer.getInputs().size() + map.getInputs().size() <= kMaxInputs;
    if (!fits || !sameSizes(producer.getY(), map.getY())) {
      return false;
    }
    return onlyUsedBy(producer.getY(), map) || isWorthRepeating(producer);
  }

  /// Returns true for a cheap computation on one tensor that all users can repeat, so that its result need not be
  /// stored.
  static bool isWorthRepeating(MapOp producer) {
    auto isLarge = [](Value input) { return knownNumElements(input) != 1; };
    return isCheap(producer.getBody().front()) && llvm::count_if(producer.getInputs(), isLarge) <= 1 &&
           std::distance(producer->user_begin(), producer->user_end()) <= kMaxRepeats &&
           llvm::all_of(producer->getUsers(), [&](Operation *user) {
             return isa<MapOp>(user) && user->getBlock() == producer->getBlock() &&
                    sameSizes(user->getResult(0), producer.getY());
           });
  }

  /// If |map| reads a reshape of a value with which it could be fused, computes on the dims before the reshape and
  /// reshapes the result. Returns the new map, or null if nothing can be lifted.
  MapOp liftOverReshape(MapOp map) {
    for (Value input : map.getInputs()) {
      auto reshape = input.getDefiningOp<ReshapeOp>();
      if (!reshape || reshape->getBlock() != map->getBlock() || !sameSizes(input, map.getY()) ||
          !onlyUsedBy(input, map) || !onlyUsedBy(reshape.getX(), reshape)) {
        continue;
      }
      Operation *producer = reshape.getX().getDefiningOp();
      if (producer && isa<EpilogueInterface, MapOp>(producer) && !makesRows(producer) &&
          canLift(map, reshape, producer)) {
        return lift(map, reshape);
      }
    }
    return {};
  }

  /// Returns true if the operands mean the same with the other dims: one element, or one for each element of the
  /// result.
  static bool canLift(MapOp map, ReshapeOp reshape, Operation *producer) {
    return llvm::all_of(map.getInputs(), [&](Value input) {
      if (input == reshape.getY() || knownNumElements(input) == 1) {
        return true;
      }
      return sameSizes(input, map.getY()) && (!isa<ConvOp>(producer) || !top::isConstant(input));
    });
  }

  MapOp lift(MapOp map, ReshapeOp reshape) {
    SmallVector<Dim> dims = Shape(reshape.getX()).dims();
    OpBuilder builder(map);
    SmallVector<Value> inputs;
    for (Value input : map.getInputs()) {
      auto same = input.getDefiningOp<ReshapeOp>();
      bool one = knownNumElements(input) == 1;
      RankedTensorType wanted = tensorType(one ? ArrayRef<Dim>() : dims, typeOf(input).getElementType());
      if (same && sameSizes(same.getX(), wanted)) {
        inputs.push_back(same.getX());
      } else if (sameSizes(input, wanted)) {
        inputs.push_back(input);
      } else {
        inputs.push_back(ReshapeOp::create(builder, map.getLoc(), wanted, input));
      }
    }
    RankedTensorType type = tensorType(dims, typeOf(map.getY()).getElementType());
    auto lifted = MapOp::create(builder, map.getLoc(), type, inputs);
    lifted.getBody().takeBody(map.getBody());
    auto back = ReshapeOp::create(builder, map.getLoc(), map.getY().getType(), lifted.getY());
    top::copyNames(map, back);
    order[lifted] = order[map];
    map.getY().replaceAllUsesWith(back.getY());
    map.erase();
    if (reshape.getY().use_empty()) {
      reshape.erase();
    }
    return lifted;
  }

  llvm::DenseMap<Operation *, unsigned> order;
};

} // namespace
} // namespace tessera::device

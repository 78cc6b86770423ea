//===- SplitMaps.cpp - Splitting maps with many operands ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/ScalarBodies.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::device {

#define GEN_PASS_DEF_SPLITMAPSPASS
#include "device_dialect/Transforms/Passes.h.inc"

namespace {

/// Splits a body starting from its arguments: values that depend on few enough of them become tensors.
class MapSplitter {
public:
  MapSplitter(MapOp map, size_t most) : map(map), most(most), builder(map) {
    for (auto [argument, input] : llvm::zip_equal(block().getArguments(), map.getInputs())) {
      tensors[argument] = input;
    }
  }

  void run() {
    Value result = block().getTerminator()->getOperand(0);
    narrow(result);
    MapOp last = mapOf(result, map.getY().getType());
    top::copyNames(map, last);
    map.getY().replaceAllUsesWith(last.getY());
    map.erase();
  }

private:
  using Leaves = llvm::SetVector<Value>;

  Block &block() { return map.getBody().front(); }

  /// Collects the values, among those stored in tensors, from which |value| is computed; constants do not count.
  /// |seen|: values already visited.
  void findLeaves(Value value, Leaves &leaves, DenseSet<Value> &seen) {
    if (!seen.insert(value).second) {
      return;
    }
    if (tensors.contains(value)) {
      leaves.insert(value);
    } else {
      for (Value operand : value.getDefiningOp()->getOperands()) {
        findLeaves(operand, leaves, seen);
      }
    }
  }
  Leaves leavesOf(Value value) {
    Leaves leaves;
    DenseSet<Value> seen;
    findLeaves(value, leaves, seen);
    return leaves;
  }

  /// Turns values into tensors until |value| depends on at most |most| of them.
  void narrow(Value value) {
    if (leavesOf(value).size() <= most) {
      return;
    }
    Operation *op = value.getDefiningOp();
    for (Value operand : op->getOperands()) {
      narrow(operand);
    }
    while (leavesOf(value).size() > most) {
      Value widest = *llvm::max_element(op->getOperands(), [&](Value a, Value b) { return weight(a) < weight(b); });
      tensors[widest] = mapOf(widest, nullptr).getY();
    }
  }
  size_t weight(Value value) { return tensors.contains(value) ? 0 : leavesOf(value).size(); }

  /// Creates a map for one value of the body; if |type| is null, the dims are those to which the operands broadcast.
  MapOp mapOf(Value value, Type type) {
    Leaves leaves = leavesOf(value);
    SmallVector<Value> inputs;
    for (Value leaf : leaves) {
      inputs.push_back(tensors.lookup(leaf));
    }
    Type made = type ? type : tensorType(shapeOf(inputs), value.getType());
    auto part = MapOp::create(builder, map.getLoc(), made, inputs);
    OpBuilder::InsertionGuard guard(builder);
    Block *body = builder.createBlock(&part.getBody());
    IRMapping mapping;
    for (Value leaf : leaves) {
      mapping.map(leaf, body->addArgument(leaf.getType(), map.getLoc()));
    }
    YieldOp::create(builder, map.getLoc(), clone(value, mapping));
    return part;
  }
  Value clone(Value value, IRMapping &mapping) {
    if (!mapping.contains(value)) {
      Operation *op = value.getDefiningOp();
      for (Value operand : op->getOperands()) {
        clone(operand, mapping);
      }
      builder.clone(*op, mapping);
    }
    return mapping.lookup(value);
  }

  static SmallVector<Dim> shapeOf(ArrayRef<Value> tensors) {
    SmallVector<Dim> shape;
    for (Value tensor : tensors) {
      Shape dims = tensor;
      shape.insert(shape.begin(), dims.rank() > shape.size() ? dims.rank() - shape.size() : 0, Dim(1));
      for (size_t back = 1; back <= dims.rank(); ++back) {
        Dim &dim = shape[shape.size() - back];
        dim = dim.is(1) ? dims[dims.rank() - back] : dim;
      }
    }
    return shape;
  }

  MapOp map;
  size_t most;
  OpBuilder builder;
  DenseMap<Value, Value> tensors; ///< tensors of the body's values that have one
};

struct SplitMapsPass : impl::SplitMapsPassBase<SplitMapsPass> {
  using SplitMapsPassBase::SplitMapsPassBase;

  void runOnOperation() override {
    for (MapOp map : llvm::to_vector(getOperation().getBody().getOps<MapOp>())) {
      splitMap(map, most);
    }
  }
};

} // namespace

void splitMap(MapOp map, size_t most) {
  if (map.getInputs().size() > most) {
    MapSplitter(map, most).run();
  }
}

} // namespace tessera::device

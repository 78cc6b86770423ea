//===- AssignAddresses.cpp - Assigning addresses to values ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Values that share bytes are joined into buffers: views with their sources, parts with their concatenation, results
// with the operands that they overwrite. The buffers, with lifetimes in program order, are then placed.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/PlaceBuffers.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::device {
#define GEN_PASS_DEF_ASSIGNADDRESSESPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
namespace {

/// Union-find over values that share bytes.
class Buffers {
public:
  struct Place {
    unsigned root;
    int64_t offset;
  };
  /// Properties of a buffer; valid for the root of each set.
  struct Info {
    int64_t bytes = 0;
    int64_t memory = 0;                   ///< as in Address
    int64_t first = INT64_MAX, last = -1; ///< steps of the first and the last use
    int64_t offset = 0;                   ///< in the memory, after placement
  };

  void add(Value value, int64_t memory) {
    index[value] = parents.size();
    parents.push_back({static_cast<unsigned>(parents.size()), 0});
    infos.push_back({physicalBytes(typeOf(value)), memory});
  }

  bool contains(Value value) const { return index.contains(value); }

  Place find(Value value) { return find(index.at(value)); }
  Info &info(Value value) { return infos[find(value).root]; }
  Info &info(unsigned root) { return infos[root]; }

  /// Returns true if |value| is its whole buffer and the buffer is not bound to a memory of the caller.
  bool isFree(Value value) {
    Place place = find(value);
    return place.offset == 0 && infos[place.root].bytes == physicalBytes(typeOf(value)) &&
           infos[place.root].memory == 0;
  }

  /// Joins the buffers such that |inner| is at |offset| bytes in |outer|.
  void join(Value inner, Value outer, int64_t offset) {
    Place from = find(inner), to = find(outer);
    Info &a = infos[from.root], &b = infos[to.root];
    parents[from.root] = {to.root, to.offset + offset - from.offset};
    b.first = std::min(a.first, b.first), b.last = std::max(a.last, b.last);
    // Arguments keep their memory; of two results, the earlier one provides the memory.
    b.memory = a.memory == 0 ? b.memory : b.memory == 0 ? a.memory : std::min(a.memory, b.memory);
  }

  unsigned size() const { return parents.size(); }
  bool isRoot(unsigned i) const { return parents[i].root == i; }

private:
  Place find(unsigned i) {
    if (parents[i].root == i) {
      return {i, 0};
    }
    Place above = find(parents[i].root);
    parents[i] = {above.root, above.offset + parents[i].offset};
    return parents[i];
  }

  llvm::DenseMap<Value, unsigned> index;
  std::vector<Place> parents;
  std::vector<Info> infos;
};

class AssignAddresses : public impl::AssignAddressesPassBase<AssignAddresses> {
public:
  using AssignAddressesPassBase::AssignAddressesPassBase;

  void runOnOperation() override {
    if (getOperation().isExternal()) {
      return;
    }
    if (!llvm::hasSingleElement(getOperation().getBody())) {
      getOperation().emitError("has several blocks; address assignment supports only straight-line functions");
      return signalPassFailure();
    }
    buffers = {};
    steps.clear();
    if (failed(addValues())) {
      return signalPassFailure();
    }
    joinReshapes();
    joinInserts();
    if (!separate) {
      joinSlices();
      joinParts();
    }
    findLifetimes();
    if (!separate) {
      overwriteOperands();
    }
    place();
    write();
  }

private:
  Block &body() { return getOperation().getBody().front(); }

  LogicalResult addValues() {
    for (BlockArgument argument : body().getArguments()) {
      buffers.add(argument, -static_cast<int64_t>(argument.getArgNumber()) - 1);
    }
    for (Operation &op : body()) {
      for (Value result : op.getResults()) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (!type || !Shape(type).isDetermined()) {
          return op.emitError() << "result of type " << result.getType()
                                << " has an unknown size, which address assignment does not support";
        }
        if (!getConstantRoot(result)) {
          buffers.add(result, 0);
        }
      }
    }
    for (OpOperand &operand : body().getTerminator()->getOpOperands()) {
      if (buffers.contains(operand.get()) && buffers.info(operand.get()).memory == 0) {
        buffers.info(operand.get()).memory = operand.getOperandNumber() + 1;
      }
    }
    return success();
  }

  void joinReshapes() {
    for (auto reshape : body().getOps<ReshapeOp>()) {
      if (buffers.contains(reshape.getX())) {
        buffers.join(reshape.getY(), reshape.getX(), 0);
      }
    }
  }

  /// Joins results with the operands into which their ops write. An operand whose bytes are still read afterwards, or
  /// which the op may not change, is copied before.
  void joinInserts() {
    for (Operation &op : llvm::make_early_inc_range(body())) {
      if (!writesInPlace(&op)) {
        continue;
      }
      if (!isWrittenLast(op)) {
        OpOperand &operand = op.getOpOperand(0);
        operand.set(copyBefore(&op, operand.get(), typeOf(op.getResult(0))));
      }
      buffers.join(op.getResult(0), op.getOperand(0), 0);
      op.setAttr(DeviceDialect::kInplaceAttr, IntegerAttr::get(IntegerType::get(&getContext(), 64), 0));
      ++numInplace;
    }
  }

  /// Returns true if |op| may change operand 0, because nothing that comes later reads the operand's bytes.
  bool isWrittenLast(Operation &op) {
    Value operand = op.getOperand(0);
    if (!buffers.contains(operand) || buffers.find(operand).offset != 0) {
      return false;
    }
    Buffers::Info &info = buffers.info(operand);
    auto argument = dyn_cast<BlockArgument>(withoutReshapes(operand));
    bool isState = argument && getOperation().getArgAttr(argument.getArgNumber(), top::kInPlaceAttr);
    unsigned root = buffers.find(operand).root;
    return (info.memory >= 0 || isState) && llvm::all_of(body(), [&](Operation &other) {
             return &other == &op || other.isBeforeInBlock(&op) || llvm::none_of(other.getOperands(), [&](Value value) {
               return buffers.contains(value) && buffers.find(value).root == root;
             });
           });
  }

  /// Joins slices that are contiguous in their source.
  void joinSlices() {
    for (auto copy : body().getOps<CopyOp>()) {
      std::optional<int64_t> offset = sliceOffset(copy);
      if (offset && *offset % kAddressAlignment == 0 && buffers.contains(copy.getSources().front()) &&
          buffers.isFree(copy.getY())) {
        buffers.join(copy.getY(), copy.getSources().front(), *offset);
        elide(copy);
      }
    }
  }

  void elide(CopyOp copy) {
    copy->setAttr(DeviceDialect::kElidedAttr, UnitAttr::get(&getContext()));
    ++numElided;
  }

  /// Joins concatenations whose parts can be computed in place. Iterates from the last to the first: a tensor that is a
  /// part of several concatenations joins the last one, which usually is the largest and contains the others.
  void joinParts() {
    SmallVector<CopyOp> copies(body().getOps<CopyOp>());
    for (CopyOp copy : llvm::reverse(copies)) {
      if (!isElided(copy) && !copy.getFill() && copy.getPieces().size() > 1) {
        joinPartsOf(copy);
      }
    }
  }

  void joinPartsOf(CopyOp copy) {
    SmallVector<PieceAttr> pieces(copy.getPieces().getAsRange<PieceAttr>());
    int64_t inPlace = 0, all = 0;
    for (PieceAttr piece : pieces) {
      std::optional<int64_t> offset = partOffset(copy, piece);
      if (!offset || *offset % partAlignment) {
        return;
      }
      Value source = copy.getSources()[piece.getSource()];
      all += physicalBytes(typeOf(source));
      inPlace += canLieIn(copy, pieces, piece) ? physicalBytes(typeOf(source)) : 0;
    }
    // The other parts are copied there, which pays as long as they are the smaller share.
    if (2 * inPlace < all) {
      return;
    }
    SmallVector<Attribute> whole;
    SmallVector<Value> sources;
    for (auto [i, piece] : llvm::enumerate(pieces)) {
      Value source = copy.getSources()[piece.getSource()];
      if (!canLieIn(copy, pieces, piece)) {
        source = moveApart(copy, source);
      }
      Piece renumbered(piece);
      renumbered.source = i;
      whole.push_back(renumbered.get(&getContext()));
      sources.push_back(source);
      buffers.join(source, copy.getY(), *partOffset(copy, piece));
    }
    copy.getSourcesMutable().assign(sources);
    copy.setPiecesAttr(ArrayAttr::get(&getContext(), whole));
    elide(copy);
  }

  bool canLieIn(CopyOp copy, ArrayRef<PieceAttr> pieces, PieceAttr piece) {
    Value source = copy.getSources()[piece.getSource()];
    bool once =
        llvm::count_if(pieces, [&](PieceAttr other) { return copy.getSources()[other.getSource()] == source; }) == 1;
    return once && buffers.contains(source) && buffers.isFree(source) &&
           hasSameLayout(source.getType(), copy.getY().getType());
  }

  /// Creates a copy of |source| in the layout of the result of |copy|.
  Value moveApart(CopyOp copy, Value source) {
    return copyBefore(
        copy, source,
        tensorType(Shape(source).dims(), typeOf(source).getElementType(), typeOf(copy.getY()).getEncoding()));
  }

  /// Creates a copy of |source| with type |type| before |op|.
  Value copyBefore(Operation *op, Value source, RankedTensorType type) {
    OpBuilder builder(op);
    Attribute piece = identityPiece(type);
    auto moved = CopyOp::create(builder, op->getLoc(), type, source, builder.getArrayAttr(piece), FloatAttr());
    buffers.add(moved.getY(), 0);
    return moved.getY();
  }

  /// Finds the first write and the last read of each buffer, in program steps. Views run no code, so only ops that read
  /// through them count.
  void findLifetimes() {
    int64_t step = 0;
    for (Operation &op : body()) {
      steps[&op] = step++;
    }
    auto extend = [&](Value value, int64_t at) {
      Buffers::Info &info = buffers.info(value);
      info.first = separate ? 0 : std::min(info.first, at);
      info.last = separate ? step : std::max(info.last, at);
    };
    for (Operation &op : body()) {
      if (isElided(&op)) {
        continue;
      }
      for (Value value : op.getOperands()) {
        if (buffers.contains(value)) {
          extend(value, steps[&op]);
        }
      }
      for (Value value : op.getResults()) {
        if (buffers.contains(value)) {
          extend(value, steps[&op]);
        }
      }
    }
  }

  /// Joins results with an operand that is read for the last time and can be overwritten.
  void overwriteOperands() {
    for (Operation &op : body()) {
      if (op.getNumResults() != 1 || isElided(&op) || !buffers.contains(op.getResult(0))) {
        continue;
      }
      Value result = op.getResult(0);
      Buffers::Place place = buffers.find(result);
      if (place.offset != 0 || buffers.info(place.root).bytes != physicalBytes(typeOf(result)) ||
          buffers.info(place.root).first < steps[&op]) {
        continue; // a part of a larger buffer
      }
      for (OpOperand &operand : op.getOpOperands()) {
        if (canTakePlace(op, operand)) {
          buffers.join(result, operand.get(), 0);
          op.setAttr(DeviceDialect::kInplaceAttr,
                     IntegerAttr::get(IntegerType::get(&getContext(), 64), operand.getOperandNumber()));
          ++numInplace;
          break;
        }
      }
    }
  }

  bool canTakePlace(Operation &op, OpOperand &operand) {
    if (!buffers.contains(operand.get()) || !buffers.isFree(operand.get()) ||
        !canWriteOver(&op, operand.getOperandNumber())) {
      return false;
    }
    unsigned root = buffers.find(operand.get()).root;
    bool readElsewhere = llvm::any_of(op.getOpOperands(), [&](OpOperand &other) {
      return buffers.contains(other.get()) && buffers.find(other.get()).root == root &&
             !(other.get() == operand.get() && canWriteOver(&op, other.getOperandNumber()));
    });
    return !readElsewhere && buffers.info(root).last == steps[&op];
  }

  void place() {
    SmallVector<Buffer> needed;
    SmallVector<unsigned> roots;
    for (unsigned i = 0; i < buffers.size(); ++i) {
      Buffers::Info &info = buffers.info(i);
      if (buffers.isRoot(i) && info.memory == 0 && info.last >= 0) {
        needed.push_back({info.bytes, info.first, info.last});
        roots.push_back(i);
      }
    }
    Placement placement = placeBuffers(needed, kAddressAlignment);
    for (auto [root, offset] : llvm::zip_equal(roots, placement.offsets)) {
      buffers.info(root).offset = offset;
    }
    Builder builder(&getContext());
    getOperation()->setAttr(DeviceDialect::kWorkspaceBytesAttr, builder.getI64IntegerAttr(placement.bytes));
    getOperation()->setAttr(DeviceDialect::kWorkspaceLowerBoundAttr,
                            builder.getI64IntegerAttr(lowerBound(needed, kAddressAlignment)));
  }

  void write() {
    Builder builder(&getContext());
    for (Operation &op : body()) {
      if (op.getNumResults() == 0 || !buffers.contains(op.getResult(0))) {
        continue;
      }
      SmallVector<int64_t> addresses, memories;
      for (Value result : op.getResults()) {
        Buffers::Place place = buffers.find(result);
        memories.push_back(buffers.info(place.root).memory);
        addresses.push_back(buffers.info(place.root).offset + place.offset);
      }
      op.setAttr(DeviceDialect::kAddressesAttr, builder.getDenseI64ArrayAttr(addresses));
      if (llvm::any_of(memories, [](int64_t memory) { return memory != 0; })) {
        op.setAttr(DeviceDialect::kMemoriesAttr, builder.getDenseI64ArrayAttr(memories));
      }
    }
  }

  Buffers buffers;
  llvm::DenseMap<Operation *, int64_t> steps;
};

} // namespace
} // namespace tessera::device

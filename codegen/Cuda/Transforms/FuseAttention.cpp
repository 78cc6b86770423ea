//===- FuseAttention.cpp - Fuses head permutations into attention ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/Transforms/Passes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/Addresses.h"
#include "device_dialect/Transforms/RoundOperands.h"
#include "device_dialect/Transforms/ScalarBodies.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/MaskedRows.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

namespace tessera::cuda {
#define GEN_PASS_DEF_FUSEATTENTIONPASS
#include "codegen/Cuda/Transforms/Passes.h.inc"
} // namespace tessera::cuda

using namespace mlir;

namespace tessera::cuda {
namespace {

using device::PieceAttr;

/// Returns the piece of |copy| that computes all of its result from one tensor; null if there are several, or a fill.
PieceAttr onlyPiece(device::CopyOp copy) {
  if (!copy || copy.getFill() || copy.getPieces().size() != 1) {
    return {};
  }
  auto piece = cast<PieceAttr>(copy.getPieces()[0]);
  device::Piece whole = device::Piece::identity(0, typeOf(copy.getY()).getShape());
  bool isWhole = piece.getSource() == 0 && piece.getSizes() == ArrayRef(whole.sizes) &&
                 piece.getDstOffsets() == ArrayRef(whole.dstOffsets) && piece.getDstSteps() == ArrayRef(whole.dstSteps);
  return isWhole ? piece : PieceAttr();
}

/// Returns for each dim of |joined| the consecutive dims of |split| whose product it is, or nullopt if there are none.
std::optional<SmallVector<SmallVector<int64_t>>> groupsOf(ArrayRef<int64_t> split, ArrayRef<int64_t> joined) {
  SmallVector<SmallVector<int64_t>> groups(joined.size());
  size_t next = 0;
  for (auto [group, size] : llvm::zip_equal(groups, joined)) {
    int64_t product = 1;
    while (next < split.size() && (product < size || (group.empty() && split[next] == 1))) {
      product *= split[next];
      group.push_back(int64_t(next++));
    }
    if (product != size) {
      return std::nullopt;
    }
  }
  for (; next < split.size(); ++next) {
    if (split[next] != 1 || groups.empty()) {
      return std::nullopt;
    }
    groups.back().push_back(int64_t(next));
  }
  return groups;
}

/// Returns |piece| with its dims split into |sizes|, or null if they cannot be.
PieceAttr splitDims(PieceAttr piece, ArrayRef<int64_t> sizes) {
  auto groups = groupsOf(sizes, piece.getSizes());
  if (!groups) {
    return {};
  }
  device::Piece split = device::Piece::identity(0, sizes);
  split.srcOffsets.assign(piece.getSrcOffsets().begin(), piece.getSrcOffsets().end());
  split.srcDims.assign(sizes.size(), -1);
  for (auto [d, group] : llvm::enumerate(*groups)) {
    int64_t step = piece.getSrcSteps()[d];
    for (int64_t own : llvm::reverse(group)) {
      split.srcDims[own] = piece.getSrcDims()[d], split.srcSteps[own] = step;
      step *= sizes[own];
    }
  }
  return split.get(piece.getContext());
}

/// Returns true if the elements of the last dim are contiguous in the source of |piece|.
bool keepsRows(PieceAttr piece, RankedTensorType source) {
  return piece.getSizes().size() >= 2 && piece.getSrcDims().back() == source.getRank() - 1 &&
         piece.getSrcSteps().back() == 1;
}

/// Returns true if |piece| is a permutation of a whole tensor.
bool permutes(PieceAttr piece) {
  llvm::SmallDenseSet<int64_t> dims(piece.getSrcDims().begin(), piece.getSrcDims().end());
  return dims.size() == piece.getSizes().size() && !dims.contains(-1) && dims.size() == piece.getSrcOffsets().size() &&
         llvm::all_of(piece.getSrcOffsets(), [](int64_t offset) { return offset == 0; }) &&
         llvm::all_of(piece.getSrcSteps(), [](int64_t step) { return step == 1; });
}

/// Fuses the neighbours of one attention into it.
class AttentionFuser {
public:
  explicit AttentionFuser(device::AttentionOp op) : op(op), operands(op->getOperands()), result(typeOf(op.getY())) {
    for (Value value : {op.getQ(), op.getK(), op.getV(), op.getY()}) {
      views.push_back(device::Piece::identity(0, typeOf(value).getShape()).get(op.getContext()));
    }
  }

  /// Fuses and returns the number of copies that are no longer needed; sets |fused| to the resulting op.
  int64_t run(device::AttentionOp &fused) {
    int64_t count = 0;
    for (unsigned i = 0; i < 3; ++i) {
      count += readThrough(i);
    }
    absorbRounding();
    count += writeThrough();
    if (count || last != op.getOperation()) {
      replace();
    }
    fused = op;
    return count;
  }

private:
  /// Replaces operand |index| by the source of the copy that computes it, also through reshapes that split dims.
  bool readThrough(unsigned index) {
    Value value = operands[index];
    value = device::withoutReshapes(value);
    auto copy = value.getDefiningOp<device::CopyOp>();
    PieceAttr piece = onlyPiece(copy);
    piece = piece ? splitDims(piece, typeOf(operands[index]).getShape()) : piece;
    if (!piece || !keepsRows(piece, typeOf(copy.getSources()[0]))) {
      return false;
    }
    operands[index] = copy.getSources()[0], views[index] = piece;
    return true;
  }

  template <typename Op>
  Op onlyUserOf(Value value) {
    return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
  }

  void absorbRounding() {
    auto map = onlyUserOf<device::MapOp>(op.getY());
    if (Type type = map ? device::roundedBy(map) : Type()) {
      result = result.clone(type), last = map;
    }
  }

  /// Replaces a copy of the result, or of a map of the result; the map then runs after the move. A reshape that joins
  /// dims before the copy becomes one after it.
  bool writeThrough() {
    Value value = last->getResult(0);
    auto map = onlyUserOf<device::MapOp>(value);
    map = map && map.getInputs().size() == 1 && sameSizes(map.getY(), result) ? map : nullptr;
    Value moved = map ? map.getY() : value;
    while (auto reshape = onlyUserOf<device::ReshapeOp>(moved)) {
      moved = reshape.getY();
    }
    auto copy = onlyUserOf<device::CopyOp>(moved);
    PieceAttr piece = onlyPiece(copy);
    auto groups = piece ? groupsOf(result.getShape(), typeOf(moved).getShape()) : std::nullopt;
    if (!groups || !permutes(piece) || !keepsRows(piece, typeOf(moved))) {
      return false;
    }
    SmallVector<int64_t> dims, sizes;
    for (int64_t d : piece.getSrcDims()) {
      llvm::append_range(dims, (*groups)[d]);
    }
    llvm::append_range(sizes, llvm::map_range(dims, [&](int64_t d) { return result.getDimSize(d); }));
    device::Piece split = device::Piece::identity(0, sizes);
    split.srcDims = dims;
    result = result.clone(sizes), views[3] = split.get(op.getContext()), written = copy;
    return true;
  }

  void replace() {
    OpBuilder builder(last);
    auto made = device::AttentionOp::create(builder, op.getLoc(), result, operands[0], operands[1], operands[2],
                                            op.getMask(), op.getScaleAttr(), builder.getArrayAttr(views),
                                            op.getLevelsAttr(), op.getValueScaleAttr(), /*keys=*/nullptr);
    top::setZeroMaskedRows(made, top::zeroesMaskedRows(op));
    Value value = made.getY(), old = last->getResult(0);
    top::copyNames(last, made);
    if (written) {
      made->removeAttr(top::TopDialect::kOutputsAttr); // they belong to the tensor before the copy
      if (auto map = onlyUserOf<device::MapOp>(old)) {
        IRMapping mapping;
        mapping.map(old, value);
        builder.setInsertionPoint(map);
        Operation *moved = builder.clone(*map, mapping);
        moved->removeAttr(top::TopDialect::kOutputsAttr);
        moved->getResult(0).setType(typeOf(map.getY()).clone(result.getShape()));
        value = moved->getResult(0);
      }
      builder.setInsertionPoint(written);
      if (value.getType() != written.getY().getType()) {
        value = device::ReshapeOp::create(builder, written.getLoc(), written.getY().getType(), value);
      }
      top::copyNames(written.getOperation(), value.getDefiningOp());
      old = written.getY();
    }
    old.replaceAllUsesWith(value);
    SmallVector<Value> unused(op->getOperands().take_front(3));
    unused.push_back(written ? written.getSources()[0] : last->getResult(0));
    if (written) {
      written.erase();
    }
    eraseUnused(unused);
    op = made;
  }

  /// Erases the ops of |values| that have no uses, and then those of their operands. Several values may come from one
  /// op, e.g. if keys are also the values.
  static void eraseUnused(ArrayRef<Value> values) {
    llvm::SetVector<Operation *> candidates;
    auto add = [&](Value value) {
      if (Operation *maker = value.getDefiningOp()) {
        candidates.insert(maker);
      }
    };
    llvm::for_each(values, add);
    while (!candidates.empty()) {
      Operation *maker = candidates.pop_back_val();
      if (maker->use_empty() && isa<device::AttentionOp, device::CopyOp, device::MapOp, device::ReshapeOp>(maker)) {
        llvm::for_each(maker->getOperands(), add);
        maker->erase();
      }
    }
  }

  device::AttentionOp op;
  SmallVector<Value> operands;
  RankedTensorType result;
  Operation *last = op;   ///< op whose result the new attention computes
  device::CopyOp written; ///< copy whose result it computes instead, perhaps through a map; null if none
  SmallVector<Attribute> views;
};

struct FuseAttention : impl::FuseAttentionPassBase<FuseAttention> {
  using FuseAttentionPassBase::FuseAttentionPassBase;

  void runOnOperation() override {
    SmallVector<device::AttentionOp> ops;
    getOperation().walk([&](device::AttentionOp op) { ops.push_back(op); });
    for (device::AttentionOp &op : ops) {
      if (isPlain(op)) {
        numViews += AttentionFuser(op).run(op);
      }
    }
    for (device::AttentionOp op : ops) {
      Type type = typeOf(op.getY()).getElementType();
      auto canRound = [&](Value value) {
        Type element = typeOf(value).getElementType();
        return element == type || element.isF32();
      };
      bool fits = device::isNarrowFloat(type) && fitsTensorCores(op, type);
      if (!fits || !llvm::all_of(op->getOperands().take_front(3), canRound)) {
        continue;
      }
      for (unsigned i = 0; i < 3; ++i) {
        device::roundOperand(op->getOpOperand(i), type);
      }
      ++numNarrow;
    }
  }

private:
  /// Returns true if the operands and result of |op| can become views.
  static bool isPlain(device::AttentionOp op) {
    return !op.getViews() &&
           llvm::all_of(llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()), [](Type type) {
             Type element = cast<RankedTensorType>(type).getElementType();
             return cast<RankedTensorType>(type).hasStaticShape() &&
                    (element.isF32() || device::isNarrowFloat(element) || element.isInteger(8));
           });
  }
};

} // namespace
} // namespace tessera::cuda

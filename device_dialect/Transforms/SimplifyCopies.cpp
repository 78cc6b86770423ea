//===- SimplifyCopies.cpp - Fewer and shorter copies ----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// One walk in program order: when a copy is reached, its sources are already simplified.
//===----------------------------------------------------------------------===//
#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/ComposePieces.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/RefinePieces.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::device {
#define GEN_PASS_DEF_SIMPLIFYCOPIESPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
namespace {

/// Largest number of pieces of one copy; more would make kernels long and composition superlinear.
constexpr size_t kMaxPieces = 64;
/// Bytes whose copy takes about as long as one more piece, when copies are composed in finer dims.
constexpr int64_t kBytesOfPiece = 8192;

template <typename AnyPiece = SymbolicPiece>
std::vector<AnyPiece> piecesOf(CopyOp copy) {
  std::vector<AnyPiece> pieces;
  for (Attribute piece : copy.getPieces()) {
    pieces.emplace_back(cast<PieceAttr>(piece));
  }
  return pieces;
}

std::optional<double> fillOf(CopyOp copy) {
  return copy.getFill() ? std::optional(copy.getFill()->convertToDouble()) : std::nullopt;
}

bool isRowMajor(CopyOp copy) {
  return !isBlocked(copy.getY().getType()) &&
         llvm::none_of(copy.getSources(), [](Value x) { return isBlocked(x.getType()); });
}

bool isKnown(CopyOp copy) {
  return Shape(copy.getY()).isKnown() &&
         llvm::all_of(copy.getPieces().getAsRange<PieceAttr>(), [](PieceAttr piece) { return piece.isKnown(); });
}

Dim elements(const SymbolicPiece &piece) {
  Dim count = 1;
  for (Dim size : piece.sizes) {
    count *= size;
  }
  return count;
}

/// A copy under construction.
struct Draft {
  SmallVector<Value> sources;
  std::vector<SymbolicPiece> pieces;
  std::optional<double> fill;
  SmallVector<Operation *> absorbed;

  /// Adds |piece|, which reads |source|.
  void add(SymbolicPiece piece, Value source) {
    piece.source = llvm::find(sources, source) - sources.begin();
    if (piece.source == static_cast<int64_t>(sources.size())) {
      sources.push_back(source);
    }
    pieces.push_back(std::move(piece));
  }
};

class SimplifyCopies : public impl::SimplifyCopiesPassBase<SimplifyCopies> {
public:
  using SimplifyCopiesPassBase::SimplifyCopiesPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> moves;
    getOperation().walk([&](Operation *op) {
      if (isa<CopyOp, ReshapeOp>(op)) {
        moves.push_back(op);
      }
    });
    for (Operation *&op : moves) {
      if (auto reshape = dyn_cast<ReshapeOp>(op)) {
        op = simplify(reshape);
      } else {
        CopyOp copy = compose(cast<CopyOp>(op));
        op = simplify(throughReshapes ? composeRefined(copy) : copy);
      }
    }
    for (Operation *op : llvm::reverse(moves)) {
      if (op && op->use_empty()) {
        op->erase();
        ++numRemoved;
      }
    }
  }

private:
  // Reshapes; both functions return the op that replaces the given one, null if it is gone

  Operation *simplify(ReshapeOp reshape) {
    auto inner = reshape.getX().getDefiningOp<ReshapeOp>();
    if (inner && sameBytes(typeOf(inner.getX()), typeOf(reshape.getY()))) {
      reshape.getXMutable().set(inner.getX());
    }
    if (reshape.getX().getType() == reshape.getY().getType()) {
      return replace(reshape, reshape.getX());
    }
    return reshape;
  }

  Operation *simplify(CopyOp copy) {
    if (!keepsByteOrder(copy)) {
      return copy;
    }
    ++numViews;
    OpBuilder builder(copy);
    auto reshape = ReshapeOp::create(builder, copy.getLoc(), copy.getY().getType(), copy.getSources().front());
    top::copyNames(copy, reshape);
    copy.getY().replaceAllUsesWith(reshape.getY());
    copy.erase();
    return simplify(reshape);
  }

  Operation *replace(Operation *op, Value value) {
    // The value inherits the name if it does not have one.
    Operation *origin = value.getDefiningOp();
    if (origin && origin->getNumResults() == 1 && top::getTensorName(value).empty() &&
        !top::getTensorName(op->getResult(0)).empty()) {
      top::setTensorNames(origin, top::getTensorName(op->getResult(0)));
    }
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
    return nullptr;
  }

  // Copies of copies

  CopyOp compose(CopyOp copy) {
    if (!isRowMajor(copy)) {
      return copy;
    }
    Draft draft;
    draft.fill = fillOf(copy);
    for (const SymbolicPiece &piece : piecesOf(copy)) {
      Value source = copy.getSources()[piece.source];
      if (!absorb(copy, piece, source, draft)) {
        draft.add(piece, source);
      }
    }
    if (draft.absorbed.empty() || draft.pieces.size() > kMaxPieces) {
      return copy;
    }
    OpBuilder builder(copy);
    SmallVector<Attribute> pieces;
    for (const SymbolicPiece &piece : draft.pieces) {
      pieces.push_back(piece.get(&getContext()));
    }
    FloatAttr fill = draft.fill ? builder.getF64FloatAttr(*draft.fill) : FloatAttr();
    auto composed = CopyOp::create(builder, copy.getLoc(), copy.getY().getType(), draft.sources,
                                   builder.getArrayAttr(pieces), fill);
    draft.absorbed.push_back(copy);
    top::copyNames(draft.absorbed, composed);
    copy.getY().replaceAllUsesWith(composed.getY());
    copy.erase();
    ++numComposed;
    return composed;
  }

  /// Composes copies of one source each through a reshape that splits or merges dims.
  CopyOp composeRefined(CopyOp copy) {
    auto reshape = copy.getSources().size() == 1 ? copy.getSources()[0].getDefiningOp<ReshapeOp>() : ReshapeOp();
    auto inner = reshape ? reshape.getX().getDefiningOp<CopyOp>() : CopyOp();
    if (!inner || !reshape->hasOneUse() || !inner->hasOneUse() || inner->getBlock() != copy->getBlock() ||
        inner.getSources().size() != 1 || inner.getFill() || copy.getFill() || !isRowMajor(copy) ||
        !isRowMajor(inner) || !isKnown(copy) || !isKnown(inner)) {
      return copy;
    }
    ArrayRef<int64_t> made = Shape(inner.getY()).values(), read = Shape(reshape.getY()).values();
    std::optional<Dims> fine = commonDims(made, read);
    std::optional<std::vector<Piece>> written = fine ? writeRefined(piecesOf<Piece>(inner), made, *fine) : std::nullopt;
    std::optional<RefinedCopy> refined =
        written ? readRefined(piecesOf<Piece>(copy), read, Shape(copy.getY()).values(), *fine) : std::nullopt;
    if (!refined) {
      return copy;
    }
    SmallVector<Attribute> pieces;
    for (const Piece &piece : refined->pieces) {
      std::optional<std::vector<Piece>> parts = composePieces(piece, *written);
      if (!parts) {
        return copy;
      }
      for (const Piece &part : *parts) {
        pieces.push_back(part.get(&getContext()));
      }
    }
    RankedTensorType type = typeOf(copy.getY());
    auto before = int64_t(copy.getPieces().size() + inner.getPieces().size());
    int64_t bytes = numElements(type) * type.getElementTypeBitWidth() / 8;
    if (pieces.size() > kMaxPieces || (int64_t(pieces.size()) - before) * kBytesOfPiece > 2 * bytes) {
      return copy;
    }
    return replace(copy, inner, pieces, RankedTensorType::get(refined->resultDims, type.getElementType()));
  }

  /// Replaces |copy| by a copy of |inner|'s source, which may have other dims of the same bytes.
  CopyOp replace(CopyOp copy, CopyOp inner, ArrayRef<Attribute> pieces, RankedTensorType type) {
    OpBuilder builder(copy);
    auto composed =
        CopyOp::create(builder, copy.getLoc(), type, inner.getSources(), builder.getArrayAttr(pieces), FloatAttr());
    top::copyNames({inner, copy}, composed);
    Value result = composed.getY();
    if (type != copy.getY().getType()) {
      result = ReshapeOp::create(builder, copy.getLoc(), copy.getY().getType(), result).getY();
    }
    copy.getY().replaceAllUsesWith(result);
    copy.erase();
    ++numComposed;
    return composed;
  }

  /// Adds to |draft| the regions that |piece| of |copy| reads from the sources of the copy that computes |source|.
  bool absorb(CopyOp copy, SymbolicPiece piece, Value source, Draft &draft) {
    if (auto reshape = source.getDefiningOp<ReshapeOp>()) {
      std::optional<SymbolicPiece> moved = readUnderDims(piece, source, reshape.getX());
      if (!moved || !reshape->hasOneUse()) {
        return false;
      }
      piece = *moved, source = reshape.getX();
    }
    auto inner = source.getDefiningOp<CopyOp>();
    if (!inner || inner->getBlock() != copy->getBlock() || !isRowMajor(inner) || !isWorthwhile(inner)) {
      return false;
    }
    auto parts = composePieces(piece, piecesOf(inner));
    if (!parts) {
      return false;
    }
    Dim moved = 0;
    for (const SymbolicPiece &part : *parts) {
      moved += elements(part);
    }
    if (!sameSize(moved, elements(piece))) {
      // The inner copy filled the rest; one copy can fill with one value only.
      if (draft.fill && draft.fill != fillOf(inner)) {
        return false;
      }
      draft.fill = fillOf(inner);
    }
    for (const SymbolicPiece &part : *parts) {
      draft.add(part, inner.getSources()[part.source]);
    }
    if (!llvm::is_contained(draft.absorbed, inner)) {
      draft.absorbed.push_back(inner);
    }
    return true;
  }

  /// Returns true if composing with |inner| pays: |inner| is then unused, and its work is not repeated.
  static bool isWorthwhile(CopyOp inner) {
    Operation *first = *inner->user_begin();
    if (llvm::all_of(inner->getUsers(), [&](Operation *user) { return user == first; })) {
      return true;
    }
    std::vector<SymbolicPiece> pieces = piecesOf(inner);
    bool isSlice = pieces.size() == 1 && sameSize(elements(pieces.front()), countElements(inner.getY())) &&
                   llvm::all_of(llvm::enumerate(pieces.front().srcDims),
                                [](auto dim) { return dim.value() == static_cast<int64_t>(dim.index()); });
    return isSlice && llvm::all_of(inner->getUsers(), [](Operation *user) { return isa<CopyOp>(user); });
  }
};

} // namespace
} // namespace tessera::device

//===- Copy.cpp - Kernels of rectangular copies ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Regions that keep the channels of blocked tensors together become strided loop nests over blocks or parts of blocks;
// elements that no region covers are filled as rectangles. All other copies run slab by slab of the result.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/CopyNests.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/Kernels/Transpose.h"

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

/// Returns the fill value of |op| as a constant of the register type of |elementType|.
Value fillValue(KernelBuilder &kb, device::CopyOp op, Type elementType) {
  double value = op.getFill() ? op.getFill()->convertToDouble() : 0.0;
  Type type = registerType(elementType);
  if (isa<FloatType>(type)) {
    return kb.floatConstant(type, value);
  }
  APInt integer(type.getIntOrFloatBitWidth(), int64_t(value), /*isSigned=*/true, /*implicitTrunc=*/true);
  return arith::ConstantOp::create(kb.b, IntegerAttr::get(type, integer));
}

class CopyEmitter {
public:
  CopyEmitter(KernelBuilder &kb, device::CopyOp op) : kb(kb), op(op), y(kb.resultType()), element(y.getElementType()) {
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      sources.push_back(kb.operandType(i));
    }
    for (Attribute attribute : op.getPieces()) {
      pieces.emplace_back(cast<device::PieceAttr>(attribute));
    }
  }

  void emit() {
    std::optional<SmallVector<CopyNest>> nests = copyNests(sources, y, pieces, op.getFill().has_value());
    nests ? emitNests(*nests) : emitSlabs();
  }

private:
  void emitNests(ArrayRef<CopyNest> nests) {
    SmallVector<Dim> counts;
    SmallVector<std::function<void(Value)>> bodies;
    for (const CopyNest &nest : nests) {
      TiledMove move = nest.source < 0 ? fillMove(nest) : copyMove(nest);
      counts.push_back(move.tiles);
      bodies.push_back(move.body);
    }
    emitTileKinds(kb, counts, bodies);
  }

  TiledMove copyMove(const CopyNest &nest) {
    return planMove(kb, nest.nest, kb.operand(nest.source), kb.result(), element);
  }

  TiledMove fillMove(const CopyNest &nest) {
    Value value = fillValue(kb, op, element);
    return planFill(kb, nest.nest, value, kb.result(), element);
  }

  // Slabs: the general case

  /// A slab is one index of the first two physical dims of the result. It is filled first, if some of its elements may
  /// be uncovered; then each region's part of it is copied.
  void emitSlabs() {
    SmallVector<Dim> physical = device::physicalDims(y);
    unsigned leading = std::min<size_t>(2, physical.size());
    Dim slabElements = multiply(ArrayRef(physical).drop_front(leading));
    ArrayRef<Dim> slabs = ArrayRef(physical).take_front(leading);
    bool fills = op.getFill() || (device::isBlocked(y) && Shape(y)[1].value() % Strides(y).block);
    forItems(kb, multiply(slabs), slabElements, 16384, [&](Value slab) {
      if (fills) {
        fillSlab(kb.mul(slab, slabElements), slabElements);
      }
      SmallVector<Value> at = delinearize(kb, slab, slabs);
      for (const device::SymbolicPiece &piece : pieces) {
        copyIntoSlab(piece, at, 0, SmallVector<Value>());
      }
    });
  }

  void fillSlab(Value start, Dim elements) {
    // Padding lanes must hold zero whatever the fill value is. A blocked result with another fill value is zeroed here;
    // fillChannels then writes its channels.
    bool zero = device::isBlocked(y) && Shape(y)[1].value() % Strides(y).block;
    Value value = zero ? kb.zero(registerType(element)) : fillValue(kb, op, element);
    unsigned lanes = kb.target.lanes(32);
    Value vector = kb.splat(value, lanes);
    Dim whole = floorDiv(elements, lanes) * lanes;
    kb.forLoop(0, whole, lanes, [&](Value i) { kb.storeElements(element, vector, kb.result(), kb.add(start, i)); });
    kb.forLoop(whole, elements, 1, [&](Value i) { kb.storeElements(element, value, kb.result(), kb.add(start, i)); });
    if (zero && op.getFill() && !op.getFill()->isZero()) {
      fillChannels(start, elements);
    }
  }

  void fillChannels(Value start, Dim elements) {
    Strides strides(y);
    Value value = fillValue(kb, op, element);
    int64_t blocks = llvm::divideCeil(Shape(y)[1].value(), strides.block);
    Value block = kb.rem(kb.div(start, strides.dims[1]), blocks);
    Value channels =
        kb.min(kb.constant(strides.block), kb.sub(kb.constant(Shape(y)[1].value()), kb.mul(block, strides.block)));
    kb.forLoop(0, floorDiv(elements, strides.block), 1, [&](Value position) {
      kb.forLoop(kb.constant(0), channels, 1, [&](Value lane) {
        kb.storeElements(element, value, kb.result(), kb.add(start, kb.add(kb.mul(position, strides.block), lane)));
      });
    });
  }

  /// Emits the loop over dim |d| of the region: for a leading dim, the part that lies in the slab, otherwise all of it.
  void copyIntoSlab(const device::SymbolicPiece &piece, ArrayRef<Value> slab, unsigned d, SmallVector<Value> indices) {
    if (d == piece.sizes.size()) {
      return copyElement(piece, indices);
    }
    int64_t block = device::isBlocked(y) && d == 1 ? Strides(y).block : 1;
    Value first = kb.constant(0), last = kb.index(piece.sizes[d]);
    if (d < slab.size()) {
      // Indices i with slab * block <= offset + i * step < (slab + 1) * block.
      auto firstAtLeast = [&](Value bound) {
        Value distance = kb.max(kb.sub(bound, kb.index(piece.dstOffsets[d])), kb.constant(0));
        return kb.min(kb.div(kb.add(distance, piece.dstSteps[d] - 1), piece.dstSteps[d]), kb.index(piece.sizes[d]));
      };
      Value low = kb.mul(slab[d], block);
      first = firstAtLeast(low);
      last = firstAtLeast(kb.add(low, block));
    }
    kb.forLoop(first, last, 1, [&](Value i) {
      SmallVector<Value> next = indices;
      next.push_back(i);
      copyIntoSlab(piece, slab, d + 1, next);
    });
  }

  void copyElement(const device::SymbolicPiece &piece, ArrayRef<Value> indices) {
    RankedTensorType x = sources[piece.source];
    SmallVector<Value> from, to;
    for (Dim offset : piece.srcOffsets) {
      from.push_back(kb.index(offset));
    }
    for (auto [d, i] : llvm::enumerate(indices)) {
      to.push_back(kb.add(kb.mul(i, piece.dstSteps[d]), piece.dstOffsets[d]));
      if (int64_t s = piece.srcDims[d]; s >= 0) {
        from[s] = kb.add(from[s], kb.mul(i, piece.srcSteps[d]));
      }
    }
    Value value = kb.loadElements(element, 0, kb.operand(piece.source), Strides(x).offset(kb, from));
    kb.storeElements(element, value, kb.result(), Strides(y).offset(kb, to));
  }

  KernelBuilder &kb;
  device::CopyOp op;
  RankedTensorType y;
  Type element;
  SmallVector<RankedTensorType> sources;
  std::vector<device::SymbolicPiece> pieces;
};

struct CopyModel : KernelInterface::ExternalModel<CopyModel, device::CopyOp> {
  /// Requires numbers along the channels of blocked tensors.
  bool acceptsOpenSizes(Operation *op) const {
    auto copy = cast<device::CopyOp>(op);
    auto hasKnownChannels = [&](const device::SymbolicPiece &piece) {
      bool known =
          !device::isBlocked(copy.getY().getType()) || (piece.sizes[1].isKnown() && piece.dstOffsets[1].isKnown());
      if (!device::isBlocked(op->getOperand(piece.source).getType())) {
        return known;
      }
      for (size_t d = 0; d < piece.sizes.size(); ++d) {
        known &= piece.srcDims[d] != 1 || piece.sizes[d].isKnown();
      }
      return known && piece.srcOffsets[1].isKnown();
    };
    return llvm::all_of(copy.getPieces(), [&](Attribute attribute) {
      return hasKnownChannels(device::SymbolicPiece(cast<device::PieceAttr>(attribute)));
    });
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    CopyEmitter(kb, cast<device::CopyOp>(op)).emit();
    return success();
  }
};

/// A reshape is normally a view without code. This kernel serves plans that need a copy.
struct ReshapeModel : KernelInterface::ExternalModel<ReshapeModel, device::ReshapeOp> {
  bool acceptsOpenSizes(Operation *op) const {
    return sameSize(physicalElements(cast<RankedTensorType>(op->getOperand(0).getType())),
                    physicalElements(cast<RankedTensorType>(op->getResult(0).getType())));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    LoopNest nest{{{physicalElements(kb.resultType()), {1, 1}}}, {0, 0}, 0};
    TiledMove move = planMove(kb, nest, kb.operand(0), kb.result(), kb.resultType().getElementType());
    emitTileKinds(kb, {move.tiles}, {move.body});
    return success();
  }
};

} // namespace

void attachCopyModels(MLIRContext *context) {
  device::CopyOp::attachInterface<CopyModel>(*context);
  device::ReshapeOp::attachInterface<ReshapeModel>(*context);
}

} // namespace tessera::kernels

//===- Addresses.cpp - Addresses of values --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Transforms/Addresses.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TensorTypes.h"

using namespace mlir;

namespace tessera::device {

Value withoutReshapes(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    value = reshape.getX();
  }
  return value;
}

Value getConstantRoot(Value value) {
  value = withoutReshapes(value);
  return top::isConstant(value) ? value : Value();
}

std::optional<Address> getAddress(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    return Address{-static_cast<int64_t>(argument.getArgNumber()) - 1, 0};
  }
  auto result = cast<OpResult>(value);
  auto addresses = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(DeviceDialect::kAddressesAttr);
  auto memories = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(DeviceDialect::kMemoriesAttr);
  size_t index = result.getResultNumber();
  if (!addresses || index >= static_cast<size_t>(addresses.size())) {
    return std::nullopt;
  }
  bool other = memories && index < static_cast<size_t>(memories.size());
  return Address{other ? memories[index] : 0, addresses[index]};
}

bool isElided(Operation *op) { return isa<ReshapeOp>(op) || op->hasAttr(DeviceDialect::kElidedAttr); }

std::optional<int64_t> contiguousOffset(RankedTensorType whole, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape = physicalShape(whole), first(offsets), extent(sizes);
  if (BlockedAttr layout = getBlockedLayout(whole)) {
    int64_t block = layout.getBlock();
    if (offsets[1] % block || (sizes[1] % block && offsets[1] + sizes[1] != Shape(whole)[1].value())) {
      return std::nullopt;
    }
    first[1] /= block;
    extent[1] = llvm::divideCeil(extent[1], block);
    first.push_back(0);
    extent.push_back(block);
  }
  int64_t offset = 0, stride = 1;
  bool cut = false; // an inner dim was taken in part, so all outer dims must have extent 1
  for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
    if (cut && extent[d] != 1) {
      return std::nullopt;
    }
    cut |= extent[d] != shape[d];
    offset += first[d] * stride;
    stride *= shape[d];
  }
  return offset * elementBytes(whole.getElementType());
}

/// Returns true if |piece| does not change the position, order or step of any dim.
static bool isBox(PieceAttr piece) {
  for (auto [d, size] : llvm::enumerate(piece.getSizes())) {
    if (size > 1 && (piece.getSrcDims()[d] != static_cast<int64_t>(d) || piece.getSrcSteps()[d] != 1 ||
                     piece.getDstSteps()[d] != 1)) {
      return false;
    }
  }
  return piece.getSrcOffsets().size() == piece.getSizes().size();
}

std::optional<int64_t> sliceOffset(CopyOp copy) {
  if (copy.getPieces().size() != 1 || copy.getSources().size() != 1) {
    return std::nullopt;
  }
  auto piece = cast<PieceAttr>(copy.getPieces()[0]);
  RankedTensorType x = typeOf(copy.getSources().front()), y = typeOf(copy.getY());
  if (!piece.isKnown() || !Shape(x).isKnown() || !isBox(piece) || !sameSizes(piece.getSizes(), y) ||
      !hasSameLayout(x, y)) {
    return std::nullopt;
  }
  return contiguousOffset(x, piece.getSrcOffsets(), piece.getSizes());
}

std::optional<int64_t> partOffset(CopyOp copy, PieceAttr piece) {
  RankedTensorType x = typeOf(copy.getSources()[piece.getSource()]), y = typeOf(copy.getY());
  if (!piece.isKnown() || !Shape(y).isKnown() || !isBox(piece) || !sameSizes(piece.getSizes(), x)) {
    return std::nullopt;
  }
  return contiguousOffset(y, piece.getDstOffsets(), piece.getSizes());
}

bool writesInPlace(Operation *op) {
  auto scatter = dyn_cast<ScatterOp>(op);
  return isa<InsertOp>(op) || (scatter && scatter.getInPlace());
}

bool canWriteOver(Operation *op, unsigned index) {
  if (writesInPlace(op)) {
    return index == 0;
  }
  Value operand = op->getOperand(index);
  RankedTensorType x = typeOf(operand), y = typeOf(op->getResult(0));
  if (!sameSizes(x, y) || !hasSameLayout(x, y) ||
      elementBytes(x.getElementType()) != elementBytes(y.getElementType())) {
    return false;
  }
  if (isa<MapOp, LutOp>(op)) {
    return true;
  }
  auto owner = dyn_cast<EpilogueInterface>(op);
  OperandRange extras = owner ? owner.getEpilogueOperands() : op->getOperands().drop_back(op->getNumOperands());
  unsigned begin = extras.empty() ? 0 : extras.getBeginOperandIndex();
  return !extras.empty() && index >= begin && index < begin + extras.size();
}

} // namespace tessera::device

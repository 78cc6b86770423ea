//===- FusionRules.cpp - Rules of fusing copies and maps ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/ElementTypes.h"
#include "codegen/Npu/Emission/Elementwise/WideIntegers.h"
#include "codegen/Npu/Emission/RowFusionInterface.h"

#include "bmodel/npu/isa.h"
#include "device_dialect/Transforms/Addresses.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera::npu::fusion {
namespace {

int64_t countOf(Value value) { return typeOf(value).getNumElements(); }

/// Returns true if the map's result is a result of the model that overwrites an operand other than |result|. Other ops
/// may still read that operand before the map's position.
bool overwritesAnother(device::MapOp map, Value result) {
  auto inplace = map->getAttrOfType<IntegerAttr>(device::DeviceDialect::kInplaceAttr);
  std::optional<device::Address> address = device::getAddress(map.getY());
  return inplace && address && address->memory != 0 && map.getInputs()[size_t(inplace.getInt())] != result;
}

/// Returns true if the NPU does not support the element type. A map of such elements is not fused.
bool hasNoElement(Type type) { return !npu::typeOf(cast<RankedTensorType>(type).getElementType()); }

} // namespace

FusedAttr getFused(Operation *op) { return op->getAttrOfType<FusedAttr>(NpuDialect::kFusedAttr); }

bool hasEvenRows(const StridedView &view, int64_t rows, int64_t size) {
  return view.strideOf(size, rows) && view.strideOf(1, size);
}

bool hasEvenMatrices(const StridedView &view, Value value) {
  ArrayRef<int64_t> dims = typeOf(value).getShape();
  return dims.size() >= 2 && hasEvenRows(view, dims[dims.size() - 2], dims.back());
}

std::optional<BlockedRows> blockedRowsOf(const StridedView &view, int64_t rows, int64_t size) {
  SmallVector<std::pair<int64_t, int64_t>> ofRow, ofRows; // sizes and strides, from the back
  int64_t below = 1;
  for (size_t back = 1; back <= view.nest.sizes.size(); ++back) {
    size_t dim = view.nest.sizes.size() - back;
    int64_t count = view.nest.sizes[dim], stride = view.nest.strides[0][dim], inRow = count;
    if (below * count > size) { // extends beyond the row
      inRow = below < size ? size / below : 1;
      if (size % std::min(below, size) != 0 || count % inRow != 0) {
        return std::nullopt;
      }
    }
    if (inRow > 1) {
      ofRow.emplace_back(inRow, stride);
    }
    if (count > inRow) {
      ofRows.emplace_back(count / inRow, stride * inRow);
    }
    below *= count;
  }
  if (below != rows * size || ofRow.size() > 3 || ofRows.size() > 2) {
    return std::nullopt;
  }
  ofRow.resize(3, {1, 0}), ofRows.resize(2, {1, 0});
  return BlockedRows{ofRows[1].first,
                     ofRows[1].second,
                     ofRows[0].first,
                     ofRows[0].second,
                     {ofRow[2].first, ofRow[1].first, ofRow[0].first},
                     {ofRow[2].second, ofRow[1].second, ofRow[0].second}};
}

void findReaders(Value value, SmallVectorImpl<OpOperand *> &readers) {
  for (OpOperand &use : value.getUses()) {
    if (auto reshape = dyn_cast<device::ReshapeOp>(use.getOwner())) {
      findReaders(reshape.getY(), readers);
    } else {
      readers.push_back(&use);
    }
  }
}

bool isView(device::CopyOp copy) {
  if (copy.getFill() || copy.getPieces().size() != 1 || device::isElided(copy)) {
    return false;
  }
  std::optional<device::Address> address = device::getAddress(copy.getY());
  auto piece = cast<device::PieceAttr>(copy.getPieces()[0]);
  return (!address || address->memory == 0) && llvm::all_of(piece.getSrcDims(), [](int64_t dim) { return dim >= 0; });
}

StridedView sourceOf(device::CopyOp copy) {
  auto piece = cast<device::PieceAttr>(copy.getPieces()[0]);
  Value source = copy.getSources()[piece.getSource()];
  LoopNest from = broadcastNest({typeOf(source).getShape()});
  StridedView result{source, 0, {}};
  for (auto [offset, stride] : llvm::zip_equal(piece.getSrcOffsets(), from.strides[0])) {
    result.offset += offset * stride;
  }
  result.nest.sizes.assign(piece.getSizes().begin(), piece.getSizes().end());
  result.nest.strides.resize(1);
  for (auto [dim, step] : llvm::zip_equal(piece.getSrcDims(), piece.getSrcSteps())) {
    result.nest.strides[0].push_back(step * from.strides[0][size_t(dim)]);
  }
  result.nest = result.nest.simplified();
  return result;
}

std::optional<StridedView> resultOf(device::CopyOp copy) {
  auto piece = cast<device::PieceAttr>(copy.getPieces()[0]);
  Value source = copy.getSources()[piece.getSource()];
  if (countOf(source) != countOf(copy.getY())) {
    return std::nullopt; // with the same number of elements, no element occurs twice
  }
  LoopNest to = broadcastNest({typeOf(copy.getY()).getShape()});
  StridedView result{copy.getY(), 0, {}};
  result.nest.sizes.assign(typeOf(source).getShape().begin(), typeOf(source).getShape().end());
  result.nest.strides.assign(1, SmallVector<int64_t>(result.nest.sizes.size(), 0));
  for (auto [d, dim] : llvm::enumerate(piece.getSrcDims())) {
    if (piece.getSizes()[d] == 1) {
      continue;
    }
    if (piece.getSrcSteps()[d] != 1 || piece.getSizes()[d] != result.nest.sizes[size_t(dim)]) {
      return std::nullopt;
    }
    result.nest.strides[0][size_t(dim)] = to.strides[0][d];
  }
  result.nest = result.nest.simplified();
  return result;
}

bool canRead(OpOperand &use, const StridedView &view) {
  auto user = dyn_cast<RowFusionInterface>(use.getOwner());
  return user && user.worksOnRows() && user.canRead(use, view);
}

device::MapOp findMap(Operation *op, const bmodel::npu::Chip &chip) {
  Value result = op->getResult(0);
  SmallVector<OpOperand *> readers;
  findReaders(result, readers);
  auto map = readers.empty() ? device::MapOp() : dyn_cast<device::MapOp>(readers.front()->getOwner());
  if (!map || map.getInputs().size() > bmodel::npu::kMapOperands || countOf(map.getY()) != countOf(result) ||
      overwritesAnother(map, readers.front()->get()) ||
      llvm::any_of(readers,
                   [&](OpOperand *use) { return use->getOwner() != map || use->get() != readers[0]->get(); }) ||
      llvm::any_of(map->getOperandTypes(), hasNoElement) || hasNoElement(map.getY().getType())) {
    return {};
  }
  return cast<RowFusionInterface>(op).canCompute(map, readers[0]->get(), chip) ? map : device::MapOp();
}

llvm::Expected<Instructions> programOfMap(device::MapOp map) {
  SmallVector<Interval> intervals;
  for (Value input : map.getInputs()) {
    intervals.push_back(intervalOf(typeOf(input).getElementType()));
  }
  return programOf(map.getBody(), intervals, typeOf(map.getY()).getElementType());
}

device::ConvOp findMapReader(device::MapOp map) {
  Value y = map.getY();
  auto conv = y.hasOneUse() ? dyn_cast<device::ConvOp>(*y.getUsers().begin()) : device::ConvOp();
  bool isOfOne = map.getInputs().size() == 1 && isa<BlockArgument>(map.getInputs()[0]);
  if (!conv || conv.getX() != y || typeOf(y).getRank() != 4 || !isOfOne) {
    return {};
  }
  Value x = map.getInputs()[0];
  bool isPlain = typeOf(x).getShape() == typeOf(y).getShape() && !isWide(x) && !isWide(y);
  return isPlain && !hasNoElement(x.getType()) && !hasNoElement(y.getType()) ? conv : device::ConvOp();
}

device::MapOp fusedInputMapOf(device::ConvOp conv) {
  auto map = conv.getX().getDefiningOp<device::MapOp>();
  FusedAttr fused = map ? getFused(map) : FusedAttr();
  return fused && fused.getInto() == FusedInto::readers ? map : device::MapOp();
}

device::MapOp fusedMapOf(Operation *op) {
  SmallVector<OpOperand *> readers;
  findReaders(op->getResult(0), readers);
  auto map = readers.empty() ? device::MapOp() : dyn_cast<device::MapOp>(readers.front()->getOwner());
  if (!map || !getFused(map) || getFused(map).getInto() != FusedInto::producer) {
    return {};
  }
  // If the map reads results of several ops, the last of these executes it, because the other results exist by then.
  bool isLast = llvm::all_of(map.getInputs(), [&](Value input) {
    input = device::withoutReshapes(input);
    Operation *maker = input.getDefiningOp();
    return !maker || maker == op || device::getConstantRoot(input) || maker->isBeforeInBlock(op);
  });
  return isLast ? map : device::MapOp();
}

SmallVector<device::CopyOp> fusedCopiesOf(Value result) {
  SmallVector<OpOperand *> readers;
  findReaders(result, readers);
  SmallVector<device::CopyOp> copies;
  for (OpOperand *use : readers) {
    auto copy = dyn_cast<device::CopyOp>(use->getOwner());
    FusedAttr fused = copy ? getFused(copy) : FusedAttr();
    if (fused && fused.getInto() == FusedInto::producer && !llvm::is_contained(copies, copy)) {
      copies.push_back(copy);
    }
  }
  llvm::sort(copies,
             [](device::CopyOp a, device::CopyOp b) { return getFused(a).getTarget() < getFused(b).getTarget(); });
  return copies;
}

} // namespace tessera::npu::fusion

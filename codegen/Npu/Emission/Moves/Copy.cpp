//===- Copy.cpp - Copies as DMA transfers ---------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/Elementwise/WideIntegers.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Emission/Moves/Copies.h"
#include "codegen/Npu/Emission/Moves/EarlyCopies.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;

Walk walkOf(device::CopyOp op, device::PieceAttr piece) {
  ArrayRef<int64_t> dims = npu::typeOf(op.getY()).getShape();
  LoopNest from = broadcastNest({npu::typeOf(op.getSources()[piece.getSource()]).getShape()}),
           to = broadcastNest({dims});
  Walk walk;
  walk.nest.sizes.assign(piece.getSizes().begin(), piece.getSizes().end());
  walk.nest.strides.resize(2);
  for (auto [s, offset] : llvm::enumerate(piece.getSrcOffsets())) {
    walk.offsets[1] += offset * from.strides[0][s];
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t s = piece.getSrcDims()[d];
    walk.offsets[0] += piece.getDstOffsets()[d] * to.strides[0][d];
    walk.nest.strides[0].push_back(piece.getDstSteps()[d] * to.strides[0][d]);
    walk.nest.strides[1].push_back(s < 0 ? 0 : piece.getSrcSteps()[d] * from.strides[0][s]);
  }
  walk.nest = walk.nest.simplified();
  return walk;
}

namespace {

/// Returns an order of the dims for a command: w is the dim with the smallest source stride, and c is the largest of
/// the other dims.
SmallVector<size_t> orderForLanes(const LoopNest &nest) {
  SmallVector<size_t> order(llvm::to_vector(llvm::seq<size_t>(0, nest.sizes.size())));
  if (order.empty()) {
    return order; // a single element
  }
  auto closest = llvm::min_element(order, [&](size_t a, size_t b) {
    auto distance = [&](size_t dim) { return nest.strides[1][dim] ? std::abs(nest.strides[1][dim]) : INT64_MAX; };
    return distance(a) < distance(b);
  });
  if (closest == order.end()) { // a single element
    return order;
  }
  std::rotate(closest, closest + 1, order.end());
  if (order.size() > 1) {
    auto most = std::max_element(order.begin(), order.end() - 1,
                                 [&](size_t a, size_t b) { return nest.sizes[a] < nest.sizes[b]; });
    std::rotate(most, most + 1, order.end() - 1);
  }
  return order; // ..., c, w
}

/// Emits moves, through local memory if that turns single elements into runs of bytes, otherwise directly. The sources
/// of |moves| have the same layout, and their first elements lie in the same row.
llvm::Error emitMoves(ArrayRef<Transfer> moves, EmissionContext &context) {
  const Chip &chip = context.chip;
  const TileView to = moves.front().to, from = moves.front().from;
  int32_t size = int32_t(hw::sizeOf(to.tensor.type)), spread = from.tensor.strides[3] / size;
  uint64_t first = from.tensor.offset, last = first;
  std::vector<Descriptor> commands;
  for (const Transfer &move : moves) {
    const TileView &y = move.to, &x = move.from;
    hw::copy_command copy;
    copy.y = y.tensor, copy.x = x.tensor, copy.shape = y.shape;
    commands.push_back(hw::encode(copy));
    if (y.isLocal() && y.copy.region != Region::none) {
      copy.y = y.copy; // from x as well: it holds the data of both destinations
      commands.push_back(hw::encode(copy));
    }
    first = std::min(first, x.tensor.offset), last = std::max(last, x.tensor.offset);
  }
  auto build = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    TileView row = tileOf(from, begin, part, chip);
    row.tensor.offset -= from.tensor.offset - first, row.tensor.strides[3] = size;
    row.shape.dims[3] = (part.dims[3] - 1) * uint32_t(spread) + 1 + uint32_t((last - first) / uint64_t(size));
    TileView local = load(row, localBudget, tile);
    local.tensor.strides[3] *= spread;
    for (const Transfer &move : moves) {
      const TileView &y = move.to, &x = move.from;
      TileView each = local;
      each.tensor.offset += x.tensor.offset - first;
      store(each, tileOf(y, begin, part, chip), tile);
    }
  };
  bool canPass = !to.isLocal() && !from.isLocal() && spread >= 1 && spread <= kMostSpread;
  if (canPass && context.tiler.cyclesToMove(to.shape, build) < directCycles(moves, chip)) {
    // Elements that are neighbours in the result stay in the same tile.
    const int32_t *strides = to.tensor.strides;
    bool joins = std::abs(strides[1]) < std::abs(strides[3]) || strides[3] == 0;
    return context.tiler.append(to.shape, Shape{{1, joins ? 0 : chip.lanes, 1, 1}}, build);
  }
  Tile tile;
  tile.stores = std::move(commands);
  context.stream.append({tile}, false);
  return llvm::Error::success();
}

/// Returns true if two moves read the same rows, starting at different elements.
bool sharesRows(const Transfer &a, const Transfer &b) {
  return haveSameLayout(a.from, b.from) && haveSameLayout(a.to, b.to) && !a.to.isLocal() && !a.from.isLocal() &&
         apart(a.from, b.from) < uint64_t(std::max(a.from.tensor.strides[3], 0));
}

/// Returns the walk over 64-bit elements as a walk over their 32-bit halves.
Walk byHalves(Walk walk) {
  for (int64_t &offset : walk.offsets) {
    offset *= 2;
  }
  for (auto &strides : walk.nest.strides) {
    for (int64_t &stride : strides) {
      stride *= 2;
    }
    strides.push_back(1);
  }
  walk.nest.sizes.push_back(2);
  walk.nest = walk.nest.simplified();
  return walk;
}

/// Returns the moves of a piece, or none if address assignment has already put it in place.
llvm::Expected<std::vector<Transfer>> placePiece(device::CopyOp op, device::PieceAttr piece, EmissionContext &context) {
  constexpr int kDims[] = {3, 1, 2, 0}; // from the last dim: w, c, h, n
  std::vector<Transfer> moves;
  const bool wide = isWide(op.getY());
  Walk walk = wide ? byHalves(walkOf(op, piece)) : walkOf(op, piece);
  auto place = [&](Value value, ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides, int64_t offset) {
    return wide ? placeHalves(value, sizes, strides, offset, context)
                : context.operands.place(value, sizes, strides, offset);
  };
  for (const auto &[nest, offsets] : cutToFour(walk.nest)) {
    SmallVector<size_t> order = orderForLanes(nest);
    int64_t sizes[4] = {1, 1, 1, 1}, strides[2][4] = {};
    for (size_t back = 0; back < order.size(); ++back) {
      size_t dim = order[order.size() - 1 - back];
      int to = kDims[back];
      sizes[to] = nest.sizes[dim];
      strides[0][to] = nest.strides[0][dim], strides[1][to] = nest.strides[1][dim];
    }
    Value source = op.getSources()[piece.getSource()];
    llvm::Expected<TileView> y = place(op.getY(), sizes, strides[0], walk.offsets[0] + offsets[0]),
                             x = place(source, sizes, strides[1], walk.offsets[1] + offsets[1]);
    if (!x || !y) {
      return llvm::joinErrors(x.takeError(), y.takeError());
    }
    const Tensor &to = y->tensor, &from = x->tensor;
    if (to.region != from.region || to.offset != from.offset || to.lane != from.lane) {
      Transfer move{*y, *x};
      if (int64_t pitch = strides[1][1]; pitch > 0) {
        int64_t first = walk.offsets[1] + offsets[1];
        move.inRow = first % pitch;
        move.spare = move.inRow + sizes[3] <= pitch &&
                     first - move.inRow + sizes[1] * pitch <=
                         ShapedType::getNumElements(npu::typeOf(source).getShape()) * (wide ? 2 : 1);
      }
      moves.push_back(move);
    }
  }
  return moves;
}

/// Fills the result of a copy with its fill value, before pieces are copied there.
llvm::Error emitFill(device::CopyOp op, EmissionContext &context) {
  ArrayRef<int64_t> dims = npu::typeOf(op.getY()).getShape();
  int64_t count = ShapedType::getNumElements(dims);
  bool planes = dims.size() == 4;
  llvm::Expected<TileView> whole =
      planes ? context.operands.place(op.getY(), dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1})
             : context.operands.place(op.getY(), {1, 1, 1, count}, {0, 0, 0, 1});
  if (!whole) {
    return whole.takeError();
  }
  hw::fill_command fill;
  double value = op.getFill()->convertToDouble();
  fill.y = whole->tensor, fill.shape = whole->shape;
  bool isFloat = hw::isFloat(whole->tensor.type);
  if (isFloat && whole->tensor.type != Type::f32 && value != 0) {
    return reject("fills with an f16 or bf16 value other than 0, which is not supported yet");
  }
  fill.value = isFloat ? llvm::bit_cast<uint32_t>(float(value)) : uint32_t(int64_t(value));
  Tile tile;
  tile.stores.push_back(hw::encode(fill));
  if (whole->copy.region != Region::none) {
    fill.y = whole->copy;
    tile.stores.push_back(hw::encode(fill));
  }
  context.stream.append({tile}, false);
  return llvm::Error::success();
}

struct CopyModel : EmissionInterface::ExternalModel<CopyModel, device::CopyOp> {
  llvm::Error checkTypes(Operation *, const Chip &) const { return llvm::Error::success(); } // nothing is computed

  llvm::Error emit(Operation *op, EmissionContext &context) const {
    auto copy = cast<device::CopyOp>(op);
    if (llvm::Error error = copy.getFill() ? emitFill(copy, context) : llvm::Error::success()) {
      return error;
    }
    SmallVector<unsigned> left;
    for (unsigned index = 0; index < copy.getPieces().size(); ++index) {
      if (!context.copies.hoistsLoads(copy, index)) {
        left.push_back(index);
      }
    }
    return emitPieces(copy, left, context);
  }
};

} // namespace

llvm::Error emitPieces(device::CopyOp op, ArrayRef<unsigned> indices, EmissionContext &context) {
  std::vector<Transfer> all;
  for (unsigned index : indices) {
    llvm::Expected<std::vector<Transfer>> moves =
        placePiece(op, cast<device::PieceAttr>(op.getPieces()[index]), context);
    if (!moves) {
      return moves.takeError();
    }
    llvm::append_range(all, *moves);
  }
  if (llvm::Error error = emitInterleaved(all, context)) {
    return error;
  }
  if (llvm::Error error = emitRows(all, context)) {
    return error;
  }
  std::vector<std::vector<Transfer>> groups;
  for (const Transfer &move : all) {
    auto shared = llvm::find_if(groups, [&](ArrayRef<Transfer> group) { return sharesRows(group.front(), move); });
    (shared == groups.end() ? groups.emplace_back() : *shared).push_back(move);
  }
  for (ArrayRef<Transfer> group : groups) {
    if (llvm::Error error = emitMoves(group, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

void attachCopyModels(MLIRContext *context) { device::CopyOp::attachInterface<CopyModel>(*context); }

} // namespace tessera::npu

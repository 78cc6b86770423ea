//===- EmitCopies.cpp - Moves outside the NPU -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"
#include "codegen/Npu/Nest.h"

#include "bmodel/npu/latency.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/TopConstOps.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;
namespace {

/// What results may cost more that leave as they are made: short runs of bytes do.
constexpr double kMostSlowed = 1.25;
/// Part of local memory that a value may take and still stay there until it is copied.
constexpr double kMostKept = 0.5;
constexpr size_t kMostOutletCommands = 16;

ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// Where a piece goes and where it comes from: strides in elements, of the result and the source.
struct Walk {
  Nest nest;
  int64_t offsets[2] = {0, 0};
};

Walk walkOf(device::CopyOp op, device::PieceAttr piece) {
  ArrayRef<int64_t> dims = shapeOf(op.getY());
  Nest from = broadcastNest({shapeOf(op.getSources()[piece.getSource()])}), to = broadcastNest({dims});
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

/// Dims of a nest such that the source's elements lie as close as possible in w, and as many rows as possible in c.
SmallVector<size_t> orderForLanes(const Nest &nest) {
  SmallVector<size_t> order(llvm::to_vector(llvm::seq<size_t>(0, nest.sizes.size())));
  if (order.empty()) {
    return order; // one element
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

} // namespace

/// Through local memory, where that makes of single elements runs of bytes; else at once. The sources of |moves| are
/// the same but for their first elements, which stand together in one row.
llvm::Error Emitter::emitMoves(ArrayRef<Move> moves) {
  const Place to = moves.front().to, from = moves.front().from;
  int32_t size = int32_t(hw::sizeOf(to.tensor.type)), spread = from.tensor.strides[3] / size;
  uint64_t first = from.tensor.offset, last = first;
  std::vector<Descriptor> commands;
  for (const Move &move : moves) {
    const Place &y = move.to, &x = move.from;
    hw::copy_command copy;
    copy.y = y.tensor, copy.x = x.tensor, copy.shape = y.shape;
    commands.push_back(hw::encode(copy));
    if (y.isLocal() && y.copy.region != Region::none) {
      copy.y = y.copy; // from where x is: both are what is to be stored
      commands.push_back(hw::encode(copy));
    }
    first = std::min(first, x.tensor.offset), last = std::max(last, x.tensor.offset);
  }
  auto build = [&](const Shape &begin, const Shape &part, Area &area, Tile &tile) {
    Place row = tileOf(from, begin, part, chip);
    row.tensor.offset -= from.tensor.offset - first, row.tensor.strides[3] = size;
    row.shape.dims[3] = (part.dims[3] - 1) * uint32_t(spread) + 1 + uint32_t((last - first) / uint64_t(size));
    Place local = load(row, area, tile);
    local.tensor.strides[3] *= spread;
    for (const Move &move : moves) {
      const Place &y = move.to, &x = move.from;
      Place each = local;
      each.tensor.offset += x.tensor.offset - first;
      store(each, tileOf(y, begin, part, chip), tile);
    }
  };
  bool canPass = !to.isLocal() && !from.isLocal() && spread >= 1 && spread <= kMostSpread;
  if (canPass && tiler.cyclesToMove(to.shape, build) < directCycles(moves, chip)) {
    // Neighbours in the result stay together.
    const int32_t *strides = to.tensor.strides;
    bool joins = std::abs(strides[1]) < std::abs(strides[3]) || strides[3] == 0;
    return tiler.append(to.shape, Shape{{1, joins ? 0 : chip.lanes, 1, 1}}, build);
  }
  Tile tile;
  tile.stores = std::move(commands);
  stream.append({tile}, false);
  return llvm::Error::success();
}

/// Whether two moves read the same rows, from other elements on.
static bool sharesRows(const Move &a, const Move &b) {
  return haveSameLayout(a.from, b.from) && haveSameLayout(a.to, b.to) && !a.to.isLocal() && !a.from.isLocal() &&
         apart(a.from, b.from) < uint64_t(std::max(a.from.tensor.strides[3], 0));
}

llvm::Error Emitter::emitCopy(device::CopyOp op) {
  if (op.getFill()) {
    ArrayRef<int64_t> dims = shapeOf(op.getY());
    int64_t count = ShapedType::getNumElements(dims);
    bool planes = dims.size() == 4;
    llvm::Expected<Place> whole =
        planes ? place(op.getY(), dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1})
               : place(op.getY(), {1, 1, 1, count}, {0, 0, 0, 1});
    if (!whole) {
      return whole.takeError();
    }
    hw::fill_command fill;
    double value = op.getFill()->convertToDouble();
    fill.y = whole->tensor, fill.shape = whole->shape;
    bool isFloat = hw::isFloat(whole->tensor.type);
    if (isFloat && whole->tensor.type != Type::f32 && value != 0) {
      return refuse("fills with a narrow float, which is not emitted yet");
    }
    fill.value = isFloat ? llvm::bit_cast<uint32_t>(float(value)) : uint32_t(int64_t(value));
    Tile tile;
    tile.stores.push_back(hw::encode(fill));
    if (whole->copy.region != Region::none) {
      fill.y = whole->copy;
      tile.stores.push_back(hw::encode(fill));
    }
    stream.append({tile}, false);
  }
  SmallVector<unsigned> left;
  for (unsigned index = 0; index < op.getPieces().size(); ++index) {
    if (!early.contains({op, index})) {
      left.push_back(index);
    }
  }
  return emitPieces(op, left);
}

llvm::Error Emitter::emitPieces(device::CopyOp op, ArrayRef<unsigned> indices) {
  std::vector<Move> all;
  for (unsigned index : indices) {
    llvm::Expected<std::vector<Move>> moves = placePiece(op, cast<device::PieceAttr>(op.getPieces()[index]));
    if (!moves) {
      return moves.takeError();
    }
    llvm::append_range(all, *moves);
  }
  if (llvm::Error error = emitInterleaved(all)) {
    return error;
  }
  if (llvm::Error error = emitRows(all)) {
    return error;
  }
  std::vector<std::vector<Move>> groups;
  for (const Move &move : all) {
    auto shared = llvm::find_if(groups, [&](ArrayRef<Move> group) { return sharesRows(group.front(), move); });
    (shared == groups.end() ? groups.emplace_back() : *shared).push_back(move);
  }
  for (ArrayRef<Move> group : groups) {
    if (llvm::Error error = emitMoves(group)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Nothing where address assignment has put the piece where it belongs.
llvm::Expected<std::vector<Move>> Emitter::placePiece(device::CopyOp op, device::PieceAttr piece) {
  constexpr int kDims[] = {3, 1, 2, 0}; // from the last: w, c, h, n
  std::vector<Move> moves;
  Walk walk = walkOf(op, piece);
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
    llvm::Expected<Place> y = place(op.getY(), sizes, strides[0], walk.offsets[0] + offsets[0]),
                          x = place(source, sizes, strides[1], walk.offsets[1] + offsets[1]);
    if (!x || !y) {
      return llvm::joinErrors(x.takeError(), y.takeError());
    }
    const Tensor &to = y->tensor, &from = x->tensor;
    if (to.region != from.region || to.offset != from.offset || to.lane != from.lane) {
      Move move{*y, *x};
      if (int64_t pitch = strides[1][1]; pitch > 0) {
        int64_t first = walk.offsets[1] + offsets[1];
        move.inRow = first % pitch;
        move.spare = move.inRow + sizes[3] <= pitch &&
                     first - move.inRow + sizes[1] * pitch <= ShapedType::getNumElements(shapeOf(source));
      }
      moves.push_back(move);
    }
  }
  return moves;
}

/// The op after which all of a value is there.
static Operation *lastWriterOf(Value value, const llvm::DenseMap<Operation *, unsigned> &order) {
  Operation *op = value.getDefiningOp();
  if (!op || !device::isElided(op)) {
    return op;
  }
  Operation *last = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *writer = lastWriterOf(operand, order);
    last = writer && (!last || order.lookup(writer) > order.lookup(last)) ? writer : last;
  }
  return last;
}

/// Whether nobody reads a value on the chip.
static bool onlyReturned(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    return isa<func::ReturnOp>(user) || (isa<device::ReshapeOp>(user) && onlyReturned(user));
  });
}

/// Whether all pieces are short parts of the same rows: together they leave in longer runs.
static bool leavesTogether(device::CopyOp copy, const Chip &chip) {
  std::optional<Type> type = typeOf(cast<RankedTensorType>(copy.getY().getType()).getElementType());
  auto isShort = [&](device::PieceAttr piece) {
    Nest nest = walkOf(copy, piece).nest;
    for (auto [size, stride] : llvm::zip_equal(nest.sizes, nest.strides[0])) {
      if (stride == 1 && size * int64_t(hw::sizeOf(*type)) >= int64_t(chip.burstBytes)) {
        return false;
      }
    }
    return true;
  };
  return type && copy.getPieces().size() > 1 && llvm::all_of(copy.getPieces().getAsRange<device::PieceAttr>(), isShort);
}

void Emitter::findEarlyPieces() {
  llvm::DenseMap<Operation *, unsigned> order;
  for (Operation &op : function.getBody().front()) {
    order[&op] = order.size();
  }
  for (auto copy : function.getBody().front().getOps<device::CopyOp>()) {
    std::optional<device::Address> address = device::getAddress(copy.getY());
    if (!address || address->memory <= 0 || !onlyReturned(copy) || copy.getFill() || device::isElided(copy) ||
        leavesTogether(copy, chip)) {
      continue;
    }
    for (auto [index, piece] : llvm::enumerate(copy.getPieces().getAsRange<device::PieceAttr>())) {
      Operation *writer = lastWriterOf(copy.getSources()[piece.getSource()], order);
      if (writer && !isa<top::WeightOp, top::ConstantOp>(writer)) {
        early.insert({copy, unsigned(index)});
        earlyBehind[writer].push_back({copy, unsigned(index)});
      }
    }
  }
}

/// What an op writes, and where that begins in the value that a piece is of.
struct Leaf {
  Value value;
  int64_t first; ///< in elements
};

/// The values that make up |value|, in order; false where one of them is not made by a single op.
static bool findLeaves(Value value, int64_t origin, int64_t bytes, SmallVectorImpl<Leaf> &leaves) {
  Operation *op = value.getDefiningOp();
  std::optional<device::Address> address = device::getAddress(value);
  if (!op || !address || address->memory != 0) {
    return false;
  }
  if (device::isElided(op)) {
    return llvm::all_of(op->getOperands(), [&](Value each) { return findLeaves(each, origin, bytes, leaves); });
  }
  leaves.push_back({value, (address->offset - origin) / bytes});
  return isa<device::ConvOp, device::PoolOp>(op); // these store their tiles as n, c, h, w
}

/// What commands of the DMA take but for their latencies, of which other commands hide some.
static double movingCycles(ArrayRef<Descriptor> commands, const Chip &chip) {
  double cycles = 0;
  for (const Descriptor &command : commands) {
    cycles += hw::costOf(command, chip).cycles - chip.dmaLatency;
  }
  return cycles;
}

/// Lets the ops that make a piece's source store it as the piece wants it, where that takes about as long as to store
/// it as it is.
bool Emitter::deliver(device::CopyOp op, device::PieceAttr piece) {
  Value source = op.getSources()[piece.getSource()];
  std::optional<device::Address> address = device::getAddress(source);
  std::optional<Tensor> to = outsideOf(op.getY());
  std::optional<Type> type = typeOf(cast<RankedTensorType>(source.getType()).getElementType());
  SmallVector<Leaf> leaves;
  if (!address || !to || !type) {
    return false;
  }
  to->type = *type;
  if (!findLeaves(source, address->offset, int64_t(hw::sizeOf(to->type)), leaves)) {
    return false;
  }
  Walk walk = walkOf(op, piece);
  double through = 0, stores = 0;
  std::vector<Outlet> outlets;
  for (const Leaf &leaf : leaves) {
    ArrayRef<int64_t> shape = shapeOf(leaf.value);
    std::optional<View> view = plan.writtenAs(leaf.value);
    if (!view || !std::equal(shape.begin(), shape.end(), view->sizes, view->sizes + 4)) {
      return false;
    }
    std::optional<Outlet> outlet = makeOutlet(walk.nest, walk.offsets, *to, shape, leaf.first, chip);
    if (!outlet) {
      return false;
    }
    Place local;
    local.tensor.region = Region::local, local.tensor.type = to->type;
    for (int64_t d = 3, stride = int64_t(hw::sizeOf(to->type)); d >= 0; --d) {
      local.shape.dims[d] = uint32_t(shape[size_t(d)]), local.tensor.strides[d] = int32_t(stride);
      stride *= d == 1 ? int64_t(llvm::divideCeil(shape[1], int64_t(chip.lanes))) : shape[size_t(d)];
    }
    const int64_t at[4] = {0, 0, 0, 0};
    std::vector<Descriptor> commands = outlet->commands(local, at);
    if (commands.size() > kMostOutletCommands) {
      return false;
    }
    through += movingCycles(commands, chip);
    hw::copy_command copy;
    copy.x = local.tensor, copy.y = local.tensor, copy.y.region = Region::workspace, copy.shape = local.shape;
    copy.y.strides[0] = int32_t(shape[1]) * copy.y.strides[1];
    stores += movingCycles(hw::encode(copy), chip);
    outlets.push_back(*outlet);
  }
  // What is too large to stay in local memory would come back from outside.
  uint64_t bytes = uint64_t(cast<RankedTensorType>(source.getType()).getNumElements()) * hw::sizeOf(to->type);
  bool returns = double(bytes) > kMostKept * double(chip.laneBytes) * chip.lanes;
  if (through > (returns ? stores + 2 * double(bytes) / chip.ddrBytesPerCycle() : kMostSlowed * stores)) {
    return false;
  }
  for (auto [leaf, outlet] : llvm::zip_equal(leaves, outlets)) {
    plan.addOutlet(leaf.value, outlet);
  }
  return true;
}

/// Pieces of results that can be moved out as soon as |op| has run: nobody writes there again.
llvm::Error Emitter::emitEarlyPieces(Operation *op) {
  for (auto [copy, index] : earlyBehind.lookup(op)) {
    auto piece = cast<device::PieceAttr>(cast<device::CopyOp>(copy).getPieces()[index]);
    if (tiler.surveys && deliver(cast<device::CopyOp>(copy), piece)) {
      plan.delivered.insert({copy, index});
    }
    if (plan.delivered.contains({copy, index})) {
      continue;
    }
    current = copy;
    if (llvm::Error error = emitPieces(cast<device::CopyOp>(copy), index)) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::npu

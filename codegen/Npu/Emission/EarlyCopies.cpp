//===- EarlyCopies.cpp - Parts of copies that go with producers -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/EarlyCopies.h"

#include "codegen/Npu/Emission/Copies.h"
#include "codegen/Npu/Emission/EmissionInterface.h"

#include "bmodel/npu/latency.h"
#include "device_dialect/Transforms/Addresses.h"

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

/// The op after which all of a value is there.
Operation *lastWriterOf(Value value, const llvm::DenseMap<Operation *, unsigned> &order) {
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
bool onlyReturned(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() || (isa<device::ReshapeOp>(user) && onlyReturned(user));
  });
}

/// Whether all pieces are short parts of the same rows: together they leave in longer runs.
bool leavesTogether(device::CopyOp copy, const Chip &chip) {
  std::optional<Type> type = npu::typeOf(npu::typeOf(copy.getY()).getElementType());
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

/// What an op writes, and where that begins in the value that a piece is of.
struct Leaf {
  Value value;
  int64_t first; ///< in elements
};

/// The values that make up |value|, in order; false where one of them is not made by a single op.
bool findLeaves(Value value, int64_t origin, int64_t bytes, SmallVectorImpl<Leaf> &leaves) {
  Operation *op = value.getDefiningOp();
  std::optional<device::Address> address = device::getAddress(value);
  if (!op || !address || address->memory != 0) {
    return false;
  }
  if (device::isElided(op)) {
    return llvm::all_of(op->getOperands(), [&](Value each) { return findLeaves(each, origin, bytes, leaves); });
  }
  leaves.push_back({value, (address->offset - origin) / bytes});
  auto model = dyn_cast<EmissionInterface>(op);
  return model && model.storesImages();
}

/// What commands of the DMA take but for their latencies, of which other commands hide some.
double movingCycles(ArrayRef<Descriptor> commands, const Chip &chip) {
  double cycles = 0;
  for (const Descriptor &command : commands) {
    cycles += hw::costOf(command, chip).cycles - chip.dmaLatency;
  }
  return cycles;
}

/// A leaf's result as it is in local memory, dense, as far as its costs are concerned.
Place denseOf(ArrayRef<int64_t> shape, Type type, const Chip &chip) {
  Place local;
  local.tensor.region = Region::local, local.tensor.type = type;
  for (int64_t d = 3, stride = int64_t(hw::sizeOf(type)); d >= 0; --d) {
    local.shape.dims[d] = uint32_t(shape[size_t(d)]), local.tensor.strides[d] = int32_t(stride);
    stride *= d == 1 ? int64_t(llvm::divideCeil(shape[1], int64_t(chip.lanes))) : shape[size_t(d)];
  }
  return local;
}

/// How a leaf leaves as the piece wants it, and what that costs beside storing it as it is.
struct Delivery {
  Outlet outlet;
  double through, stores;
};

/// Nothing where the leaf's op does not store all of it, as n, c, h, w, or with too many commands.
std::optional<Delivery> planDelivery(const Leaf &leaf, const Walk &walk, const Tensor &to, const ValuePlan &plan,
                                     const Chip &chip) {
  ArrayRef<int64_t> shape = npu::typeOf(leaf.value).getShape();
  std::optional<View> view = plan.writtenAs(leaf.value);
  if (!view || !std::equal(shape.begin(), shape.end(), view->sizes, view->sizes + 4)) {
    return std::nullopt;
  }
  std::optional<Outlet> outlet = makeOutlet(walk.nest, walk.offsets, to, shape, leaf.first, chip);
  if (!outlet) {
    return std::nullopt;
  }
  Place local = denseOf(shape, to.type, chip);
  const int64_t at[4] = {0, 0, 0, 0};
  std::vector<Descriptor> commands = outlet->commands(local, at);
  if (commands.size() > kMostOutletCommands) {
    return std::nullopt;
  }
  hw::copy_command copy;
  copy.x = local.tensor, copy.y = local.tensor, copy.y.region = Region::workspace, copy.shape = local.shape;
  copy.y.strides[0] = int32_t(shape[1]) * copy.y.strides[1];
  return Delivery{*outlet, movingCycles(commands, chip), movingCycles(hw::encode(copy), chip)};
}

/// Lets the ops that make a piece's source store it as the piece wants it, where that takes about as long as to store
/// it as it is.
bool deliver(device::CopyOp op, device::PieceAttr piece, EmissionContext &context) {
  const Chip &chip = context.chip;
  Value source = op.getSources()[piece.getSource()];
  std::optional<device::Address> address = device::getAddress(source);
  std::optional<Tensor> to = context.operands.outsideOf(op.getY());
  std::optional<Type> type = npu::typeOf(npu::typeOf(source).getElementType());
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
    std::optional<Delivery> delivery = planDelivery(leaf, walk, *to, context.plan, chip);
    if (!delivery) {
      return false;
    }
    through += delivery->through, stores += delivery->stores;
    outlets.push_back(delivery->outlet);
  }
  // What is too large to stay in local memory would come back from outside.
  uint64_t bytes = uint64_t(npu::typeOf(source).getNumElements()) * hw::sizeOf(to->type);
  bool returns = double(bytes) > kMostKept * double(chip.laneBytes) * chip.lanes;
  if (through > (returns ? stores + 2 * double(bytes) / chip.ddrBytesPerCycle() : kMostSlowed * stores)) {
    return false;
  }
  for (auto [leaf, outlet] : llvm::zip_equal(leaves, outlets)) {
    context.plan.addOutlet(leaf.value, outlet);
  }
  return true;
}

} // namespace

EarlyCopies::EarlyCopies(func::FuncOp function, const Chip &chip) {
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
      if (writer && !device::getConstantRoot(writer->getResult(0))) {
        early.insert({copy, unsigned(index)});
        behind[writer].push_back({copy, unsigned(index)});
      }
    }
  }
}

llvm::Error EarlyCopies::emitBehind(Operation *op, uint32_t number, EmissionContext &context) const {
  for (auto [each, index] : behind.lookup(op)) {
    auto copy = cast<device::CopyOp>(each);
    auto piece = cast<device::PieceAttr>(copy.getPieces()[index]);
    if (context.surveys() && deliver(copy, piece, context)) {
      context.plan.delivered.insert({copy, index});
    }
    if (context.plan.delivered.contains({copy, index})) {
      continue;
    }
    context.operands.enter(copy, number);
    if (llvm::Error error = emitPieces(copy, index, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::npu

//===- ChooseDirectStores.cpp - Direct stores of results ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Decisions/ChooseDirectStores.h"

#include "bmodel/npu/latency.h"
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Moves/Copies.h"
#include "device_dialect/Transforms/Addresses.h"

namespace tessera::npu {
#define GEN_PASS_DEF_CHOOSEDIRECTSTORESPASS
#include "codegen/Npu/Passes.h.inc"
} // namespace tessera::npu

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Type;
namespace {

/// Largest allowed ratio of the store time in the layout of the copy to the store time in the producer's own layout. A
/// direct store may write shorter runs of bytes, which take longer.
constexpr double kMostSlowed = 1.25;
/// Share of local memory below which a value stays there until it is copied.
constexpr double kMostKept = 0.5;
constexpr size_t kMostCommands = 16;

/// Returns true if the results of |op| are only returned, also through reshapes.
bool onlyReturned(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() || (isa<device::ReshapeOp>(user) && onlyReturned(user));
  });
}

/// Returns true if all pieces are short parts of the same rows. Moved together, they form longer runs.
bool leavesTogether(device::CopyOp copy, const Chip &chip) {
  std::optional<Type> type = npu::typeOf(npu::typeOf(copy.getY()).getElementType());
  auto isShort = [&](device::PieceAttr piece) {
    LoopNest nest = walkOf(copy, piece).nest;
    for (auto [size, stride] : llvm::zip_equal(nest.sizes, nest.strides[0])) {
      if (stride == 1 && size * int64_t(hw::sizeOf(*type)) >= int64_t(chip.burstBytes)) {
        return false;
      }
    }
    return true;
  };
  return type && copy.getPieces().size() > 1 && llvm::all_of(copy.getPieces().getAsRange<device::PieceAttr>(), isShort);
}

/// A value written by an op, and its offset within the value that a piece reads.
struct Leaf {
  Value value;
  int64_t first; ///< in elements
};

/// Collects the values that make up |value|, in order. Returns false if one of them is not written by a single op that
/// stores images.
bool findLeaves(Value value, int64_t origin, int64_t bytes, SmallVectorImpl<Leaf> &storedDirectly) {
  Operation *op = value.getDefiningOp();
  std::optional<device::Address> address = device::getAddress(value);
  if (!op || !address || address->memory != 0) {
    return false;
  }
  if (device::isElided(op)) {
    return llvm::all_of(op->getOperands(), [&](Value each) { return findLeaves(each, origin, bytes, storedDirectly); });
  }
  storedDirectly.push_back({value, (address->offset - origin) / bytes});
  auto model = dyn_cast<EmissionInterface>(op);
  return model && model.storesImages();
}

/// Returns the cycles of DMA commands without their latencies, which other commands partly hide.
double movingCycles(ArrayRef<Descriptor> commands, const Chip &chip) {
  double cycles = 0;
  for (const Descriptor &command : commands) {
    cycles += hw::costOf(command, chip).cycles - chip.dmaLatency;
  }
  return cycles;
}

/// Returns a dense tensor in local memory that stands for a leaf's result in cost estimates.
TileView denseOf(ArrayRef<int64_t> shape, Type type, const Chip &chip) {
  TileView local;
  local.tensor.region = Region::local, local.tensor.type = type;
  for (int64_t d = 3, stride = int64_t(hw::sizeOf(type)); d >= 0; --d) {
    local.shape.dims[d] = uint32_t(shape[size_t(d)]), local.tensor.strides[d] = int32_t(stride);
    stride *= d == 1 ? int64_t(llvm::divideCeil(shape[1], int64_t(chip.lanes))) : shape[size_t(d)];
  }
  return local;
}

/// Returns a result of the model, with elements of |type|.
Tensor resultOf(func::FuncOp function, const device::Address &address, Type type) {
  Tensor result;
  result.region = Region(int64_t(Region::io) + int64_t(function.getNumArguments()) + address.memory - 1);
  result.offset = uint64_t(address.offset), result.type = type;
  return result;
}

/// Returns nothing if the leaf needs too many commands, or does not have the dims of an image.
std::optional<DirectStoreCost> storeOf(const Leaf &leaf, const Walk &walk, const Tensor &to, const Chip &chip) {
  ArrayRef<int64_t> shape = npu::typeOf(leaf.value).getShape();
  std::optional<DirectStore> directStore =
      shape.size() == 4 ? makeDirectStore(walk.nest, walk.offsets, to, shape, leaf.first, chip) : std::nullopt;
  if (!directStore) {
    return std::nullopt;
  }
  TileView local = denseOf(shape, to.type, chip);
  const int64_t at[4] = {0, 0, 0, 0};
  std::vector<Descriptor> commands = directStore->commands(local, at);
  if (commands.size() > kMostCommands) {
    return std::nullopt;
  }
  hw::copy_command copy;
  copy.x = local.tensor, copy.y = local.tensor, copy.y.region = Region::workspace, copy.shape = local.shape;
  copy.y.strides[0] = int32_t(shape[1]) * copy.y.strides[1];
  return DirectStoreCost{leaf.value, *directStore, movingCycles(commands, chip), movingCycles(hw::encode(copy), chip)};
}

struct ChooseDirectStores : ChipPass<impl::ChooseDirectStoresPassBase<ChooseDirectStores>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    for (auto copy : getOperation().getBody().front().getOps<device::CopyOp>()) {
      copy->removeAttr(NpuDialect::kPiecesAttr);
      std::optional<device::Address> address = device::getAddress(copy.getY());
      if (!address || address->memory <= 0 || !onlyReturned(copy) || copy.getFill() || device::isElided(copy) ||
          leavesTogether(copy, chip())) {
        continue;
      }
      SmallVector<PieceTime> times;
      for (auto piece : copy.getPieces().getAsRange<device::PieceAttr>()) {
        Operation *writer = lastWriterOf(copy.getSources()[piece.getSource()]);
        bool isMade = writer && !device::getConstantRoot(writer->getResult(0));
        times.push_back(!isMade ? PieceTime::turn : pays(copy, piece) ? PieceTime::direct : PieceTime::early);
        numDirect += times.back() == PieceTime::direct;
      }
      copy->setAttr(NpuDialect::kPiecesAttr, PiecesAttr::get(copy.getContext(), times));
    }
  }

private:
  /// Returns true if storing a piece's source in the piece's layout takes about as long as storing it unchanged.
  bool pays(device::CopyOp copy, device::PieceAttr piece) {
    auto stores = directStoreCosts(getOperation(), copy, piece, chip());
    if (!stores) {
      return false;
    }
    double through = 0, own = 0;
    for (const DirectStoreCost &store : *stores) {
      through += store.cycles, own += store.ownCycles;
    }
    // A value that is too large to stay in local memory would have to be loaded again for the copy.
    RankedTensorType type = npu::typeOf(copy.getSources()[piece.getSource()]);
    uint64_t bytes = uint64_t(type.getNumElements()) * hw::sizeOf(*npu::typeOf(type.getElementType()));
    bool returns = double(bytes) > kMostKept * double(chip().laneBytes) * chip().lanes;
    return through <= (returns ? own + 2 * double(bytes) / chip().ddrBytesPerCycle() : kMostSlowed * own);
  }
};

} // namespace

Operation *lastWriterOf(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || !device::isElided(op)) {
    return op;
  }
  Operation *last = nullptr;
  for (Value operand : op->getOperands()) {
    Operation *writer = lastWriterOf(operand);
    last = writer && (!last || last->isBeforeInBlock(writer)) ? writer : last;
  }
  return last;
}

std::optional<std::vector<DirectStoreCost>> directStoreCosts(func::FuncOp function, device::CopyOp copy,
                                                             device::PieceAttr piece, const Chip &chip) {
  Value source = copy.getSources()[piece.getSource()];
  std::optional<device::Address> address = device::getAddress(source), to = device::getAddress(copy.getY());
  std::optional<Type> type = npu::typeOf(npu::typeOf(source).getElementType());
  SmallVector<Leaf> storedDirectly;
  if (!address || !to || to->memory <= 0 || !type ||
      !findLeaves(source, address->offset, int64_t(hw::sizeOf(*type)), storedDirectly)) {
    return std::nullopt;
  }
  Walk walk = walkOf(copy, piece);
  std::vector<DirectStoreCost> stores;
  for (const Leaf &leaf : storedDirectly) {
    std::optional<DirectStoreCost> store = storeOf(leaf, walk, resultOf(function, *to, *type), chip);
    if (!store) {
      return std::nullopt;
    }
    stores.push_back(*store);
  }
  return stores;
}

std::unique_ptr<Pass> createChooseDirectStoresPass(const Chip &chip) {
  return std::make_unique<ChooseDirectStores>(chip);
}

} // namespace tessera::npu

//===- Lut.cpp - Table lookup kernels -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Looks up byte by byte in a table that stays in the L1 cache, with 16 independent lookups at a time.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/Models.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

constexpr int64_t kAtOnce = 16;

class LutEmitter {
public:
  LutEmitter(KernelBuilder &kb, bool perChannel) : kb(kb), y(kb.resultType()), perChannel(perChannel) {}

  LogicalResult emit() {
    const Dim count = physicalElements(y), rest = mod(count, kAtOnce);
    int64_t perTile = kb.target.tileIsThread ? kAtOnce : 64 * 1024;
    kb.forTiles(max(1, ceilDiv(count, perTile)), [&](Value tile) {
      Value first = kb.mul(tile, perTile), last = kb.min(kb.add(first, perTile), kb.index(count));
      kb.forLoop(first, kb.add(last, 1 - kAtOnce), kAtOnce, [&](Value i) {
        for (int64_t lane = 0; lane < kAtOnce; ++lane) {
          lookUp(kb.add(i, lane), lane, i);
        }
      });
      if (!rest.is(0)) { // never for a blocked tensor
        kb.ifThen(kb.less(kb.index(count - 1), last),
                  [&] { kb.forLoop(count - rest, count, 1, [&](Value i) { lookUp(i, 0, i); }); });
      }
    });
    return success();
  }

private:
  /// Looks up element |i| of x and stores it to y. It is lane |lane| of the vector of elements that begins at |start|.
  void lookUp(Value i, int64_t lane, Value start) {
    Type byte = kb.b.getI8Type();
    Value index = arith::ExtUIOp::create(kb.b, kb.b.getI64Type(), kb.load(byte, kb.operand(0), i));
    device::BlockedAttr layout = device::getBlockedLayout(y);
    int64_t block = layout ? layout.getBlock() : 1, used = layout ? Shape(y)[1].value() % block : 0;
    if (perChannel) {
      index = kb.add(index, kb.mul(channelOf(layout ? start : i, lane), 256));
    }
    Value value = kb.load(byte, kb.operand(1), index);
    if (used && lane % block >= used) {
      // Padding lanes of the last block stay zero.
      int64_t blocks = llvm::divideCeil(Shape(y)[1].value(), block);
      Value current = kb.rem(kb.div(start, elementsOfBlock()), blocks);
      Value isLast = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, current, kb.constant(blocks - 1));
      value = arith::SelectOp::create(kb.b, isLast, kb.zero(byte), value);
    }
    kb.store(value, kb.result(), i);
  }

  /// Returns the number of elements of one image that share a channel block.
  Dim elementsOfBlock() const { return multiply(ArrayRef(device::physicalDims(y)).drop_front(2)); }

  /// Returns the channel of element |i| or, if y is blocked, of lane |lane| of the lanes that begin at |i|. For padding
  /// lanes, returns the last channel.
  Value channelOf(Value i, int64_t lane) {
    device::BlockedAttr layout = device::getBlockedLayout(y);
    int64_t channels = Shape(y)[1].value(), block = layout ? layout.getBlock() : 1;
    Value current = kb.rem(kb.div(i, elementsOfBlock()), llvm::divideCeil(channels, block));
    return layout ? kb.min(kb.add(kb.mul(current, block), lane % block), kb.constant(channels - 1)) : current;
  }

  KernelBuilder &kb;
  RankedTensorType y;
  bool perChannel;
};

struct LutModel : KernelInterface::ExternalModel<LutModel, device::LutOp> {
  bool acceptsOpenSizes(Operation *op) const {
    auto x = cast<RankedTensorType>(op->getOperand(0).getType());
    bool knownChannels = x.getRank() < 2 || Shape(x)[1].isKnown() || !cast<device::LutOp>(op).hasTablePerChannel();
    return knownChannels && sameSizes(x, cast<RankedTensorType>(op->getResult(0).getType()));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    return LutEmitter(kb, cast<device::LutOp>(op).hasTablePerChannel()).emit();
  }
};

} // namespace

void attachLutModels(MLIRContext *context) { device::LutOp::attachInterface<LutModel>(*context); }

} // namespace tessera::kernels

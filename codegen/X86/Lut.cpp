//===- Lut.cpp - Table lookup kernels -------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Byte by byte through a table that stays in the first cache: 16 independent lookups at a time.
//===----------------------------------------------------------------------===//
#include "codegen/X86/KernelInterface.h"
#include "codegen/X86/Models.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

constexpr int64_t kAtOnce = 16;

class LutEmitter {
public:
  explicit LutEmitter(KernelBuilder &kb) : kb(kb), y(kb.resultType()) {}

  LogicalResult emit() {
    int64_t count = physicalElements(y), perTile = 64 * 1024;
    kb.forTiles(std::max<int64_t>(1, llvm::divideCeil(count, perTile)), [&](Value tile) {
      Value first = kb.mul(tile, perTile), last = kb.min(kb.add(first, perTile), kb.constant(count));
      kb.forLoop(first, kb.add(last, 1 - kAtOnce), kAtOnce, [&](Value i) {
        for (int64_t lane = 0; lane < kAtOnce; ++lane) {
          lookUp(kb.add(i, lane), lane, i);
        }
      });
      if (int64_t rest = count % kAtOnce) { // a blocked tensor has none
        kb.ifThen(kb.less(kb.constant(count - 1), last),
                  [&] { kb.forLoop(count - rest, count, 1, [&](Value i) { lookUp(i, 0, i); }); });
      }
    });
    return success();
  }

private:
  /// Element |i|, which is |lane| of the lanes from |start| on.
  void lookUp(Value i, int64_t lane, Value start) {
    Type byte = kb.b.getI8Type();
    Value index = arith::ExtUIOp::create(kb.b, kb.b.getI64Type(), kb.load(byte, kb.operand(0), i));
    Value value = kb.load(byte, kb.operand(1), index);
    device::BlockedAttr layout = device::getBlockedLayout(y);
    int64_t block = layout ? layout.getBlock() : 1, used = layout ? y.getDimSize(1) % block : 0;
    if (used && lane % block >= used) {
      // Padding lanes of the last block stay zero.
      int64_t blocks = llvm::divideCeil(y.getDimSize(1), block), inner = physicalElements(y) / y.getDimSize(0) / blocks;
      Value current = kb.rem(kb.div(start, inner), blocks);
      Value isLast = arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, current, kb.constant(blocks - 1));
      value = arith::SelectOp::create(kb.b, isLast, kb.zero(byte), value);
    }
    kb.store(value, kb.result(), i);
  }

  KernelBuilder &kb;
  RankedTensorType y;
};

struct LutModel : KernelInterface::ExternalModel<LutModel, device::LutOp> {
  LogicalResult emitKernel(Operation *, KernelBuilder &kb) const { return LutEmitter(kb).emit(); }
};

} // namespace

void attachLutModels(MLIRContext *context) { device::LutOp::attachInterface<LutModel>(*context); }

} // namespace tessera::x86

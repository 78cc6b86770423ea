//===- Insert.cpp - Kernels that write slices in place --------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Each item is one slice of the updates at one index of the dims before the axis: a contiguous row. The operand and the
// result are the same memory, so the kernel does not read the operand.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/Indexing.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceMoveOps.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

struct InsertModel : KernelInterface::ExternalModel<InsertModel, device::InsertOp> {
  bool acceptsOpenSizes(Operation *op) const { return Shape(op->getResult(0)).isKnown(); }

  LogicalResult emitKernel(Operation *operation, KernelBuilder &kb) const {
    if (failed(requireRowMajor(operation))) {
      return failure();
    }
    auto op = cast<device::InsertOp>(operation);
    Shape y = op.getY(), updates = op.getUpdates();
    auto axis = size_t(op.getAxis());
    Dim outer = countElements(y.dropBack(y.rank() - axis)), inner = countElements(y.dropFront(axis + 1));
    Type element = storageElement(kb, kb.resultType().getElementType());
    Value offset = kb.index(Dim(op.getOffset()));
    forItems(kb, outer * updates[axis], inner, 4096, [&](Value item) {
      Value slice = kb.add(offset, kb.rem(item, updates[axis]));
      Value index = kb.div(item, updates[axis]);
      // The offset may be beyond the tensor.
      Value isInside = arith::AndIOp::create(kb.b, kb.less(kb.constant(-1), slice), kb.less(slice, kb.index(y[axis])));
      kb.ifThen(isInside, [&] {
        Value to = kb.add(kb.mul(index, y[axis]), slice);
        copyRow(kb, element, inner, kb.operand(1), kb.mul(item, inner), kb.result(), kb.mul(to, inner));
      });
    });
    return success();
  }
};

} // namespace

void attachInsertModels(MLIRContext *context) { device::InsertOp::attachInterface<InsertModel>(*context); }

} // namespace tessera::kernels

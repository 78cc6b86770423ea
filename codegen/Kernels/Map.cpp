//===- Map.cpp - Elementwise kernels --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/Models.h"

#include "device_dialect/IR/DeviceComputeOps.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

/// Returns a lane count that suits all element types of the kernel: two registers of f32, so that consecutive
/// polynomials overlap.
unsigned mapLanes(const VectorTarget &target) { return 2 * target.lanes(32); }

/// Returns the elements per tile: more for memory-bound bodies than for bodies with polynomials.
int64_t elementsPerTile(Region &body) {
  bool heavy = false;
  body.walk([&](Operation *op) { heavy |= isa<math::MathDialect>(op->getDialect()); });
  return heavy ? 4096 : 16384;
}

SmallVector<RankedTensorType> typesOf(Operation *op) {
  return llvm::map_to_vector(op->getOperandTypes(), [](Type type) { return cast<RankedTensorType>(type); });
}

struct MapModel : KernelInterface::ExternalModel<MapModel, device::MapOp> {
  bool acceptsOpenSizes(Operation *op) const {
    return broadcastsProvably(typesOf(op), cast<RankedTensorType>(op->getResult(0).getType()));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    auto map = cast<device::MapOp>(op);
    SmallVector<RankedTensorType> operands = typesOf(op);
    RankedTensorType result = kb.resultType();
    SmallVector<LoopNest> nests = elementwiseNests(operands, result);
    emitVectorNests(
        kb, nests, mapLanes(kb.target), elementsPerTile(map.getBody()),
        {[&](unsigned t, Dim laneStride, const VectorStep &step) {
           return loadLanes(kb, operands[t].getElementType(), kb.operand(t), laneStride, step, step.offsets[t]);
         },
         [&](ValueRange values, const VectorStep &step) {
           Value value = emitScalarRegion(kb, map.getBody(), values, beforeRounding(map.getBody()));
           return isa<VectorType>(value.getType()) ? value : kb.splat(value, step.lanes);
         },
         [&](Value value, Dim laneStride, const VectorStep &step) {
           storeLanes(kb, result.getElementType(), value, kb.result(), laneStride, step, step.offsets.back());
         }});
    return success();
  }
};

} // namespace

void attachMapModels(MLIRContext *context) { device::MapOp::attachInterface<MapModel>(*context); }

} // namespace tessera::kernels

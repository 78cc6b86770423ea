//===- X86Dialect.cpp - Registration and attributes -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/IR/X86Dialect.h"

#include "codegen/X86/IR/PackedWeights.h"
#include "device_dialect/IR/DeviceOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/InterleavedRange.h"

using namespace mlir;
using namespace tessera::x86;

#include "codegen/X86/IR/X86Dialect.cpp.inc"
#include "codegen/X86/IR/X86Enums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "codegen/X86/IR/X86Attrs.cpp.inc"

void X86Dialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "codegen/X86/IR/X86Attrs.cpp.inc"
      >();
}

LogicalResult X86Dialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kAlgorithmAttr) {
    auto conv = dyn_cast<tessera::device::ConvOp>(op);
    if (!conv || !isa<AlgorithmAttr>(attribute.getValue())) {
      return op->emitOpError() << "has " << attribute.getName() << " = " << attribute.getValue()
                               << ", allowed an #x86.algorithm on a device.conv";
    }
    if (conv.getPacking()) {
      return op->emitOpError()
             << "has an algorithm beside packed weights; remove it, the packing implies the algorithm";
    }
  }
  return success();
}

/// Verifies m of Winograd F(m x m, 3 x 3): 2 or 4 if |isWinograd|, else 0.
static LogicalResult verifyOutputTile(function_ref<InFlightDiagnostic()> emitError, bool isWinograd, int64_t tile,
                                      StringRef label) {
  if (isWinograd ? tile == 2 || tile == 4 : tile == 0) {
    return success();
  }
  return emitError() << "output_tile is " << tile << ", allowed " << (isWinograd ? "2 or 4" : "only with winograd")
                     << " (" << label << ")";
}

LogicalResult AlgorithmAttr::verify(function_ref<InFlightDiagnostic()> emitError, ConvAlgorithm value, int64_t tile) {
  return verifyOutputTile(emitError, value == ConvAlgorithm::winograd, tile, "algorithm_c1");
}

/// Returns true if the kernels of |order| support |step|.
static bool hasKernel(PackedOrder order, PackedStep step) {
  switch (order) {
  case PackedOrder::matrix:
  case PackedOrder::blocks:
  case PackedOrder::taps:
  case PackedOrder::apart:
    return true;
  case PackedOrder::winograd:
    return isFloatStep(step);
  case PackedOrder::depthwise: // integer x: weights as f32, or as i16 next to a zero i16
    return isFloatStep(step) || step == PackedStep::i8 || step == PackedStep::i16x2;
  case PackedOrder::windows:
    return step == PackedStep::i8x4;
  case PackedOrder::channels_last:
  case PackedOrder::pixels:
    return step == PackedStep::i8x4 || step == PackedStep::bf16x2;
  }
  return false;
}

/// Returns true if AMX tiles can multiply weights of this packing with |chunk| bytes of K at a time.
static bool hasAmxTiles(PackedOrder order, PackedStep step, int64_t rows, int64_t columns, int64_t chunk) {
  return chunk > 0 && chunk % 4 == 0 && chunk <= kMostChunk && rows <= kAmxTileRows && columns <= 2 * kBlock &&
         (order == PackedOrder::matrix || hasChannelsLast(order)) &&
         (step == PackedStep::i8x4 || step == PackedStep::bf16x2);
}

LogicalResult PackingAttr::verify(function_ref<InFlightDiagnostic()> emitError, PackedOrder order, PackedStep step,
                                  ArrayRef<int64_t> shape, int64_t rows, int64_t columns, int64_t outputTile,
                                  int64_t scaleGroup, int64_t chunk) {
  if (shape.size() < 2 || llvm::any_of(shape, [](int64_t dim) { return dim < 0; })) { // packing_c1
    return emitError() << "shape [" << llvm::interleaved(shape)
                       << "], allowed 2 or more dims, none negative (packing_c1)";
  }
  bool depthwise = order == PackedOrder::depthwise || order == PackedOrder::windows;
  if (rows < 1 || columns < 1 || columns % kBlock || (depthwise && columns != kBlock)) { // packing_c2
    return emitError() << "tile of " << rows << " x " << columns << ", allowed positive rows and "
                       << (depthwise ? "16 columns" : "a positive multiple of 16 columns") << " (packing_c2)";
  }
  if (failed(verifyOutputTile(emitError, order == PackedOrder::winograd, outputTile, "packing_c3"))) { // packing_c3
    return failure();
  }
  if (!hasKernel(order, step)) { // packing_c4
    return emitError() << "no kernel reads " << stringifyPackedStep(step) << " in the order "
                       << stringifyPackedOrder(order) << " (packing_c4)";
  }
  bool integers = step == PackedStep::i8 || step == PackedStep::i4;
  bool scaled = integers && (order == PackedOrder::matrix || order == PackedOrder::blocks);
  if (scaleGroup < 0 || scaleGroup % kBlock || (scaleGroup && !scaled)) { // packing_c5
    return emitError() << "scale_group is " << scaleGroup
                       << ", allowed a multiple of 16 of i8 or i4 in the orders matrix and "
                       << "blocks (packing_c5)";
  }
  if (chunk == 0 ? hasChannelsLast(order) : !hasAmxTiles(order, step, rows, columns, chunk)) { // packing_c6
    return emitError() << "chunk is " << chunk << ", allowed a multiple of 4 up to " << kMostChunk
                       << " with a tile of at most " << kAmxTileRows << " x " << 2 * kBlock
                       << ", for i8x4 or bf16x2 in the orders matrix, channels_last and pixels; the last two "
                       << "have no kernel without a chunk (packing_c6)";
  }
  return success();
}

LogicalResult BlockPackingAttr::verify(function_ref<InFlightDiagnostic()> emitError, PackedStep step,
                                       ArrayRef<int64_t> shape, int64_t block, int64_t lowest, bool, bool) {
  if (shape.size() != 2 || shape[0] < 0 || shape[1] < 0) { // block_packing_c1
    return emitError() << "shape [" << llvm::interleaved(shape)
                       << "], allowed two dims that are not negative (block_packing_c1)";
  }
  constexpr int64_t kMostOfBlock = 256;
  if (block < kBlock || block > kMostOfBlock || block % kBlock) { // block_packing_c2
    return emitError() << "block is " << block << ", allowed a multiple of " << kBlock << " up to " << kMostOfBlock
                       << " (block_packing_c2)";
  }
  bool fits = step == PackedStep::i4 ? lowest == 0 || lowest == -8 : step == PackedStep::i8 && lowest == -128;
  if (!fits) { // block_packing_c3
    return emitError() << stringifyPackedStep(step) << " from " << lowest
                       << ", allowed i4 from 0 or -8, and i8 from -128 (block_packing_c3)";
  }
  return success();
}

//===- PackedWeights.h - What a packing means in bytes ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// What packs weights and what emits kernels have this from one attribute, #x86.packing. Columns are output channels, in
// blocks of 16; columns that do not exist are zero.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_IR_PACKEDWEIGHTS_H
#define TESSERA_CODEGEN_X86_IR_PACKEDWEIGHTS_H

#include "codegen/X86/IR/X86Dialect.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::x86 {

/// Columns of one block: the channel block of blocked tensors and the unit of panels.
inline constexpr int64_t kBlock = 16;

/// Most bytes of K that a product of AMX tiles takes, and most rows of two such tiles above each other.
inline constexpr int64_t kMostChunk = 64, kMatrixTileRows = 32;
/// Products of fewer rows wait for their weights alone, and do not pay for setting tiles of AMX up.
inline constexpr int64_t kFewestMatrixRows = 4;

/// Dims of logical convolution weights [OC, C / groups, KH, KW].
struct ConvWeightDims {
  int64_t oc, groupC, kh, kw, groups;
};

/// The dims of |conv|, 2-D, whose weights may be packed.
ConvWeightDims weightDims(device::ConvOp conv);

//--- K steps ---

/// One float.
inline bool isFloatStep(PackedStep step) {
  return step == PackedStep::f32 || step == PackedStep::f16 || step == PackedStep::bf16;
}
/// Integers that a float multiplies.
inline bool isScaledStep(PackedStep step) { return step == PackedStep::i8 || step == PackedStep::i4; }

/// Elements of x that one K step takes: four bytes or two words are as wide as one f32.
int64_t stepElements(PackedStep step);
/// Bits of one column in one K step.
int64_t stepBits(PackedStep step);

/// |count| runs of |size| K steps each, without a gap.
struct StepRun {
  int64_t count, size;
};

//--- panels of register tiles ---

/// How weights of a register tile lie: [group][panel], each [K step][columns of the panel] and behind them scales
/// [scaleRows][columns of the panel] f32. A panel is |panelBlocks| blocks, the last one as narrow as the blocks left.
/// Of 4 bits, two K steps share a byte - the first one its low half - but a run begins a new one. |runsPerScale| runs
/// share a row of scales.
struct Panels {
  PackedStep step = PackedStep::f32;
  int64_t columns = 0; ///< of a group
  int64_t panelBlocks = 1, groups = 1;
  llvm::SmallVector<StepRun, 2> runs; ///< K, in order
  int64_t scaleRows = 0, runsPerScale = 0;

  int64_t blocks() const { return (columns + kBlock - 1) / kBlock; }
  int64_t steps() const;              ///< K steps
  int64_t weightBytesOfBlock() const; ///< all K steps of 16 columns
  int64_t bytesOfBlock() const { return weightBytesOfBlock() + scaleRows * kBlock * 4; }
  int64_t bytes() const { return groups * blocks() * bytesOfBlock(); }
};

/// The panels of |packing|, in the orders of register tiles: of a convolution with |groups| groups (of one point for
/// winograd), or of a matrix product.
Panels panelsOfConv(PackingAttr packing, int64_t groups);
Panels panelsOfMatMul(PackingAttr packing, bool transposed);
/// The same of the weights [directions, gates * hidden, hidden] of a recurrent op: a group for each direction, or for
/// each of its gates where one is multiplied after the others. Each gate has whole blocks of columns.
Panels panelsOfRecurrent(device::RecurrentOp op, PackingAttr packing);
/// The same of a [k, n] matrix without scales.
Panels panelsOfMatrix(PackedStep step, int64_t k, int64_t n, int64_t panelBlocks);

/// Whether signed bytes are multiplied as x + 128.
inline bool flipsBytes(PackingAttr packing) { return packing.getStep() == PackedStep::i8x4 && packing.getChunk() == 0; }

/// The packing of an op whose weights are packed; null where they are not.
PackingAttr packingOf(mlir::Operation *op);

/// Whether A is a copy with the channels of a position beside each other.
inline bool hasChannelsLast(PackedOrder order) {
  return order == PackedOrder::channels_last || order == PackedOrder::pixels;
}

/// Channels that pixels are padded to.
inline constexpr int64_t kPixel = 4;

/// Bytes of the channels of one position, or tap, of an |order| that has them last, |channels| of |elementBytes| each:
/// whole blocks of 16, the fewest with which the |kw| taps of a kernel row are whole chunks.
int64_t paddedDepth(PackedOrder order, int64_t channels, int64_t elementBytes, int64_t kw, int64_t chunk);

//--- depthwise ---

/// Where the weights of a kernel row lie when every window of four columns starts at an even one: an output that starts
/// at an even (odd) column sums count[0] (count[1]) windows at distances of four. count[1] is 0 where no output starts
/// at an odd one.
struct DepthwiseWindows {
  int64_t count[2];
};
DepthwiseWindows depthwiseWindows(int64_t kw, int64_t strideW);
/// Bytes of the weights of 16 channels: [KH][windows of even outputs, then of odd ones][16][4] i8.
int64_t windowBytesOfBlock(int64_t kh, int64_t kw, int64_t strideW);
/// Whether windows can be shared by the outputs of such a row.
bool fitsWindows(int64_t strideW, int64_t dilationW);

//--- sizes ---

/// Type of the packed constant, one dim; |op| has x and the sizes that |packing| does not repeat.
mlir::RankedTensorType packedType(mlir::Operation *op, PackingAttr packing);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_IR_PACKEDWEIGHTS_H

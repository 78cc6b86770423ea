//===- PackedWeights.h - Byte layout of packed weights ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Derives the layout of packed weights from one attribute, #x86.packing, for both the passes that pack weights and the
// kernel emitters. Columns are output channels in blocks of 16; columns beyond the last output channel are zero.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_X86_IR_PACKEDWEIGHTS_H
#define TESSERA_CODEGEN_X86_IR_PACKEDWEIGHTS_H

#include "codegen/X86/IR/X86Dialect.h"
#include "device_dialect/IR/DeviceComputeOps.h"

namespace tessera::x86 {

/// Columns of one block: the channel block of blocked tensors and the unit of panels.
inline constexpr int64_t kBlock = 16;

/// Most bytes of K that one AMX tile operation multiplies, and most rows of two AMX tiles, one above the other.
inline constexpr int64_t kMostChunk = 64, kAmxTileRows = 32;
/// Contractions with fewer rows are bound by loading the weights; for them the setup of AMX tiles does not pay off.
inline constexpr int64_t kFewestMatrixRows = 4;

/// Dims of logical convolution weights [OC, C / groups, KH, KW].
struct ConvWeightDims {
  int64_t oc, groupC, kh, kw, groups;
};

/// Returns the dims of the weights of |conv|, a 2-D convolution whose weights may be packed.
ConvWeightDims weightDims(device::ConvOp conv);

//--- K steps ---

/// Returns true if a K step holds one float.
inline bool isFloatStep(PackedStep step) {
  return step == PackedStep::f32 || step == PackedStep::f16 || step == PackedStep::bf16;
}
/// Returns true if a K step holds an integer that is multiplied by a float.
inline bool isScaledStep(PackedStep step) { return step == PackedStep::i8 || step == PackedStep::i4; }

/// Returns the number of elements of x that one K step multiplies: four bytes or two 16-bit words are as wide as one
/// f32.
int64_t stepElements(PackedStep step);
/// Returns the number of bits of one column in one K step.
int64_t stepBits(PackedStep step);

/// |count| consecutive runs of |size| K steps each.
struct StepRun {
  int64_t count, size;
};

//--- panels of register tiles ---

/// Layout of the weights that a register tile reads: [group][panel], and in each panel the weights
/// [K step][columns of the panel] followed by the f32 scales [scaleRows][columns of the panel]. A panel has
/// |panelBlocks| blocks; the last panel has only the remaining blocks. With 4-bit weights, two K steps share a byte
/// (the first one is the low half), but each run begins a new byte. |runsPerScale| runs share a row of scales.
struct Panels {
  PackedStep step = PackedStep::f32;
  int64_t columns = 0; ///< columns of one group
  int64_t panelBlocks = 1, groups = 1;
  llvm::SmallVector<StepRun, 2> runs; ///< the K steps, in order
  int64_t scaleRows = 0, runsPerScale = 0;

  int64_t blocks() const { return (columns + kBlock - 1) / kBlock; }
  int64_t steps() const;              ///< K steps of all runs
  int64_t weightBytesOfBlock() const; ///< bytes of all K steps of 16 columns, without scales
  int64_t bytesOfBlock() const { return weightBytesOfBlock() + scaleRows * kBlock * 4; }
  int64_t bytes() const { return groups * blocks() * bytesOfBlock(); }
};

/// Returns the panels of |packing|, whose order must be one of the register-tile orders. panelsOfConv() takes a
/// convolution with |groups| groups; for winograd it returns the panels of one point of the transformed window.
Panels panelsOfConv(PackingAttr packing, int64_t groups);
Panels panelsOfMatMul(PackingAttr packing, bool transposed);
/// Returns the panels of the weights [directions, gates * hidden, hidden] of a recurrent op. There is one group for
/// each direction, or one for each gate of it if the kernel multiplies the gates one after another (a GRU with
/// linearBeforeReset = 0). Each gate is padded to whole blocks of columns.
Panels panelsOfRecurrent(device::RecurrentOp op, PackingAttr packing);
/// Returns the panels of a [k, n] matrix without scales.
Panels panelsOfMatrix(PackedStep step, int64_t k, int64_t n, int64_t panelBlocks);

/// Returns true if the kernel multiplies signed input bytes as x + 128.
inline bool flipsBytes(PackingAttr packing) { return packing.getStep() == PackedStep::i8x4 && packing.getChunk() == 0; }

/// Returns the packing of |op|, or null if its weights are not packed.
PackingAttr packingOf(mlir::Operation *op);

/// Returns true if the kernel reads A from a copy in which the channels of a position are adjacent.
inline bool hasChannelsLast(PackedOrder order) {
  return order == PackedOrder::channels_last || order == PackedOrder::pixels;
}

/// Number of channels that a pixel is padded to.
inline constexpr int64_t kPixel = 4;

/// Returns the padded size in bytes of the channels of one position or tap for a channels-last |order|. There are
/// |channels| of |elementBytes| each. The result is the fewest whole blocks (of kBlock, or kPixel for pixels) with
/// which the |kw| taps of a kernel row fill whole chunks.
int64_t paddedDepth(PackedOrder order, int64_t channels, int64_t elementBytes, int64_t kw, int64_t chunk);

//--- depthwise ---

/// Number of windows per kernel row. A window holds four neighbouring columns and starts at an even one. An output that
/// starts at an even (odd) column sums count[0] (count[1]) windows that are four columns apart. count[1] is 0 if no
/// output starts at an odd column.
struct DepthwiseWindows {
  int64_t count[2];
};
DepthwiseWindows depthwiseWindows(int64_t kw, int64_t strideW);
/// Returns the bytes of the weights of 16 channels: [KH][windows of even outputs, then of odd ones][16][4] i8.
int64_t windowBytesOfBlock(int64_t kh, int64_t kw, int64_t strideW);
/// Returns true if neighbouring outputs of a row with this stride and dilation can share windows.
bool fitsWindows(int64_t strideW, int64_t dilationW);

//--- sizes ---

/// Returns the one-dimensional type of the packed constant. |op| supplies the type of x and the sizes that |packing|
/// does not store.
mlir::RankedTensorType packedType(mlir::Operation *op, PackingAttr packing);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_IR_PACKEDWEIGHTS_H

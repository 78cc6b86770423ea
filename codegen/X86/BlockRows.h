//===- BlockRows.h - Quantised rows of a block matmul -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_BLOCKROWS_H
#define TESSERA_CODEGEN_X86_BLOCKROWS_H

#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/X86KernelBuilder.h"
#include "device_dialect/IR/DeviceBlockOps.h"

namespace tessera::x86 {

/// Sizes of a block matmul on register tiles, computed before any code is emitted.
struct BlockGeometry {
  BlockGeometry(device::BlockMatMulOp op, BlockPackingAttr packing, const X86Target &target);

  static constexpr int64_t kStepsAtOnce = 8;    ///< K steps whose unpacked weights the registers hold
  static constexpr int64_t kBytesOfValues = 16; ///< behind the entries of a block of a row: see BlockRows

  BlockPackingAttr packing;
  Dim rows;
  int64_t depth, columns, block;
  bool dots;           ///< vpdpbusd multiplies bytes; otherwise vpmaddubsw does, four bits of the weights at a time
  int64_t lanes;       ///< columns of a vector
  int64_t recordBytes; ///< of a block of a row
  int64_t panelsOfPart, rowsOfPart, mostRows;
  bool isStreamed; ///< the weights do not stay in the cache from run to run

  bool isNibble() const { return packing.getStep() == PackedStep::i4; }
  /// Returns the K steps whose unpacked weights the registers hold.
  int64_t stepsAtOnce() const { return dots || isNibble() ? kStepsAtOnce : kStepsAtOnce / 2; }
  /// Returns true if parts of many rows multiply all of them by the unpacked weights of a block before the next block.
  bool sharesUnpacked() const;
  /// Returns true if there may be parts of up to mostRows rows.
  bool hasFewRows() const;
  Dim rowParts() const { return tessera::ceilDiv(rows, rowsOfPart); }
  int64_t panelParts() const;
  /// Returns the offsets in scratch, behind the quantised rows, of the sums and of the partial sums of integers of
  /// parts with many rows, and the bytes of all.
  int64_t sumsAt() const;
  int64_t partialSumsAt() const { return sumsAt() + rowsOfPart * lanes * 4; }
  int64_t scratchBytes() const;
};

/// The rows of a launch tile in scratch: [block][row] records, each with the entries as i8 and, behind them, the scale
/// (f32), the start of the integer sums (i32) and the factor of the mins (f32). An odd number of lines lies between
/// blocks of the largest parts, so that they do not share the sets of L1.
class BlockRows {
public:
  static constexpr int64_t kScaleAt = 0, kStartAt = 4, kMinFactorAt = 8; ///< behind the entries

  BlockRows(KernelBuilder &kb, const BlockGeometry &g, mlir::Value count);

  /// Quantises the rows of operand 0 from |first| on.
  void quantize(mlir::Value first);
  /// Returns the address of the record of a block of a row.
  mlir::Value at(mlir::Value block, mlir::Value row);

private:
  void quantizeBlock(mlir::Value block, mlir::Value from, mlir::Value to, int64_t count);
  void storeValues(mlir::Value to, mlir::Value scale, mlir::Value total);

  KernelBuilder &kb;
  const BlockGeometry &g;
  mlir::Value count, blockBytes;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_BLOCKROWS_H

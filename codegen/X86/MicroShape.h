//===- MicroShape.h - Sizes and work splits of the micro-kernels -----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_MICROSHAPE_H
#define TESSERA_CODEGEN_X86_MICROSHAPE_H

#include "codegen/X86/MicroTile.h"
#include "device_dialect/IR/DeviceOps.h"

namespace tessera::x86 {

/// The sizes of a 2-D convolution, by their usual names.
struct ConvShape {
  explicit ConvShape(device::ConvOp op);
  int64_t n, c, h, w, oc, oh, ow, kh, kw;
  int64_t strideH, strideW, dilationH, dilationW, padTop, padLeft, padBottom, padRight, groups;
  TileKind kind;
  mlir::Type xElement, wElement, yElement;
  int64_t xBytes, yBytes; ///< of an element
  bool widens;            ///< x is f16 or bf16, multiplied as f32
  int64_t aBytes;         ///< of an element as it is multiplied

  int64_t groupC() const { return c / groups; }
  int64_t groupOc() const { return oc / groups; }
  int64_t icBlocks() const { return ceilDiv(groupC(), kBlock); }
  int64_t ocBlocks() const { return ceilDiv(groupOc(), kBlock); }
  bool padded() const { return padTop || padLeft || padBottom || padRight; }
  int64_t flops() const { return 2 * n * oc * oh * ow * groupC() * kh * kw; }
};

/// How elements of |x| are multiplied with weights of |packing|, null where they are not packed; nothing for types
/// without a register tile.
std::optional<TileKind> tileKindOf(mlir::Type x, PackingAttr packing = {});

/// Whether kernels of |target| can read what the packing of |op| says; reports why not.
llvm::LogicalResult checkPacking(mlir::Operation *op, const X86Target &target);

/// Packed weights as the tiles read them. Where the target cannot widen them in registers, each panel is first copied
/// to scratch as f32.
struct TileWeights {
  TileWeights(const X86Target &target, Panels panels);

  Panels panels;         ///< of the operand
  bool copied;           ///< to scratch, as f32
  PackedStep tileStep;   ///< what tiles read
  int64_t stepBytes;     ///< of one K step of one block of columns, in the operand
  int64_t tileStepBytes; ///< the same as the tiles read it

  /// What |shape|, whose blocks are known, has to say about B.
  void describe(TileShape &shape) const;
  /// Copies a panel of |blocks| blocks to |to| as f32.
  void copyPanel(KernelBuilder &kb, mlir::Value from, mlir::Value to, int64_t blocks) const;

private:
  void copyIntegers(KernelBuilder &kb, mlir::Value from, mlir::Value to, int64_t blocks) const;
};

/// |total| split evenly into pieces of at most |largest|: the first |wide| of them have |size| + 1,
/// the rest |size|.
struct EvenSplit {
  EvenSplit(int64_t total, int64_t largest);
  int64_t pieces, size, wide;
  int64_t length(int64_t piece) const { return size + (piece < wide); }
  int64_t begin(int64_t piece) const { return piece * size + std::min(piece, wide); }
};

/// How the panels (columns) and row steps of a product are cut into the tiles of a launch.
struct WorkSplit {
  int64_t rowParts = 1, panelParts = 1;
};

/// For each of |outer| independent products of |flops|. |aBytes|, |bBytes|: what all row steps and
/// all panels of one read. Aims at tiles of some 50 us and at little traffic; an A part fits into
/// half of L2.
WorkSplit splitWork(int64_t flops, int64_t rowSteps, int64_t panels, int64_t aBytes, int64_t bBytes, int64_t outer);

/// The same where each part copies its rows of A, |aBytes| in all: parts share columns only where rows do not suffice.
WorkSplit splitCopiedWork(int64_t flops, int64_t rowSteps, int64_t panels, int64_t aBytes, int64_t bBytes,
                          int64_t outer);

/// The launch of a depthwise convolution: each tile is some output rows of one of |blocks| channel blocks of an image,
/// enough of them to balance threads, with at least |tapsPerTile| taps. |body| gets image, block, first row and end
/// row.
void forRowsOfBlocks(KernelBuilder &kb, const ConvShape &s, int64_t blocks, int64_t tapsPerTile,
                     llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value, mlir::Value)> body);

/// The extra operands of an epilogue: how each lies beside the result y. Nothing when one has a
/// shape or type the micro-kernels do not read; |unsupported| then gets its index.
std::optional<llvm::SmallVector<TileExtra>> classifyExtras(mlir::Operation *op, mlir::OperandRange extras,
                                                           mlir::RankedTensorType y, unsigned &unsupported);

/// The kernels of single algorithms; emitMicroConv() chooses.
llvm::LogicalResult emitDepthwise(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);
llvm::LogicalResult emitDepthwise8(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);
llvm::LogicalResult emitWinograd(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICROSHAPE_H

//===- MicroShape.h - Sizes and work splits of the micro-kernels ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_MICROSHAPE_H
#define TESSERA_CODEGEN_X86_MICROSHAPE_H

#include "codegen/X86/MicroTile.h"
#include "device_dialect/IR/DeviceOps.h"

namespace tessera::x86 {

/// The sizes of a 2-D convolution, with their usual names.
struct ConvShape {
  explicit ConvShape(device::ConvOp op);
  Dim images, h, w, oh, ow; ///< may be symbolic
  int64_t n;                ///< likely number of images, at least 1, for estimates
  int64_t c, oc, kh, kw;
  int64_t strideH, strideW, dilationH, dilationW, padTop, padLeft, padBottom, padRight, groups;
  TileKind kind;
  mlir::Type xElement, wElement, yElement;
  int64_t xBytes, yBytes; ///< bytes of an element
  bool widens;            ///< x is f16 or bf16, multiplied as f32
  int64_t aBytes;         ///< bytes of an element as it is multiplied

  int64_t groupC() const { return c / groups; }
  int64_t groupOc() const { return oc / groups; }
  int64_t icBlocks() const { return ceilDiv(groupC(), kBlock); }
  int64_t ocBlocks() const { return ceilDiv(groupOc(), kBlock); }
  bool isPointwise() const { return kh == 1 && kw == 1; }
  bool padded() const { return padTop || padLeft || padBottom || padRight; }
  /// Returns true if a height or width is symbolic.
  bool hasOpenPlanes() const { return !h.isKnown() || !w.isKnown() || !oh.isKnown() || !ow.isKnown(); }
  /// Returns the operations at the likely sizes.
  int64_t flops() const { return 2 * n * oc * likelyOf(oh) * likelyOf(ow) * groupC() * kh * kw; }
};

/// Returns how elements of type |x| are multiplied with weights of |packing| (null: unpacked weights), or nullopt if no
/// register tile supports the type.
std::optional<TileKind> tileKindOf(mlir::Type x, PackingAttr packing = {});

/// Checks that kernels of |target| can read the packed weights of |op|; reports an error at |op| otherwise.
llvm::LogicalResult checkPacking(mlir::Operation *op, const X86Target &target);

/// Packed weights in the form that register tiles read. Each panel is first copied to scratch as f32 if the target
/// cannot widen weights in registers, or if so many row tiles read the panel that widening it for each of them costs
/// more.
struct TileWeights {
  TileWeights(const X86Target &target, Panels panels);

  Panels panels;         ///< panels of the operand
  bool copied;           ///< panels are copied to scratch as f32
  PackedStep tileStep;   ///< K step that register tiles read
  int64_t stepBytes;     ///< bytes of one K step of one block of columns in the operand
  int64_t tileStepBytes; ///< bytes of one K step of one block of columns as register tiles read it

  /// Returns these weights with panels that are copied to scratch.
  TileWeights asCopies() const;
  /// Sets the fields of |shape| that describe B; its blocks must already be set.
  void describe(TileShape &shape) const;
  /// Copies a panel of |blocks| blocks to |to| as f32.
  void copyPanel(KernelBuilder &kb, mlir::Value from, mlir::Value to, int64_t blocks) const;

private:
  void copyIntegers(KernelBuilder &kb, mlir::Value from, mlir::Value to, int64_t blocks) const;
};

/// |total| split evenly into pieces of at most |largest|: the first |wide| pieces have |size| + 1, the rest |size|.
struct EvenSplit {
  EvenSplit(int64_t total, int64_t largest);
  int64_t pieces, size, wide;
  int64_t length(int64_t piece) const { return size + (piece < wide); }
  int64_t begin(int64_t piece) const { return piece * size + std::min(piece, wide); }
};

/// Emits |total| positions from |begin| on, known at run time only, as whole tiles of |largest| positions and a
/// remainder of tiles of 4, 2 and 1: |emitTiles| gets the first position, the number of tiles and their positions.
/// Tiles of 8 make sense behind large ones only: two of 4 are as fast, and every height costs compile time. No two
/// tiles overlap, because a tile may overwrite the operands of its epilogue.
void forOpenTiles(KernelBuilder &kb, mlir::Value begin, mlir::Value total, int64_t largest,
                  llvm::function_ref<void(mlir::Value first, mlir::Value count, int64_t positions)> emitTiles);

/// Blocks of columns as panels. The last panel may be narrower.
struct PanelSplit {
  PanelSplit(int64_t columnBlocks, int64_t panelBlocks)
      : count(ceilDiv(columnBlocks, panelBlocks)), blocks(panelBlocks),
        lastBlocks(columnBlocks - (count - 1) * panelBlocks) {}
  int64_t count, blocks, lastBlocks;
};

/// How the panels (columns) and row steps of a matmul are split into launch tiles.
struct WorkSplit {
  int64_t rowParts = 1, panelParts = 1;
};

/// Returns the split for |outer| independent matmuls of |flops| each. |aBytes| and |bBytes| are the bytes that all row
/// steps and all panels of one matmul read. Aims at tiles of some 50 us and little traffic; the A of a part fits half
/// of L2.
WorkSplit splitWork(int64_t flops, int64_t rowSteps, int64_t panels, int64_t aBytes, int64_t bBytes, int64_t outer);

/// As splitWork(), for parts that each copy their rows of A, |aBytes| in all. Splits columns only if there are too few
/// rows.
WorkSplit splitCopiedWork(int64_t flops, int64_t rowSteps, int64_t panels, int64_t aBytes, int64_t bBytes,
                          int64_t outer);

/// Emits the launch of a depthwise convolution. Each launch tile is a range of output rows of one of |blocks| channel
/// blocks of an image, with at least |tapsPerTile| taps; there are enough tiles to balance threads. |body| gets the
/// image, the block, the first row and the end row.
void forRowsOfBlocks(KernelBuilder &kb, const ConvShape &s, int64_t blocks, int64_t tapsPerTile,
                     llvm::function_ref<void(mlir::Value, mlir::Value, mlir::Value, mlir::Value)> body);

/// Returns how each extra operand of an epilogue is laid out relative to the result y. Returns nullopt and sets
/// |unsupported| to the operand's index if the micro-kernels do not support its shape or type.
std::optional<llvm::SmallVector<TileExtra>> classifyExtras(mlir::Operation *op, mlir::OperandRange extras,
                                                           mlir::RankedTensorType y, unsigned &unsupported);

/// Emit the kernels of single algorithms; emitMicroConv() selects one.
llvm::LogicalResult emitDepthwise(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);
llvm::LogicalResult emitDepthwise8(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);
llvm::LogicalResult emitWinograd(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);
void emitFloatConv(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);
void emitIntegerConv(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);
void emitAmxConv(device::ConvOp op, KernelBuilder &kb, llvm::ArrayRef<TileExtra> extras);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICROSHAPE_H

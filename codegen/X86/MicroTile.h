//===- MicroTile.h - Register tiles with an epilogue, as functions ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_MICROTILE_H
#define TESSERA_CODEGEN_X86_MICROTILE_H

#include "codegen/X86/MicroKernel.h"
#include "codegen/X86/RoundedGate.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::x86 {

/// The layout of an epilogue operand relative to the result.
enum class ExtraKind {
  Full,   ///< one value per element, at the offsets of the result
  Column, ///< one value per column (channel), the same for all rows
  Row,    ///< one value per row, the same for all columns; a constant stride
  Scalar, ///< one value
};

/// Destination of a tile's results. Offsets and strides are in elements from the tile's first result.
struct TileResult {
  llvm::SmallVector<int64_t> rows; ///< offset of each row
  int64_t blockStride = kBlock;    ///< stride between 16-column blocks
  bool openBlocks = false;         ///< that stride is known at run time only
  int64_t elementBytes = 4;
  mlir::Type element;         ///< type in memory; null: the type of the computed value
  int64_t tailLanes = kBlock; ///< columns that exist in the last block
  bool blocked = true;        ///< lanes beyond the tail are written as zero; otherwise they are not written
};

/// One operand of the epilogue.
struct TileExtra {
  ExtraKind kind = ExtraKind::Full;
  mlir::Type element; ///< type in memory
  int64_t elementBytes = 4;
  int64_t rowStride = 0;  ///< ExtraKind::Row: stride between rows, in elements
  bool perMatrix = false; ///< ExtraKind::Column: each matrix of a batch has its own values
};

/// Offsets of one vector of results, in elements, from the base of each kind of epilogue operand.
struct VectorPlace {
  int64_t element = 0; ///< ExtraKind::Full
  int64_t column = 0;  ///< ExtraKind::Column
  int64_t row = 0;     ///< index of the row, ExtraKind::Row
};

/// Applies |epilogue| to the vector |sum|, except for a final rounding to f16 or bf16, which the store performs.
/// |bases|: one pointer per extra. |mask|, if given: the lanes of full operands that may be read. |wanted|, if given: a
/// value of the region to return instead of its result.
mlir::Value emitVectorEpilogue(KernelBuilder &kb, mlir::Region &epilogue, llvm::ArrayRef<TileExtra> extras,
                               mlir::ValueRange bases, mlir::Value sum, VectorPlace place, mlir::Value mask = {},
                               mlir::Value wanted = {});

/// Applies |epilogue| to consecutive positions of one channel block and stores them, as few wide vectors if it ends in
/// a requantisation. |sums|: vectorsPerBlock() vectors per position. |first|: place of the first position. |to|: the
/// base of the result, of type |element|; like |bases|, it is not offset by |first|. |tail|: number of existing
/// channels; the others are written as zero.
void emitPositions(KernelBuilder &kb, mlir::Region &epilogue, llvm::ArrayRef<TileExtra> extras, mlir::ValueRange bases,
                   llvm::ArrayRef<mlir::Value> sums, VectorPlace first, mlir::Value to, mlir::Type element,
                   int64_t tail);

/// Stores |value|, vector |part| of a block, to a blocked tensor of |element|s (null: the type of |value|). Lanes from
/// channel |tail| of the block on are written as zero.
void storeBlockVector(KernelBuilder &kb, mlir::Type element, mlir::Value value, mlir::Value to, int64_t part,
                      int64_t tail);

/// The sums of a tile, in registers or in memory. Does not own |values| and |places|.
class TileSums {
public:
  /// Sums in registers, row by row, |width| vectors each.
  TileSums(llvm::ArrayRef<mlir::Value> values, int64_t width) : values(values), width(width) {}
  /// Sums in memory: rows of |width| vectors of |type| at |memory|, row i of the tile at index |places|[i].
  TileSums(mlir::Value memory, mlir::VectorType type, llvm::ArrayRef<int64_t> places, int64_t width)
      : memory(memory), type(type), places(places), width(width) {}

  bool inMemory() const { return static_cast<bool>(memory); }
  /// Returns a vector of a row; loads it at kb.b if the sums are in memory.
  mlir::Value at(KernelBuilder &kb, int64_t row, int64_t column) const;
  llvm::SmallVector<mlir::Value> row(KernelBuilder &kb, int64_t row) const;
  /// Returns the vectors of the row |index| rows behind row |first|; |index| is known at run time only.
  llvm::SmallVector<mlir::Value> rowBehind(KernelBuilder &kb, int64_t first, mlir::Value index) const;
  /// Overwrites the vectors of that row in memory with |vectors| of the same size.
  void storeRowBehind(KernelBuilder &kb, int64_t first, mlir::Value index, llvm::ArrayRef<mlir::Value> vectors) const;
  /// Returns the same memory as vectors of |type|, which has the same size.
  TileSums as(mlir::VectorType type) const { return TileSums(memory, type, places, width); }
  /// Returns how many rows from |first| on, at most |count|, are contiguous in memory.
  int64_t neighbours(int64_t first, int64_t count) const;
  /// Stores the sums of |rows| rows to the stack and returns them from there; fills |places|, which the result refers
  /// to.
  TileSums spilled(KernelBuilder &kb, int64_t rows, llvm::SmallVectorImpl<int64_t> &places) const;

private:
  mlir::Value vectorBehind(KernelBuilder &kb, int64_t first, mlir::Value index, int64_t column) const;

  llvm::ArrayRef<mlir::Value> values;
  mlir::Value memory;
  mlir::VectorType type;
  llvm::ArrayRef<int64_t> places;
  int64_t width;
};

/// The register tiles of one kernel. Each distinct tile becomes one private function (a, b, c, bias, prefetch,
/// extras...), so that LLVM allocates its registers separately.
class TileFunctions {
public:
  /// When a tile adds the bias: its sums begin with it, or it is added last, or there is none.
  enum class Bias { None, First, Last };
  /// |epilogue| may be empty. |offsets|: byte offset of each K group of A; empty for a constant stride.
  TileFunctions(KernelBuilder &kb, mlir::Region &epilogue, llvm::ArrayRef<TileExtra> extras, Bias bias,
                llvm::ArrayRef<int32_t> offsets = {});

  /// Pointers of one tile: its first row in A, its panel of B, its first result, its first bias. |extras|: the element
  /// of each epilogue operand that belongs to the tile's first result.
  struct Pointers {
    mlir::Value a, b, c, bias, prefetch;
    mlir::Value groupStride; ///< TileShape::openGroups: bytes between K groups of A
    mlir::Value steps;       ///< TileShape::openSteps: number of K steps
    mlir::Value blockStride; ///< TileResult::openBlocks: elements between blocks of the result
    llvm::SmallVector<mlir::Value> extras;
  };
  /// Calls the function of the tile at kb.b; builds the function on first use.
  void call(const TileShape &shape, const TileResult &result, const Pointers &pointers);

private:
  /// The arguments of a tile's function.
  struct Arguments {
    mlir::Value a, b, c, bias, prefetch, groupStride, steps, blockStride;
    mlir::ValueRange extras;
  };
  Arguments addArguments(mlir::Block &body, const TileShape &shape, const TileResult &result);
  mlir::func::FuncOp build(const TileShape &shape, const TileResult &result, llvm::StringRef name);
  /// Where the results of a block of columns are: the pointers, and the offset in elements from them.
  struct BlockPlace {
    mlir::Value c;
    llvm::SmallVector<mlir::Value> extras;
    int64_t element;
  };
  BlockPlace placeOf(int64_t block, const TileResult &result, mlir::Value c, mlir::ValueRange extraPointers);
  void emitEpilogue(const TileShape &shape, const TileResult &result, const TileSums &sums, mlir::Value c,
                    mlir::ValueRange extraPointers);
  /// Returns the values to store for a vector of sums.
  using VectorEpilogue = llvm::function_ref<mlir::Value(mlir::Value sum, mlir::ValueRange extras,
                                                        const VectorPlace &place, mlir::Value mask)>;
  mlir::Value exactEpilogue(mlir::Value sum, mlir::ValueRange extraPointers, const VectorPlace &place,
                            mlir::Value mask);
  /// One iteration of a loop over rows: the arguments of emitEpilogueRow(), and the index of the row, which is |first|
  /// + |behind|.
  struct TileRow {
    llvm::SmallVector<mlir::Value> sums;
    mlir::Value c;
    llvm::SmallVector<mlir::Value> extras;
    int64_t offset, first;
    mlir::Value behind, index;
  };
  using RowBody = llvm::function_ref<void(const TileRow &row)>;
  void forRows(const TileShape &shape, const TileResult &result, const TileSums &sums, mlir::Value c,
               mlir::ValueRange extraPointers, RowBody body);
  void emitRowLoops(const TileShape &shape, const TileResult &result, const TileSums &sums, mlir::Value c,
                    mlir::ValueRange extraPointers);
  void emitGatedRows(const RoundedGate &gate, const TileShape &shape, const TileResult &result, const TileSums &sums,
                     mlir::Value c, mlir::ValueRange extraPointers);
  void emitPackedEpilogue(const TileShape &shape, const TileResult &result, const TileSums &sums, mlir::Value c,
                          mlir::ValueRange extraPointers);
  void emitEpilogueRow(const TileShape &shape, const TileResult &result, llvm::ArrayRef<mlir::Value> sums,
                       mlir::Value c, mlir::ValueRange extraPointers, int64_t rowOffset, int64_t row,
                       VectorEpilogue epilogueOf);

  KernelBuilder &kb;
  mlir::Region &epilogue;
  llvm::SmallVector<TileExtra> extras;
  Bias bias;
  std::string table;       ///< symbol of the offset table; empty without one
  mlir::Value blockStride; ///< argument of the function that is being built; null if the stride is a constant
  llvm::StringMap<mlir::func::FuncOp> functions;
};

/// Copies |count| floats of type |element| (f16 or bf16) as f32.
void widenFloats(KernelBuilder &kb, mlir::Type element, mlir::Value from, mlir::Value to, mlir::Value count);

/// Copies |bytes| bytes with their highest bits flipped, so that signed bytes become value + 128. Requires AVX-512.
void flipBytes(KernelBuilder &kb, mlir::Value from, mlir::Value to, mlir::Value bytes);

/// Returns base + |bytes|.
mlir::Value byteOffset(KernelBuilder &kb, mlir::Value base, Dim bytes);
mlir::Value byteOffset(KernelBuilder &kb, mlir::Value base, mlir::Value bytes);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICROTILE_H

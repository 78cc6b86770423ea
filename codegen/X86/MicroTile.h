//===- MicroTile.h - Register tiles with an epilogue, as functions ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_MICROTILE_H
#define TESSERA_CODEGEN_X86_MICROTILE_H

#include "codegen/X86/MicroKernel.h"
#include "codegen/X86/RoundedGate.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::x86 {

/// How an operand of the epilogue lies beside the result.
enum class ExtraKind {
  Full,   ///< one value per element, at the offsets of the result
  Column, ///< one per column (channel), the same for all rows
  Row,    ///< one per row, the same for all columns; an even stride
  Scalar, ///< one value
};

/// Where a tile's results go. Offsets in elements from the tile's first one.
struct TileResult {
  llvm::SmallVector<int64_t> rows; ///< of each row
  int64_t blockStride = kBlock;    ///< from one 16-column block to the next
  int64_t elementBytes = 4;
  mlir::Type element;         ///< in memory; null: as it is computed
  int64_t tailLanes = kBlock; ///< columns that exist in the last block
  bool blocked = true;        ///< lanes beyond the tail are written as zero, else left alone
};

/// One operand of the epilogue.
struct TileExtra {
  ExtraKind kind = ExtraKind::Full;
  mlir::Type element; ///< in memory
  int64_t elementBytes = 4;
  int64_t rowStride = 0;  ///< of ExtraKind::Row, in elements
  bool perMatrix = false; ///< ExtraKind::Column: the columns of each matrix of a batch have their own
};

/// Offsets in elements, from the base of each kind of epilogue operand, of what belongs to one vector
/// of results.
struct VectorPlace {
  int64_t element = 0; ///< ExtraKind::Full
  int64_t column = 0;  ///< ExtraKind::Column
  int64_t row = 0;     ///< index of the row, ExtraKind::Row
};

/// Passes the vector |sum| through |epilogue|, but for a rounding to f16 or bf16 at its end: storing rounds. |bases|:
/// one pointer per extra. |mask|, when given: only these lanes of full operands may be read. |wanted|: a value of the
/// region to return instead.
mlir::Value emitVectorEpilogue(KernelBuilder &kb, mlir::Region &epilogue, llvm::ArrayRef<TileExtra> extras,
                               mlir::ValueRange bases, mlir::Value sum, VectorPlace place, mlir::Value mask = {},
                               mlir::Value wanted = {});

/// Passes consecutive positions of one channel block through |epilogue| and stores them, as few wide vectors where it
/// ends in a requantisation. |sums|: vectorsPerBlock() of each position; |first|: place of the first one; |to|: base of
/// its kind as |bases|, of |element|s; |tail|: channels that exist, zeros are written for the others.
void emitPositions(KernelBuilder &kb, mlir::Region &epilogue, llvm::ArrayRef<TileExtra> extras, mlir::ValueRange bases,
                   llvm::ArrayRef<mlir::Value> sums, VectorPlace first, mlir::Value to, mlir::Type element,
                   int64_t tail);

/// Stores |value| of a blocked tensor of |element|s (null: the value's); of the lanes of vector |part| of the block
/// only those below |tail| hold channels, the others are written as zero.
void storeBlockVector(KernelBuilder &kb, mlir::Type element, mlir::Value value, mlir::Value to, int64_t part,
                      int64_t tail);

/// The sums of a tile, in registers or in memory.
class TileSums {
public:
  /// In registers, row by row, |width| vectors each.
  TileSums(llvm::ArrayRef<mlir::Value> values, int64_t width) : values(values), width(width) {}
  /// Rows of |width| vectors of |type| at |memory|, that of row i at |places|[i].
  TileSums(mlir::Value memory, mlir::VectorType type, llvm::ArrayRef<int64_t> places, int64_t width)
      : memory(memory), type(type), places(places), width(width) {}

  bool inMemory() const { return static_cast<bool>(memory); }
  /// A vector of a row; of one in memory, read at kb.b.
  mlir::Value at(KernelBuilder &kb, int64_t row, int64_t column) const;
  llvm::SmallVector<mlir::Value> row(KernelBuilder &kb, int64_t row) const;
  /// Vectors of the row |index| rows behind row |first|, for an index known at run time.
  llvm::SmallVector<mlir::Value> rowBehind(KernelBuilder &kb, int64_t first, mlir::Value index) const;
  /// Overwrites these vectors, which are in memory, with |vectors| of the same size.
  void storeRowBehind(KernelBuilder &kb, int64_t first, mlir::Value index, llvm::ArrayRef<mlir::Value> vectors) const;
  /// Returns the same memory as vectors of |type|, which has the same size.
  TileSums as(mlir::VectorType type) const { return TileSums(memory, type, places, width); }
  /// Rows from |first| on, of |count| at most, that follow each other in memory.
  int64_t neighbours(int64_t first, int64_t count) const;
  /// The same, |rows| rows, in memory that is taken from the stack.
  TileSums spilled(KernelBuilder &kb, int64_t rows, llvm::SmallVectorImpl<int64_t> &places) const;

private:
  mlir::Value vectorBehind(KernelBuilder &kb, int64_t first, mlir::Value index, int64_t column) const;

  llvm::ArrayRef<mlir::Value> values;
  mlir::Value memory;
  mlir::VectorType type;
  llvm::ArrayRef<int64_t> places;
  int64_t width;
};

/// The register tiles of one kernel: each distinct tile becomes one private function
/// (a, b, c, bias, prefetch, extras...), so that LLVM allocates its registers by itself.
class TileFunctions {
public:
  /// What the sums of a tile begin with, or have added last.
  enum class Bias { None, First, Last };
  /// |epilogue| may be empty. |offsets|: byte offset of each K group of A; empty for an even
  /// stride.
  TileFunctions(KernelBuilder &kb, mlir::Region &epilogue, llvm::ArrayRef<TileExtra> extras, Bias bias,
                llvm::ArrayRef<int32_t> offsets = {});

  /// Pointers of one tile: its first row in A, its panel of B, its first result, its first bias.
  /// |extras|: the element of each epilogue operand that belongs to the tile's first result.
  struct Pointers {
    mlir::Value a, b, c, bias, prefetch;
    llvm::SmallVector<mlir::Value> extras;
  };
  /// Calls, at kb.b, the function of the tile; builds it the first time.
  void call(const TileShape &shape, const TileResult &result, const Pointers &pointers);

private:
  mlir::func::FuncOp build(const TileShape &shape, const TileResult &result, llvm::StringRef name);
  void emitEpilogue(const TileShape &shape, const TileResult &result, const TileSums &sums, mlir::Value c,
                    mlir::ValueRange extraPointers);
  /// Makes of a vector of sums what is stored.
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
  std::string table; ///< symbol of the offset table, empty without one
  llvm::StringMap<mlir::func::FuncOp> functions;
};

/// Copies |count| floats of type |element| (f16, bf16) as f32.
void widenFloats(KernelBuilder &kb, mlir::Type element, mlir::Value from, mlir::Value to, mlir::Value count);

/// Copies |bytes| bytes with their highest bits flipped: signed ones become value + 128. For AVX-512.
void flipBytes(KernelBuilder &kb, mlir::Value from, mlir::Value to, mlir::Value bytes);

/// base + |bytes|.
mlir::Value byteOffset(KernelBuilder &kb, mlir::Value base, int64_t bytes);
mlir::Value byteOffset(KernelBuilder &kb, mlir::Value base, mlir::Value bytes);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_MICROTILE_H

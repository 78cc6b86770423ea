//===- TileLoader.h - Loads rows of K to shared memory ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CONTRACTION_TILELOADER_H
#define TESSERA_CODEGEN_CUDA_CONTRACTION_TILELOADER_H

#include "codegen/Cuda/Contraction/OperandIterator.h"

namespace tessera::cuda {

/// A tile [rows][kBytes] in shared memory. The chunks of a row are permuted so that eight rows read at once do not
/// share banks.
struct SharedTile {
  int64_t rows, kBytes;

  int64_t chunks() const { return kBytes / kChunk; }
  int64_t bytes() const { return rows * kBytes; }
  /// Returns the offset of |chunk| of |row| (i32).
  mlir::Value offset(BlockBuilder &b, mlir::Value row, mlir::Value chunk) const;
};

/// Copies one operand of a block's contraction to shared memory, step by step along K.
class TileLoader {
public:
  using Value = mlir::Value;

  /// |base| is an operand of the kernel with |element|s. |fill| is the value of positions outside windows.
  TileLoader(BlockBuilder &b, SharedTile tile, std::unique_ptr<OperandIterator> walk, mlir::Type element, Value base,
             int64_t fill)
      : b(b), tile(tile), walk(std::move(walk)), element(element), base(base), fill(fill) {}

  /// Call before the first load. |first| is the operand's row in row 0 of the tile. |rowAt|, if given, maps a row of
  /// the tile to the offset of its operand row from |first|.
  void begin(Value batch, Value first, llvm::function_ref<Value(Value)> rowAt);

  /// Starts to copy step |step| (i32) to |shared|. The copies are complete after waitForCopies() and a barrier. Emits
  /// no branches, because tensor cores need the threads of a warp together.
  void load(Value step, Value shared);

protected:
  int64_t rowsAtOnce() const { return b.threads / tile.chunks(); }
  void loadUnits(const OperandIterator::Place &row, llvm::ArrayRef<OperandIterator::Place> units, Value to);
  Value validity(const OperandIterator::Place &row, const OperandIterator::Place &unit, Value &inside);
  Value address(Value offset);

  BlockBuilder &b;
  SharedTile tile;
  std::unique_ptr<OperandIterator> walk;
  mlir::Type element;
  Value base;
  int64_t fill;
  Value chunk;                                    ///< chunk of this thread in each of its rows
  llvm::SmallVector<Value> tileRows;              ///< rows of the tile that this thread copies
  llvm::SmallVector<OperandIterator::Place> rows; ///< their places in the operand
  llvm::SmallVector<Value> operandRows;           ///< their indices in the operand
};

/// Copies weights of bytes, f16 or bf16 as f32, integers multiplied by their scales. The weights pass through
/// registers: fetch() starts to load one step while the warp multiplies another one, and put() stores it.
class WideningLoader final : public TileLoader {
public:
  /// Scales of the weights: one for each |group| elements of K within a |period|, which repeats (the channels of each
  /// kernel position), and |columns| contiguous scales for each group. |base| is null without scales.
  struct Scales {
    Value base;
    int64_t group, period, columns;
    bool isOne() const { return group >= period; } ///< one scale for all of K
  };

  WideningLoader(BlockBuilder &b, SharedTile tile, std::unique_ptr<OperandIterator> walk, mlir::Type element,
                 Value base, Scales scales)
      : TileLoader(b, tile, std::move(walk), element, base, 0), scales(scales) {}

  /// Loads this thread's weights and scales of step |step| (i32); fetched() returns their types.
  llvm::SmallVector<Value> fetch(Value step);
  llvm::SmallVector<mlir::Type> fetched();
  /// Stores |fetched| to |shared|; other threads see it after a barrier.
  void put(mlir::ValueRange fetched, Value shared);

private:
  mlir::Type rawType();
  Value scaleAt(Value row, Value valid, Value k);
  std::array<Value, 4> widen(Value raw);

  Scales scales;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CONTRACTION_TILELOADER_H

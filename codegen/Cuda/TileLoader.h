//===- TileLoader.h - Rows of K on their way to shared memory ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_TILELOADER_H
#define TESSERA_CODEGEN_CUDA_TILELOADER_H

#include "codegen/Cuda/OperandWalk.h"

namespace tessera::cuda {

/// Lies as [rows][kBytes], the chunks of a row in an order by which eight rows read at once share no bank.
struct SharedTile {
  int64_t rows, kBytes;

  int64_t chunks() const { return kBytes / kChunk; }
  int64_t bytes() const { return rows * kBytes; }
  /// Offset of |chunk| of |row| (i32).
  mlir::Value offset(BlockBuilder &b, mlir::Value row, mlir::Value chunk) const;
};

/// Copies one side of a block's product, step by step along K.
class TileLoader {
public:
  using Value = mlir::Value;

  /// |element|s at |base|, an operand of the kernel. |fill| stands at positions outside of windows.
  TileLoader(BlockBuilder &b, SharedTile tile, std::unique_ptr<OperandWalk> walk, mlir::Type element, Value base,
             int64_t fill)
      : b(b), tile(tile), walk(std::move(walk)), element(element), base(base), fill(fill) {}

  /// Before the first load: |first| is the operand's row in row 0 of the tile. |rowAt|, where given, says which one
  /// below it stands in a row of the tile.
  void begin(Value batch, Value first, llvm::function_ref<Value(Value)> rowAt);

  /// Starts the copies of step |step| (i32) to |shared|; they are complete after waitForCopies() and a barrier. Without
  /// branches: tensor cores want the threads of a warp together.
  void load(Value step, Value shared);

protected:
  int64_t rowsAtOnce() const { return b.threads / tile.chunks(); }
  void loadUnits(const OperandWalk::Place &row, llvm::ArrayRef<OperandWalk::Place> units, Value to);
  Value validity(const OperandWalk::Place &row, const OperandWalk::Place &unit, Value &inside);
  Value address(Value offset);

  BlockBuilder &b;
  SharedTile tile;
  std::unique_ptr<OperandWalk> walk;
  mlir::Type element;
  Value base;
  int64_t fill;
  Value chunk;                                ///< of this thread's rows
  llvm::SmallVector<Value> tileRows;          ///< of this thread
  llvm::SmallVector<OperandWalk::Place> rows; ///< where they are
  llvm::SmallVector<Value> operandRows;       ///< which they are
};

/// Copies weights of bytes, f16 or bf16 as f32, integers times their scales: through registers, where a step's wait
/// for memory while the warp multiplies another one.
class WideningLoader final : public TileLoader {
public:
  /// Of the weights' scales, one for |group| elements of K each of |period| that repeat (channels of each kernel
  /// position), and |columns| neighbours for each group. |base| null: there are none.
  struct Scales {
    Value base;
    int64_t group, period, columns;
    bool isOne() const { return group >= period; } ///< for all of K
  };

  WideningLoader(BlockBuilder &b, SharedTile tile, std::unique_ptr<OperandWalk> walk, mlir::Type element, Value base,
                 Scales scales)
      : TileLoader(b, tile, std::move(walk), element, base, 0), scales(scales) {}

  /// What this thread loads of step |step| (i32), and the types of that.
  llvm::SmallVector<Value> fetch(Value step);
  llvm::SmallVector<mlir::Type> fetched();
  /// To |shared|, there after a barrier.
  void put(mlir::ValueRange fetched, Value shared);

private:
  mlir::Type rawType();
  Value scaleAt(Value row, Value valid, Value k);
  std::array<Value, 4> widen(Value raw);

  Scales scales;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_TILELOADER_H

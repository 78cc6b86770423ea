//===- BlockBuilder.h - What the threads of a block do together -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_BLOCKBUILDER_H
#define TESSERA_CODEGEN_CUDA_BLOCKBUILDER_H

#include "codegen/Kernels/KernelBuilder.h"

#include <array>

namespace tessera::cuda {

/// Bytes of one asynchronous copy, and of a row of a matrix that ldmatrix reads.
inline constexpr int64_t kChunk = 16;

/// Emits a kernel whose tiles are blocks of threads: shared memory, barriers, asynchronous copies and tensor cores.
/// Integers are i32 unless they say otherwise. Pointers to shared memory are !llvm.ptr<3>.
class BlockBuilder {
public:
  using Value = mlir::Value;

  BlockBuilder(kernels::KernelBuilder &kb, unsigned threads) : kb(kb), threads(threads) {}

  kernels::KernelBuilder &kb;
  const unsigned threads;

  //--- i32; constants fold while building ---
  Value constant(int64_t value);
  Value add(Value x, Value y);
  Value add(Value x, int64_t y) { return add(x, constant(y)); }
  Value sub(Value x, Value y);
  Value mul(Value x, int64_t y);
  Value div(Value x, int64_t y); ///< x >= 0, y > 0
  Value rem(Value x, int64_t y); ///< x >= 0, y > 0
  Value exclusiveOr(Value x, Value y);
  Value less(Value x, int64_t y);      ///< signed, i1
  Value equal(Value x, int64_t y);     ///< i1
  Value below(Value x, int64_t limit); ///< 0 <= x < limit, i1
  Value both(Value x, Value y);        ///< i1; null stands for true
  Value toIndex(Value x);              ///< i64 of a value that is not negative
  Value fromIndex(Value x);            ///< of an i64 that fits

  //--- the block ---
  Value thread(); ///< number of this thread, below |threads|
  Value tile();   ///< number of this block
  void barrier();
  /// Whether this block is the last one of |count| to be here at |counter| (an address in global memory, which holds 0
  /// before the first), i1: it sees then what all of them have stored before. All threads take part.
  Value arriveLast(Value counter, int64_t count);
  /// The launch's shared memory, aligned to 128 bytes. Once for a kernel.
  Value sharedMemory(int64_t bytes);
  Value at(Value shared, Value byte); ///< address |byte| of shared memory
  Value loadShared(mlir::Type type, Value address, int64_t alignment);
  void storeShared(Value value, Value address, int64_t alignment);

  //--- asynchronous copies ---
  /// Copies kChunk bytes from global memory, of an address that is a multiple of that; |fill| in each byte unless
  /// |valid| (i1; null: it is), complete no sooner than the copies.
  void copyChunk(Value shared, Value global, Value valid, uint8_t fill = 0);
  void commitCopies();                ///< what was started since the last one is a group
  void waitForCopies(int64_t groups); ///< until at most |groups| of this thread's are under way

  //--- the warp ---
  /// |value| (f32) of the thread whose number differs from this one's in the bits of |distance|.
  Value fromOther(Value value, int64_t distance);

  //--- tensor cores ---
  /// Four matrices of 8 rows of kChunk bytes. Threads 8 i to 8 i + 7 of a warp give the rows of matrix i; thread
  /// 4 g + t gets bytes 4 t to 4 t + 3 of row g of each, as i32.
  /// With |transpose|, elements of 2 bytes 2 t and 2 t + 1 of column g.
  std::array<Value, 4> loadMatrices(Value address, bool transpose = false);
  /// sums + a * b of a warp: 16 x 8 sums of 32 bytes of K of elements |a| (4 i32) and |b| (2) (i8, ui8, f16, bf16, or
  /// f32 rounded to tf32) of PTX's fragments for m16n8k32, m16n8k16 and m16n8k8; with half of the i32, of 16 bytes.
  std::array<Value, 4> multiply(mlir::Type elementA, mlir::Type elementB, llvm::ArrayRef<Value> a,
                                llvm::ArrayRef<Value> b, std::array<Value, 4> sums);

  /// The bits of an f32 (i32), rounded to the 10 bits of fraction of tf32.
  Value roundToTf32(Value bits);
  /// Two f32 rounded to |element| (f16 or bf16), as an i32 with |low| in its lower half.
  Value roundPair(mlir::Type element, Value low, Value high);

  /// The bytes that |selector| names of |low| (0 to 3) and |high| (4 to 7), the lowest by its lowest 4 bits (i32).
  Value takeBytes(Value low, Value high, int64_t selector);
  /// The bytes of |word| (i32) without sign, each less |bias| (up to 255), as f32.
  std::array<Value, 4> bytesToFloats(Value word, int64_t bias);

private:
  Value intrinsic(llvm::StringRef name, mlir::Type type, mlir::ValueRange operands);
  void intrinsic(llvm::StringRef name, mlir::ValueRange operands);

  Value threadNumber;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_BLOCKBUILDER_H

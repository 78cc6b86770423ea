//===- BlockBuilder.h - Emits operations of a block of threads ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_KERNELS_BLOCKBUILDER_H
#define TESSERA_CODEGEN_CUDA_KERNELS_BLOCKBUILDER_H

#include "codegen/Kernels/KernelBuilder.h"

#include <array>

namespace tessera::cuda {

/// Bytes of one asynchronous copy, and of a row of a matrix that ldmatrix loads.
inline constexpr int64_t kChunk = 16;

/// Emits a kernel whose launch tiles are blocks of threads: shared memory, barriers, asynchronous copies and tensor
/// cores. Integers are i32 unless stated otherwise. Pointers to shared memory are !llvm.ptr<3>.
class BlockBuilder {
public:
  using Value = mlir::Value;

  BlockBuilder(kernels::KernelBuilder &kb, unsigned threads) : kb(kb), threads(threads) {}

  kernels::KernelBuilder &kb;
  const unsigned threads;

  //--- i32; constants fold while building ---
  Value constant(int64_t value);
  Value size(Dim size); ///< a size below 2^31
  Value add(Value x, Value y);
  Value add(Value x, int64_t y) { return add(x, constant(y)); }
  Value sub(Value x, Value y);
  Value mul(Value x, Dim y);
  Value div(Value x, Dim y); ///< x >= 0, y > 0
  Value rem(Value x, Dim y); ///< x >= 0, y > 0
  Value exclusiveOr(Value x, Value y);
  Value less(Value x, Dim y);      ///< signed, i1
  Value equal(Value x, int64_t y); ///< i1
  Value below(Value x, Dim limit); ///< 0 <= x < limit, i1
  Value both(Value x, Value y);    ///< logical and of i1; null stands for true
  Value toIndex(Value x);          ///< zero-extends to i64
  Value fromIndex(Value x);        ///< truncates an i64

  //--- the block ---
  Value thread(); ///< number of this thread, below |threads|
  Value tile();   ///< number of this block
  void barrier();
  /// Counts the arrival of this block at |counter|, an address in global memory that holds 0 before the first arrival.
  /// Returns true (i1) in the last of |count| blocks, which then sees everything that all of them stored before. All
  /// threads must call it.
  Value arriveLast(Value counter, int64_t count);
  /// Returns the shared memory of the launch, aligned to 128 bytes. Call once per kernel.
  Value sharedMemory(int64_t bytes);
  Value at(Value shared, Value byte); ///< address |byte| bytes behind |shared|
  Value loadShared(mlir::Type type, Value address, int64_t alignment);
  void storeShared(Value value, Value address, int64_t alignment);

  //--- asynchronous copies ---
  /// Starts to copy kChunk bytes from global memory at an address that is a multiple of kChunk. Writes |fill| to each
  /// byte instead unless |valid| (i1; null: true). The bytes are there once the copies are complete.
  void copyChunk(Value shared, Value global, Value valid, uint8_t fill = 0);
  void commitCopies();                ///< makes the copies started since the last call a group
  void waitForCopies(int64_t groups); ///< waits until at most |groups| groups of this thread are incomplete

  //--- the warp ---
  /// Returns |value| (f32) of the thread of the warp whose number is this thread's number xor |distance|.
  Value fromOther(Value value, int64_t distance);

  //--- tensor cores ---
  /// Loads four matrices of 8 rows of kChunk bytes. Threads 8 i to 8 i + 7 of a warp pass the addresses of the rows of
  /// matrix i; thread 4 g + t receives bytes 4 t to 4 t + 3 of row g of each matrix, as i32. With |transpose|, it
  /// receives the 2-byte elements 2 t and 2 t + 1 of column g.
  std::array<Value, 4> loadMatrices(Value address, bool transpose = false);
  /// Returns sums + a * b of a warp in the fragments of PTX's m16n8k32, m16n8k16 and m16n8k8: 16 x 8 sums over 32 bytes
  /// of K. |a| has 4 i32 and |b| 2 i32 of i8, ui8, f16, bf16 or f32 rounded to tf32; with half as many, K has 16 bytes.
  std::array<Value, 4> multiply(mlir::Type elementA, mlir::Type elementB, llvm::ArrayRef<Value> a,
                                llvm::ArrayRef<Value> b, std::array<Value, 4> sums);

  /// Rounds the bits of an f32 (i32) to tf32, which has 10 bits of fraction.
  Value roundToTf32(Value bits);
  /// Rounds two f32 to |element| (f16 or bf16) and returns them as an i32 with |low| in its lower half.
  Value roundPair(mlir::Type element, Value low, Value high);

  /// Returns an i32 of four bytes of |low| (bytes 0 to 3) and |high| (4 to 7). |selector| has 4 bits per byte of the
  /// result, the lowest byte first.
  Value takeBytes(Value low, Value high, int64_t selector);
  /// Returns the unsigned bytes of |word| (i32), each minus |bias| (up to 255), as f32.
  std::array<Value, 4> bytesToFloats(Value word, int64_t bias);

private:
  Value intrinsic(llvm::StringRef name, mlir::Type type, mlir::ValueRange operands);
  void intrinsic(llvm::StringRef name, mlir::ValueRange operands);

  Value threadNumber;
};

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_KERNELS_BLOCKBUILDER_H

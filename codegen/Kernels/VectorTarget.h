//===- VectorTarget.h - Machine that loop kernels run on --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_VECTORTARGET_H
#define TESSERA_CODEGEN_KERNELS_VECTORTARGET_H

namespace mlir {
class Value;
} // namespace mlir

namespace tessera::kernels {

class KernelBuilder;

/// Threads that share a row if each tile is a thread: one for each partial sum of an ordered sum (kExactLanes).
inline constexpr unsigned kRowThreads = 16;

/// Rows of threads that a barrier synchronises.
inline constexpr unsigned kBlockRows = 8;

/// Machine properties on which the kernel emitters depend.
struct VectorTarget {
  unsigned bytes = 16;       ///< of a vector register
  bool fma = false;          ///< has fused multiply-add and conversions between f16 and f32
  bool masks = false;        ///< has mask registers: loads and stores of selected lanes
  bool hasLrint = true;      ///< has an instruction that rounds a float to the nearest even integer
  bool tileIsThread = false; ///< each tile of a launch runs on its own thread, one of thousands

  /// Emits a read of |value| (32 bits) in the thread |distance| above within a row. Null if threads cannot read each
  /// other's registers.
  mlir::Value (*shuffle)(KernelBuilder &kb, mlir::Value value, unsigned distance) = nullptr;
  /// Emits a read of |value| (32 bits) in |thread| (i64) of a row. Null if |shuffle| is.
  mlir::Value (*broadcast)(KernelBuilder &kb, mlir::Value value, mlir::Value thread) = nullptr;
  /// Emits a barrier for all threads of kBlockRows rows (from a multiple of kBlockRows on); afterwards each thread sees
  /// the stores that other threads made before the barrier. Null if |shuffle| is.
  void (*barrier)(KernelBuilder &kb) = nullptr;

  unsigned vectorBytes() const { return bytes; }
  /// Elements of |elementBits| bits in one register, at least one.
  unsigned lanes(unsigned elementBits) const { return bytes * 8 > elementBits ? bytes * 8 / elementBits : 1; }
  bool hasFma() const { return fma; }
  bool hasMasks() const { return masks; }
};

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_VECTORTARGET_H

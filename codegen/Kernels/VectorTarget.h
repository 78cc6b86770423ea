//===- VectorTarget.h - The machine that kernels of loops run on -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_VECTORTARGET_H
#define TESSERA_CODEGEN_KERNELS_VECTORTARGET_H

namespace mlir {
class Value;
} // namespace mlir

namespace tessera::kernels {

class KernelBuilder;

/// Threads that share a row where each tile is one: as many as an ordered sum has partial sums (kExactLanes).
inline constexpr unsigned kRowThreads = 16;

/// Rows whose threads a barrier waits for.
inline constexpr unsigned kBlockRows = 8;

/// What the emitters of kernels need to know of a machine.
struct VectorTarget {
  unsigned bytes = 16;       ///< of a vector register
  bool fma = false;          ///< fused multiply-add, and conversions between f16 and f32
  bool masks = false;        ///< registers of masks: loads and stores of some lanes
  bool hasLrint = true;      ///< an instruction that rounds a float to an integer to nearest even
  bool tileIsThread = false; ///< each tile of a launch runs on a thread of its own, of which there are thousands

  /// Emits what |value|, of 32 bits, is in the thread |distance| above among those of a row. Null: threads do not see
  /// each other's registers.
  mlir::Value (*shuffle)(KernelBuilder &kb, mlir::Value value, unsigned distance) = nullptr;
  /// Emits what |value|, of 32 bits, is in |thread| (i64) of a row. There where |shuffle| is.
  mlir::Value (*broadcast)(KernelBuilder &kb, mlir::Value value, mlir::Value thread) = nullptr;
  /// Emits the wait of all threads of kBlockRows rows, from a multiple of that on, for each other; each sees what the
  /// others stored before. There where |shuffle| is.
  void (*barrier)(KernelBuilder &kb) = nullptr;

  unsigned vectorBytes() const { return bytes; }
  /// Elements of |elementBits| bits in one register, at least one.
  unsigned lanes(unsigned elementBits) const { return bytes * 8 > elementBits ? bytes * 8 / elementBits : 1; }
  bool hasFma() const { return fma; }
  bool hasMasks() const { return masks; }
};

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_VECTORTARGET_H

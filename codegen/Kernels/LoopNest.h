//===- LoopNest.h - Strided loops over tensors in memory --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// What generic kernels share: an iteration space with one stride per tensor and dim, its
// simplification, its split into tiles, and vectors along its innermost dim. Strides and offsets
// count elements.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_KERNELS_LOOPNEST_H
#define TESSERA_CODEGEN_KERNELS_LOOPNEST_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// Where element [i0, i1, ...] of a tensor lies: offset = sum of stride * index, where a blocked
/// channel index splits into block and lane.
struct Strides {
  llvm::SmallVector<int64_t> dims; ///< per logical dim; the channel dim's entry is that of a block if block > 0
  int64_t block = 0;               ///< channel block of the layout, 0: row-major. Lanes have stride 1.

  explicit Strides(mlir::RankedTensorType type);
  /// Offset of logical |indices| (i64 values).
  mlir::Value offset(KernelBuilder &kb, mlir::ValueRange indices) const;
};

/// Channels of a channel-blocked tensor that a vector holds: a block, or a few of it where a tile is a thread.
unsigned channelLanes(const KernelBuilder &kb, mlir::RankedTensorType blocked);
/// Channels of |type| and the padding of its last block, if it has blocks.
int64_t paddedChannels(mlir::RankedTensorType type);

struct NestDim {
  int64_t size;
  llvm::SmallVector<int64_t, 4> strides; ///< one per tensor of the nest
};

/// Loops, outermost first, over tensors of which the last one is written.
struct LoopNest {
  llvm::SmallVector<NestDim> dims;
  llvm::SmallVector<int64_t, 4> bases; ///< offset of the first element, per tensor
  /// If not 0, the innermost dim is a partly filled channel block of the written tensor: every vector
  /// store writes this many lanes, zeros beyond the dim's size.
  int64_t paddedLanes = 0;

  int64_t size() const;
  /// Drops dims of size 1 and joins dims that are contiguous for every tensor. The innermost dim
  /// stays apart while paddedLanes is set.
  void simplify();
};

/// The loops of an elementwise op: operands broadcast to |result| as in numpy (right-aligned); |result|
/// is the last tensor of the nests. Two nests when a partly filled channel block needs its own.
llvm::SmallVector<LoopNest> elementwiseNests(llvm::ArrayRef<mlir::RankedTensorType> operands,
                                             mlir::RankedTensorType result);

/// How |nest| is cut for threads: the first |outerDims| dims are joined, and a tile takes |chunk|
/// consecutive positions of them; or, with splitInner, |chunk| elements of the only dim.
struct Tiling {
  unsigned outerDims = 0;
  int64_t positions = 1;
  int64_t chunk = 1;
  bool splitInner = false;
  int64_t tiles() const { return llvm::divideCeil(positions, chunk); }
};

/// The nest with its last dim cut to at most |lanes| elements where each tile is a thread; else as it is.
LoopNest cutForTiles(const KernelBuilder &kb, const LoopNest &nest, int64_t lanes);

/// Aims at tiles of |elementsPerTile| elements; the last |keepDims| dims are not cut. Where each tile is a thread, one
/// for each index of all dims before those.
Tiling chooseTiling(const KernelBuilder &kb, const LoopNest &nest, int64_t elementsPerTile, unsigned keepDims = 1);

/// One vector's worth of a nest.
struct VectorStep {
  llvm::SmallVector<mlir::Value, 4> offsets; ///< per tensor, of the first lane
  mlir::Value mask;                          ///< null: all lanes are active
  unsigned lanes;
  bool aligned = false; ///< lanes begin at a multiple of their number, where they are neighbours and none is masked

  /// Bytes that the address of such lanes of |element| is a multiple of; 0: one element's.
  unsigned alignment(mlir::Type element) const;
};

/// Callbacks of emitVectorNest. |invariant| lists the tensors (reads only) whose value is the same in
/// all iterations of the inner loop: they are loaded once by `load` and passed on to `body`.
struct VectorBody {
  /// Loads tensor |tensor|, stride |laneStride| between lanes, at step.offsets[tensor].
  llvm::function_ref<mlir::Value(unsigned tensor, int64_t laneStride, const VectorStep &step)> load;
  /// Gets one value per read tensor; returns the value to store (register type of the written tensor).
  llvm::function_ref<mlir::Value(mlir::ValueRange values, const VectorStep &step)> compute;
  /// Stores to the written tensor.
  llvm::function_ref<void(mlir::Value value, int64_t laneStride, const VectorStep &step)> store;
};

/// Emits the nests as the tiles of the kernel (calls setTiles), vectorised along the innermost dim in
/// vectors of at most |lanes|.
void emitVectorNests(KernelBuilder &kb, llvm::ArrayRef<LoopNest> nests, unsigned lanes, int64_t elementsPerTile,
                     VectorBody body);

/// Emits one |tile| of a nest cut by |tiling|.
void emitVectorTile(KernelBuilder &kb, const LoopNest &nest, unsigned lanes, const Tiling &tiling, mlir::Value tile,
                    VectorBody body);

/// Emits tiles of several kinds as one launch: |bodies[k]| computes its tile number t in [0, counts[k]).
void emitTileKinds(KernelBuilder &kb, llvm::ArrayRef<int64_t> counts,
                   llvm::ArrayRef<std::function<void(mlir::Value)>> bodies);

/// Loads tensor elements of |elementType| along a lane stride (1, 0 or anything).
mlir::Value loadLanes(KernelBuilder &kb, mlir::Type elementType, mlir::Value base, int64_t laneStride,
                      const VectorStep &step, mlir::Value offset);
/// Stores lanes; a stride other than 1 stores lane by lane.
void storeLanes(KernelBuilder &kb, mlir::Type elementType, mlir::Value value, mlir::Value base, int64_t laneStride,
                const VectorStep &step, mlir::Value offset);

/// i -> its indices in a space of |sizes|, outermost first.
llvm::SmallVector<mlir::Value> delinearize(KernelBuilder &kb, mlir::Value i, llvm::ArrayRef<int64_t> sizes);

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_LOOPNEST_H

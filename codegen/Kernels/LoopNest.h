//===- LoopNest.h - Strided loops over tensors in memory --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// Building blocks of generic kernels: an iteration space with one stride per tensor and dim, its simplification, its
// split into tiles, and vectors along its innermost dim. Strides and offsets count elements.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_KERNELS_LOOPNEST_H
#define TESSERA_CODEGEN_KERNELS_LOOPNEST_H

#include "codegen/Kernels/KernelBuilder.h"

namespace tessera::kernels {

/// Address of element [i0, i1, ...] of a tensor: the sum of stride * index, in which a blocked channel index is split
/// into block and lane.
struct Strides {
  llvm::SmallVector<Dim> dims; ///< per logical dim; for the channel dim, from block to block if block > 0
  int64_t block = 0;           ///< channel block of the layout; 0: row-major. Lanes have stride 1.

  explicit Strides(mlir::RankedTensorType type);
  /// Returns the offset of logical |indices| (i64 values).
  mlir::Value offset(KernelBuilder &kb, mlir::ValueRange indices) const;
};

/// Returns the number of channels of a channel-blocked tensor that a vector holds: a block, or a part of it if each
/// tile is a thread.
unsigned channelLanes(const KernelBuilder &kb, mlir::RankedTensorType blocked);
/// Returns the number of channels of |type|, rounded up to whole blocks if it has a blocked layout.
Dim paddedChannels(mlir::RankedTensorType type);

struct NestDim {
  Dim size;
  llvm::SmallVector<Dim, 4> strides; ///< one per tensor of the nest
};

/// Loops, outermost first, over tensors; the last tensor is written.
struct LoopNest {
  llvm::SmallVector<NestDim> dims;
  llvm::SmallVector<Dim, 4> bases; ///< offset of the first element, per tensor
  /// If not 0, the innermost dim is a partly filled channel block of the written tensor: every vector store writes this
  /// many lanes, with zeros beyond the dim's size.
  int64_t paddedLanes = 0;

  Dim size() const;
  /// Drops dims of size 1 and merges dims that are known to be contiguous for every tensor. Does not merge the
  /// innermost dim if paddedLanes is set.
  void simplify();
};

/// Returns true if each size of each operand is known to be 1 or the size of |result|.
bool broadcastsProvably(llvm::ArrayRef<mlir::RankedTensorType> operands, mlir::RankedTensorType result);

/// Returns the loops of an elementwise op. Operands broadcast to |result| as in numpy (right-aligned); |result| is the
/// last tensor of the nests. Needs broadcastsProvably(). A partly filled channel block gets a second nest.
llvm::SmallVector<LoopNest> elementwiseNests(llvm::ArrayRef<mlir::RankedTensorType> operands,
                                             mlir::RankedTensorType result);

/// Split of a nest into tiles: the first |outerDims| dims are merged and each tile takes |chunk| consecutive positions
/// of them; with splitInner, each tile takes |chunk| elements of the only dim.
struct Tiling {
  unsigned outerDims = 0;
  Dim positions = 1;
  int64_t chunk = 1;
  bool splitInner = false;
  Dim tiles() const { return ceilDiv(positions, chunk); }
};

/// Returns |nest|; if each tile is a thread, its last dim is split to at most |lanes| elements.
LoopNest cutForTiles(const KernelBuilder &kb, const LoopNest &nest, int64_t lanes);

/// Chooses tiles of about |elementsPerTile| elements at likely sizes; the last |keepDims| dims are not split. If each
/// tile is a thread, there is one tile for each index of all dims before the last |keepDims|.
Tiling chooseTiling(const KernelBuilder &kb, const LoopNest &nest, int64_t elementsPerTile, unsigned keepDims = 1);

/// One vector's worth of a nest.
struct VectorStep {
  llvm::SmallVector<mlir::Value, 4> offsets; ///< of the first lane, per tensor
  mlir::Value mask;                          ///< null: all lanes are active
  unsigned lanes;
  bool aligned = false; ///< the first lane is at a multiple of the lane count; counts if lanes are contiguous and not
                        ///< masked

  /// Returns the alignment, in bytes, of the lanes of |element|; 0 means that of one element.
  unsigned alignment(mlir::Type element) const;
};

/// Callbacks of emitVectorNests. Tensors that do not change in the inner loop are loaded once, before it.
struct VectorBody {
  /// Loads |tensor| at step.offsets[tensor] with a stride of |laneStride| between lanes.
  llvm::function_ref<mlir::Value(unsigned tensor, Dim laneStride, const VectorStep &step)> load;
  /// Receives one value per read tensor and returns the value to store (register type of the written tensor).
  llvm::function_ref<mlir::Value(mlir::ValueRange values, const VectorStep &step)> compute;
  /// Stores to the written tensor.
  llvm::function_ref<void(mlir::Value value, Dim laneStride, const VectorStep &step)> store;
};

/// Emits the nests as the tiles of the kernel (calls setTiles), vectorised along the innermost dim with at most |lanes|
/// lanes.
void emitVectorNests(KernelBuilder &kb, llvm::ArrayRef<LoopNest> nests, unsigned lanes, int64_t elementsPerTile,
                     VectorBody body);

/// Emits one |tile| of |nest| under |tiling|.
void emitVectorTile(KernelBuilder &kb, const LoopNest &nest, unsigned lanes, const Tiling &tiling, mlir::Value tile,
                    VectorBody body);

/// Emits tiles of several kinds as one launch: |bodies[k]| computes tile t in [0, counts[k]) of kind k.
void emitTileKinds(KernelBuilder &kb, llvm::ArrayRef<Dim> counts,
                   llvm::ArrayRef<std::function<void(mlir::Value)>> bodies);

/// Loads elements of |elementType| along a lane stride (1, 0 or any other).
mlir::Value loadLanes(KernelBuilder &kb, mlir::Type elementType, mlir::Value base, Dim laneStride,
                      const VectorStep &step, mlir::Value offset);
/// Stores lanes; with a stride other than 1 it stores them one by one.
void storeLanes(KernelBuilder &kb, mlir::Type elementType, mlir::Value value, mlir::Value base, Dim laneStride,
                const VectorStep &step, mlir::Value offset);

/// Returns the indices of position i in a space of |sizes|, outermost first.
llvm::SmallVector<mlir::Value> delinearize(KernelBuilder &kb, mlir::Value i, llvm::ArrayRef<Dim> sizes);
template <std::convertible_to<llvm::ArrayRef<int64_t>> Numbers>
llvm::SmallVector<mlir::Value> delinearize(KernelBuilder &kb, mlir::Value i, const Numbers &sizes) {
  return delinearize(kb, i, Shape(sizes).dims());
}

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_LOOPNEST_H

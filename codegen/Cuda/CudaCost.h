//===- CudaCost.h - What an op costs on a GPU -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CUDACOST_H
#define TESSERA_CODEGEN_CUDA_CUDACOST_H

#include "codegen/Cuda/CudaChip.h"

#include "mlir/IR/Operation.h"

namespace tessera::cuda {

/// What limits a kernel.
enum class Bound { tensor, cores, grid, dram, launch };
llvm::StringRef nameOf(Bound bound);

/// One launch, by a roofline, and what products on tensor cores lose to their tiles: tails, grids smaller than the
/// card, latency (TileCost.h). What other kernels lose so is not in it: `model_tool perf --counts` tells of that.
struct Cost {
  int64_t products = 0;  ///< multiply-adds that the op needs
  int64_t dramBytes = 0; ///< every operand and result once, of what a gather picks from no more than it picks
  double compute = 0;    ///< seconds of the unit that executes it: tensor cores, or an SM's cores
  double grid = 0;       ///< seconds of the busiest SM, where the op has a tile
  double dram = 0;       ///< seconds of DRAM
  double launch = 0;     ///< seconds before it begins
  bool onTensor = false; ///< |compute| is of tensor cores

  double seconds() const;
  /// Were its tile no matter.
  double roofline() const;
  /// The largest of them: the grid, where it takes more than kGridBound times what its products need.
  Bound bound() const;
  static constexpr double kGridBound = 1.25;
};

/// Bytes of |operand| that its op reads.
int64_t bytesRead(mlir::OpOperand &operand);

/// Of an op that has a kernel.
Cost costOf(mlir::Operation *op, const CudaChip &chip);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CUDACOST_H

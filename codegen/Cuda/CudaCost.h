//===- CudaCost.h - Cost model of ops on GPUs -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_CUDACOST_H
#define TESSERA_CODEGEN_CUDA_CUDACOST_H

#include "codegen/Cuda/CudaChip.h"

#include "mlir/IR/Operation.h"

namespace tessera::cuda {

/// The resource that limits a kernel.
enum class Bound { tensor, cores, grid, dram, launch };
llvm::StringRef nameOf(Bound bound);

/// The cost of one launch by a roofline model. For ops with a tile it also covers what their grid loses: tails, grids
/// smaller than the GPU, latency (TileCost.h). Such losses of other kernels are not modelled; `model_tool perf
/// --counts` reports them.
struct Cost {
  int64_t products = 0;  ///< multiply-adds that the op needs
  int64_t dramBytes = 0; ///< every operand and result once; of the operand of a gather, no more than it gathers
  double compute = 0;    ///< seconds of the unit that executes it: tensor cores, or an SM's cores
  double grid = 0;       ///< seconds of the busiest SM, if the op has a tile
  double dram = 0;       ///< seconds of DRAM
  double launch = 0;     ///< seconds before the kernel begins
  bool onTensor = false; ///< |compute| is the time of tensor cores

  double seconds() const;
  /// Returns the seconds without the losses of the grid.
  double roofline() const;
  /// Returns the largest part; the grid counts only if it exceeds kGridBound times |compute|.
  Bound bound() const;
  static constexpr double kGridBound = 1.25;
};

/// Returns the bytes of |operand| that its op reads.
int64_t bytesRead(mlir::OpOperand &operand);

/// Returns the cost of |op|, which must have a kernel.
Cost costOf(mlir::Operation *op, const CudaChip &chip);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_CUDACOST_H

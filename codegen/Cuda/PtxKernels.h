//===- PtxKernels.h - The kernels of a program as PTX -----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_PTXKERNELS_H
#define TESSERA_CODEGEN_CUDA_PTXKERNELS_H

#include "codegen/Kernels/KernelSet.h"

#include "llvm/Support/Error.h"

namespace tessera::cuda {

/// Threads of a block whose threads compute a tile each.
inline constexpr unsigned kBlock = 128;

/// A kernel of the program:
///
///   .entry symbol(.u64 operand 0, .., .u64 result 0, .., .u64 scratch)
///   .entry symbol(.u64 operand 0, .., .u64 result 0, .., .u64 scratch, .u64 counters)   if frame.counters
///
/// Each thread computes one tile of the loops that the op emits, on its own frame.scratchBytes behind |scratch|; or
/// each block of frame.blockThreads.
struct PtxKernel {
  mlir::Operation *op; ///< the first one that needs it; null: clears counters, of which each thread has one
  kernels::KernelFrame frame;

  unsigned argumentCount() const {
    return op ? op->getNumOperands() + op->getNumResults() + 1 + (frame.counters > 0) : 1;
  }
  /// Of a block.
  unsigned threads() const { return frame.blockThreads ? frame.blockThreads : kBlock; }
  int64_t blocks() const { return frame.blockThreads ? frame.tiles : (frame.tiles + kBlock - 1) / kBlock; }
};

/// The kernels that ops need, equal ones once, in order of first use; what clears counters is the last.
class PtxKernels {
public:
  /// PTX for devices of |computeCapability| and newer.
  explicit PtxKernels(unsigned computeCapability) : computeCapability(computeCapability) {}

  void add(mlir::Operation *op);
  /// The text of one module with all of them, each from |cache| or compiled on a thread of the context. Errors in an
  /// op are emitted there.
  llvm::Expected<std::string> compile(kernels::KernelCache &cache,
                                      llvm::function_ref<void(const codegen::Progress &)> progress);

  //--- of compiled ones ---
  const PtxKernel &operator[](size_t index) const { return compiled[index]; }
  size_t indexOf(mlir::Operation *op) const { return set.indexOf(op); }
  /// The kernel that clears counters, where an op needs some.
  std::optional<size_t> clearing() const { return clears ? std::optional(set.size()) : std::nullopt; }
  size_t size() const { return compiled.size(); }
  size_t cacheHits() const { return set.cacheHits() + clearingHits; }

private:
  std::string machine() const;
  llvm::Expected<kernels::Kernel> compileClearing(kernels::KernelCache &cache);

  unsigned computeCapability;
  kernels::KernelSet set;
  std::vector<PtxKernel> compiled;
  bool clears = false;
  size_t clearingHits = 0;
};

/// Machine code of |ptx| by NVIDIA's assembler, if it is found (`ptxas` on the path); nothing where there is none. What
/// the same version has made of the same text comes from |cache|.
llvm::Expected<std::optional<std::string>> assemble(llvm::StringRef ptx, unsigned computeCapability,
                                                    codegen::FileCache &cache);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_PTXKERNELS_H

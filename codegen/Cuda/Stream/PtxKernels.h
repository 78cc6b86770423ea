//===- PtxKernels.h - Compiles the kernels of a program to PTX ---*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_CUDA_STREAM_PTXKERNELS_H
#define TESSERA_CODEGEN_CUDA_STREAM_PTXKERNELS_H

#include "codegen/Kernels/KernelSet.h"

#include "llvm/Support/Error.h"

namespace tessera::cuda {

/// Threads per block of kernels whose launch tiles are threads.
inline constexpr unsigned kBlock = 128;

/// A kernel of the program. Its signature is
///
///   .entry symbol(.u64 operand 0, .., .u64 result 0, .., .u64 scratch)
///   .entry symbol(.u64 operand 0, .., .u64 result 0, .., .u64 scratch, .u64 counters)   if frame.counters
///   .entry symbol(.u64 operand 0, .., .u64 result 0, .., .u64 scratch, .u64 dim 0, ..)  if |dims| is not 0
///   .entry symbol(.., .u64 tiles)                                                       if frame.tileTerms
///
/// Each thread, or each block of frame.blockThreads threads, computes one launch tile and uses frame.scratchBytes of
/// its own behind |scratch|.
struct PtxKernel {
  mlir::Operation *op; ///< the first op that needs the kernel; null: the kernel clears one counter per thread
  kernels::KernelFrame frame;
  unsigned dims; ///< number of symbolsOf(op), which are known at run time

  PtxKernel(mlir::Operation *op, kernels::KernelFrame frame)
      : op(op), frame(std::move(frame)), dims(op ? kernels::symbolsOf(op).size() : 0) {}

  /// Returns the number of tensors and of the pointers to scratch and counters.
  unsigned pointerCount() const {
    return op ? op->getNumOperands() + op->getNumResults() + 1 + (frame.counters > 0) : 1;
  }
  unsigned argumentCount() const { return pointerCount() + dims + (frame.tileTerms.empty() ? 0 : 1); }
  /// Returns the number of threads per block.
  unsigned threads() const { return frame.blockThreads ? frame.blockThreads : kBlock; }
  /// Returns the number of tiles that a block computes.
  unsigned tilesPerBlock() const { return frame.blockThreads ? 1 : kBlock; }
};

/// The kernels that ops need, without duplicates, in order of first use. The kernel that clears counters is the last.
class PtxKernels {
public:
  /// Creates an empty set of kernels for devices of |computeCapability| and newer.
  explicit PtxKernels(unsigned computeCapability) : computeCapability(computeCapability) {}

  void add(mlir::Operation *op);
  /// Compiles the kernels and returns one PTX module with all of them. Each comes from |cache| or is compiled on a
  /// thread of the context. Reports errors in an op at that op.
  llvm::Expected<std::string> compile(kernels::KernelCache &cache,
                                      llvm::function_ref<void(const codegen::Progress &)> progress);

  //--- after compile() ---
  const PtxKernel &operator[](size_t index) const { return compiled[index]; }
  size_t indexOf(mlir::Operation *op) const { return set.indexOf(op); }
  /// Returns the index of the kernel that clears counters, if an op needs counters.
  std::optional<size_t> clearing() const { return clears ? std::optional(set.size()) : std::nullopt; }
  size_t size() const { return compiled.size(); }
  size_t cacheHits() const { return set.cacheHits() + clearingHits; }
  /// Returns true if a kernel takes sizes that are known at run time.
  bool takeSizes() const {
    return llvm::any_of(compiled, [](const PtxKernel &kernel) { return kernel.dims > 0; });
  }

private:
  std::string machine() const;
  llvm::Expected<kernels::Kernel> compileClearing(kernels::KernelCache &cache);

  unsigned computeCapability;
  kernels::KernelSet set;
  std::vector<PtxKernel> compiled;
  bool clears = false;
  size_t clearingHits = 0;
};

/// Assembles |ptx| with NVIDIA's assembler. Returns nullopt if `ptxas` is not on the path. |cache| holds what the same
/// version of ptxas has made of the same text.
llvm::Expected<std::optional<std::string>> assemble(llvm::StringRef ptx, unsigned computeCapability,
                                                    codegen::FileCache &cache);

} // namespace tessera::cuda

#endif // TESSERA_CODEGEN_CUDA_STREAM_PTXKERNELS_H

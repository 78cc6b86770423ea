//===- KernelSet.h - The kernels of one model -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELSET_H
#define TESSERA_CODEGEN_KERNELS_KERNELSET_H

#include "codegen/Kernels/KernelCache.h"
#include "codegen/Target/Phases.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::kernels {

/// The kernels that ops need, equal ones once, in order of first use.
class KernelSet {
public:
  /// Makes the kernel of an op. Errors are emitted there. Called from several threads.
  using Compiler = llvm::function_ref<mlir::FailureOr<Kernel>(mlir::Operation *op, llvm::StringRef symbol)>;

  /// Registers the kernel of |op|, whose content address for its machine is |key| (kernelKey).
  void add(mlir::Operation *op, std::string key);

  /// Fetches kernels from |cache| and compiles the others on the threads of the context. Errors are
  /// emitted at the ops, and a warning where the cache cannot keep what was compiled. |progress| is told of kernels.
  llvm::LogicalResult compile(KernelCache &cache, Compiler compileKernel,
                              llvm::function_ref<void(const codegen::Progress &)> progress);

  const Kernel &operator[](size_t index) const { return entries[index].kernel; }
  /// The first op that needs it.
  mlir::Operation *opOf(size_t index) const { return entries[index].op; }
  size_t indexOf(mlir::Operation *op) const { return indices.at(op); }
  /// What a launch of |op| needs to know.
  const KernelFrame &frameOf(mlir::Operation *op) const { return entries[indexOf(op)].kernel.frame; }
  size_t size() const { return entries.size(); }
  size_t cacheHits() const { return hits; }

private:
  struct Entry {
    std::string key;
    mlir::Operation *op; ///< the first one
    Kernel kernel;
  };

  std::vector<Entry> entries;
  llvm::StringMap<size_t> byKey;
  llvm::DenseMap<mlir::Operation *, size_t> indices;
  size_t hits = 0;
};

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELSET_H

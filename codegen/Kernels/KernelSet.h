//===- KernelSet.h - The kernels of one model -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELSET_H
#define TESSERA_CODEGEN_KERNELS_KERNELSET_H

#include "codegen/Kernels/KernelCache.h"
#include "codegen/Target/Target.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::kernels {

/// Returns true if a kernel computes |op|, i.e. it is not a constant, a view or a terminator.
bool needsKernel(mlir::Operation *op);

/// Returns the device ops of |function| that are neither views nor implement KernelInterface, as ops that |machine|,
/// a name for messages, does not support; also ops whose kernel does not accept their open sizes.
std::vector<codegen::UnsupportedOp> findOpsWithoutKernel(mlir::func::FuncOp function, llvm::StringRef machine);

/// Holds the kernels that ops need, in order of first use; equal kernels are stored once.
class KernelSet {
public:
  /// Compiles the kernel of an op and reports errors at the op. Called from several threads.
  using Compiler = llvm::function_ref<mlir::FailureOr<Kernel>(mlir::Operation *op, llvm::StringRef symbol)>;

  /// Registers the kernel of |op|, whose content address for its machine is |key| (kernelKey).
  void add(mlir::Operation *op, std::string key);

  /// Fetches kernels from |cache| and compiles the missing ones on the threads of the context. Reports errors at the
  /// ops, and a warning if the cache cannot store a compiled kernel. Reports the number of kernels to |progress|.
  llvm::LogicalResult compile(KernelCache &cache, Compiler compileKernel,
                              llvm::function_ref<void(const codegen::Progress &)> progress);

  const Kernel &operator[](size_t index) const { return entries[index].kernel; }
  /// Returns the first op that needs kernel |index|.
  mlir::Operation *opOf(size_t index) const { return entries[index].op; }
  size_t indexOf(mlir::Operation *op) const { return indices.at(op); }
  /// Returns the launch parameters of |op|'s kernel.
  const KernelFrame &frameOf(mlir::Operation *op) const { return entries[indexOf(op)].kernel.frame; }
  size_t size() const { return entries.size(); }
  size_t cacheHits() const { return hits; }

private:
  struct Entry {
    std::string key;
    mlir::Operation *op; ///< first op that needs the kernel
    Kernel kernel;
  };

  std::vector<Entry> entries;
  llvm::StringMap<size_t> byKey;
  llvm::DenseMap<mlir::Operation *, size_t> indices;
  size_t hits = 0;
};

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELSET_H

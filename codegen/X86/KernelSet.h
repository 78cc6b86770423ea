//===- KernelSet.h - The kernels of one model -------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELSET_H
#define TESSERA_CODEGEN_X86_KERNELSET_H

#include "codegen/Target/Phases.h"
#include "codegen/X86/KernelCache.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Error.h"

namespace tessera::x86 {

/// The kernels a function's ops need, equal ones once, in order of first use.
class KernelSet {
public:
  explicit KernelSet(const X86Target &target) : target(target) {}

  /// Registers the kernel of |op|.
  void add(mlir::Operation *op);

  /// Fetches kernels from |cache| and compiles the others on the threads of the context. Errors are
  /// emitted at the ops, and a warning where the cache cannot keep what was compiled. |progress| is told of kernels.
  llvm::LogicalResult compile(KernelCache &cache, llvm::function_ref<void(const codegen::Progress &)> progress);

  /// All kernels as one shared object.
  llvm::Expected<std::vector<char>> link() const;

  /// What the plan needs to launch |op|.
  const KernelFrame &frameOf(mlir::Operation *op) const { return entries[indexOf.at(op)].kernel.frame; }
  size_t size() const { return entries.size(); }
  size_t cacheHits() const { return hits; }

private:
  struct Entry {
    std::string key;
    mlir::Operation *op; ///< the first one
    Kernel kernel;
  };

  X86Target target;
  std::vector<Entry> entries;
  llvm::StringMap<size_t> byKey;
  llvm::DenseMap<mlir::Operation *, size_t> indexOf;
  size_t hits = 0;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELSET_H

//===- KernelCache.h - Cache of compiled kernels on disk --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELCACHE_H
#define TESSERA_CODEGEN_KERNELS_KERNELCACHE_H

#include "codegen/Kernels/BuildIdentity.h"
#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Target/FileCache.h"

namespace tessera::kernels {

/// One compiled kernel: its frame and the code that defines frame.symbol, an object file or PTX text.
struct Kernel {
  KernelFrame frame;
  std::vector<char> code;
};

/// Stores kernels in a FileCache, one file each, named by kernelKey and by the build that compiled them. A kernel
/// depends on code of many folders (packing, layouts, numerics), so another build never uses it. Thread-safe.
class KernelCache {
public:
  /// If |folder| or |build| is empty, nothing is cached.
  explicit KernelCache(std::string folder, std::string build = buildIdentity())
      : files(build.empty() ? "" : std::move(folder)), build(std::move(build)) {}

  std::optional<Kernel> lookup(llvm::StringRef key);
  void insert(llvm::StringRef key, const Kernel &kernel);

  /// See FileCache.
  void prune() { files.prune(); }
  std::string fault() const { return files.fault(); }
  /// Returns the underlying cache, for artifacts made from kernels by other programs than this build.
  codegen::FileCache &fileCache() { return files; }

private:
  std::string nameOf(llvm::StringRef key) const;

  codegen::FileCache files;
  std::string build;
};

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELCACHE_H

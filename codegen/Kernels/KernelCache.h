//===- KernelCache.h - Compiled kernels kept between runs -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_KERNELCACHE_H
#define TESSERA_CODEGEN_KERNELS_KERNELCACHE_H

#include "codegen/Kernels/BuildIdentity.h"
#include "codegen/Kernels/KernelBuilder.h"
#include "codegen/Target/FileCache.h"

namespace tessera::kernels {

/// One compiled kernel: its frame, and the code that defines frame.symbol: an object file, or text of PTX.
struct Kernel {
  KernelFrame frame;
  std::vector<char> code;
};

/// Kernels in a FileCache, one file each, named by kernelKey and by the build that compiled them: many folders' code
/// decides what a kernel reads (packing, layouts, numerics), so another build never gets them. Thread-safe.
class KernelCache {
public:
  /// |folder| or |build| empty: no cache.
  explicit KernelCache(std::string folder, std::string build = buildIdentity())
      : files(build.empty() ? "" : std::move(folder)), build(std::move(build)) {}

  std::optional<Kernel> lookup(llvm::StringRef key);
  void insert(llvm::StringRef key, const Kernel &kernel);

  /// As FileCache has them.
  void prune() { files.prune(); }
  std::string fault() const { return files.fault(); }
  /// For what is made of kernels by others than this build.
  codegen::FileCache &fileCache() { return files; }

private:
  std::string nameOf(llvm::StringRef key) const;

  codegen::FileCache files;
  std::string build;
};

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_KERNELCACHE_H

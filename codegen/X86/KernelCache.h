//===- KernelCache.h - Compiled kernels kept between runs -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELCACHE_H
#define TESSERA_CODEGEN_X86_KERNELCACHE_H

#include "codegen/Target/FileCache.h"
#include "codegen/X86/BuildIdentity.h"
#include "codegen/X86/KernelCompiler.h"

namespace tessera::x86 {

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

private:
  std::string nameOf(llvm::StringRef key) const;

  codegen::FileCache files;
  std::string build;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELCACHE_H

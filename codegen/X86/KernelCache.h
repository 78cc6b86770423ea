//===- KernelCache.h - Compiled kernels kept between runs -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_KERNELCACHE_H
#define TESSERA_CODEGEN_X86_KERNELCACHE_H

#include "codegen/X86/BuildIdentity.h"
#include "codegen/X86/KernelCompiler.h"

#include <atomic>
#include <mutex>
#include <optional>

namespace tessera::x86 {

/// A folder of kernels, one file each, named by kernelKey and by the build that compiled them: many folders' code
/// decides what a kernel reads (packing, layouts, numerics), so another build never gets them. Several processes may
/// share it: files appear complete or not at all. A damaged file counts as absent, and a folder that cannot be written
/// as empty: the cache never makes a compilation fail. Thread-safe.
class KernelCache {
public:
  /// |folder| or |build| empty: no cache.
  explicit KernelCache(std::string folder, std::string build = buildIdentity())
      : folder(build.empty() ? "" : std::move(folder)), build(std::move(build)) {}

  /// $XDG_CACHE_HOME/tessera/kernels, else ~/.cache/tessera/kernels, else no cache.
  static std::string defaultFolder();

  std::optional<Kernel> lookup(llvm::StringRef key);
  void insert(llvm::StringRef key, const Kernel &kernel);

  /// Removes the files used longest ago until the folder holds at most |maxBytes|. Only does work
  /// after an insertion.
  void prune(uint64_t maxBytes = uint64_t(256) << 20);

  /// Why a kernel could not be kept, of the first one; "" if all were.
  std::string fault() const {
    std::lock_guard<std::mutex> lock(mutex);
    return firstFault;
  }

private:
  void noteFault(const llvm::Twine &why);
  std::string path(llvm::StringRef key) const;

  std::string folder, build;
  std::atomic<bool> changed = false;
  mutable std::mutex mutex;
  std::string firstFault;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_KERNELCACHE_H

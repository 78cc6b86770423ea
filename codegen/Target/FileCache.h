//===- FileCache.h - What compilations keep for the next one ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TARGET_FILECACHE_H
#define TESSERA_CODEGEN_TARGET_FILECACHE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

namespace tessera::codegen {

/// A folder of files, named by key. Several processes may share it: files appear complete or not at all. A damaged file
/// counts as absent, and a folder that cannot be written as empty: the cache never makes a compilation fail.
/// Thread-safe.
class FileCache {
public:
  /// |folder| empty: no cache.
  explicit FileCache(std::string folder) : folder(std::move(folder)) {}

  /// $XDG_CACHE_HOME/tessera/kernels, else ~/.cache/tessera/kernels, else no cache.
  static std::string defaultFolder();

  bool isOff() const { return folder.empty(); }

  /// |key|: a file name of more than two characters, which says all that decides the contents.
  std::optional<std::string> lookup(llvm::StringRef key) const;
  void insert(llvm::StringRef key, llvm::StringRef contents);

  /// Removes the files used longest ago until the folder holds at most |maxBytes|. Only does work
  /// after an insertion.
  void prune(uint64_t maxBytes = uint64_t(256) << 20);

  /// A warning that tells why a file could not be kept, of the first one; "" if all were.
  std::string fault() const {
    std::lock_guard<std::mutex> lock(mutex);
    return firstFault;
  }

private:
  void noteFault(const llvm::Twine &why);
  std::string path(llvm::StringRef key) const;

  std::string folder;
  std::atomic<bool> changed = false;
  mutable std::mutex mutex;
  std::string firstFault;
};

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TARGET_FILECACHE_H

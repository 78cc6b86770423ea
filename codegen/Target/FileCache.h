//===- FileCache.h - Cache files shared by compilations ---------*- C++ -*-===//
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

/// A folder of files named by key, which several processes may share: files appear complete or not at all. A damaged
/// file counts as absent and an unwritable folder as empty, so the cache never makes a compilation fail. Thread-safe.
class FileCache {
public:
  /// If |folder| is empty, nothing is cached.
  explicit FileCache(std::string folder) : folder(std::move(folder)) {}

  /// Returns $XDG_CACHE_HOME/tessera/kernels or ~/.cache/tessera/kernels; "" (no cache) if neither variable is set.
  static std::string defaultFolder();

  bool isOff() const { return folder.empty(); }

  /// |key|: a file name of more than two characters that covers everything on which the contents depend.
  std::optional<std::string> lookup(llvm::StringRef key) const;
  void insert(llvm::StringRef key, llvm::StringRef contents);

  /// Removes the least recently used files until the folder holds at most |maxBytes|. Does nothing if no file was
  /// inserted.
  void prune(uint64_t maxBytes = uint64_t(256) << 20);

  /// Returns a warning that explains why the first failed insertion failed; "" if all succeeded.
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

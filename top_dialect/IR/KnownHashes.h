//===- KnownHashes.h - Cache of file hashes -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_KNOWNHASHES_H
#define TESSERA_TOP_DIALECT_IR_KNOWNHASHES_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera::top {

/// Identifies the content of a file by its metadata, which change with the content. The name is not included.
struct FileIdentity {
  uint64_t device, inode, bytes;
  int64_t changedSeconds, changedNanoseconds;

  bool operator==(const FileIdentity &) const = default;
  /// Returns the identity of the file at |path|; nothing if it does not exist.
  static std::optional<FileIdentity> of(llvm::StringRef path);
};

/// Starts to remember hashes, in this process and in those it creates. Before this call, hashes are not remembered.
void shareKnownHashes();

/// Returns the hash of a file that this process, or one that shares its hashes, has written or verified.
std::optional<std::string> knownHash(const FileIdentity &file);

/// Remembers a hash of 32 characters, unless the table is full.
void rememberHash(const FileIdentity &file, llvm::StringRef hash);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_KNOWNHASHES_H

//===- KnownHashes.h - Hashes of files that were computed already ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace tessera::top {

/// A file as the system knows it: after a change it is another. Its name is no part of it.
struct FileIdentity {
  uint64_t device, inode, bytes;
  int64_t changedSeconds, changedNanoseconds;

  bool operator==(const FileIdentity &) const = default;
  /// Nothing where there is no such file.
  static std::optional<FileIdentity> of(llvm::StringRef path);
};

/// From here on hashes are remembered, by this process and all that it makes; without it they are not.
void shareKnownHashes();

/// The hash of a file that this process or one beside it has written or verified.
std::optional<std::string> knownHash(const FileIdentity &file);

/// |hash|: 32 characters. Where there is no room any more it is not remembered.
void rememberHash(const FileIdentity &file, llvm::StringRef hash);

} // namespace tessera::top

//===- PendingFile.h - Files that appear together or not at all -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_PENDINGFILE_H
#define TESSERA_TOP_DIALECT_IR_PENDINGFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera::top {

/// A temporary file beside |path|, which it replaces once it is kept. Else it is removed, also where a signal ends the
/// process.
class PendingFile {
public:
  /// What |write| writes. Errors name the path.
  static llvm::Expected<PendingFile> write(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);
  PendingFile(PendingFile &&) = default;
  ~PendingFile();

  /// All of them appear before a signal (SIGINT, SIGTERM, SIGHUP) may end the process.
  static llvm::Error keep(llvm::MutableArrayRef<PendingFile> files);

private:
  PendingFile(llvm::StringRef path, llvm::sys::fs::TempFile temporary) : path(path), temporary(std::move(temporary)) {}

  std::string path;
  llvm::sys::fs::TempFile temporary;
};

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_PENDINGFILE_H

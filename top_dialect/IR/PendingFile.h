//===- PendingFile.h - Files that appear together or not at all -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_PENDINGFILE_H
#define TESSERA_TOP_DIALECT_IR_PENDINGFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <string>

namespace tessera::top {

/// A temporary file next to |path|, which replaces |path| when it is kept. Otherwise it is removed, even if a signal
/// ends the process.
class PendingFile {
public:
  /// Creates a file with the output of |write|. Errors name the path.
  static llvm::Expected<PendingFile> write(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);
  /// Creates an empty file, to be written through stream().
  static llvm::Expected<PendingFile> create(llvm::StringRef path);
  PendingFile(PendingFile &&) = default;
  ~PendingFile();

  llvm::raw_fd_ostream &stream() { return *os; }

  /// Moves all files to their paths. Signals (SIGINT, SIGTERM, SIGHUP) are delayed, so that all files appear or none.
  static llvm::Error keep(llvm::MutableArrayRef<PendingFile> files);

private:
  PendingFile(llvm::StringRef path, llvm::sys::fs::TempFile temporary);
  /// Fails if a write failed, for example on a full disk.
  llvm::Error flush();

  std::string path;
  llvm::sys::fs::TempFile temporary;
  std::unique_ptr<llvm::raw_fd_ostream> os; ///< null in moved-from objects
};

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_PENDINGFILE_H

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

/// A temporary file beside |path|, which it replaces once it is kept. Else it is removed, also where a signal ends the
/// process.
class PendingFile {
public:
  /// What |write| writes. Errors name the path.
  static llvm::Expected<PendingFile> write(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);
  /// An empty one, for what is written piece by piece to stream().
  static llvm::Expected<PendingFile> create(llvm::StringRef path);
  PendingFile(PendingFile &&) = default;
  ~PendingFile();

  llvm::raw_fd_ostream &stream() { return *os; }

  /// All of them appear before a signal (SIGINT, SIGTERM, SIGHUP) may end the process.
  static llvm::Error keep(llvm::MutableArrayRef<PendingFile> files);

private:
  PendingFile(llvm::StringRef path, llvm::sys::fs::TempFile temporary);
  /// Error where not all that was written has room.
  llvm::Error flush();

  std::string path;
  llvm::sys::fs::TempFile temporary;
  std::unique_ptr<llvm::raw_fd_ostream> os; ///< null once the file is moved away
};

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_PENDINGFILE_H

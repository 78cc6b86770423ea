//===- RegularFile.h - Reading regular files only -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_REGULARFILE_H
#define TESSERA_TOP_DIALECT_IR_REGULARFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace tessera::top {

/// Reads |path|; large files are mapped, and the buffer is not null-terminated. Rejects folders, pipes, devices and
/// sockets, as reading one may never end. The error states the reason without the path.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readRegularFile(llvm::StringRef path);

/// Returns true if the file is mapped; small ones are read.
bool isMapped(const llvm::MemoryBuffer &file);

/// Returns the memory of all whole pages in |bytes| to the system. The bytes must belong to an unmodified mapped file.
void releasePages(llvm::ArrayRef<char> bytes);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_REGULARFILE_H

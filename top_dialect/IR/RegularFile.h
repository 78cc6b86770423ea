//===- RegularFile.h - Reading regular files only -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_REGULARFILE_H
#define TESSERA_TOP_DIALECT_IR_REGULARFILE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace tessera::top {

/// Reads |path|; large files are mapped, and the buffer is not null-terminated. Rejects folders, pipes, devices and
/// sockets, as reading one may never end. The error states the reason without the path.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readRegularFile(llvm::StringRef path);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_REGULARFILE_H

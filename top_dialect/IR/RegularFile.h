//===- RegularFile.h - Reading of files that are files ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace tessera::top {

/// The bytes of |path| (mapped where they are many; not ended by a 0). Folders, pipes, devices and sockets are refused:
/// to read one may never end. The error says why without the path.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>> readRegularFile(llvm::StringRef path);

} // namespace tessera::top

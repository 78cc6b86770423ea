//===- Linker.h - Links kernels to one shared object ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_LINKER_H
#define TESSERA_CODEGEN_X86_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace tessera::x86 {

/// Links the relocatable |objects|, in order, to one stripped ELF shared object without libc and with a GNU symbol hash
/// table. Links in this process and without files on disk. Equal objects give equal bytes. Thread-safe: calls are
/// serialised.
llvm::Expected<std::vector<char>> linkSharedObject(llvm::ArrayRef<llvm::ArrayRef<char>> objects);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_LINKER_H

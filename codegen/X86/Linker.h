//===- Linker.h - Kernels to one shared object ------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_LINKER_H
#define TESSERA_CODEGEN_X86_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace tessera::x86 {

/// Links relocatable |objects|, in order, to one ELF shared object (no libc, hash table of symbols,
/// stripped), in this process and without files on disk. The same objects give the same bytes. One
/// call at a time.
llvm::Expected<std::vector<char>> linkSharedObject(llvm::ArrayRef<llvm::ArrayRef<char>> objects);

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_LINKER_H

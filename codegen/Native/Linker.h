//===- Linker.h - Links kernels to one shared object ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_NATIVE_LINKER_H
#define TESSERA_CODEGEN_NATIVE_LINKER_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace tessera::native {

/// Links the relocatable |objects|, in order, to one stripped ELF shared object without libc and with a GNU symbol hash
/// table. The objects determine the machine, which must be the same for all; segments begin at multiples of
/// |pageBytes|. Links in this process and without files on disk. Equal objects give equal bytes. Thread-safe: calls are
/// serialised.
llvm::Expected<std::vector<char>> linkSharedObject(llvm::ArrayRef<llvm::ArrayRef<char>> objects,
                                                   unsigned pageBytes = 4096);

} // namespace tessera::native

#endif // TESSERA_CODEGEN_NATIVE_LINKER_H

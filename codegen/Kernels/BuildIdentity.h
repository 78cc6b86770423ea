//===- BuildIdentity.h - Which build of the compiler this is ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_BUILDIDENTITY_H
#define TESSERA_CODEGEN_KERNELS_BUILDIDENTITY_H

#include <string>

namespace tessera::kernels {

/// Names the code that this process compiles kernels with: the linker's build ids (a hash over all that it linked) of
/// the object that holds this compiler and of the LLVM and MLIR libraries. Two builds that could make different code of
/// one op have different identities, whichever folder the difference is in. "" where the linker left no build id: then
/// nobody can tell, and nothing that another build made may be used.
const std::string &buildIdentity();

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_BUILDIDENTITY_H

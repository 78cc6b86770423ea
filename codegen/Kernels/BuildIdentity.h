//===- BuildIdentity.h - Identity of this compiler build --------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_KERNELS_BUILDIDENTITY_H
#define TESSERA_CODEGEN_KERNELS_BUILDIDENTITY_H

#include <string>

namespace tessera::kernels {

/// Returns a hash that identifies the code with which this process compiles kernels. It combines the linker's build ids
/// (hashes of the linked contents) of this compiler and of the LLVM and MLIR libraries, so two builds that may generate
/// different code have different identities. Returns "" if the linker left no build id; kernels of other builds must
/// then not be reused.
const std::string &buildIdentity();

} // namespace tessera::kernels

#endif // TESSERA_CODEGEN_KERNELS_BUILDIDENTITY_H

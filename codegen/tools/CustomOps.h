//===- CustomOps.h - Libraries of custom operators --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_CUSTOMOPS_H
#define TESSERA_CODEGEN_TOOLS_CUSTOMOPS_H

#include "llvm/Support/Error.h"

namespace tessera::tool {

/// Loads the libraries that the environment variable TESSERA_CUSTOM_OPS lists, separated by colons, and makes their
/// operators those of Top. The commands set the variable from --custom_ops.
llvm::Error loadCustomOps();

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_CUSTOMOPS_H

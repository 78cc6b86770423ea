// SPDX-License-Identifier: Apache-2.0
//===- NoPolly.cpp - An extension that LLVM's archives name ---------------===//
//
// Debian's LLVM was built with Polly, which its archives for link-time optimisation add to every
// pipeline that they make. We make none: an extension that adds nothing saves the library.
//
//===----------------------------------------------------------------------===//
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "NoPolly", "1", [](llvm::PassBuilder &) {}};
}

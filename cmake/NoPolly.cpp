// SPDX-License-Identifier: Apache-2.0
//===- NoPolly.cpp - Replacement of an extension in LLVM's archives -------===//
//
// Debian's LLVM is built with Polly: its archives for link-time optimisation add the Polly extension to every pass
// pipeline that they build. The compiler builds no such pipeline, so an empty extension avoids linking Polly.
//
//===----------------------------------------------------------------------===//
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "NoPolly", "1", [](llvm::PassBuilder &) {}};
}

//===- OnnxControl.cpp - Handlers of control flow ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

llvm::ArrayRef<HandlerEntry> controlHandlers() { return {}; }

} // namespace tessera::top::onnx_import

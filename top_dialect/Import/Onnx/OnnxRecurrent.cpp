//===- OnnxRecurrent.cpp - Handlers of recurrent operators ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

namespace tessera::top::onnx_import {

llvm::ArrayRef<HandlerEntry> recurrentHandlers() { return {}; }

} // namespace tessera::top::onnx_import

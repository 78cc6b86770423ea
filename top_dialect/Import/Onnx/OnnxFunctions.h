//===- OnnxFunctions.h - Model-local functions of an ONNX file ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/Import/Onnx/OnnxModel.h"

namespace tessera::top::onnx_import {

/// No real model has as many nodes with its functions written out.
inline constexpr int64_t kMaxNodes = 1000000;

/// The functions of |proto| by domain, name and overload. Fails where two have the same.
llvm::Expected<FunctionTable> readFunctions(const onnx::ModelProto &proto);

/// Fails where functions call themselves, or where the graph has more than kMaxNodes nodes when each call is written
/// out: a small file can ask for 2^60.
llvm::Error checkCalls(const OnnxModel &model);

/// The function that |node| calls, or null. Whether an operator of that name is known is not asked.
const onnx::FunctionProto *findFunction(const OnnxModel &model, const onnx::NodeProto &node);

/// The opsets by domain that the body of |function| is written in; what it does not import is as in |model|.
llvm::Expected<llvm::StringMap<int64_t>> opsetsOf(const OnnxModel &model, const onnx::FunctionProto &function);

/// The body of |function| as the graph of a model of its own: its attributes are those |call| gives (else their
/// defaults), inputs that the call leaves out are left out by the nodes that read them. The graph's inputs and outputs
/// have names and no types.
llvm::Expected<OnnxModel> instantiate(const OnnxModel &model, const onnx::FunctionProto &function,
                                      const onnx::NodeProto &call);

} // namespace tessera::top::onnx_import

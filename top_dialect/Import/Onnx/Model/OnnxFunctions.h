//===- OnnxFunctions.h - Model-local functions of an ONNX file ------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXFUNCTIONS_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXFUNCTIONS_H

#include "top_dialect/Import/Onnx/Model/OnnxModel.h"

namespace tessera::top::onnx_import {

/// Limit on the number of nodes after all function calls are inlined. No real model has as many.
inline constexpr int64_t kMaxNodes = 1000000;

/// Returns the functions of |proto| by domain, name and overload. Fails if two functions have the same key.
llvm::Expected<FunctionTable> readFunctions(const onnx::ModelProto &proto);

/// Fails if functions call themselves, or if the graph would have more than kMaxNodes nodes with all calls inlined. A
/// small file can describe 2^60 of them.
llvm::Error checkCalls(const OnnxModel &model);

/// Returns the function that |node| calls, or null. Does not check whether there is an operator of that name.
const onnx::FunctionProto *findFunction(const OnnxModel &model, const onnx::NodeProto &node);

/// Returns the opsets by domain for the body of |function|. Domains that it does not import get the opset of |model|.
llvm::Expected<llvm::StringMap<int64_t>> opsetsOf(const OnnxModel &model, const onnx::FunctionProto &function);

/// Returns the body of |function| as the graph of a separate model. Attributes get the values given by |call|, or else
/// their defaults. Inputs absent in the call are absent in the nodes that read them. The inputs and outputs of the
/// graph have names but no types.
llvm::Expected<OnnxModel> instantiate(const OnnxModel &model, const onnx::FunctionProto &function,
                                      const onnx::NodeProto &call);

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_ONNXFUNCTIONS_H

//===- OnnxDecoder.h - Import of language models from ONNX files -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXDECODER_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXDECODER_H

#include "top_dialect/Import/Decoder/DecoderImport.h"

#include <functional>

namespace tessera::top {

/// Imports a decoder with caches (input_ids, past_key_values.* -> logits, present.*) in the form that importDecoder()
/// returns. The attention mask and the positions are computed from the length of the caches.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnxDecoder(llvm::StringRef path, const DecoderOptions &options,
                                                                    std::function<void(llvm::StringRef)> warn,
                                                                    mlir::MLIRContext &context);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_ONNXDECODER_H

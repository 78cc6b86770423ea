//===- HuggingFaceCheckpoint.h - A Hugging Face folder as a language model -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_HUGGINGFACE_HUGGINGFACECHECKPOINT_H
#define TESSERA_TOP_DIALECT_IMPORT_HUGGINGFACE_HUGGINGFACECHECKPOINT_H

#include "top_dialect/Import/Decoder/DecoderConfig.h"

#include "mlir/IR/MLIRContext.h"

namespace tessera::top {

/// Reads the hyperparameters (config.json) and the list of tensors (model.safetensors, or the files of
/// model.safetensors.index.json, which stay mapped) of a folder, without the tokenizer. Fails for an unknown
/// architecture, and if config.json has a hyperparameter that is not supported.
llvm::Expected<Checkpoint> openHuggingFace(llvm::StringRef folder, mlir::MLIRContext *context);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_HUGGINGFACE_HUGGINGFACECHECKPOINT_H

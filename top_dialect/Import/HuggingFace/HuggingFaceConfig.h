//===- HuggingFaceConfig.h - config.json of a language model ----*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_HUGGINGFACE_HUGGINGFACECONFIG_H
#define TESSERA_TOP_DIALECT_IMPORT_HUGGINGFACE_HUGGINGFACECONFIG_H

#include "top_dialect/Import/Decoder/DecoderConfig.h"

namespace tessera::top {

/// Sets the architecture and the hyperparameters of |checkpoint| from the content of config.json.
llvm::Error readHuggingFaceConfig(const llvm::json::Object &json, Checkpoint &checkpoint);

/// Returns true if the model computes logits with the table of embeddings.
bool hasTiedEmbeddings(const llvm::json::Object &json, llvm::StringRef architecture);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_HUGGINGFACE_HUGGINGFACECONFIG_H

//===- GgufCheckpoint.h - A GGUF file as a language model -------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_GGUF_GGUFCHECKPOINT_H
#define TESSERA_TOP_DIALECT_IMPORT_GGUF_GGUFCHECKPOINT_H

#include "top_dialect/Import/Decoder/DecoderConfig.h"

namespace tessera::top {

/// Reads the hyperparameters, the list of tensors and the tokenizer of a GGUF file, which stays mapped. Fails for an
/// unknown architecture, and if the metadata contain a hyperparameter that is not supported.
llvm::Expected<Checkpoint> openGguf(llvm::StringRef path);
/// Reads a GGUF file in memory in this way.
llvm::Expected<Checkpoint> readGguf(std::shared_ptr<llvm::MemoryBuffer> file);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_GGUF_GGUFCHECKPOINT_H

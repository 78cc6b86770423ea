//===- DecoderImport.h - Builds the network of a language model -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_DECODER_DECODERIMPORT_H
#define TESSERA_TOP_DIALECT_IMPORT_DECODER_DECODERIMPORT_H

#include "top_dialect/Import/Decoder/DecoderConfig.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/JSON.h"

namespace tessera::top {

/// How caches store keys and values. I8 has a scale for each head and token.
enum class CacheType { F32, BF16, I8 };

struct DecoderOptions {
  std::string modelName;
  int64_t context = 0;      ///< capacity of the caches; 0 = that of the checkpoint, at most kUsualContext
  int64_t chunk = 512;      ///< largest number of tokens of a run
  bool keepsFormats = true; ///< groups of integers stay as they are in the file; otherwise all weights become f32
  bool allLogits = false;   ///< the output has the logits of all tokens of a run, else of the last one
  int64_t sequences = 0;    ///< number of sequences with caches of their own; 0 = one, without the input `rows`
  CacheType cacheType = CacheType::F32;
};
inline constexpr int64_t kUsualContext = 4096, kMostSequences = 64;

/// Returns a module with the input `input_ids` [1, seq] and the output `logits` [1, 1 or seq, vocabulary]. Keys and
/// values are states that grow; the position of the first token is their length. For several sequences, the inputs are
/// `input_ids.0`, `input_ids.1`, .., each of size 0 or more, and `rows`: the new tokens whose logits are wanted,
/// counted through all sequences. The hyperparameters of text generation are in the attribute `top.properties` of the
/// module. Fails if a tensor is missing, has another shape than the network needs, or is not used.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importDecoder(const Checkpoint &checkpoint, const DecoderOptions &options, mlir::MLIRContext *context);

/// Stores the tokenizer and the chat template in the attribute `top.properties` of |module|.
void setLanguage(mlir::ModuleOp module, llvm::json::Value language);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_DECODER_DECODERIMPORT_H

//===- DecoderConfig.h - The hyperparameters of a language model -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_DECODER_DECODERCONFIG_H
#define TESSERA_TOP_DIALECT_IMPORT_DECODER_DECODERCONFIG_H

#include "top_dialect/Import/Gguf/TensorFormats.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <string>
#include <vector>

namespace tessera::top {

inline constexpr int64_t kMostLayers = 1 << 16;

/// The hyperparameters of a decoder. Which tensors a layer has (biases, norms of queries and keys, fused projections)
/// follows from the checkpoint.
struct DecoderConfig {
  int64_t layers = 0, width = 0, heads = 0, keyHeads = 0, headSize = 0;
  int64_t context = 0; ///< number of positions for which the model was trained
  double epsilon = 1e-5;
  bool isRms = true;                  ///< norms divide by the root mean square and do not subtract the mean
  bool isGated = true;                ///< the feed-forward net multiplies by an activated gate
  bool hasGelu = false;               ///< activation: GELU (tanh form), else SiLU
  int64_t rotarySize = 0;             ///< number of rotated elements of a head; 0 = no rotary embedding
  bool rotatesAdjacent = false;       ///< rotates pairs (2i, 2i + 1), else pairs (i, i + half)
  double rotaryBase = 10000;          ///< the angle of pair i at position p is p * base^(-2i / rotarySize)
  double rotaryFactor = 1;            ///< positions are divided by it
  std::vector<double> rotaryDivisors; ///< of the angles of each pair, outside windows; empty = 1
  double rotaryScale = 1;             ///< factor of the sines and cosines
  double embeddingScale = 1;
  double attentionScale = 0;   ///< 0 = 1 / sqrt(headSize)
  int64_t window = 0;          ///< number of positions that windowed layers attend to; 0 = all
  int64_t windowPeriod = 1;    ///< every n-th layer attends to all positions, the others have windows; 1 = all layers
                               ///< have windows
  std::vector<bool> windowed;  ///< which layers have windows, in place of windowPeriod; empty = windowPeriod says it
  double windowRotaryBase = 0; ///< rotary base of windowed layers; 0 = rotaryBase
};

/// A language model as a file or folder stores it.
struct Checkpoint {
  std::string architecture;
  DecoderConfig config;
  llvm::StringMap<gguf::Tensor> tensors;                  ///< by GGUF's names, e.g. "blk.0.attn_q.weight"
  std::vector<std::shared_ptr<llvm::MemoryBuffer>> files; ///< hold the tensors' bytes
  llvm::json::Object language;                            ///< tokenizer and chat template; see docs/language-models.md
};

/// Returns the architectures that decoder templates support, e.g. "llama, qwen2".
std::string listArchitectures();
/// Sets the fields of |config| that follow from the architecture alone. Returns an error that lists the known
/// architectures for others.
llvm::Error setArchitecture(llvm::StringRef architecture, DecoderConfig &config);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IMPORT_DECODER_DECODERCONFIG_H

//===- DecoderConfig.cpp - The hyperparameters of a language model --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Decoder/DecoderConfig.h"

#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace tessera::top {
namespace {

/// The names of GGUF, which converters also give to models with the same network: SmolLM2, Mistral and others are
/// "llama".
struct Architecture {
  llvm::StringLiteral name;
  bool rotatesAdjacent = false, isRms = true, isGated = true, hasGelu = false;
};

constexpr Architecture kArchitectures[] = {
    {"llama", /*rotatesAdjacent=*/true},
    {"qwen2"},
    {"qwen3"},
    {"phi3"},
    {"gemma3", false, true, true, /*hasGelu=*/true},
    {"gpt2", false, /*isRms=*/false, /*isGated=*/false, /*hasGelu=*/true},
};

} // namespace

std::string listArchitectures() {
  return llvm::join(llvm::map_range(kArchitectures, [](const Architecture &each) { return each.name.str(); }), ", ");
}

llvm::Error setArchitecture(llvm::StringRef architecture, DecoderConfig &config) {
  const auto *found =
      llvm::find_if(kArchitectures, [&](const Architecture &each) { return each.name == architecture; });
  if (found == std::end(kArchitectures)) {
    return unsupported("the architecture '" + architecture + "' is not supported; supported are " +
                       listArchitectures());
  }
  config.rotatesAdjacent = found->rotatesAdjacent, config.isRms = found->isRms;
  config.isGated = found->isGated, config.hasGelu = found->hasGelu;
  return llvm::Error::success();
}

} // namespace tessera::top

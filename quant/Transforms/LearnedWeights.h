//===- LearnedWeights.h - NAME_cali.safetensors: weights chosen with data -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "top_dialect/IR/WeightStore.h"
#include <memory>
#include <optional>

namespace tessera::quant {

/// What run_calibration chose for one product by the samples; all parts have the shapes of the op they are for.
struct LearnedWeight {
  llvm::ArrayRef<int8_t> integers; ///< in [-127, 127], in the layout of the op's weight
  llvm::ArrayRef<float> scales;    ///< one per output channel
  llvm::ArrayRef<float> bias;      ///< to be added to the op's bias, one per output channel; may be empty
};

/// The same for ops that compute in float and have integers of 8 or 4 bits as weights alone.
struct LearnedGroups {
  llvm::ArrayRef<int8_t> integers; ///< in the layout of the op's weight
  llvm::ArrayRef<float> scales;    ///< [output channels, groups]
};

/// The file that a calibration table names, by the tensor that the op makes: "TENSOR:weight" i8, "TENSOR:scale" f32 and
/// "TENSOR:bias" f32, of it "TENSOR:input_bias" f32 for weights that are not rounded; "TENSOR:factors" f32
/// (Equalize.h); for weights alone "TENSOR:weight8" or "TENSOR:weight4" i8 and "TENSOR:scale8" or "TENSOR:scale4",
/// "TENSOR:weight4wide" and "TENSOR:scale4wide" where W4 is to keep 8 bits.
class LearnedWeights {
public:
  /// Maps the file and checks its hash (SHA-256).
  static llvm::Expected<LearnedWeights> load(mlir::MLIRContext *context, llvm::StringRef path, llvm::StringRef hash);

  /// Nothing where the file has none for the tensor. Fails where what it has does not fit the op's weight.
  llvm::Expected<std::optional<LearnedWeight>> find(llvm::StringRef tensor, mlir::RankedTensorType weight,
                                                    int64_t channels) const;

  /// What is to be added to the bias of an op whose weights have two terms (WeightTerms.h), for what rounding its input
  /// does on average; may be empty.
  llvm::Expected<llvm::ArrayRef<float>> inputBias(llvm::StringRef tensor, int64_t channels) const;

  /// As find, for weights alone in `bits` bits, `groups` of them with a scale of their own in each channel.
  llvm::Expected<std::optional<LearnedGroups>> findGroups(llvm::StringRef tensor, mlir::RankedTensorType weight,
                                                          int64_t channels, int64_t groups, int bits) const;

  /// Of an op that is to keep 8 bits, a scale a channel, where the others have 4.
  llvm::Expected<std::optional<LearnedGroups>> findWide(llvm::StringRef tensor, mlir::RankedTensorType weight,
                                                        int64_t channels) const;

  /// What the channels of a tensor are to be divided by; empty where the file has nothing for it.
  llvm::Expected<llvm::ArrayRef<float>> factors(llvm::StringRef tensor) const;

private:
  /// Under the keys "TENSOR:weight<suffix>" and "TENSOR:scale<suffix>".
  llvm::Expected<std::optional<LearnedGroups>> groupsAt(llvm::StringRef suffix, llvm::StringRef tensor,
                                                        mlir::RankedTensorType weight, int64_t channels, int64_t groups,
                                                        int bits) const;

  std::string path;
  std::shared_ptr<top::WeightStore> store;
};

} // namespace tessera::quant

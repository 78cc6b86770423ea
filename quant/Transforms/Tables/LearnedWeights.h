//===- LearnedWeights.h - NAME_cali.safetensors: weights chosen with data --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_TABLES_LEARNEDWEIGHTS_H
#define TESSERA_QUANT_TRANSFORMS_TABLES_LEARNEDWEIGHTS_H

#include "top_dialect/IR/WeightStore.h"
#include <memory>
#include <optional>

namespace tessera::quant {

/// The weights that run_calibration chose for one convolution or matmul with the samples.
struct LearnedWeight {
  llvm::ArrayRef<int8_t> integers; ///< in [-127, 127], in the layout of the op's weight
  llvm::ArrayRef<float> scales;    ///< one per output channel
  llvm::ArrayRef<float> bias;      ///< added to the op's bias, one value per output channel; may be empty
};

/// Learned weights of ops that compute in float and have integer weights of 8 or 4 bits.
struct LearnedGroups {
  llvm::ArrayRef<int8_t> integers; ///< in the layout of the op's weight
  llvm::ArrayRef<float> scales;    ///< [output channels, groups]
};

/// The weight file of a calibration table. Its keys begin with the name of the tensor that the op computes:
/// "TENSOR:weight" (i8), "TENSOR:scale" and "TENSOR:bias" (f32) for int8 ops; "TENSOR:input_bias" (f32), the part of
/// the bias that weights with two terms need; "TENSOR:factors" (f32, see Equalize.h); "TENSOR:weight8" or
/// "TENSOR:weight4" (i8) and "TENSOR:scale8" or "TENSOR:scale4" for integer weights of float ops; "TENSOR:weight4wide"
/// and "TENSOR:scale4wide" for ops that keep 8 bits in W4.
class LearnedWeights {
public:
  /// Maps the file and checks its SHA-256.
  static llvm::Expected<LearnedWeights> load(mlir::MLIRContext *context, llvm::StringRef path, llvm::StringRef hash);

  /// Returns nothing if the file does not contain the tensor. Fails if the content does not match the op's weight.
  llvm::Expected<std::optional<LearnedWeight>> find(llvm::StringRef tensor, mlir::RankedTensorType weight,
                                                    int64_t channels) const;

  /// Returns the values to add to the bias of an op whose weights have two terms (ResidualWeights.h), which compensate
  /// the mean error of rounding its input; may be empty.
  llvm::Expected<llvm::ArrayRef<float>> inputBias(llvm::StringRef tensor, int64_t channels) const;

  /// Like find, for integer weights of `bits` bits in float ops, with `groups` scales per channel.
  llvm::Expected<std::optional<LearnedGroups>> findGroups(llvm::StringRef tensor, mlir::RankedTensorType weight,
                                                          int64_t channels, int64_t groups, int bits) const;

  /// Returns the weights of an op that keeps 8 bits, with one scale per channel, in a W4 model.
  llvm::Expected<std::optional<LearnedGroups>> findWide(llvm::StringRef tensor, mlir::RankedTensorType weight,
                                                        int64_t channels) const;

  /// Returns the factors to divide the tensor's channels by; empty if the file does not contain any.
  llvm::Expected<llvm::ArrayRef<float>> factors(llvm::StringRef tensor) const;

private:
  /// Looks up "TENSOR:weight<suffix>" and "TENSOR:scale<suffix>".
  llvm::Expected<std::optional<LearnedGroups>> groupsAt(llvm::StringRef suffix, llvm::StringRef tensor,
                                                        mlir::RankedTensorType weight, int64_t channels, int64_t groups,
                                                        int bits) const;

  std::string path;
  std::shared_ptr<top::WeightStore> store;
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_TABLES_LEARNEDWEIGHTS_H

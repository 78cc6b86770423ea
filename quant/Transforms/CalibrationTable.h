//===- CalibrationTable.h - NAME_cali.json: ranges of activations -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::quant {

/// What of a tensor's values 8 bits keep: real = scale * (q - zeroPoint), q in [-128, 127].
struct Range {
  float threshold = 0;          ///< the magnitude that a symmetric range keeps
  float min = 0, max = 0;       ///< what an asymmetric range keeps
  std::optional<float> largest; ///< magnitude of all values seen, clipped or not; absent in tables that do not say
  bool symmetric = true;
  float scale = 1;
  int8_t zeroPoint = 0;
  bool isWide = false;         ///< the table wants 16 bits
  bool isFloat = false;        ///< the table wants f32: the tensor has no integer form, as if it had no line
  int64_t weightTerms = 1;     ///< i8 constants that the weights of the product that makes it are the sum of: 1 or 2
  std::optional<double> error; ///< of the outputs, relative, with this tensor alone in 8 bits; where it was measured

  /// Sets scale and zero point to what follows from the range, as run_calibration does.
  void derive();
  /// What 16 bits keep: there are enough of them for outliers.
  float magnitude() const { return largest.value_or(std::max({threshold, -min, max})); }
  /// The smallest range that holds both; equal ranges stay as they are, to the bit.
  static Range merged(const Range &a, const Range &b);
};

/// The table that run_calibration makes; python_tools/tessera/calibration/table.py is where it is written.
class CalibrationTable {
public:
  CalibrationTable() = default;
  /// Ranges that were not measured: of no model, for questions that no value answers.
  explicit CalibrationTable(llvm::StringMap<Range> ranges) : ranges(std::move(ranges)) {}

  /// Reads and checks a table. The error names file, tensor, value and what is allowed.
  static llvm::Expected<CalibrationTable> load(llvm::StringRef path);

  /// Null where the table has no line for the tensor.
  const Range *find(llvm::StringRef tensor) const;
  const llvm::StringMap<Range> &tensors() const { return ranges; }
  /// Of the Top module that was calibrated (top::hashModule).
  const std::string &modelHash() const { return hash; }
  const std::string &modelName() const { return model; }
  /// Of its network (top::networkOf); empty in tables that do not say.
  const std::string &network() const { return networkHash; }
  /// The table is used for its network with inputs of other shapes, where some of its tensors may not be.
  bool isOfOtherShapes = false;
  const std::string &path() const { return file; }
  /// Of weights that were chosen with the samples: file (the table's name, .safetensors) and SHA-256; empty where there
  /// are none.
  const std::string &weightsPath() const { return weights; }
  const std::string &weightsHash() const { return weightsDigest; }

private:
  std::string file, model, hash, networkHash, weights, weightsDigest;
  llvm::StringMap<Range> ranges;
};

} // namespace tessera::quant

//===- CalibrationTable.h - NAME_cali.json: ranges of activations -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_TABLES_CALIBRATIONTABLE_H
#define TESSERA_QUANT_TRANSFORMS_TABLES_CALIBRATIONTABLE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::quant {

/// The range of a tensor's values that 8 bits represent: real = scale * (q - zeroPoint), q in [-128, 127].
struct Range {
  float threshold = 0;          ///< largest magnitude of a symmetric range
  float min = 0, max = 0;       ///< bounds of an asymmetric range
  std::optional<float> largest; ///< largest magnitude observed, clipped or not; absent in older tables
  bool symmetric = true;
  float scale = 1;
  int8_t zeroPoint = 0;
  bool isWide = false;         ///< the table requests 16 bits
  bool isFloat = false;        ///< the table requests f32: treat the tensor as if it had no entry
  int64_t weightTerms = 1;     ///< number of i8 constants (1 or 2) whose sum is the weight of the op that computes the
                               ///< tensor
  std::optional<double> error; ///< relative error of the outputs with only this tensor in 8 bits, if measured

  /// Derives scale and zero point from the range, as run_calibration does.
  void derive();
  /// Returns the largest magnitude that 16 bits represent. 16 bits have enough levels to include outliers.
  float magnitude() const { return largest.value_or(std::max({threshold, -min, max})); }
  /// Returns the smallest range that contains both. Equal ranges are returned unchanged, bit for bit.
  static Range merged(const Range &a, const Range &b);
};

/// The table that run_calibration writes (see python_tools/tessera/calibration/table.py).
class CalibrationTable {
public:
  CalibrationTable() = default;
  /// Creates a table of placeholder ranges that do not belong to a model, for queries that do not depend on the ranges.
  explicit CalibrationTable(llvm::StringMap<Range> ranges) : ranges(std::move(ranges)) {}

  /// Reads and checks a table. Errors name the file, the tensor, the value and the allowed values.
  static llvm::Expected<CalibrationTable> load(llvm::StringRef path);

  /// Returns null if the table does not contain the tensor.
  const Range *find(llvm::StringRef tensor) const;
  const llvm::StringMap<Range> &tensors() const { return ranges; }
  /// Returns the hash of the Top module that was calibrated (top::hashModule).
  const std::string &modelHash() const { return hash; }
  const std::string &modelName() const { return model; }
  /// Returns the hash of its network (top::networkOf); empty in older tables.
  const std::string &network() const { return networkHash; }
  /// The table is applied to the same network with other input shapes, in which some of its tensors may not exist.
  bool isOfOtherShapes = false;
  const std::string &path() const { return file; }
  /// Path (the table's name with .safetensors) and SHA-256 of the weights that were chosen with samples; empty if there
  /// are none.
  const std::string &weightsPath() const { return weights; }
  const std::string &weightsHash() const { return weightsDigest; }
  /// The lines say which tensors get 16 bits or f32, so the quantiser widens none for their measured errors.
  bool decidesTypes = false;

private:
  std::string file, model, hash, networkHash, weights, weightsDigest;
  llvm::StringMap<Range> ranges;
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_TABLES_CALIBRATIONTABLE_H

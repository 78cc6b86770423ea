// SPDX-License-Identifier: Apache-2.0
//===- chip.h - The description of an NPU chip -----------------------------===//
//
// A chip is described by a JSON file (device_dialect/chips/NAME.json); every model compiled for the chip contains the
// complete description. The compiler plans with it and the simulator follows it. chip.inc lists every field with its
// range and meaning.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NPU_CHIP_H
#define BMODEL_NPU_CHIP_H

#include "bmodel/chip_json.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bmodel::npu {

/// One chip. Sizes are in bytes, times in cycles of the chip's single clock, and rates per lane and cycle unless the
/// field's meaning in chip.inc says otherwise.
struct Chip {
  std::string name;
  std::string description;
#define NPU_CHIP_NUMBER(path, type, member, low, high, validity, meaning) type member = {};
#define NPU_CHIP_WORDS(path, member, allowed, meaning) std::vector<std::string> member;
#define NPU_CHIP_WORD(path, member, allowed, meaning) std::string member;
#include "bmodel/npu/chip.inc"
  /// Pairs of a field's path and the source of its value.
  std::vector<std::pair<std::string, std::string>> sources;

  /// Int8 multiply-accumulates of one lane in one cycle.
  uint32_t macsPerLane() const { return reduction * pixels; }
  uint64_t localBytes() const { return uint64_t(lanes) * laneBytes; }
  uint32_t bankBytes() const { return laneBytes / banks; }
  /// Returns true if `types` contains |type|: "int8", "int16", "bf16", "f16" or "f32".
  bool computes(std::string_view type) const;
  double secondsOf(double cycles) const { return cycles / (clockGhz * 1e9); }
  /// Bytes that the DDR moves in one cycle during long bursts.
  double ddrBytesPerCycle() const { return ddrGbps * ddrEfficiency / clockGhz; }
};

/// Parses a chip description. Returns false and sets |error| ("chip.json: matrix_unit.pixels is 0, allowed are 1 to
/// 64") if the description is incomplete or inconsistent, or contains an unknown field. `where` is the prefix of the
/// message.
bool parseChip(std::string_view json, const std::string &where, Chip &chip, std::string &error);

/// Returns the JSON description of a chip; parseChip reads it back as an equal chip.
std::string describe(const Chip &chip);

/// Applies an assignment, e.g. "matrix_unit.pixels=8", to the description |json|, for what-if questions.
bool setField(std::string &json, std::string_view assignment, std::string &error);

/// Returns 32 hex digits computed from the fields that decide whether a program compiled for one chip runs on another
/// with the same result. Speeds are not included.
std::string fingerprint(const Chip &chip);

using FieldInfo = ChipField;
const std::vector<FieldInfo> &chipFields();
/// Returns the values of a chip as text, in the order of chipFields().
std::vector<std::string> valuesOf(const Chip &chip);

/// Returns the JSON schema of a chip description, generated from chip.inc.
std::string chipSchema();

} // namespace bmodel::npu

#endif // BMODEL_NPU_CHIP_H

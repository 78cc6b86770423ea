// SPDX-License-Identifier: Apache-2.0
//===- chip.h - What one NPU chip is ---------------------------------------===//
//
// The description stands in a JSON file (device_dialect/chips/NAME.json) and, whole, in every model made for the chip.
// The compiler plans by it, the simulator behaves by it; chip.inc lists every field with its range and meaning.
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

/// One chip. Sizes in bytes, times in cycles of the chip's one clock, rates per lane and cycle where the name ends so.
struct Chip {
  std::string name;
  std::string description;
#define NPU_CHIP_NUMBER(path, type, member, low, high, validity, meaning) type member = {};
#define NPU_CHIP_WORDS(path, member, allowed, meaning) std::vector<std::string> member;
#define NPU_CHIP_WORD(path, member, allowed, meaning) std::string member;
#include "bmodel/npu/chip.inc"
  /// Field path -> where its value comes from.
  std::vector<std::pair<std::string, std::string>> sources;

  /// Multiplications of one lane in one cycle, int8.
  uint32_t macsPerLane() const { return reduction * pixels; }
  uint64_t localBytes() const { return uint64_t(lanes) * laneBytes; }
  uint32_t bankBytes() const { return laneBytes / banks; }
  /// Whether `types` names it: "int8", "int16", "bf16", "f16", "f32".
  bool computes(std::string_view type) const;
  double secondsOf(double cycles) const { return cycles / (clockGhz * 1e9); }
  /// Bytes that the DDR moves in one cycle at its best.
  double ddrBytesPerCycle() const { return ddrGbps * ddrEfficiency / clockGhz; }
};

/// Reads a description. False and a message ("chip.json: matrix_unit.pixels is 0, allowed are 1 to 64") where it is not
/// a complete and consistent one; an unknown field is an error. `where` begins the message.
bool parseChip(std::string_view json, const std::string &where, Chip &chip, std::string &error);

/// The description of a chip: what parseChip reads back as the same chip.
std::string describe(const Chip &chip);

/// Applies "matrix_unit.pixels=8" to a description, for what-if questions: the text of the changed description.
bool setField(std::string &json, std::string_view assignment, std::string &error);

/// 32 hex digits over the fields that decide whether a program made for one chip runs on another and gives the same
/// result; speeds are not among them.
std::string fingerprint(const Chip &chip);

using FieldInfo = ChipField;
const std::vector<FieldInfo> &chipFields();
/// A chip's values as text, in the order of chipFields().
std::vector<std::string> valuesOf(const Chip &chip);

/// The JSON schema of a description, made from chip.inc.
std::string chipSchema();

} // namespace bmodel::npu

#endif // BMODEL_NPU_CHIP_H

// SPDX-License-Identifier: Apache-2.0
//===- Chip.cpp - Reader of NPU chip descriptions --------------------------===//
#include "bmodel/npu/chip.h"

#include "../ChipText.h"

#define JSON_NOEXCEPTION
#include "bmodel/hash.h"
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>

namespace bmodel::npu {
namespace {

using Json = nlohmann::ordered_json;

/// Returns a violated constraint between several fields, or "".
std::string contradiction(const Chip &chip) {
  if (chip.laneBytes % (chip.banks * chip.portBytes)) {
    return "local_memory.bytes_per_lane is " + std::to_string(chip.laneBytes) +
           ", not a multiple of banks * port_bytes = " + std::to_string(chip.banks * chip.portBytes);
  }
  if (chip.vectorBytes % 4) {
    return "vector_unit.bytes is " + std::to_string(chip.vectorBytes) + ", not a multiple of 4 (one f32)";
  }
  if (chip.macsPerLane() % chip.depthwiseDivisor) {
    return "matrix_unit.depthwise_divisor is " + std::to_string(chip.depthwiseDivisor) +
           ", which does not divide reduction * pixels = " + std::to_string(chip.macsPerLane());
  }
  return "";
}

/// Returns the words in the order of |allowed|, separated by commas.
std::string inOrder(const std::vector<std::string> &words, const char *allowed) {
  std::string text;
  for (const std::string &word : split(allowed, ',')) {
    text += std::count(words.begin(), words.end(), word) ? (text.empty() ? "" : ",") + word : "";
  }
  return text;
}

} // namespace

bool Chip::computes(std::string_view type) const { return std::count(types.begin(), types.end(), type) != 0; }

const std::vector<FieldInfo> &chipFields() {
  static const std::vector<FieldInfo> fields = {
#define NPU_CHIP_NUMBER(path, type, member, low, high, validity, meaning)                                              \
  {path, std::is_integral_v<type> ? "integer" : "number", double(low), double(high), "", validity, meaning},
#define NPU_CHIP_WORDS(path, member, allowed, meaning) {path, "words", 0, 0, allowed, true, meaning},
#define NPU_CHIP_WORD(path, member, allowed, meaning) {path, "word", 0, 0, allowed, true, meaning},
#include "bmodel/npu/chip.inc"
  };
  return fields;
}

bool parseChip(std::string_view json, const std::string &where, Chip &chip, std::string &error) {
  chip = {};
  ChipReader reader(json, where, chipFields());
  std::string family;
  reader.word("name", chip.name, nullptr);
  reader.word("family", family, "npu");
  reader.word("description", chip.description, nullptr);
#define NPU_CHIP_NUMBER(path, type, member, low, high, validity, meaning) reader.number(path, chip.member, low, high);
#define NPU_CHIP_WORDS(path, member, allowed, meaning) reader.words(path, chip.member, allowed);
#define NPU_CHIP_WORD(path, member, allowed, meaning) reader.word(path, chip.member, allowed);
#include "bmodel/npu/chip.inc"
  reader.sources(chip.sources);
  error = reader.finish();
  if (error.empty() && !contradiction(chip).empty()) {
    error = where + ": " + contradiction(chip);
  }
  return error.empty();
}

std::string describe(const Chip &chip) {
  Json root = {{"name", chip.name}, {"family", "npu"}, {"description", chip.description}, {"sources", Json::object()}};
  [[maybe_unused]] auto set = [&](std::string path, const auto &value) {
    std::replace(path.begin(), path.end(), '.', '/');
    root[Json::json_pointer("/" + path)] = value;
  };
#define NPU_CHIP_NUMBER(path, type, member, low, high, validity, meaning) set(path, chip.member);
#define NPU_CHIP_WORDS(path, member, allowed, meaning) set(path, chip.member);
#define NPU_CHIP_WORD(path, member, allowed, meaning) set(path, chip.member);
#include "bmodel/npu/chip.inc"
  for (const auto &[field, source] : chip.sources) {
    root["sources"][field] = source;
  }
  return root.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool setField(std::string &json, std::string_view assignment, std::string &error) {
  return setChipField(json, assignment, chipFields(), error);
}

std::vector<std::string> valuesOf(const Chip &chip) {
  std::vector<std::string> values;
#define NPU_CHIP_NUMBER(path, type, member, low, high, validity, meaning) values.push_back(number(double(chip.member)));
#define NPU_CHIP_WORDS(path, member, allowed, meaning) values.push_back(inOrder(chip.member, allowed));
#define NPU_CHIP_WORD(path, member, allowed, meaning) values.push_back(chip.member);
#include "bmodel/npu/chip.inc"
  return values;
}

std::string fingerprint(const Chip &chip) {
  std::string text;
  std::vector<std::string> values = valuesOf(chip);
  for (size_t i = 0; i < values.size(); ++i) {
    const FieldInfo &field = chipFields()[i];
    text += field.validity ? std::string(field.path) + "=" + values[i] + ";" : "";
  }
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hashBytes(text.data(), text.size())),
                static_cast<unsigned long long>(hashBytes(text.data(), text.size(), 1)));
  return hex;
}

} // namespace bmodel::npu

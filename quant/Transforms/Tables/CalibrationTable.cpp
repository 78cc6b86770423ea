//===- CalibrationTable.cpp - NAME_cali.json: ranges of activations --------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Tables/CalibrationTable.h"

#include "quant/Transforms/Tables/TableFile.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace tessera::quant {
namespace {
constexpr double kSpanOfZeros = 1e-8;   // the value that run_calibration uses, too
constexpr double kSmallestSpan = 1e-34; // keeps scales in the range of normal floats
constexpr double kTolerance = 1e-3;     // allowed relative difference between an edited scale and the one derived from
                                        // the range

/// Reads one entry of "tensors".
Range readRange(ObjectReader &line) {
  Range range;
  range.threshold = static_cast<float>(line.number("threshold"));
  range.min = static_cast<float>(line.number("min"));
  range.max = static_cast<float>(line.number("max"));
  range.symmetric = line.flag("symmetric");
  std::string dtype = line.text("dtype");
  line.text("method");
  std::optional<double> scale = line.optionalNumber("scale");
  range.error = line.optionalNumber("error");
  if (std::optional<double> largest = line.optionalNumber("largest")) {
    range.largest = static_cast<float>(*largest);
  }
  std::optional<int64_t> zeroPoint = line.optionalInteger("zero_point", -128, 127);
  range.weightTerms = line.optionalInteger("weight_terms", 1, 2).value_or(1);
  if (line.failed()) {
    return range;
  }
  if (range.threshold <= 0) {
    line.fail("threshold " + Twine(std::to_string(range.threshold)) + " is not positive");
  }
  if (range.min > range.max) {
    line.fail("min " + Twine(std::to_string(range.min)) + " is above max " + std::to_string(range.max));
  }
  if (range.error && *range.error < 0) {
    line.fail("error " + std::to_string(*range.error) + " is negative");
  }
  if (range.largest && *range.largest < 0) {
    line.fail("largest " + std::to_string(*range.largest) + " is negative");
  }
  if (dtype != "int8" && dtype != "int16" && dtype != "float32") {
    line.fail("dtype '" + dtype + "'; allowed: int8, int16, float32");
  }
  range.isWide = dtype == "int16";
  range.isFloat = dtype == "float32";
  range.derive();
  static constexpr StringLiteral kAdvice =
      "; if you change threshold, min or max, delete scale and zero_point, which are derived from them";
  if (scale && !(std::abs(*scale - range.scale) <= kTolerance * range.scale)) {
    line.fail("scale " + std::to_string(*scale) + " is not " +
              (range.symmetric ? "threshold / 127" : "(max - min) / 255") + " = " + std::to_string(range.scale) +
              kAdvice);
  }
  if (zeroPoint && std::abs(*zeroPoint - range.zeroPoint) > (range.symmetric ? 0 : 1)) {
    line.fail("zero_point " + Twine(*zeroPoint) + "; the range gives " + Twine(int(range.zeroPoint)) + "" + kAdvice);
  }
  range.scale = scale ? static_cast<float>(*scale) : range.scale;
  range.zeroPoint = static_cast<int8_t>(zeroPoint.value_or(range.zeroPoint));
  return range;
}
} // namespace

void Range::derive() {
  if (symmetric) {
    scale = static_cast<float>(double(threshold) / 127);
    zeroPoint = 0;
    return;
  }
  const double low = std::min(min, 0.0f), high = std::max(max, 0.0f);
  const double span = high > low ? std::max(high - low, kSmallestSpan) : kSpanOfZeros;
  scale = static_cast<float>(span / 255);
  zeroPoint = static_cast<int8_t>(std::clamp(std::nearbyint(-128 - low / scale), -128.0, 127.0));
}

Range Range::merged(const Range &a, const Range &b) {
  Range both = a;
  both.largest = std::max(a.magnitude(), b.magnitude());
  if (a.scale == b.scale && a.zeroPoint == b.zeroPoint) {
    return both;
  }
  both.threshold = std::max(a.threshold, b.threshold);
  both.min = std::min(a.min, b.min);
  both.max = std::max(a.max, b.max);
  both.symmetric = a.symmetric && b.symmetric;
  both.derive();
  return both;
}

Expected<CalibrationTable> CalibrationTable::load(StringRef path) {
  Expected<json::Object> document =
      readTableFile(path, "tessera-calibration", 1, "make a new one with run_calibration");
  if (!document) {
    return document.takeError();
  }
  CalibrationTable table;
  table.file = path.str();
  ObjectReader head(*document, "'" + path.str() + "'");
  for (StringRef key : {"format", "version", "samples", "sample_digests", "tensors_hash", "max_error", "output_error",
                        "same_answers"}) {
    head.ignore(key);
  }
  for (StringRef key : {"method", "sample_hash", "tool"}) {
    head.text(key);
  }
  table.model = head.text("model");
  table.hash = head.text("model_hash");
  table.networkHash = head.optionalText("network").value_or("");
  table.weightsDigest = head.optionalText("weights_hash").value_or("");
  if (!table.weightsDigest.empty()) {
    SmallString<128> beside(path);
    sys::path::replace_extension(beside, "safetensors");
    table.weights = beside.str().str();
  }
  table.decidesTypes = head.optionalFlag("decides_types").value_or(false);
  const json::Array *lines = head.array("tensors");
  if (Error error = head.finish()) {
    return error;
  }
  for (auto [i, value] : enumerate(*lines)) {
    const json::Object *object = value.getAsObject();
    std::optional<StringRef> name = object ? object->getString("name") : std::nullopt;
    if (!name) {
      return createStringError("'" + path + "': entry " + Twine(i) + " of \"tensors\" has no name");
    }
    ObjectReader line(*object, "'" + path.str() + "': tensor '" + name->str() + "'");
    line.ignore("name");
    Range range = readRange(line);
    if (!table.ranges.try_emplace(*name, range).second) {
      line.fail("is listed twice");
    }
    if (Error error = line.finish()) {
      return error;
    }
  }
  return table;
}

const Range *CalibrationTable::find(StringRef tensor) const {
  auto it = ranges.find(tensor);
  return it == ranges.end() ? nullptr : &it->second;
}

} // namespace tessera::quant

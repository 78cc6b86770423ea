//===- QuantizeTable.cpp - NAME_qtable.json: precision per op --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Tables/QuantizeTable.h"

#include "quant/Transforms/Tables/TableFile.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tessera::quant {

namespace {

struct KnownPrecision {
  StringLiteral name;
  Precision precision;
  Widths widths;
};

constexpr KnownPrecision kPrecisions[] = {
    {"F32", Precision::F32, {32, 32}},    {"INT8", Precision::INT8, {8, 8}},
    {"INT16", Precision::INT16, {16, 8}}, {"BF16", Precision::BF16, {16, 16}},
    {"F16", Precision::F16, {16, 16}},    {"W8", Precision::W8, {32, 8}},
    {"W4", Precision::W4, {32, 4}},       {"W8A8", Precision::W8A8, {32, 8}},
    {"W4A8", Precision::W4A8, {32, 4}},   {"DYNAMIC_INT8", Precision::DYNAMIC_INT8, {32, 8}}};

const KnownPrecision &known(Precision precision) {
  return *find_if(kPrecisions, [&](const KnownPrecision &entry) { return entry.precision == precision; });
}

} // namespace

std::optional<Precision> parsePrecision(StringRef name) {
  for (const KnownPrecision &entry : kPrecisions) {
    if (name == entry.name) {
      return entry.precision;
    }
  }
  return std::nullopt;
}

std::string precisionNames() {
  return join(map_range(kPrecisions, [](const KnownPrecision &entry) { return entry.name; }), ", ");
}

StringRef toString(Precision precision) { return known(precision).name; }

Widths widthsOf(Precision precision) { return known(precision).widths; }

Expected<QuantizeTable> QuantizeTable::load(StringRef path) {
  Expected<json::Object> document =
      readTableFile(path, "tessera-quantize-table", 1,
                    "a quantise table is {\"format\": \"tessera-quantize-table\", \"version\": 1, "
                    "\"ops\": [{\"name\": ..., \"type\": \"F32\"}]}");
  if (!document) {
    return document.takeError();
  }
  QuantizeTable table;
  table.path = path.str();
  ObjectReader head(*document, "'" + path.str() + "'");
  for (StringRef key : {"format", "version", "model", "tool"}) {
    head.ignore(key);
  }
  const json::Array *lines = head.array("ops");
  if (Error error = head.finish()) {
    return error;
  }
  StringSet<> seen;
  for (auto [i, value] : enumerate(*lines)) {
    const json::Object *object = value.getAsObject();
    std::optional<StringRef> name = object ? object->getString("name") : std::nullopt;
    if (!name) {
      return createStringError("'" + path + "': entry " + Twine(i) + " of \"ops\" has no name");
    }
    ObjectReader line(*object, "'" + path.str() + "': op '" + name->str() + "'");
    line.ignore("name");
    std::string type = line.text("type");
    std::optional<Precision> precision = parsePrecision(type);
    if (!line.failed() && !precision) {
      line.fail("type '" + type + "'; allowed: " + precisionNames());
    }
    table.choices.push_back(
        {name->str(), precision.value_or(Precision::F32), line.optionalText("reason").value_or("")});
    if (!seen.insert(*name).second) {
      line.fail("is listed twice");
    }
    if (Error error = line.finish()) {
      return error;
    }
  }
  return table;
}

} // namespace tessera::quant

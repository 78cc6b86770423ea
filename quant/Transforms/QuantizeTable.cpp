//===- QuantizeTable.cpp - NAME_qtable.json: precision per op --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/QuantizeTable.h"

#include "quant/Transforms/TableFile.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace tessera::quant {

std::optional<Precision> parsePrecision(StringRef name) {
  return StringSwitch<std::optional<Precision>>(name)
      .Case("F32", Precision::F32)
      .Case("INT8", Precision::INT8)
      .Case("INT16", Precision::INT16)
      .Default(std::nullopt);
}

StringRef toString(Precision precision) {
  switch (precision) {
  case Precision::F32:
    return "F32";
  case Precision::INT8:
    return "INT8";
  case Precision::INT16:
    return "INT16";
  }
  return "";
}

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
      line.fail("type '" + type + "'; allowed: F32, INT8, INT16");
    }
    table.choices.push_back(
        {name->str(), precision.value_or(Precision::F32), line.optionalText("reason").value_or("")});
    if (!seen.insert(*name).second) {
      line.fail("is there twice");
    }
    if (Error error = line.finish()) {
      return error;
    }
  }
  return table;
}

} // namespace tessera::quant

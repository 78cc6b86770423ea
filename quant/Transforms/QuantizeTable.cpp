//===- QuantizeTable.cpp - NAME_qtable.json: precision per op --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/QuantizeTable.h"

#include "quant/Transforms/TableFile.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace tessera::quant {

StringRef toString(Precision precision) { return precision == Precision::INT8 ? "INT8" : "F32"; }

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
    if (!line.failed() && type != "F32" && type != "INT8") {
      line.fail("type '" + type + "'; allowed: F32, INT8");
    }
    table.choices.push_back(
        {name->str(), type == "INT8" ? Precision::INT8 : Precision::F32, line.optionalText("reason").value_or("")});
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

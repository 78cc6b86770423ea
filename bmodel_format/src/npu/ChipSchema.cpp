// SPDX-License-Identifier: Apache-2.0
//===- ChipSchema.cpp - The JSON schema of a chip description ---------------===//
#include "bmodel/npu/chip.h"

#define JSON_NOEXCEPTION
#include "nlohmann/json.hpp"

namespace bmodel::npu {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the schema of one field.
Json leafOf(const FieldInfo &field) {
  std::string type = field.type;
  Json words = Json::array();
  std::string_view left = field.allowed;
  while (!left.empty()) {
    size_t comma = std::min(left.find(','), left.size());
    words.push_back(std::string(left.substr(0, comma)));
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  Json leaf = type == "words"  ? Json{{"type", "array"}, {"uniqueItems", true}, {"items", {{"enum", words}}}}
              : type == "word" ? Json{{"enum", words}}
                               : Json{{"type", type}, {"minimum", field.low}, {"maximum", field.high}};
  leaf["description"] = field.meaning;
  return leaf;
}

/// Returns the schema of an object that allows only the listed properties.
Json emptyObject() {
  return {
      {"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}, {"required", Json::array()}};
}

void require(Json &object, const std::string &key, Json value) {
  object["properties"][key] = std::move(value);
  object["required"].push_back(key);
}

/// Adds the leaf at a path such as "a.b.c", creating the objects a and b if needed.
void addAt(Json &object, const std::string &path, Json leaf) {
  size_t dot = path.find('.');
  if (dot == std::string::npos) {
    require(object, path, std::move(leaf));
    return;
  }
  std::string key = path.substr(0, dot);
  if (!object["properties"].contains(key)) {
    require(object, key, emptyObject());
  }
  addAt(object["properties"][key], path.substr(dot + 1), std::move(leaf));
}

} // namespace

std::string chipSchema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "A Tessera NPU"}};
  schema.update(emptyObject());
  require(schema, "name", {{"type", "string"}});
  require(schema, "family", {{"const", "npu"}});
  require(schema, "description", {{"type", "string"}});
  Json sources = emptyObject();
  for (const FieldInfo &field : chipFields()) {
    addAt(schema, field.path, leafOf(field));
    require(sources, field.path, {{"type", "string"}});
  }
  sources["description"] = "where the value of each field comes from";
  require(schema, "sources", std::move(sources));
  return schema.dump(2) + "\n";
}

} // namespace bmodel::npu

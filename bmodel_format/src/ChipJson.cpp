// SPDX-License-Identifier: Apache-2.0
//===- ChipJson.cpp - Reader of chip descriptions --------------------------===//
#include "bmodel/chip_json.h"

#include "ChipText.h"

#define JSON_NOEXCEPTION
#include "nlohmann/json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bmodel {
namespace {

using Json = nlohmann::ordered_json;

/// Maximum nesting of objects and lists; a chip description has at most 4 levels. Bounds the recursion of the functions
/// that traverse a description.
constexpr int kDeepest = 32;

/// Returns a "discarded" value if the text is not JSON or is nested too deep.
Json parseJson(std::string_view text) {
  bool isTooDeep = false;
  const Json::parser_callback_t check = [&](int depth, Json::parse_event_t, Json &) {
    isTooDeep |= depth > kDeepest;
    return !isTooDeep;
  };
  Json root = Json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  return isTooDeep ? Json(Json::value_t::discarded) : root;
}

/// Returns the value at a path such as "a.b.c", or null.
Json *at(Json &root, std::string_view path) {
  Json *node = &root;
  for (const std::string &part : split(path, '.')) {
    if (!node->is_object() || !node->contains(part)) {
      return nullptr;
    }
    node = &(*node)[part];
  }
  return node;
}

/// Appends the paths of all values that are not objects; `sources` counts as one value.
void listPaths(const Json &node, const std::string &path, std::vector<std::string> &paths) {
  for (const auto &[key, value] : node.items()) {
    std::string whole = path.empty() ? key : path + "." + key;
    if (value.is_object() && !value.empty() && whole != "sources") {
      listPaths(value, whole, paths);
    } else {
      paths.push_back(whole);
    }
  }
}

/// Parses a text only to find the position of its first error.
struct SyntaxCheck : nlohmann::json_sax<Json> {
  size_t position = 0; ///< bytes read
  std::string token;   ///< the last token, "" at the end of the text

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t &) override { return true; }
  bool string(string_t &) override { return true; }
  bool binary(binary_t &) override { return true; }
  bool start_object(size_t) override { return true; }
  bool key(string_t &) override { return true; }
  bool end_object() override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t at, const std::string &last, const nlohmann::detail::exception &) override {
    position = at > 0 ? at - 1 : 0; // the offending byte itself; it may end a line and must not count as part of the
                                    // next one
    token = last.substr(0, 32);
    return false;
  }
};

bool isWhole(const Json &value) {
  return value.is_number_integer() || value.get<double>() == std::floor(value.get<double>());
}

bool allows(const char *allowed, const std::string &word) {
  std::vector<std::string> all = split(allowed, ',');
  return std::count(all.begin(), all.end(), word) != 0;
}

/// Returns what is wrong with a text that is not a JSON object.
std::string faultOf(std::string_view json, const Json &root) {
  if (!root.is_discarded()) {
    return root.is_object() ? "" : ": is not a JSON object";
  }
  SyntaxCheck check;
  Json::sax_parse(json.begin(), json.end(), &check);
  const size_t read = std::min(check.position, json.size());
  return ":" + std::to_string(1 + std::count(json.begin(), json.begin() + read, '\n')) +
         ": is not valid JSON: " + (check.token.empty() ? "the text ends too early" : "near '" + check.token + "'");
}

} // namespace

struct ChipReader::State {
  std::string where;
  const std::vector<ChipField> &fields;
  Json root;
  std::string error;
  std::vector<std::string> asked;

  void fail(const std::string &path, const std::string &what) {
    if (error.empty()) {
      error = where + ": " + path + " " + what;
    }
  }

  const Json *wanted(const char *path, const char *what) {
    asked.emplace_back(path);
    const Json *value = error.empty() ? at(root, path) : nullptr;
    if (!value) {
      fail(path, std::string("is missing: expected ") + what);
    }
    return value;
  }
};

ChipReader::ChipReader(std::string_view json, std::string where, const std::vector<ChipField> &fields)
    : state(new State{std::move(where), fields, parseJson(json), "", {}}) {
  std::string fault = faultOf(json, state->root);
  state->error = fault.empty() ? "" : state->where + fault;
}

ChipReader::~ChipReader() = default;

bool ChipReader::readNumber(const char *path, double &out, double low, double high, bool isIntegral) {
  const Json *value = state->wanted(path, "a number");
  if (!value) {
    return false;
  }
  if (!value->is_number() || (isIntegral && !isWhole(*value))) {
    state->fail(path, "is " + value->dump() + ", expected " + (isIntegral ? "a whole number" : "a number"));
    return false;
  }
  out = value->get<double>();
  if (!(out >= low && out <= high)) {
    state->fail(path, "is " + value->dump() + ", allowed are " + bmodel::number(low) + " to " + bmodel::number(high));
    return false;
  }
  return true;
}

void ChipReader::words(const char *path, std::vector<std::string> &out, const char *allowed) {
  const Json *value = state->wanted(path, "a list of words");
  if (!value) {
    return;
  }
  if (!value->is_array()) {
    state->fail(path, "is " + value->dump() + ", expected a list");
    return;
  }
  for (const Json &each : *value) {
    std::string word = each.is_string() ? each.get<std::string>() : each.dump();
    if (!allows(allowed, word) || std::count(out.begin(), out.end(), word)) {
      state->fail(path, "has '" + word + "'; allowed, each at most once, are " + allowed);
      return;
    }
    out.push_back(word);
  }
}

void ChipReader::word(const char *path, std::string &out, const char *allowed) {
  const Json *value = state->wanted(path, "a word");
  if (!value) {
    return;
  }
  out = value->is_string() ? value->get<std::string>() : value->dump();
  if (allowed ? !allows(allowed, out) : !value->is_string()) {
    state->fail(path,
                "is " + value->dump() + ", " + (allowed ? std::string("allowed are ") + allowed : "expected a text"));
  }
}

void ChipReader::sources(std::vector<std::pair<std::string, std::string>> &out) {
  const Json *value = state->wanted("sources", "an object");
  for (const ChipField &field : state->fields) {
    if (!value || !state->error.empty()) {
      return;
    }
    if (!value->is_object() || !value->contains(field.path) || !(*value)[field.path].is_string()) {
      state->fail("sources", std::string("does not say where the value of '") + field.path + "' comes from");
      return;
    }
    out.emplace_back(field.path, (*value)[field.path].get<std::string>());
  }
  if (value && value->size() != out.size()) {
    for (const auto &[key, text] : value->items()) {
      if (std::none_of(out.begin(), out.end(), [&](const auto &entry) { return entry.first == key; })) {
        state->fail("sources", "names '" + key + "', which is not a field");
        return;
      }
    }
  }
}

std::string ChipReader::finish() {
  std::vector<std::string> paths;
  if (state->error.empty()) {
    listPaths(state->root, "", paths);
  }
  for (const std::string &path : paths) {
    if (std::count(state->asked.begin(), state->asked.end(), path) == 0) {
      state->fail(path, "is not a field of a chip");
    }
  }
  return state->error;
}

bool setChipField(std::string &json, std::string_view assignment, const std::vector<ChipField> &fields,
                  std::string &error) {
  size_t equals = assignment.find('=');
  std::string path(assignment.substr(0, equals));
  if (equals == std::string_view::npos || path.empty()) {
    error = "'" + std::string(assignment) + "': expected FIELD=VALUE, e.g. clock_ghz=1.2";
    return false;
  }
  Json root = parseJson(json);
  Json *field = root.is_discarded() ? nullptr : at(root, path);
  if (!field || field->is_object()) {
    std::string known;
    for (const ChipField &each : fields) {
      known += (known.empty() ? "" : ", ") + std::string(each.path);
    }
    error = "'" + path + "' is not a field of the chip; the fields are " + known;
    return false;
  }
  std::string text(assignment.substr(equals + 1));
  Json value = parseJson(text);
  *field = value.is_discarded() ? Json(text) : value;
  if (Json *sources = at(root, "sources"); sources && sources->contains(path)) {
    (*sources)[path] = "set for this run";
  }
  json = root.dump(2, ' ', false, Json::error_handler_t::replace);
  return true;
}

} // namespace bmodel

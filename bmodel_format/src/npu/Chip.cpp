// SPDX-License-Identifier: Apache-2.0
//===- Chip.cpp - Reads what one NPU chip is -------------------------------===//
#include "bmodel/npu/chip.h"

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

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", value);
  return text;
}

/// Objects and lists in one another; a chip has 4 at most. What goes through a description does so by recursion.
constexpr int kDeepest = 32;

/// "discarded" for what is no JSON, or nested too deep.
Json parseJson(std::string_view text) {
  bool isTooDeep = false;
  const Json::parser_callback_t check = [&](int depth, Json::parse_event_t, Json &) {
    isTooDeep |= depth > kDeepest;
    return !isTooDeep;
  };
  Json root = Json::parse(text.begin(), text.end(), check, /*allow_exceptions=*/false);
  return isTooDeep ? Json(Json::value_t::discarded) : root;
}

/// The value at "a.b.c", or null.
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

/// Every value that is no object, as paths; `sources` is one of them.
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

/// Collects the fields; the first one that is not as it should be ends it.
class Parser {
public:
  Parser(Json &root, std::string &error) : root(root), error(error) {}

  template <typename T>
  void number(const char *path, T &out, double low, double high) {
    const Json *value = wanted(path, "a number");
    if (!value) {
      return;
    }
    if (!value->is_number() || (std::is_integral_v<T> && !isWhole(*value))) {
      fail(path, "is " + value->dump() + ", expected " + (std::is_integral_v<T> ? "a whole number" : "a number"));
      return;
    }
    double read = value->get<double>();
    if (!(read >= low && read <= high)) {
      fail(path, "is " + value->dump() + ", allowed are " + npu::number(low) + " to " + npu::number(high));
      return;
    }
    out = T(read);
  }

  void words(const char *path, std::vector<std::string> &out, const char *allowed) {
    const Json *value = wanted(path, "a list of words");
    if (!value) {
      return;
    }
    if (!value->is_array()) {
      fail(path, "is " + value->dump() + ", expected a list");
      return;
    }
    for (const Json &each : *value) {
      std::string word = each.is_string() ? each.get<std::string>() : each.dump();
      if (!allows(allowed, word) || std::count(out.begin(), out.end(), word)) {
        fail(path, "has '" + word + "', allowed are, each once, " + allowed);
        return;
      }
      out.push_back(word);
    }
  }

  void word(const char *path, std::string &out, const char *allowed) {
    const Json *value = wanted(path, "a word");
    if (!value) {
      return;
    }
    out = value->is_string() ? value->get<std::string>() : value->dump();
    if (allowed ? !allows(allowed, out) : !value->is_string()) {
      fail(path, "is " + value->dump() + ", " + (allowed ? std::string("allowed are ") + allowed : "expected a text"));
    }
  }

  void sources(std::vector<std::pair<std::string, std::string>> &out) {
    const Json *value = wanted("sources", "an object");
    for (const FieldInfo &field : chipFields()) {
      if (!value || !error.empty()) {
        return;
      }
      if (!value->is_object() || !value->contains(field.path) || !(*value)[field.path].is_string()) {
        fail("sources", std::string("does not say where the value of '") + field.path + "' comes from");
        return;
      }
      out.emplace_back(field.path, (*value)[field.path].get<std::string>());
    }
    if (value && value->size() != out.size()) {
      for (const auto &[key, text] : value->items()) {
        if (std::none_of(out.begin(), out.end(), [&](const auto &entry) { return entry.first == key; })) {
          fail("sources", "names '" + key + "', which is no field");
          return;
        }
      }
    }
  }

  void finish() {
    std::vector<std::string> paths;
    listPaths(root, "", paths);
    for (const std::string &path : paths) {
      if (std::count(asked.begin(), asked.end(), path) == 0) {
        fail(path, "is no field of a chip");
        return;
      }
    }
  }

  void fail(const std::string &path, const std::string &what) {
    if (error.empty()) {
      error = path + " " + what;
    }
  }

private:
  const Json *wanted(const char *path, const char *what) {
    asked.emplace_back(path);
    const Json *value = error.empty() ? at(root, path) : nullptr;
    if (!value) {
      fail(path, std::string("is missing: expected ") + what);
    }
    return value;
  }

  static bool isWhole(const Json &value) {
    return value.is_number_integer() || value.get<double>() == std::floor(value.get<double>());
  }
  static bool allows(const char *allowed, const std::string &word) {
    std::vector<std::string> all = split(allowed, ',');
    return std::count(all.begin(), all.end(), word) != 0;
  }

  Json &root;
  std::string &error;
  std::vector<std::string> asked;
};

/// Reads a text for the place of its first fault alone.
struct SyntaxCheck : nlohmann::json_sax<Json> {
  size_t position = 0; ///< bytes read
  std::string token;   ///< the last one, "" at the end of the text

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
    position = at > 0 ? at - 1 : 0; // the fault's own byte, which may be a line's end, is not behind it
    token = last.substr(0, 32);
    return false;
  }
};

/// What no single field can be wrong about.
std::string contradiction(const Chip &chip) {
  if (chip.laneBytes % (chip.banks * chip.portBytes)) {
    return "local_memory.bytes_per_lane is " + std::to_string(chip.laneBytes) +
           ", no multiple of banks * port_bytes = " + std::to_string(chip.banks * chip.portBytes);
  }
  if (chip.vectorBytes % 4) {
    return "vector_unit.bytes is " + std::to_string(chip.vectorBytes) + ", no multiple of 4 (one f32)";
  }
  if (chip.macsPerLane() % chip.depthwiseDivisor) {
    return "matrix_unit.depthwise_divisor is " + std::to_string(chip.depthwiseDivisor) +
           ", which does not divide reduction * pixels = " + std::to_string(chip.macsPerLane());
  }
  return "";
}

/// The words that are there, whatever their order in the description, with commas.
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
  Json root = parseJson(json);
  if (root.is_discarded()) {
    SyntaxCheck check;
    Json::sax_parse(json.begin(), json.end(), &check);
    const size_t read = std::min(check.position, json.size());
    error = where + ":" + std::to_string(1 + std::count(json.begin(), json.begin() + read, '\n')) +
            ": is no JSON: " + (check.token.empty() ? "the text ends too early" : "near '" + check.token + "'");
    return false;
  }
  if (!root.is_object()) {
    error = where + ": is no JSON object";
    return false;
  }
  chip = {};
  std::string found;
  Parser parser(root, found);
  std::string family;
  parser.word("name", chip.name, nullptr);
  parser.word("family", family, "npu");
  parser.word("description", chip.description, nullptr);
#define NPU_CHIP_NUMBER(path, type, member, low, high, validity, meaning) parser.number(path, chip.member, low, high);
#define NPU_CHIP_WORDS(path, member, allowed, meaning) parser.words(path, chip.member, allowed);
#define NPU_CHIP_WORD(path, member, allowed, meaning) parser.word(path, chip.member, allowed);
#include "bmodel/npu/chip.inc"
  parser.sources(chip.sources);
  parser.finish();
  if (found.empty()) {
    found = contradiction(chip);
  }
  error = found.empty() ? "" : where + ": " + found;
  return found.empty();
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
  size_t equals = assignment.find('=');
  std::string path(assignment.substr(0, equals));
  if (equals == std::string_view::npos || path.empty()) {
    error = "'" + std::string(assignment) + "': expected FIELD=VALUE, e.g. memories.ddr.gbps=8";
    return false;
  }
  Json root = parseJson(json);
  Json *field = root.is_discarded() ? nullptr : at(root, path);
  if (!field || field->is_object()) {
    std::string known;
    for (const FieldInfo &each : chipFields()) {
      known += (known.empty() ? "" : ", ") + std::string(each.path);
    }
    error = "'" + path + "' is no field of the chip; there are " + known;
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

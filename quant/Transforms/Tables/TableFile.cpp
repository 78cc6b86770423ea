//===- TableFile.cpp - Reading tables that users may edit -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Tables/TableFile.h"

#include "top_dialect/IR/Json.h"
#include "top_dialect/IR/RegularFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace tessera::quant {

std::string toText(const json::Value &value) {
  std::string text;
  raw_string_ostream(text) << value;
  return text;
}

Expected<json::Object> readTableFile(StringRef path, StringRef format, int64_t version, StringRef maker) {
  Expected<std::unique_ptr<MemoryBuffer>> file = top::readRegularFile(path);
  if (!file) {
    return createStringError("cannot read '" + path + "': " + toString(file.takeError()));
  }
  Expected<json::Value> document = top::parseJson((*file)->getBuffer());
  if (!document) {
    return createStringError("'" + path + "' is not valid JSON, at line:column " + toString(document.takeError()) +
                             "; " + maker);
  }
  json::Object *object = document->getAsObject();
  if (!object || object->getString("format") != format) {
    return createStringError("'" + path + "': \"format\" is not \"" + format + "\"; " + maker);
  }
  const json::Value *found = object->get("version");
  if (!found || found->getAsInteger() != version) {
    return createStringError("'" + path + "': \"version\" is " + (found ? toText(*found) : "missing") +
                             ", this program reads version " + Twine(version));
  }
  return std::move(*object);
}

void ObjectReader::fail(const Twine &what) {
  if (message.empty()) {
    message = where + ": " + what.str();
  }
}

const json::Value *ObjectReader::find(StringRef key, bool required) {
  asked.push_back(key.str());
  const json::Value *value = object.get(key);
  if (!value && required) {
    fail("\"" + key + "\" is missing");
  }
  return value;
}

void ObjectReader::expected(StringRef key, const json::Value &found, const Twine &what) {
  fail("\"" + key + "\" is " + toText(found) + ", expected " + what);
}

std::optional<std::string> ObjectReader::optionalText(StringRef key) {
  const json::Value *value = find(key, false);
  if (!value) {
    return std::nullopt;
  }
  std::optional<StringRef> text = value->getAsString();
  if (!text) {
    expected(key, *value, "a string");
  }
  return text ? text->str() : "";
}

std::optional<double> ObjectReader::optionalNumber(StringRef key) {
  const json::Value *value = find(key, false);
  if (!value) {
    return std::nullopt;
  }
  std::optional<double> number = value->getAsNumber();
  if (!number || !std::isfinite(static_cast<float>(*number))) {
    expected(key, *value, "a finite number");
    return 0.0;
  }
  return number;
}

std::optional<int64_t> ObjectReader::optionalInteger(StringRef key, int64_t low, int64_t high) {
  const json::Value *value = find(key, false);
  if (!value) {
    return std::nullopt;
  }
  std::optional<int64_t> number = value->getAsInteger();
  if (!number || *number < low || *number > high) {
    expected(key, *value, "a whole number from " + Twine(low) + " to " + Twine(high));
  }
  return number.value_or(0);
}

std::string ObjectReader::text(StringRef key) {
  find(key, true);
  return optionalText(key).value_or("");
}

double ObjectReader::number(StringRef key) {
  find(key, true);
  return optionalNumber(key).value_or(0);
}

bool ObjectReader::flag(StringRef key) {
  find(key, true);
  return optionalFlag(key).value_or(false);
}

std::optional<bool> ObjectReader::optionalFlag(StringRef key) {
  const json::Value *value = find(key, false);
  std::optional<bool> flag = value ? value->getAsBoolean() : std::nullopt;
  if (value && !flag) {
    expected(key, *value, "true or false");
  }
  return flag;
}

const json::Array *ObjectReader::array(StringRef key) {
  const json::Value *value = find(key, true);
  const json::Array *list = value ? value->getAsArray() : nullptr;
  if (value && !list) {
    expected(key, *value, "a list");
  }
  return list;
}

Error ObjectReader::finish() {
  for (const auto &[key, value] : object) {
    if (!is_contained(asked, StringRef(key))) {
      sort(asked);
      asked.erase(llvm::unique(asked), asked.end());
      fail("unknown key \"" + StringRef(key) + "\"; allowed are " + join(asked, ", "));
    }
  }
  return message.empty() ? Error::success() : createStringError(message);
}

} // namespace tessera::quant

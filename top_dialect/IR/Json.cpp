//===- Json.cpp - JSON files written by users -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Json.h"

/// Largest allowed nesting depth of lists and objects. Tessera's own files nest at most 5 deep.
static constexpr int kDeepest = 64;

llvm::Expected<llvm::json::Value> tessera::top::parseJson(llvm::StringRef text) {
  int depth = 0, line = 1;
  bool isText = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char each = text[at];
    line += each == '\n';
    if (isText) {
      at += each == '\\';
      isText = each != '"';
    } else if (each == '"') {
      isText = true;
    } else if (each == '[' || each == '{') {
      if (++depth > kDeepest) {
        return llvm::createStringError("line " + llvm::Twine(line) + ": lists or objects are nested more than " +
                                       llvm::Twine(kDeepest) + " deep");
      }
    } else if (each == ']' || each == '}') {
      --depth;
    }
  }
  return llvm::json::parse(text);
}

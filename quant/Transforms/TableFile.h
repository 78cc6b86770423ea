//===- TableFile.h - Reading the tables a user may edit ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace tessera::quant {

/// Reads a JSON object whose "format" and "version" are as given. Errors name the file, and line and column where it is
/// no JSON; `maker` is what the user runs to get a new one.
llvm::Expected<llvm::json::Object> readTableFile(llvm::StringRef path, llvm::StringRef format, int64_t version,
                                                 llvm::StringRef maker);

/// Takes the members of one object, by name. The first that is missing or not as expected becomes the error of
/// `finish`, and so does a member that nobody asked for; the values returned after an error are zero.
class ObjectReader {
public:
  /// `where` starts each message: "t.json: tensor 'x'".
  ObjectReader(const llvm::json::Object &object, std::string where) : object(object), where(std::move(where)) {}

  std::string text(llvm::StringRef key);
  double number(llvm::StringRef key); ///< finite
  bool flag(llvm::StringRef key);
  std::optional<double> optionalNumber(llvm::StringRef key);
  std::optional<int64_t> optionalInteger(llvm::StringRef key, int64_t low, int64_t high);
  std::optional<std::string> optionalText(llvm::StringRef key);
  const llvm::json::Array *array(llvm::StringRef key);
  /// The member may be there and is not looked at.
  void ignore(llvm::StringRef key) { asked.push_back(key.str()); }

  void fail(const llvm::Twine &what);
  bool failed() const { return !message.empty(); }
  llvm::Error finish();

private:
  const llvm::json::Value *find(llvm::StringRef key, bool required);
  void expected(llvm::StringRef key, const llvm::json::Value &found, const llvm::Twine &what);

  const llvm::json::Object &object;
  std::string where;
  std::string message;
  llvm::SmallVector<std::string> asked;
};

/// A value as it stands in the file.
std::string toText(const llvm::json::Value &value);

} // namespace tessera::quant

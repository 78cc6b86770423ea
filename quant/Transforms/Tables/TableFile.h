//===- TableFile.h - Reading tables that users may edit ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_TABLES_TABLEFILE_H
#define TESSERA_QUANT_TRANSFORMS_TABLES_TABLEFILE_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <optional>
#include <string>

namespace tessera::quant {

/// Reads a JSON object and checks its "format" and "version". Errors name the file, and line and column if it is not
/// JSON. `maker` is advice on how to get a valid file.
llvm::Expected<llvm::json::Object> readTableFile(llvm::StringRef path, llvm::StringRef format, int64_t version,
                                                 llvm::StringRef maker);

/// Reads the members of a JSON object by name. The first missing or malformed member becomes the error of `finish`, as
/// does a member that was never requested. Values returned after an error are zero.
class ObjectReader {
public:
  /// `where` is the prefix of each message, for example "t.json: tensor 'x'".
  ObjectReader(const llvm::json::Object &object, std::string where) : object(object), where(std::move(where)) {}

  std::string text(llvm::StringRef key);
  double number(llvm::StringRef key); ///< rejects values that are not finite
  bool flag(llvm::StringRef key);
  std::optional<bool> optionalFlag(llvm::StringRef key);
  std::optional<double> optionalNumber(llvm::StringRef key);
  std::optional<int64_t> optionalInteger(llvm::StringRef key, int64_t low, int64_t high);
  std::optional<std::string> optionalText(llvm::StringRef key);
  const llvm::json::Array *array(llvm::StringRef key);
  /// Allows a member without reading it.
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

/// Returns a value as it appears in the file.
std::string toText(const llvm::json::Value &value);

} // namespace tessera::quant

#endif // TESSERA_QUANT_TRANSFORMS_TABLES_TABLEFILE_H

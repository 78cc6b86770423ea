//===- Unsupported.h - Error for valid but unsupported models -------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IR_UNSUPPORTED_H
#define TESSERA_TOP_DIALECT_IR_UNSUPPORTED_H

#include "llvm/Support/Error.h"

#include <string>

namespace tessera::top {

/// Reports a valid model that uses something Tessera does not support: the tools end with exit code 4.
class UnsupportedError : public llvm::ErrorInfo<UnsupportedError> {
public:
  static char ID;
  explicit UnsupportedError(const llvm::Twine &text) : text(text.str()) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }

private:
  std::string text;
};

inline llvm::Error unsupported(const llvm::Twine &text) { return llvm::make_error<UnsupportedError>(text); }

/// Returns |error| with |prefix| before its message. An UnsupportedError stays one.
llvm::Error prefixed(llvm::Error error, const llvm::Twine &prefix);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_UNSUPPORTED_H

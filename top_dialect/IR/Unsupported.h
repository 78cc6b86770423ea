//===- Unsupported.h - The error for what is valid but not done ---===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "llvm/Support/Error.h"

#include <string>

namespace tessera::top {

/// A model that is right, but uses something Tessera does not do: the tools end with exit code 4.
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

/// |error| with |prefix| before its message; what is unsupported stays so.
llvm::Error prefixed(llvm::Error error, const llvm::Twine &prefix);

} // namespace tessera::top

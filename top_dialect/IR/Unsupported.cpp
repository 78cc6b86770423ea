//===- Unsupported.cpp - Error for valid but unsupported models -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Unsupported.h"

namespace tessera::top {

char UnsupportedError::ID = 0;

llvm::Error prefixed(llvm::Error error, const llvm::Twine &prefix) {
  bool isUnsupported = error.isA<UnsupportedError>();
  std::string text = (prefix + llvm::toString(std::move(error))).str();
  return isUnsupported ? unsupported(text) : llvm::createStringError(llvm::inconvertibleErrorCode(), text);
}

} // namespace tessera::top

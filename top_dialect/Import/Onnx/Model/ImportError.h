//===- ImportError.h - Errors of the ONNX importer --------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_IMPORTERROR_H
#define TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_IMPORTERROR_H

#include "llvm/Support/Error.h"

namespace tessera::top::onnx_import {

/// Returns an error with a message for the user.
inline llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

} // namespace tessera::top::onnx_import

#endif // TESSERA_TOP_DIALECT_IMPORT_ONNX_MODEL_IMPORTERROR_H

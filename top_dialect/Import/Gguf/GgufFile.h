//===- GgufFile.h - Reader of GGUF files ------------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_IMPORT_GGUF_GGUFFILE_H
#define TESSERA_TOP_DIALECT_IMPORT_GGUF_GGUFFILE_H

#include "top_dialect/Import/Gguf/TensorFormats.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace tessera::top::gguf {

/// The contents of a GGUF file of version 2 or 3. Tensors refer to the bytes that were parsed.
struct GgufFile {
  llvm::json::Object metadata; ///< by the keys of the file; text that is not UTF-8 is repaired
  llvm::StringMap<Tensor> tensors;

  /// Checks all sizes and offsets against |bytes|. Does not read the tensors' data.
  static llvm::Expected<GgufFile> parse(llvm::ArrayRef<char> bytes);
};

} // namespace tessera::top::gguf

#endif // TESSERA_TOP_DIALECT_IMPORT_GGUF_GGUFFILE_H

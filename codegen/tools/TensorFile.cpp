//===- TensorFile.cpp - Writes named tensors as a safetensors file ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/TensorFile.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace tessera::tool {

/// The format's name of an element type; "" if it has none.
static llvm::StringRef formatName(mlir::Type type) {
  if (auto real = llvm::dyn_cast<mlir::FloatType>(type)) {
    return real.isF32() ? "F32" : real.isF64() ? "F64" : real.isF16() ? "F16" : real.isBF16() ? "BF16" : "";
  }
  auto integer = llvm::dyn_cast<mlir::IntegerType>(type);
  const unsigned width = integer ? integer.getWidth() : 0;
  const bool isUnsigned = integer && integer.isUnsigned();
  return width == 1    ? "BOOL"
         : width == 8  ? (isUnsigned ? "U8" : "I8")
         : width == 16 ? (isUnsigned ? "U16" : "I16")
         : width == 32 ? (isUnsigned ? "U32" : "I32")
         : width == 64 ? (isUnsigned ? "U64" : "I64")
                       : "";
}

llvm::Error writeTensorFile(llvm::StringRef path, const std::vector<NamedTensor> &tensors) {
  std::string header;
  llvm::raw_string_ostream text(header);
  text << '{';
  int64_t offset = 0;
  for (const auto &[name, tensor] : tensors) {
    const llvm::StringRef type = formatName(tensor.getElementType());
    if (type.empty()) {
      return llvm::createStringError("tensor '%s' has a type that %s cannot hold", name.c_str(), path.str().c_str());
    }
    const int64_t end = offset + static_cast<int64_t>(tensor.getBytes().size());
    // Written by hand to keep the order: a JSON object of LLVM sorts by hash.
    text << (offset || &name != &tensors.front().first ? "," : "") << llvm::json::Value(llvm::json::fixUTF8(name))
         << ':'
         << llvm::json::Value(llvm::json::Object{{"dtype", type},
                                                 {"shape", llvm::json::Array(tensor.getShape())},
                                                 {"data_offsets", llvm::json::Array{offset, end}}});
    offset = end;
  }
  text << '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &out) -> llvm::Error {
    char length[8];
    llvm::support::endian::write64le(length, header.size());
    out.write(length, sizeof(length)) << header;
    for (const auto &[name, tensor] : tensors) {
      out.write(tensor.getBytes().data(), tensor.getBytes().size());
    }
    return llvm::Error::success();
  });
}

} // namespace tessera::tool

//===- TensorFile.cpp - Writes named tensors as a safetensors file ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/TensorFile.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
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

TensorFileWriter::~TensorFileWriter() {
  if (file) {
    file->clear_error();
    file.reset();
    llvm::sys::fs::remove(partial);
  }
}

/// Written by hand to keep the order: a JSON object of LLVM sorts by hash.
static std::string entryOf(llvm::StringRef name, llvm::StringRef type, llvm::json::Array shape,
                           llvm::json::Array offsets) {
  std::string text;
  llvm::json::Object value{{"dtype", type}, {"shape", std::move(shape)}, {"data_offsets", std::move(offsets)}};
  llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::fixUTF8(name)) << ':'
                                 << llvm::json::Value(std::move(value));
  return text;
}

uint64_t TensorFileWriter::headerBytes(llvm::StringRef name, int64_t rank) {
  constexpr int64_t kNumber = 21; // digits of the largest, and a comma
  std::string none = entryOf(name, "BOOL", llvm::json::Array(), llvm::json::Array());
  return none.size() + (rank + 2) * kNumber + 1;
}

llvm::Error TensorFileWriter::create(llvm::StringRef file, uint64_t bytes) {
  path = file.str();
  partial = path + ".partial";
  reserved = (bytes + 2 + 7) / 8 * 8;
  std::error_code code;
  this->file = std::make_unique<llvm::raw_fd_ostream>(partial, code);
  if (code) {
    this->file.reset();
    return llvm::createStringError(code, "failed to write '%s': %s", path.c_str(), code.message().c_str());
  }
  this->file->write_zeros(8);
  this->file->write_zeros(unsigned(reserved));
  return llvm::Error::success();
}

llvm::Error TensorFileWriter::append(llvm::StringRef name, const top::HostTensor &tensor) {
  const llvm::StringRef type = formatName(tensor.getElementType());
  if (type.empty()) {
    return llvm::createStringError("tensor '%s' has a type that %s cannot hold", name.str().c_str(), path.c_str());
  }
  const uint64_t end = offset + tensor.getBytes().size();
  header += (header.empty() ? "{" : ",") +
            entryOf(name, type, llvm::json::Array(tensor.getShape()), llvm::json::Array{int64_t(offset), int64_t(end)});
  offset = end;
  file->write(tensor.getBytes().data(), tensor.getBytes().size());
  return llvm::Error::success();
}

llvm::Error TensorFileWriter::finish() {
  header += header.empty() ? "{}" : "}";
  if (header.size() > reserved) {
    return llvm::createStringError("'%s' has more tensors than were announced", path.c_str());
  }
  header.resize(reserved, ' ');
  char length[8];
  llvm::support::endian::write64le(length, reserved);
  file->pwrite(length, sizeof(length), 0);
  file->pwrite(header.data(), header.size(), sizeof(length));
  file->close();
  std::error_code code = file->error();
  if (!code) {
    code = llvm::sys::fs::rename(partial, path);
  }
  if (code) {
    return llvm::createStringError(code, "failed to write '%s': %s", path.c_str(), code.message().c_str());
  }
  file.reset();
  return llvm::Error::success();
}

llvm::Error writeTensorFile(llvm::StringRef path, const std::vector<NamedTensor> &tensors) {
  uint64_t header = 0;
  for (const auto &[name, tensor] : tensors) {
    header += TensorFileWriter::headerBytes(name, tensor.getRank());
  }
  TensorFileWriter writer;
  if (llvm::Error error = writer.create(path, header)) {
    return error;
  }
  for (const auto &[name, tensor] : tensors) {
    if (llvm::Error error = writer.append(name, tensor)) {
      return error;
    }
  }
  return writer.finish();
}

} // namespace tessera::tool

//===- TensorFile.cpp - Writing tensors as safetensors --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/TensorFile.h"

#include "top_dialect/IR/Safetensors.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::tool {

uint64_t TensorFileWriter::headerBytes(llvm::StringRef name, int64_t rank) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(); // number with the most digits
  llvm::SmallVector<int64_t> shape(rank, kMost);
  return top::safetensorsEntry(name, "BOOL", shape, kMost, kMost).size() + 1;
}

llvm::Error TensorFileWriter::create(llvm::StringRef path, uint64_t bytes) {
  reserved = llvm::alignTo(bytes + 2, 8);
  llvm::Expected<top::PendingFile> result = top::PendingFile::create(path);
  if (!result) {
    return result.takeError();
  }
  file.emplace(std::move(*result));
  file->stream().write_zeros(unsigned(sizeof(uint64_t) + reserved));
  return llvm::Error::success();
}

llvm::Error TensorFileWriter::append(llvm::StringRef name, const top::HostTensor &tensor) {
  const llvm::StringRef type = top::safetensorsName(tensor.getElementType());
  if (type.empty()) {
    return llvm::createStringError("tensor '" + name + "' has a type that safetensors cannot store");
  }
  const uint64_t end = offset + tensor.getBytes().size();
  header += (header.empty() ? "{" : ",") + top::safetensorsEntry(name, type, tensor.getShape(), offset, end);
  offset = end;
  file->stream().write(tensor.getBytes().data(), tensor.getBytes().size());
  return llvm::Error::success();
}

llvm::Error TensorFileWriter::finish() {
  header += header.empty() ? "{}" : "}";
  if (header.size() > reserved) {
    return llvm::createStringError("internal error: more tensors than were announced");
  }
  header.resize(reserved, ' ');
  char length[8];
  llvm::support::endian::write64le(length, reserved);
  file->stream().pwrite(length, sizeof(length), 0);
  file->stream().pwrite(header.data(), header.size(), sizeof(length));
  return top::PendingFile::keep(*file);
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

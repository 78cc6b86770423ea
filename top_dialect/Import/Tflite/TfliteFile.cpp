//===- TfliteFile.cpp - A verified .tflite file ---------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/TfliteFile.h"

#include "top_dialect/IR/Unsupported.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

namespace tessera::top::tflite_import {

static constexpr uint32_t kVersion = 3;
static constexpr int64_t kMaxElements = int64_t(1) << 40;

llvm::Expected<TfliteFile> TfliteFile::open(std::shared_ptr<llvm::MemoryBuffer> buffer) {
  TfliteFile file;
  auto *bytes = reinterpret_cast<const uint8_t *>(buffer->getBufferStart());
  size_t size = buffer->getBufferSize();
  if (size < 8 || !tflite::ModelBufferHasIdentifier(bytes)) {
    return llvm::createStringError("it is not a .tflite file: bytes 4 to 7 are not 'TFL3'");
  }
  if (size >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    return unsupported("files of 2 GiB and more are not supported");
  }
  flatbuffers::Verifier verifier(bytes, size);
  if (!tflite::VerifyModelBuffer(verifier)) {
    return llvm::createStringError("the file is damaged: an offset or a length lies outside it, or it is cut off");
  }
  file.buffer = std::move(buffer);
  file.model = tflite::GetModel(bytes);
  if (llvm::Error error = file.check()) {
    return std::move(error);
  }
  return file;
}

llvm::Error TfliteFile::check() const {
  if (model->version() != kVersion) {
    return unsupported(
        llvm::formatv("version {0} of the format is not supported; allowed is {1}", model->version(), kVersion));
  }
  if (!model->subgraphs() || model->subgraphs()->size() == 0 || !graph().tensors() || !graph().operators() ||
      !model->operator_codes() || !model->buffers() || !graph().inputs() || !graph().outputs()) {
    return llvm::createStringError("the file is damaged: it has no graph, or lacks one of its lists");
  }
  for (const tflite::Tensor *tensor : *graph().tensors()) {
    if (llvm::Error error = checkTensor(*tensor)) {
      return error;
    }
  }
  auto count = static_cast<int32_t>(graph().tensors()->size());
  for (const auto *list : {graph().inputs(), graph().outputs()}) {
    for (int32_t index : *list) {
      if (index < 0 || index >= count) {
        return llvm::createStringError("the file is damaged: an input or output of the graph does not exist");
      }
    }
  }
  for (const tflite::Operator *op : *graph().operators()) {
    if (llvm::Error error = checkOperator(*op)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Error TfliteFile::checkOperator(const tflite::Operator &op) const {
  auto count = static_cast<int32_t>(graph().tensors()->size());
  if (op.opcode_index() >= model->operator_codes()->size() || !op.inputs() || !op.outputs()) {
    return llvm::createStringError("the file is damaged: an operator lacks its code, inputs or outputs");
  }
  for (int32_t index : *op.inputs()) {
    if (index < -1 || index >= count) {
      return llvm::createStringError("the file is damaged: an input of an operator does not exist");
    }
  }
  for (int32_t index : *op.outputs()) {
    if (index < 0 || index >= count) {
      return llvm::createStringError("the file is damaged: an output of an operator does not exist");
    }
  }
  return llvm::Error::success();
}

llvm::Error TfliteFile::checkTensor(const tflite::Tensor &tensor) const {
  llvm::StringRef name = tensor.name() ? llvm::StringRef(tensor.name()->data(), tensor.name()->size()) : "";
  if (tensor.buffer() >= model->buffers()->size()) {
    return llvm::createStringError(llvm::formatv("the file is damaged: tensor '{0}' has no buffer", name).str());
  }
  const tflite::Buffer &data = *model->buffers()->Get(tensor.buffer());
  if (data.offset() > 1 || data.size() > 1) {
    return unsupported(llvm::formatv("tensor '{0}' has its data behind the flatbuffer, which is not supported", name));
  }
  int64_t elements = 1;
  for (int32_t dim :
       tensor.shape() ? llvm::ArrayRef(tensor.shape()->data(), tensor.shape()->size()) : llvm::ArrayRef<int32_t>()) {
    elements *= dim;
    if (dim < 0 || elements > kMaxElements) {
      return llvm::createStringError(llvm::formatv("tensor '{0}' has a dim of {1}, or too many elements", name, dim));
    }
  }
  if (tensor.shape_signature() && tensor.shape_signature()->size() != 0 &&
      tensor.shape_signature()->size() != (tensor.shape() ? tensor.shape()->size() : 0)) {
    return llvm::createStringError(
        llvm::formatv("the file is damaged: shape and shape_signature of tensor '{0}' differ in rank", name));
  }
  return llvm::Error::success();
}

tflite::BuiltinOperator TfliteFile::code(const tflite::Operator &op) const {
  // Files older than the field builtin_code only have the narrow one.
  const tflite::OperatorCode &entry = codeOf(op);
  return std::max(entry.builtin_code(), tflite::BuiltinOperator(entry.deprecated_builtin_code()));
}

std::string TfliteFile::customName(const tflite::Operator &op) const {
  const flatbuffers::String *custom = codeOf(op).custom_code();
  return code(op) == tflite::BuiltinOperator::CUSTOM && custom ? custom->str() : "";
}

std::string TfliteFile::operatorName(const tflite::Operator &op) const {
  if (code(op) == tflite::BuiltinOperator::CUSTOM) {
    return "custom operator '" + customName(op) + "'";
  }
  std::string name = tflite::EnumNameBuiltinOperator(code(op));
  return name.empty() ? "operator " + std::to_string(int32_t(code(op))) : name;
}

llvm::ArrayRef<char> TfliteFile::data(const tflite::Tensor &tensor) const {
  const auto *bytes = model->buffers()->Get(tensor.buffer())->data();
  return bytes ? llvm::ArrayRef(reinterpret_cast<const char *>(bytes->data()), bytes->size()) : llvm::ArrayRef<char>();
}

std::string tensorName(const TfliteFile &file, int32_t index) {
  const flatbuffers::String *name = file.tensor(index).name();
  return name && name->size() ? name->str() : "tensor " + std::to_string(index);
}

mlir::Type elementType(tflite::TensorType type, mlir::MLIRContext *context) {
  mlir::Builder b(context);
  switch (type) {
  case tflite::TensorType::FLOAT32:
    return b.getF32Type();
  case tflite::TensorType::FLOAT16:
    return b.getF16Type();
  case tflite::TensorType::BFLOAT16:
    return b.getBF16Type();
  case tflite::TensorType::INT8:
    return b.getIntegerType(8);
  case tflite::TensorType::UINT8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case tflite::TensorType::INT16:
    return b.getIntegerType(16);
  case tflite::TensorType::INT32:
    return b.getIntegerType(32);
  case tflite::TensorType::INT64:
    return b.getIntegerType(64);
  case tflite::TensorType::BOOL:
    return b.getI1Type();
  default:
    return {};
  }
}

bool hasUnknownField(const flatbuffers::Table &table, size_t known) {
  const uint8_t *fields = table.GetVTable();
  auto size = flatbuffers::ReadScalar<flatbuffers::voffset_t>(fields);
  for (size_t at = (2 + known) * sizeof(flatbuffers::voffset_t); at < size; at += sizeof(flatbuffers::voffset_t)) {
    if (flatbuffers::ReadScalar<flatbuffers::voffset_t>(fields + at) != 0) {
      return true;
    }
  }
  return false;
}

} // namespace tessera::top::tflite_import

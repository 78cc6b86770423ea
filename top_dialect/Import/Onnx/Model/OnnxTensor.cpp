//===- OnnxTensor.cpp - Reading of ONNX tensors ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/OnnxTensor.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/HostTensor.h"
#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Onnx/Model/ImportError.h"
#include "top_dialect/Import/Onnx/Model/StorageTypes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

std::string describe(const onnx::TensorProto &tensor) { return llvm::formatv("tensor '{0}'", tensor.name()); }

llvm::Expected<mlir::RankedTensorType> typeOf(const onnx::TensorProto &tensor, mlir::MLIRContext *context) {
  auto element = elementTypeOf(tensor.data_type(), context);
  if (!element) {
    return prefixed(element.takeError(), describe(tensor) + ": ");
  }
  llvm::SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  for (int64_t dim : shape) {
    if (dim < 0) {
      return fail(llvm::formatv("{0} has a dim of size {1}", describe(tensor), dim));
    }
  }
  auto type = mlir::RankedTensorType::get(shape, *element);
  if (byteSize(type) < 0) {
    return fail(llvm::formatv("{0}: the product of its dims overflows", describe(tensor)));
  }
  return type;
}

llvm::Error checkByteCount(const onnx::TensorProto &tensor, uint64_t actual, mlir::RankedTensorType type) {
  uint64_t wanted = static_cast<uint64_t>(byteSize(type));
  if (actual == wanted) {
    return llvm::Error::success();
  }
  return fail(llvm::formatv(
      "{0} holds {1} bytes; its type {2}{3} takes {4}", describe(tensor), actual, dataTypeName(tensor.data_type()),
      llvm::formatv("[{0:$[,]}]", llvm::make_range(type.getShape().begin(), type.getShape().end())).str(), wanted));
}

/// Returns the value of an external_data key, or "".
StringRef externalEntry(const onnx::TensorProto &tensor, StringRef key) {
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == key) {
      return entry.value();
    }
  }
  return "";
}

/// Returns the real path of |location|. Fails unless it is in the model's folder.
llvm::Expected<std::string> resolveExternal(const onnx::TensorProto &tensor, StringRef location, StringRef folder) {
  auto reject = [&]() {
    return fail(llvm::formatv("{0}: its external data '{1}' is outside the model's folder, which is not allowed: "
                              "put the file into the model's folder",
                              describe(tensor), location));
  };
  if (location.empty()) {
    return fail(llvm::formatv("{0} is stored externally, but does not name a file", describe(tensor)));
  }
  if (llvm::sys::path::is_absolute(location)) {
    return reject();
  }
  for (auto it = llvm::sys::path::begin(location); it != llvm::sys::path::end(location); ++it) {
    if (*it == "..") {
      return reject();
    }
  }
  llvm::SmallString<256> path(folder), real, realFolder;
  llvm::sys::path::append(path, location);
  if (std::error_code error = llvm::sys::fs::real_path(path, real)) {
    return fail(
        llvm::formatv("{0}: cannot read its external data '{1}': {2}", describe(tensor), path, error.message()));
  }
  if (llvm::sys::fs::real_path(folder, realFolder)) {
    return reject();
  }
  realFolder.push_back('/');
  return StringRef(real).starts_with(realFolder) ? llvm::Expected<std::string>(std::string(real)) : reject();
}

llvm::Expected<OnnxTensor> readExternal(const onnx::TensorProto &tensor, mlir::RankedTensorType type,
                                        StringRef folder) {
  auto path = resolveExternal(tensor, externalEntry(tensor, "location"), folder);
  if (!path) {
    return path.takeError();
  }
  uint64_t offset = 0, length = static_cast<uint64_t>(byteSize(type));
  StringRef offsetText = externalEntry(tensor, "offset"), lengthText = externalEntry(tensor, "length");
  if ((!offsetText.empty() && offsetText.getAsInteger(10, offset)) ||
      (!lengthText.empty() && lengthText.getAsInteger(10, length))) {
    return fail(llvm::formatv("{0}: offset '{1}' or length '{2}' of its external data is not a number",
                              describe(tensor), offsetText, lengthText));
  }
  if (llvm::Error error = checkByteCount(tensor, length, type)) {
    return error;
  }
  // Each tensor maps the file separately. The kernel shares the pages.
  auto buffer = readRegularFile(*path);
  if (!buffer) {
    return fail(
        llvm::formatv("{0}: cannot read '{1}': {2}", describe(tensor), *path, llvm::toString(buffer.takeError())));
  }
  StringRef bytes = (*buffer)->getBuffer();
  if (offset > bytes.size() || length > bytes.size() - offset) {
    return fail(llvm::formatv("{0}: its external data needs bytes {1} to {2} of '{3}', which has {4}", describe(tensor),
                              offset, offset + length, *path, bytes.size()));
  }
  bool isMapped = (*buffer)->getBufferKind() == llvm::MemoryBuffer::MemoryBuffer_MMap;
  std::shared_ptr<const llvm::MemoryBuffer> owner(std::move(*buffer));
  return OnnxTensor{type, {bytes.data() + offset, length}, owner, isMapped};
}

template <typename To, typename Field>
std::shared_ptr<std::vector<char>> convertField(const Field &field) {
  auto bytes = std::make_shared<std::vector<char>>(field.size() * sizeof(To));
  To *out = reinterpret_cast<To *>(bytes->data());
  for (auto value : field) {
    *out++ = static_cast<To>(value);
  }
  return bytes;
}

/// Returns the values of the typed field for |tensor|'s data type (onnx.proto, TensorProto).
std::shared_ptr<std::vector<char>> readField(const onnx::TensorProto &tensor) {
  using T = onnx::TensorProto;
  switch (tensor.data_type()) {
  case T::FLOAT:
    return convertField<float>(tensor.float_data());
  case T::DOUBLE:
    return convertField<double>(tensor.double_data());
  case T::INT64:
    return convertField<int64_t>(tensor.int64_data());
  case T::UINT64:
    return convertField<uint64_t>(tensor.uint64_data());
  case T::UINT32:
    return convertField<uint32_t>(tensor.uint64_data());
  case T::INT32:
    return convertField<int32_t>(tensor.int32_data());
  case T::FLOAT16:
  case T::BFLOAT16:
  case T::INT16:
  case T::UINT16:
    return convertField<uint16_t>(tensor.int32_data());
  case T::BOOL: {
    auto bytes = std::make_shared<std::vector<char>>();
    for (int32_t value : tensor.int32_data()) {
      bytes->push_back(value != 0);
    }
    return bytes;
  }
  default:
    return convertField<uint8_t>(tensor.int32_data());
  }
}

} // namespace

std::string dataTypeName(int dataType) {
  if (const StorageType *storage = findStorageType(dataType)) {
    return storage->name.str();
  }
  if (!onnx::TensorProto::DataType_IsValid(dataType)) {
    return llvm::formatv("type {0}", dataType);
  }
  return StringRef(onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(dataType))).lower();
}

llvm::Expected<mlir::Type> elementTypeOf(int dataType, mlir::MLIRContext *context) {
  using T = onnx::TensorProto;
  if (const StorageType *storage = findStorageType(dataType)) {
    return storage->carrier(context);
  }
  auto integer = [&](unsigned width,
                     mlir::IntegerType::SignednessSemantics sign = mlir::IntegerType::Signless) -> mlir::Type {
    return mlir::IntegerType::get(context, width, sign);
  };
  switch (dataType) {
  case T::FLOAT:
    return mlir::Float32Type::get(context);
  case T::FLOAT16:
    return mlir::Float16Type::get(context);
  case T::BFLOAT16:
    return mlir::BFloat16Type::get(context);
  case T::DOUBLE:
    return mlir::Float64Type::get(context);
  case T::BOOL:
    return integer(1);
  case T::INT8:
    return integer(8);
  case T::INT16:
    return integer(16);
  case T::INT32:
    return integer(32);
  case T::INT64:
    return integer(64);
  case T::UINT8:
    return integer(8, mlir::IntegerType::Unsigned);
  case T::UINT16:
    return integer(16, mlir::IntegerType::Unsigned);
  case T::UINT32:
    return integer(32, mlir::IntegerType::Unsigned);
  case T::UINT64:
    return integer(64, mlir::IntegerType::Unsigned);
  default:
    return unsupported(llvm::formatv("element type {0} is not supported", dataTypeName(dataType)));
  }
}

/// Reads the bytes of |tensor|. Fails unless their number matches |type|.
static llvm::Expected<OnnxTensor> readBytes(const onnx::TensorProto &tensor, mlir::RankedTensorType type,
                                            const OnnxModel &model) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    return readExternal(tensor, type, model.folder);
  }
  if (tensor.has_raw_data()) {
    if (llvm::Error error = checkByteCount(tensor, tensor.raw_data().size(), type)) {
      return error;
    }
    llvm::ArrayRef<char> raw(tensor.raw_data().data(), tensor.raw_data().size());
    if (type.getElementType().isInteger(1) && llvm::any_of(raw, [](char byte) { return byte & ~1; })) {
      auto bits = std::make_shared<std::vector<char>>();
      llvm::transform(raw, std::back_inserter(*bits), [](char byte) { return byte != 0; });
      return OnnxTensor{type, *bits, bits, false};
    }
    return OnnxTensor{type, raw, model.proto, false};
  }
  auto bytes = readField(tensor);
  if (llvm::Error error = checkByteCount(tensor, bytes->size(), type)) {
    return error;
  }
  return OnnxTensor{type, *bytes, bytes, false};
}

llvm::Expected<OnnxTensor> readTensor(const onnx::TensorProto &tensor, const OnnxModel &model,
                                      mlir::MLIRContext *context) {
  auto type = typeOf(tensor, context);
  if (!type) {
    return type.takeError();
  }
  const StorageType *storage = findStorageType(tensor.data_type());
  if (!storage) {
    return readBytes(tensor, *type, model);
  }
  int64_t count = type->getNumElements(), perByte = 8 / storage->bits;
  auto byte = mlir::IntegerType::get(context, 8);
  auto packed = readBytes(tensor, mlir::RankedTensorType::get({(count + perByte - 1) / perByte}, byte), model);
  if (!packed) {
    return packed.takeError();
  }
  auto values = std::make_shared<std::vector<char>>(unpack(*storage, packed->bytes, count));
  return OnnxTensor{*type, *values, values, false};
}

} // namespace tessera::top::onnx_import

//===- GgufFile.cpp - Reader of GGUF files --------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A file consists of a header, metadata (keys with values), a list of tensors, and the tensors' bytes, each of which
// starts at a multiple of an alignment. All numbers are little-endian.
//===----------------------------------------------------------------------===//
#include "top_dialect/Import/Gguf/GgufFile.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using llvm::ArrayRef;
using llvm::StringRef;

namespace tessera::top::gguf {
namespace {

template <typename... Args>
llvm::Error fail(const char *format, Args &&...args) {
  return llvm::createStringError(llvm::formatv(format, std::forward<Args>(args)...).str());
}

enum ValueType : uint32_t { U8, I8, U16, I16, U32, I32, F32, Boolean, String, Array, U64, I64, F64 };

/// Reads values from front to back. After the first value beyond the end, all values are 0 or empty.
class Cursor {
public:
  explicit Cursor(ArrayRef<char> bytes) : bytes(bytes) {}

  template <typename T>
  T number() {
    ArrayRef<char> at = take(sizeof(T));
    return at.empty() ? T() : llvm::support::endian::read<T, llvm::endianness::little>(at.data());
  }
  StringRef string() {
    const auto size = number<uint64_t>();
    ArrayRef<char> at = take(size);
    return {at.data(), at.size()};
  }
  size_t left() const { return isBeyond ? 0 : bytes.size() - position; }
  size_t at() const { return position; }
  bool isBeyondEnd() const { return isBeyond; }

private:
  ArrayRef<char> take(uint64_t size) {
    if (isBeyond || size > bytes.size() - position) {
      isBeyond = true;
      return {};
    }
    position += size;
    return bytes.slice(position - size, size);
  }

  ArrayRef<char> bytes;
  size_t position = 0;
  bool isBeyond = false;
};

class Parser {
public:
  explicit Parser(ArrayRef<char> bytes) : bytes(bytes), cursor(bytes) {}

  llvm::Expected<GgufFile> run() {
    if (llvm::Error error = readHeader()) {
      return std::move(error);
    }
    for (uint64_t i = 0; i < valueCount; ++i) {
      if (llvm::Error error = readEntry()) {
        return std::move(error);
      }
    }
    for (uint64_t i = 0; i < tensorCount; ++i) {
      if (llvm::Error error = readTensor()) {
        return std::move(error);
      }
    }
    if (llvm::Error error = placeTensors()) {
      return std::move(error);
    }
    return std::move(file);
  }

private:
  llvm::Error readHeader() {
    constexpr size_t kHeader = 24, kLeastEntry = 13, kLeastTensor = 24;
    if (bytes.size() < kHeader || StringRef(bytes.data(), 4) != "GGUF") {
      return fail("it is not a GGUF file: it does not begin with 'GGUF'");
    }
    cursor.number<uint32_t>();
    const auto version = cursor.number<uint32_t>();
    if (version != 2 && version != 3) {
      return fail("its GGUF version is {0}; supported are 2 and 3, little-endian", version);
    }
    tensorCount = cursor.number<uint64_t>(), valueCount = cursor.number<uint64_t>();
    if (tensorCount > cursor.left() / kLeastTensor || valueCount > cursor.left() / kLeastEntry) {
      return fail("its header states {0} tensors and {1} entries, which do not fit into its {2} bytes: the file is "
                  "damaged or incomplete",
                  tensorCount, valueCount, bytes.size());
    }
    return llvm::Error::success();
  }

  llvm::Error readEntry() {
    StringRef key = cursor.string();
    llvm::Expected<llvm::json::Value> value = readValue(cursor.number<uint32_t>(), key, 0);
    if (!value) {
      return value.takeError();
    }
    if (cursor.isBeyondEnd()) {
      return truncated();
    }
    if (!file.metadata.try_emplace(llvm::json::fixUTF8(key), std::move(*value)).second) {
      return fail("its metadata contain '{0}' twice", llvm::json::fixUTF8(key));
    }
    return llvm::Error::success();
  }

  llvm::Expected<llvm::json::Value> readValue(uint32_t type, StringRef key, int depth) {
    switch (type) {
    case U8:
      return int64_t(cursor.number<uint8_t>());
    case I8:
      return int64_t(cursor.number<int8_t>());
    case U16:
      return int64_t(cursor.number<uint16_t>());
    case I16:
      return int64_t(cursor.number<int16_t>());
    case U32:
      return int64_t(cursor.number<uint32_t>());
    case I32:
      return int64_t(cursor.number<int32_t>());
    case U64:
      return cursor.number<uint64_t>();
    case I64:
      return cursor.number<int64_t>();
    case F32:
      return finite(llvm::bit_cast<float>(cursor.number<uint32_t>()));
    case F64:
      return finite(llvm::bit_cast<double>(cursor.number<uint64_t>()));
    case Boolean:
      return cursor.number<uint8_t>() != 0;
    case String:
      return llvm::json::fixUTF8(cursor.string());
    case Array:
      return readArray(key, depth);
    default:
      return fail("the value of '{0}' has the unknown type {1}: the file is damaged or of a newer version",
                  llvm::json::fixUTF8(key), type);
    }
  }

  /// JSON has no infinity and no NaN.
  static llvm::json::Value finite(double value) {
    return std::isfinite(value) ? llvm::json::Value(value) : llvm::json::Value(nullptr);
  }

  llvm::Expected<llvm::json::Value> readArray(StringRef key, int depth) {
    const auto type = cursor.number<uint32_t>();
    const auto count = cursor.number<uint64_t>();
    constexpr int kMostDepth = 4;
    if (depth > kMostDepth || count > cursor.left() || count > elementsLeft) {
      return fail("the array '{0}' states {1} elements, which do not fit into the file: it is damaged or incomplete",
                  llvm::json::fixUTF8(key), count);
    }
    elementsLeft -= count;
    llvm::json::Array elements;
    for (uint64_t i = 0; i < count && !cursor.isBeyondEnd(); ++i) {
      llvm::Expected<llvm::json::Value> element = readValue(type, key, depth + 1);
      if (!element) {
        return element.takeError();
      }
      elements.push_back(std::move(*element));
    }
    return llvm::json::Value(std::move(elements));
  }

  llvm::Error readTensor() {
    constexpr uint32_t kMostDims = 4;
    std::string name = llvm::json::fixUTF8(cursor.string());
    const auto rank = cursor.number<uint32_t>();
    if (rank > kMostDims) {
      return fail("tensor '{0}' has {1} dims; allowed are at most {2}", name, rank, kMostDims);
    }
    Tensor tensor;
    for (uint32_t i = 0; i < rank; ++i) { // the file lists the contiguous dim first
      const auto dim = cursor.number<uint64_t>();
      tensor.shape.insert(tensor.shape.begin(), int64_t(dim));
      if (dim == 0 || dim > kMostElements || tensor.count() > kMostElements) {
        return cursor.isBeyondEnd() ? truncated() : fail("dim {1} of tensor '{0}' is {2}", name, i, dim);
      }
    }
    const auto code = cursor.number<uint32_t>();
    const auto offset = cursor.number<uint64_t>();
    if (cursor.isBeyondEnd()) {
      return truncated();
    }
    tensor.format = findFormat(code);
    if (!tensor.format) {
      return fail("tensor '{0}' has ggml's type {1}; supported are {2}", name, code, listFormats());
    }
    if ((tensor.shape.empty() ? 1 : tensor.shape.back()) % tensor.format->blockSize) {
      return fail("tensor '{0}' has rows of {1} numbers, but {2} has blocks of {3}", name,
                  tensor.shape.empty() ? 1 : tensor.shape.back(), tensor.format->name, tensor.format->blockSize);
    }
    offsets.push_back(offset);
    names.push_back(name);
    if (!file.tensors.try_emplace(name, std::move(tensor)).second) {
      return fail("it contains the tensor '{0}' twice", name);
    }
    return llvm::Error::success();
  }

  /// Finds the bytes of the tensors, which follow their list.
  llvm::Error placeTensors() {
    const uint64_t alignment = uint64_t(file.metadata.getInteger("general.alignment").value_or(32));
    if (!llvm::isPowerOf2_64(alignment) || alignment > (1 << 20)) {
      return fail("general.alignment is {0}; allowed are powers of two up to 2^20", int64_t(alignment));
    }
    const uint64_t begin = llvm::alignTo(cursor.at(), alignment);
    for (auto [name, offset] : llvm::zip_equal(names, offsets)) {
      Tensor &tensor = file.tensors[name];
      const uint64_t size = uint64_t(tensor.count() / tensor.format->blockSize) * uint64_t(tensor.format->blockBytes);
      if (begin > bytes.size() || offset > bytes.size() - begin || size > bytes.size() - begin - offset) {
        return fail("the {1} bytes of tensor '{0}' reach beyond the end of the file: it is incomplete or damaged", name,
                    size);
      }
      if (offset % alignment) {
        return fail("tensor '{0}' is at offset {1}, which is not a multiple of {2}", name, offset, alignment);
      }
      tensor.bytes = bytes.slice(begin + offset, size);
    }
    return llvm::Error::success();
  }

  llvm::Error truncated() const { return fail("it ends within its metadata: the file is incomplete or damaged"); }

  uint64_t elementsLeft = 1 << 24; ///< of all arrays; they take much more memory than in the file
  static constexpr int64_t kMostElements = int64_t(1) << 40;

  ArrayRef<char> bytes;
  Cursor cursor;
  GgufFile file;
  uint64_t tensorCount = 0, valueCount = 0;
  std::vector<std::string> names; ///< of the tensors, in file order
  std::vector<uint64_t> offsets;
};

} // namespace

llvm::Expected<GgufFile> GgufFile::parse(ArrayRef<char> bytes) { return Parser(bytes).run(); }

} // namespace tessera::top::gguf

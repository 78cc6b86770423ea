//===- TensorFormats.h - How checkpoints store numbers ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// ggml's formats consist of blocks. A block holds integers, and scales and minima in a compact form; every format reads
// as value = integer * scale + minimum, with one scale and minimum for a group of adjacent integers of a row.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IMPORT_GGUF_TENSORFORMATS_H
#define TESSERA_TOP_DIALECT_IMPORT_GGUF_TENSORFORMATS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::top::gguf {

/// One format. |decode| is null for formats that hold floats.
struct TensorFormat {
  uint32_t code; ///< ggml's number of the type
  llvm::StringLiteral name;
  int64_t blockSize, blockBytes;
  int64_t group = 0;      ///< number of integers that share a scale
  bool hasMinima = false; ///< otherwise all minima are 0
  void (*decode)(const uint8_t *block, int8_t *integers, float *scales, float *minima) = nullptr;
};

inline constexpr uint32_t kF32 = 0, kF16 = 1, kBF16 = 30;

/// Returns the format with ggml's number |code|, or null.
const TensorFormat *findFormat(uint32_t code);
/// Returns the names of all formats, e.g. "F32, F16, Q4_0".
std::string listFormats();

/// A tensor of a checkpoint. The bytes are in a mapped file.
struct Tensor {
  const TensorFormat *format = nullptr;
  llvm::SmallVector<int64_t, 4> shape; ///< row-major: the last dim is contiguous
  llvm::ArrayRef<char> bytes;
  bool isTransposed = false; ///< a matrix of floats whose columns are contiguous
  float addend = 0;          ///< floats are less than the numbers by it

  int64_t count() const;
};

/// A tensor as integers with a scale and, if the format has them, a minimum for each group.
struct GroupedNumbers {
  int64_t group = 0;
  std::vector<char> integers; ///< i8
  std::vector<float> scales, minima;
};

/// Writes the numbers of a tensor to |values|, which has tensor.count() elements.
void readFloats(const Tensor &tensor, llvm::MutableArrayRef<float> values);
/// The format must have a decode function.
GroupedNumbers readGroups(const Tensor &tensor);

} // namespace tessera::top::gguf

#endif // TESSERA_TOP_DIALECT_IMPORT_GGUF_TENSORFORMATS_H

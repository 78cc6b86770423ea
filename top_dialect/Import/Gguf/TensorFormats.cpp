//===- TensorFormats.cpp - How checkpoints store numbers ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Gguf/TensorFormats.h"

#include "top_dialect/IR/NarrowFloats.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

#include <cstring>

using llvm::MutableArrayRef;

namespace tessera::top::gguf {
namespace {

float half(const uint8_t *at) { return widenF16(llvm::support::endian::read16le(at)); }

/// Blocks of 32 integers of 4 or 5 bits: |isShifted| formats are centred at 0, others have a minimum. The low halves of
/// the bytes are the first 16 integers.
template <bool isShifted, bool hasFifthBit>
void decodeNibbles(const uint8_t *block, int8_t *q, float *scales, float *minima) {
  const uint8_t *at = block + (isShifted ? 2 : 4);
  const uint32_t high = hasFifthBit ? llvm::support::endian::read32le(at) : 0;
  at += hasFifthBit ? 4 : 0;
  const int centre = !isShifted ? 0 : hasFifthBit ? 16 : 8;
  for (int i = 0; i < 16; ++i) {
    q[i] = int8_t(((at[i] & 15) | (high >> i & 1) << 4) - centre);
    q[i + 16] = int8_t((at[i] >> 4 | (high >> (i + 16) & 1) << 4) - centre);
  }
  *scales = half(block);
  *minima = isShifted ? 0 : half(block + 2);
}

void decodeBytes(const uint8_t *block, int8_t *q, float *scales, float *minima) {
  *scales = half(block), *minima = 0;
  std::memcpy(q, block + 2, 32);
}

/// Reads scale and minimum |i| of 8 from 12 bytes of 6-bit numbers (Q4_K, Q5_K).
void readSixBits(const uint8_t *packed, int i, int &scale, int &minimum) {
  if (i < 4) {
    scale = packed[i] & 63, minimum = packed[i + 4] & 63;
  } else {
    scale = (packed[i + 4] & 15) | (packed[i - 4] >> 6) << 4;
    minimum = packed[i + 4] >> 4 | (packed[i] >> 6) << 4;
  }
}

/// Blocks of 256 integers of 4 or 5 bits in 8 groups.
template <bool hasFifthBit>
void decodeK45(const uint8_t *block, int8_t *q, float *scales, float *minima) {
  const float d = half(block), least = half(block + 2);
  const uint8_t *fifth = block + 16, *at = block + (hasFifthBit ? 48 : 16);
  for (int i = 0; i < 8; ++i) {
    int scale, minimum;
    readSixBits(block + 4, i, scale, minimum);
    scales[i] = d * float(scale), minima[i] = -(least * float(minimum));
    for (int k = 0; k < 32; ++k) {
      const int nibble = at[i / 2 * 32 + k] >> (i % 2 * 4) & 15;
      q[i * 32 + k] = int8_t(nibble | (hasFifthBit ? (fifth[k] >> i & 1) << 4 : 0));
    }
  }
}

void decodeQ2K(const uint8_t *block, int8_t *q, float *scales, float *minima) {
  const float d = half(block + 80), least = half(block + 82);
  for (int i = 0; i < 16; ++i) {
    scales[i] = d * float(block[i] & 15), minima[i] = -(least * float(block[i] >> 4));
    const uint8_t *at = block + 16 + i / 8 * 32 + i % 2 * 16;
    for (int k = 0; k < 16; ++k) {
      q[i * 16 + k] = int8_t(at[k] >> (i % 8 / 2 * 2) & 3);
    }
  }
}

void decodeQ3K(const uint8_t *block, int8_t *q, float *scales, float *minima) {
  const uint8_t *high = block, *low = block + 32, *packed = block + 96;
  const float d = half(block + 108);
  for (int i = 0; i < 16; ++i) {
    const int four = i < 8 ? packed[i] & 15 : packed[i - 8] >> 4;
    scales[i] = d * float((four | (packed[8 + i % 4] >> (i / 4 * 2) & 3) << 4) - 32), minima[i] = 0;
    for (int k = 0; k < 16; ++k) {
      const int at = i % 2 * 16 + k;
      const int bits = low[i / 8 * 32 + at] >> (i % 8 / 2 * 2) & 3;
      q[i * 16 + k] = int8_t(bits - ((high[at] >> (i / 2) & 1) ? 0 : 4));
    }
  }
}

void decodeQ6K(const uint8_t *block, int8_t *q, float *scales, float *minima) {
  const float d = half(block + 208);
  for (int i = 0; i < 16; ++i) {
    scales[i] = d * float(int8_t(block[192 + i])), minima[i] = 0;
    const int half128 = i / 8, quarter = i % 8 / 2; // quarters of 32 integers of a half
    for (int k = 0; k < 16; ++k) {
      const int at = i % 2 * 16 + k;
      const int low = block[half128 * 64 + quarter % 2 * 32 + at] >> (quarter / 2 * 4) & 15;
      const int high = block[128 + half128 * 32 + at] >> (quarter * 2) & 3;
      q[i * 16 + k] = int8_t((low | high << 4) - 32);
    }
  }
}

constexpr TensorFormat kFormats[] = {
    {kF32, "F32", 1, 4},
    {kF16, "F16", 1, 2},
    {kBF16, "BF16", 1, 2},
    {2, "Q4_0", 32, 18, 32, false, decodeNibbles<true, false>},
    {3, "Q4_1", 32, 20, 32, true, decodeNibbles<false, false>},
    {6, "Q5_0", 32, 22, 32, false, decodeNibbles<true, true>},
    {7, "Q5_1", 32, 24, 32, true, decodeNibbles<false, true>},
    {8, "Q8_0", 32, 34, 32, false, decodeBytes},
    {10, "Q2_K", 256, 84, 16, true, decodeQ2K},
    {11, "Q3_K", 256, 110, 16, false, decodeQ3K},
    {12, "Q4_K", 256, 144, 32, true, decodeK45<false>},
    {13, "Q5_K", 256, 176, 32, true, decodeK45<true>},
    {14, "Q6_K", 256, 210, 16, false, decodeQ6K},
};

} // namespace

const TensorFormat *findFormat(uint32_t code) {
  const auto *found = llvm::find_if(kFormats, [&](const TensorFormat &format) { return format.code == code; });
  return found == std::end(kFormats) ? nullptr : found;
}

std::string listFormats() {
  return llvm::join(llvm::map_range(kFormats, [](const TensorFormat &format) { return format.name.str(); }), ", ");
}

int64_t Tensor::count() const {
  int64_t count = 1;
  for (int64_t dim : shape) {
    count *= dim;
  }
  return count;
}

GroupedNumbers readGroups(const Tensor &tensor) {
  const TensorFormat &format = *tensor.format;
  const int64_t count = tensor.count(), groups = format.blockSize / format.group;
  GroupedNumbers numbers{format.group, std::vector<char>(count), std::vector<float>(count / format.group),
                         std::vector<float>(count / format.group)};
  auto *integers = reinterpret_cast<int8_t *>(numbers.integers.data());
  for (int64_t i = 0, blocks = count / format.blockSize; i < blocks; ++i) {
    format.decode(reinterpret_cast<const uint8_t *>(tensor.bytes.data()) + i * format.blockBytes,
                  integers + i * format.blockSize, &numbers.scales[i * groups], &numbers.minima[i * groups]);
  }
  if (!format.hasMinima) {
    numbers.minima.clear();
  }
  return numbers;
}

namespace {

/// Reads a tensor in F32, F16 or BF16.
template <typename Read>
void readEach(const Tensor &tensor, MutableArrayRef<float> values, Read read) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(tensor.bytes.data());
  const int64_t count = tensor.count(), size = tensor.format->blockBytes;
  if (!tensor.isTransposed) {
    for (int64_t i = 0; i < count; ++i) {
      values[i] = read(bytes + i * size) + tensor.addend;
    }
    return;
  }
  const int64_t columns = tensor.shape[1], rows = count / std::max<int64_t>(columns, 1);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      values[row * columns + column] = read(bytes + (column * rows + row) * size) + tensor.addend;
    }
  }
}

/// Reads a tensor in a format with groups, block by block.
void readBlocks(const Tensor &tensor, MutableArrayRef<float> values) {
  const TensorFormat &format = *tensor.format;
  constexpr int64_t kLargestBlock = 256, kMostGroups = 16;
  int8_t integers[kLargestBlock];
  float scales[kMostGroups], minima[kMostGroups];
  for (int64_t block = 0, blocks = tensor.count() / format.blockSize; block < blocks; ++block) {
    format.decode(reinterpret_cast<const uint8_t *>(tensor.bytes.data()) + block * format.blockBytes, integers, scales,
                  minima);
    float *out = values.data() + block * format.blockSize;
    for (int64_t group = 0, at = 0; at < format.blockSize; ++group) {
      const float scale = scales[group], minimum = format.hasMinima ? minima[group] : 0;
      for (const int64_t end = at + format.group; at < end; ++at) {
        out[at] = float(integers[at]) * scale + minimum;
      }
    }
  }
}

} // namespace

void readFloats(const Tensor &tensor, MutableArrayRef<float> values) {
  switch (tensor.format->code) {
  case kF32:
    return readEach(tensor, values,
                    [](const uint8_t *at) { return llvm::bit_cast<float>(llvm::support::endian::read32le(at)); });
  case kF16:
    return readEach(tensor, values, half);
  case kBF16:
    return readEach(tensor, values, [](const uint8_t *at) { return widenBf16(llvm::support::endian::read16le(at)); });
  default:
    return readBlocks(tensor, values);
  }
}

} // namespace tessera::top::gguf

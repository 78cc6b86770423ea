// SPDX-License-Identifier: Apache-2.0
//===- TensorLayout.cpp - Sizes of element types and layouts --------------===//
#include "bmodel/tensor_layout.h"

#include <cstring>

using namespace bmodel;

uint32_t bmodel::dtypeBytes(DType dtype) {
  switch (dtype) {
  case DType::I8:
  case DType::U8:
  case DType::Bool:
    return 1;
  case DType::F16:
  case DType::BF16:
  case DType::I16:
  case DType::U16:
    return 2;
  case DType::F32:
  case DType::I32:
  case DType::U32:
    return 4;
  case DType::F64:
  case DType::I64:
  case DType::U64:
    return 8;
  }
  return 0;
}

const char *bmodel::dtypeName(DType dtype) {
  static const char *const names[] = {"f32", "f16", "bf16", "f64", "i8",  "i16", "i32",
                                      "i64", "u8",  "u16",  "u32", "u64", "bool"};
  static_assert(sizeof(names) / sizeof(names[0]) == size_t(DType::MAX) + 1);
  return size_t(dtype) <= size_t(DType::MAX) ? names[size_t(dtype)] : "?";
}

bool bmodel::storedBytes(DType dtype, const int64_t *shape, uint32_t rank, LayoutKind layout, uint32_t block,
                         uint32_t blockAxis, uint64_t &bytes) {
  const bool blocked = layout == LayoutKind::ChannelBlocked;
  if ((!blocked && layout != LayoutKind::RowMajor) || (blocked && (block == 0 || blockAxis >= rank))) {
    return false;
  }
  constexpr uint64_t kLimit = uint64_t(1) << 62;
  uint64_t total = dtypeBytes(dtype);
  if (total == 0) {
    return false;
  }
  bool empty = false;
  for (uint32_t i = 0; i < rank; ++i) {
    if (shape[i] < 0) {
      return false;
    }
    uint64_t size = uint64_t(shape[i]);
    if (blocked && i == blockAxis) {
      size = (size + block - 1) / block * block;
    }
    // A zero dimension must not hide a later dimension that does not fit.
    empty |= size == 0;
    size = size == 0 ? 1 : size;
    if (size > kLimit / total) {
      return false;
    }
    total *= size;
  }
  bytes = empty ? 0 : total;
  return true;
}

void bmodel::unblock(const void *from, void *to, uint32_t elementBytes, const int64_t *shape, uint32_t rank,
                     uint32_t block, uint32_t blockAxis) {
  int64_t outer = 1, inner = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    (i < blockAxis ? outer : inner) *= i == blockAxis ? 1 : shape[i];
  }
  const int64_t channels = shape[blockAxis];
  const int64_t blocks = (channels + block - 1) / block;
  const char *source = static_cast<const char *>(from);
  char *target = static_cast<char *>(to);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t c = 0; c < channels; ++c) {
      const char *lane = source + ((o * blocks + c / block) * inner * block + c % block) * elementBytes;
      for (int64_t i = 0; i < inner; ++i) {
        memcpy(target, lane + i * block * elementBytes, elementBytes);
        target += elementBytes;
      }
    }
  }
}

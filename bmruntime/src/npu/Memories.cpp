// SPDX-License-Identifier: Apache-2.0
//===- Memories.cpp - Access to tensors of commands -------------------------===//
#include "Memories.h"

#include "EveryWidth.h"
#include "SmallFloat.h"

#include <cmath>
#include <cstring>

namespace bmrt::npu {
namespace {

template <typename T>
[[gnu::always_inline]] inline void loadAs(float *out, const unsigned char *from, int64_t step, uint32_t count) {
  auto loop = [&](int64_t known) __attribute__((always_inline)) {
    for (uint32_t i = 0; i < count; ++i) {
      T value;
      memcpy(&value, from + int64_t(i) * known, sizeof(T));
      out[i] = toFloat(value);
    }
  };
  step == int64_t(sizeof(T)) ? loop(sizeof(T)) : loop(step);
}

template <typename T>
[[gnu::always_inline]] inline void storeAs(const float *values, unsigned char *to, int64_t step, uint32_t count) {
  auto loop = [&](int64_t known) __attribute__((always_inline)) {
    for (uint32_t i = 0; i < count; ++i) {
      T value = fromFloat<T>(values[i]);
      memcpy(to + int64_t(i) * known, &value, sizeof(T));
    }
  };
  step == int64_t(sizeof(T)) ? loop(sizeof(T)) : loop(step);
}

/// Calls visit with a value of the type's C++ type.
template <typename Visit>
[[gnu::always_inline]] inline void withType(Type type, Visit visit) {
  switch (type) {
  case Type::i8:
    return visit(int8_t());
  case Type::u8:
    return visit(uint8_t());
  case Type::i16:
    return visit(int16_t());
  case Type::i32:
    return visit(int32_t());
  case Type::bf16:
    return visit(Bf16());
  case Type::f16:
    return visit(F16());
  case Type::f32:
    return visit(float());
  }
}

NPU_EVERY_WIDTH void loadRow(float *out, const unsigned char *from, int64_t step, Type type, uint32_t count) {
  withType(type, [&](auto value) __attribute__((always_inline)) { loadAs<decltype(value)>(out, from, step, count); });
}

NPU_EVERY_WIDTH void storeRow(const float *values, unsigned char *to, int64_t step, Type type, uint32_t count) {
  withType(type, [&](auto value) __attribute__((always_inline)) { storeAs<decltype(value)>(values, to, step, count); });
}

} // namespace

void Rows::load(float *out, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) const {
  loadRow(out, at(n, c, h) + int64_t(w) * step(), step(), type, count);
}

void Rows::store(const float *values, uint32_t n, uint32_t c, uint32_t h, uint32_t w, uint32_t count) const {
  storeRow(values, at(n, c, h) + int64_t(w) * step(), step(), type, count);
}

Area Memories::areaOf(Region region) const {
  switch (region) {
  case Region::none:
    return {};
  case Region::local:
    return {reinterpret_cast<unsigned char *>(local.data()), chip.localBytes()};
  case Region::constants:
    return buffers.constants;
  case Region::workspace:
    return buffers.workspace;
  default:
    break;
  }
  uint32_t index = uint32_t(region) - uint32_t(Region::io);
  return index < buffers.ioCount ? buffers.io[index] : Area();
}

} // namespace bmrt::npu

// SPDX-License-Identifier: Apache-2.0
//===- OutputStage.cpp - From sums to stored elements -----------------------===//
#include "Arithmetic.h"
#include "Execute.h"

#include "bmodel/numerics.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bmrt::npu {

using bmodel::npu::Output;

OutputStage::Channel OutputStage::channel(uint32_t c) const {
  Channel made{0, output.factor, std::bit_cast<int32_t>(output.divisor)};
  if (p) {
    const unsigned char *at = p.at(0, c, 0);
    memcpy(&made.bias, at, sizeof made.bias);
    if (output.flags & Output::perChannel) {
      memcpy(&made.factor, at + p.step(), sizeof made.factor);
      if (output.flags & Output::integral) {
        memcpy(&made.shift, at + 2 * p.step(), sizeof made.shift);
      }
    }
  }
  made.shift = std::clamp(made.shift, 1, 62);
  return made;
}

void OutputStage::storeRaw(const double *sums, int32_t bias, unsigned char *to, uint32_t count) const {
  for (uint32_t i = 0; i < count; ++i) {
    int32_t sum = int32_t(int64_t(sums[i]) + bias);
    memcpy(to + int64_t(i) * y.step(), &sum, sizeof sum);
  }
}

void OutputStage::requantise(const double *sums, float *v, const Channel &channel, uint32_t count) const {
  bmodel::numerics::FixedFactor factor{std::bit_cast<int32_t>(channel.factor), channel.shift};
  auto round = twice ? bmodel::numerics::requantiseTflite : bmodel::numerics::requantiseFixed;
  for (uint32_t i = 0; i < count; ++i) {
    int32_t sum = int32_t(int64_t(sums[i]) + channel.bias);
    v[i] = float(round(sum, factor, int32_t(output.zeroPoint), int32_t(output.lower), int32_t(output.upper)));
  }
}

void OutputStage::finish(float *v, const Channel &channel, uint32_t n, uint32_t c, uint32_t h, uint32_t w,
                         uint32_t count) const {
  if (channel.factor != 1) {
    scale(v, channel.factor, count);
  }
  if (r) {
    float addend[kChunk];
    r.load(addend, n, c, h, w, count);
    addScaled(v, addend, float(output.residualZero), output.residualScale, count);
  }
  apply(output.function, output.alpha, v, count);
  if (output.flags & Output::clamps) {
    clamp(v, output.lower, output.upper, count);
  }
  if (!bmodel::npu::isFloat(y.elementType())) {
    quantise(v, output.divisor, output.zeroPoint, count);
  }
  y.store(v, n, c, h, w, count);
}

void OutputStage::store(const double *sums, uint32_t n, uint32_t c, uint32_t h, uint32_t count) const {
  Channel own = channel(c);
  for (uint32_t w = 0; w < count; w += kChunk) {
    uint32_t part = std::min(kChunk, count - w);
    if (output.flags & Output::raw) {
      storeRaw(sums + w, own.bias, y.at(n, c, h) + int64_t(w) * y.step(), part);
      continue;
    }
    float v[kChunk];
    if (output.flags & Output::integral) {
      requantise(sums + w, v, own, part);
      y.store(v, n, c, h, w, part);
      continue;
    }
    for (uint32_t i = 0; i < part; ++i) {
      v[i] = float(int32_t(int64_t(sums[w + i]) + own.bias));
    }
    finish(v, own, n, c, h, w, part);
  }
}

void OutputStage::store(const float *sums, uint32_t n, uint32_t c, uint32_t h, uint32_t count) const {
  Channel own = channel(c);
  float bias;
  memcpy(&bias, &own.bias, sizeof bias);
  for (uint32_t w = 0; w < count; w += kChunk) {
    uint32_t part = std::min(kChunk, count - w);
    float v[kChunk];
    for (uint32_t i = 0; i < part; ++i) {
      v[i] = own.bias ? sums[w + i] + bias : sums[w + i]; // 0 must not take the sign of -0
    }
    finish(v, own, n, c, h, w, part);
  }
}

} // namespace bmrt::npu

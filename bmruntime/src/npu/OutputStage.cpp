// SPDX-License-Identifier: Apache-2.0
//===- OutputStage.cpp - From sums to stored elements -----------------------===//
#include "Arithmetic.h"
#include "Execute.h"

#include "bmodel/numerics.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace bmrt::npu {

using bmodel::npu::Output;

namespace {

/// Returns sum + bias modulo 2^32.
int32_t biased(int32_t sum, int32_t bias) { return int32_t(uint32_t(sum) + uint32_t(bias)); }

bool joinsRows(const Tensor &tensor, uint32_t width) {
  return tensor.region == Region::none || tensor.strides[2] == int64_t(width) * tensor.strides[3];
}

} // namespace

OutputStage::OutputStage(const Output &output, const Machine &machine, const Shape &shape, const Tensor &y,
                         const Tensor &r, const Tensor &p, Parameters parameters)
    : output(output), twice(machine.chip.requantise == "tflite"), width(shape.dims[3]), y(machine.memories.rows(y)),
      r(machine.memories.rows(r)), p(machine.memories.rows(p)), parameters(parameters) {
  if (joinsRows(y, width) && joinsRows(r, width)) {
    width *= shape.dims[2];
  }
}

OutputStage::Channel OutputStage::channel(uint32_t c) const {
  Channel result{0, output.factor, std::bit_cast<int32_t>(output.divisor), 1};
  if (p) {
    const unsigned char *at = p.at(0, c, 0);
    memcpy(&result.bias, at, sizeof result.bias);
    if (output.flags & Output::perChannel) {
      memcpy(&result.factor, at + p.step(), sizeof result.factor);
      if (output.flags & Output::integral) {
        memcpy(&result.shift, at + 2 * p.step(), sizeof result.shift);
      }
    }
    if (output.flags & Output::gains) {
      memcpy(&result.gain, at + 2 * p.step(), sizeof result.gain);
    }
  }
  result.shift = std::clamp(result.shift, 1, 62);
  return result;
}

void OutputStage::requantise(const int32_t *sums, float *v, const Channel &channel, uint32_t count) const {
  bmodel::numerics::FixedFactor factor{std::bit_cast<int32_t>(channel.factor), channel.shift};
  auto round = twice ? bmodel::numerics::requantiseTflite : bmodel::numerics::requantiseFixed;
  for (uint32_t i = 0; i < count; ++i) {
    v[i] = float(round(biased(sums[i], channel.bias), factor, int32_t(output.zeroPoint), int32_t(output.lower),
                       int32_t(output.upper)));
  }
}

void OutputStage::addResidual(float *v, const Place &place, uint32_t count) const {
  float addend[kChunk];
  r.load(addend, place.n, place.c, place.h, place.w, count);
  addScaled(v, addend, float(output.residualZero), output.residualScale, count);
}

template <typename Scale, typename Gain>
void OutputStage::finish(float *v, Scale scaleAll, Gain gainAll, const Place &place, uint32_t count) const {
  bool isLate = output.flags & Output::late, isStored = output.flags & Output::stored;
  scaleAll(v);
  if (r && !isLate) {
    addResidual(v, place, count);
  }
  apply(output.function, output.alpha, v, count);
  gainAll(v);
  if (r && isLate) {
    addResidual(v, place, count);
  }
  if (output.flags & Output::clamps && !isStored) {
    clamp(v, output.lower, output.upper, count);
  }
  if (!bmodel::npu::isFloat(y.elementType())) {
    quantise(v, output.divisor, output.zeroPoint, count);
  }
  if (isStored) {
    clamp(v, output.lower, output.upper, count);
  }
  y.store(v, place.n, place.c, place.h, place.w, count);
}

void OutputStage::finish(float *v, const Channel &channel, const Place &place, uint32_t count) const {
  auto times = [count](float factor) {
    return [=](float *of) {
      if (factor != 1) {
        scale(of, factor, count);
      }
    };
  };
  finish(v, times(channel.factor), times(channel.gain), place, count);
}

/// Stores a part of a row in which each element has the parameters of its column.
template <typename Sum>
void OutputStage::storeColumns(const Sum *sums, const Place &place, uint32_t count) const {
  float v[kChunk], factors[kChunk], gains[kChunk];
  for (uint32_t i = 0; i < count; ++i) {
    Channel own = channel(place.w + i);
    factors[i] = own.factor, gains[i] = own.gain;
    if constexpr (std::is_same_v<Sum, float>) {
      v[i] = own.bias ? sums[i] + std::bit_cast<float>(own.bias) : sums[i];
    } else if (output.flags & Output::raw) {
      int32_t sum = biased(sums[i], own.bias);
      memcpy(y.at(place.n, place.c, place.h) + int64_t(place.w + i) * y.step(), &sum, sizeof sum);
    } else if (output.flags & Output::integral) {
      requantise(sums + i, v + i, own, 1);
    } else {
      toFloats(v + i, sums + i, own.bias, 1);
    }
  }
  if (output.flags & Output::raw) {
    return;
  }
  if (output.flags & Output::integral) {
    return y.store(v, place.n, place.c, place.h, place.w, count);
  }
  auto times = [count](const float *by) {
    return [=](float *of) { apply({.op = bmodel::npu::Op::mul}, of, of, by, of, count); };
  };
  finish(v, times(factors), times(gains), place, count);
}

void OutputStage::storeRow(const int32_t *sums, const Channel &channel, const Place &place, uint32_t count) const {
  if (output.flags & Output::raw) {
    unsigned char *to = y.at(place.n, place.c, place.h) + int64_t(place.w) * y.step();
    for (uint32_t i = 0; i < count; ++i) {
      int32_t sum = biased(sums[i], channel.bias);
      memcpy(to + int64_t(i) * y.step(), &sum, sizeof sum);
    }
    return;
  }
  float v[kChunk];
  if (output.flags & Output::integral) {
    requantise(sums, v, channel, count);
    return y.store(v, place.n, place.c, place.h, place.w, count);
  }
  toFloats(v, sums, channel.bias, count);
  finish(v, channel, place, count);
}

void OutputStage::storeRow(const float *sums, const Channel &channel, const Place &place, uint32_t count) const {
  float v[kChunk], bias = std::bit_cast<float>(channel.bias);
  for (uint32_t i = 0; i < count; ++i) {
    v[i] = channel.bias ? sums[i] + bias : sums[i]; // adding a bias of 0 would change -0 to +0
  }
  finish(v, channel, place, count);
}

template <typename Sum>
void OutputStage::split(const Sum *sums, uint32_t n, uint32_t c, uint64_t at, uint32_t count) const {
  bool ofColumns = parameters == Parameters::ofColumns;
  Channel own = channel(ofColumns ? 0 : c);
  for (uint32_t done = 0, part; done < count; done += part) {
    Place place{n, c, uint32_t((at + done) / width), uint32_t((at + done) % width)};
    part = std::min({kChunk, count - done, width - place.w});
    ofColumns ? storeColumns(sums + done, place, part) : storeRow(sums + done, own, place, part);
  }
}

template void OutputStage::split(const int32_t *, uint32_t, uint32_t, uint64_t, uint32_t) const;
template void OutputStage::split(const float *, uint32_t, uint32_t, uint64_t, uint32_t) const;

} // namespace bmrt::npu

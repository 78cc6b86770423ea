// SPDX-License-Identifier: Apache-2.0
//===- Moments.cpp - Moments of the inputs of convolutions and matmuls ----===//
#include "quant/Calibration/Moments.h"

#include "quant/Calibration/Histogram.h"
#include "quant/Calibration/MultiplyAdd.h"
#include <algorithm>
#include <stdexcept>

namespace tessera::quant {

Patches::Patches(std::vector<int64_t> shape, Window given) : window(std::move(given)) {
  const size_t rank = window.kernel.size();
  if (shape.size() != rank + 2 || window.strides.size() != rank || window.pads.size() != 2 * rank ||
      window.dilations.size() != rank || window.groups < 1 || shape[1] % window.groups != 0) {
    throw std::invalid_argument("the window does not fit its input");
  }
  channels = shape[1] / window.groups;
  batch = count = shape[0];
  sizes.assign(shape.begin() + 2, shape.end());
  for (size_t d = 0; d < rank; ++d) {
    const int64_t span = window.dilations[d] * (window.kernel[d] - 1) + 1;
    const int64_t room = sizes[d] + window.pads[d] + window.pads[rank + d] - span;
    if (window.kernel[d] < 1 || window.strides[d] < 1 || room < 0) {
      throw std::invalid_argument("the window does not fit its input");
    }
    outputs.push_back(room / window.strides[d] + 1);
    count *= outputs.back();
    plane *= sizes[d];
    taps *= window.kernel[d];
  }
  for (int64_t tap = 0; tap < taps; ++tap) {
    offsets.resize(offsets.size() + rank);
    for (int64_t d = int64_t(rank), rest = tap; d-- > 0; rest /= window.kernel[size_t(d)]) {
      offsets[size_t(tap) * rank + size_t(d)] = rest % window.kernel[size_t(d)] * window.dilations[size_t(d)];
    }
  }
}

Patches::Places Patches::locate(const std::vector<int64_t> &positions) const {
  const size_t rank = sizes.size();
  std::vector<int64_t> begin(rank);
  Places places;
  for (int64_t position : positions) {
    for (size_t d = rank; d-- > 0; position /= outputs[d]) {
      begin[d] = position % outputs[d] * window.strides[d] - window.pads[d];
    }
    places.samples.push_back(position);
    for (int64_t tap = 0; tap < taps; ++tap) {
      int64_t place = 0;
      bool inside = true;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = begin[d] + offsets[size_t(tap) * rank + d];
        inside = inside && at >= 0 && at < sizes[d];
        place = place * sizes[d] + at;
      }
      places.taps.push_back(inside ? place : -1);
    }
  }
  return places;
}

void Patches::gather(const float *input, const Places &places, int64_t group, float *rows, int64_t stride) const {
  const int64_t *place = places.taps.data();
  for (int64_t sample : places.samples) {
    const float *first = input + (sample * window.groups + group) * channels * plane;
    for (int64_t tap = 0; tap < taps; ++tap, ++place) {
      for (int64_t c = 0; c < channels; ++c) {
        rows[c * taps + tap] = *place < 0 ? 0.0f : first[c * plane + *place];
      }
    }
    rows += stride;
  }
}

Moments::Moments(int64_t groups, int64_t depth, bool second)
    : groups(groups), depth(depth), exact(size_t(groups * depth)), rounded(size_t(groups * depth)),
      lower(second ? size_t(groups * depth * padded(depth)) : 0) {}

static void addColumns(const std::vector<float> &rows, int64_t stride, int64_t columns, double *sums) {
  for (size_t begin = 0; begin < rows.size(); begin += size_t(stride)) {
    for (int64_t k = 0; k < columns; ++k) {
      sums[k] += rows[begin + size_t(k)];
    }
  }
}

/// Clips |values| to the range of |grid|. Bias correction cannot compensate the clipping error, which occurs with some
/// inputs only, so the moments leave it out.
static void clip(std::vector<float> &values, const Grid &grid) {
  const float low = grid.scale * float(grid.lowest - grid.zeroPoint), high = grid.scale * float(127 - grid.zeroPoint);
  for (float &value : values) {
    value = std::min(std::max(value, low), high);
  }
}

void Moments::add(const Patches &patches, const float *input, const std::vector<int64_t> &positions,
                  const std::optional<Grid> &grid) {
  const int64_t stride = padded(depth), rows = int64_t(positions.size());
  const Patches::Places places = patches.locate(positions);
  std::vector<float> values(size_t(rows * stride));
  for (int64_t group = 0; group < groups; ++group) {
    patches.gather(input, places, group, values.data(), stride);
    if (grid) {
      clip(values, *grid);
    }
    addColumns(values, stride, depth, exact.data() + group * depth);
    if (grid) {
      fakeQuantise(values.data(), values.size(), grid->scale, grid->zeroPoint, grid->lowest, 127);
    }
    addColumns(values, stride, depth, rounded.data() + group * depth);
    float *sums = lower.data() + group * depth * stride;
    for (int64_t i = 0; !lower.empty() && i < depth; i += kPanel) { // on and below the diagonal
      const int64_t height = std::min(kPanel, depth - i);
      multiplyAdd(values.data() + i, stride, values.data(), stride, rows, 1.0f, sums + i * stride, stride, height,
                  i + height);
    }
  }
  count += rows;
}

std::vector<float> Moments::products() const {
  std::vector<float> result(lower.empty() ? 0 : size_t(groups * depth * depth));
  for (int64_t group = 0; !lower.empty() && group < groups; ++group) {
    const float *from = lower.data() + group * depth * padded(depth);
    float *to = result.data() + group * depth * depth;
    for (int64_t i = 0; i < depth; ++i) {
      for (int64_t j = 0; j <= i; ++j) {
        to[i * depth + j] = to[j * depth + i] = from[i * padded(depth) + j];
      }
    }
  }
  return result;
}

CrossMoments::CrossMoments(int64_t groups, int64_t left, int64_t right)
    : groups(groups), left(left), right(right), sums(size_t(groups * left * padded(right))) {}

void CrossMoments::add(const Patches &leftPatches, const float *leftInput, const Patches &rightPatches,
                       const float *rightInput, const std::vector<int64_t> &positions) {
  const int64_t leftStride = padded(left), stride = padded(right), rows = int64_t(positions.size());
  const Patches::Places leftPlaces = leftPatches.locate(positions), places = rightPatches.locate(positions);
  std::vector<float> leftRows(size_t(rows * leftStride)), rightRows(size_t(rows * stride));
  for (int64_t group = 0; group < groups; ++group) {
    leftPatches.gather(leftInput, leftPlaces, group, leftRows.data(), leftStride);
    rightPatches.gather(rightInput, places, group, rightRows.data(), stride);
    for (int64_t i = 0; i < left; i += kPanel) {
      multiplyAdd(leftRows.data() + i, leftStride, rightRows.data(), stride, rows, 1.0f,
                  sums.data() + (group * left + i) * stride, stride, std::min(kPanel, left - i), right);
    }
  }
  count += rows;
}

std::vector<float> CrossMoments::products() const {
  std::vector<float> result;
  result.reserve(size_t(groups * left * right));
  for (int64_t row = 0; row < groups * left; ++row) {
    const float *from = sums.data() + row * padded(right);
    result.insert(result.end(), from, from + right);
  }
  return result;
}

} // namespace tessera::quant

// SPDX-License-Identifier: Apache-2.0
//===- Moments.h - What a convolution or matmul reads, summed up -*- C++ -*-===//
#ifndef QUANT_CALIBRATION_MOMENTS_H
#define QUANT_CALIBRATION_MOMENTS_H

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::quant {

/// How a convolution walks its input [N, C, D...]. A matmul of [N, K] is one without D.
struct Window {
  int64_t groups = 1;
  std::vector<int64_t> kernel, strides, pads, dilations; ///< one per D; pads: all begins, then all ends
};

/// Input positions that each output position of a convolution is made from: rows as im2col has them.
class Patches {
public:
  /// |shape| is that of the input. Throws std::invalid_argument where the two do not fit.
  Patches(std::vector<int64_t> shape, Window window);

  /// Output positions over all N.
  int64_t positions() const { return count; }
  /// Elements of a row: channels of a group, taps of each beside each other.
  int64_t depth() const { return channels * taps; }
  int64_t groups() const { return window.groups; }
  /// Of the input.
  int64_t elements() const { return batch * window.groups * channels * plane; }

  /// Where the elements of the rows at |positions| lie: what is the same for every group, found once.
  struct Places {
    std::vector<int64_t> samples; ///< of each position: which N
    std::vector<int64_t> taps;    ///< [positions, taps] in a channel's plane; -1 beyond the input's edge
  };
  Places locate(const std::vector<int64_t> &positions) const;

  /// The rows of |group| into |rows|, |stride| floats apart; zeros beyond the input's edge.
  void gather(const float *input, const Places &places, int64_t group, float *rows, int64_t stride) const;

private:
  Window window;
  std::vector<int64_t> sizes, outputs;
  std::vector<int64_t> offsets; ///< [taps][rank], from where the window begins
  int64_t batch, channels, taps = 1, plane = 1, count;
};

/// A way to quantise: scale * (q - zeroPoint), q in [lowest, 127].
struct Grid {
  float scale;
  int zeroPoint, lowest;
};

/// First and second moments of rows, over all samples; their size does not depend on the number of samples.
class Moments {
public:
  /// |second|: whether second moments are wanted.
  Moments(int64_t groups, int64_t depth, bool second);

  /// Adds the rows of one sample at |positions|, the same for every group, quantised by |grid|, or as they are.
  void add(const Patches &patches, const float *input, const std::vector<int64_t> &positions,
           const std::optional<Grid> &grid);

  const int64_t groups, depth;
  int64_t count = 0;                  ///< rows of each group
  std::vector<double> exact, rounded; ///< [groups, depth]: sums within the grid's range, before and after rounding
  /// [groups, depth, depth] without padding: sums of products of the rounded ones. Empty if they were not wanted.
  std::vector<float> products() const;

private:
  std::vector<float> lower; ///< [groups, depth, padded(depth)]; valid on and below the diagonal
};

/// Sums of products of the elements of two kinds of rows, at the same positions.
class CrossMoments {
public:
  CrossMoments(int64_t groups, int64_t left, int64_t right);

  /// Adds the rows of one sample at |positions|; both kinds have as many positions.
  void add(const Patches &leftPatches, const float *left, const Patches &rightPatches, const float *right,
           const std::vector<int64_t> &positions);

  const int64_t groups, left, right; ///< elements of a row
  int64_t count = 0;                 ///< rows of each group
  /// [groups, left, right] without padding.
  std::vector<float> products() const;

private:
  std::vector<float> sums; ///< [groups, left, padded(right)]
};

} // namespace tessera::quant

#endif // QUANT_CALIBRATION_MOMENTS_H

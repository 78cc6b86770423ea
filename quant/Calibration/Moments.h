// SPDX-License-Identifier: Apache-2.0
//===- Moments.h - Moments of the inputs of convolutions and matmuls --*- C++ -*-===//
#ifndef TESSERA_QUANT_CALIBRATION_MOMENTS_H
#define TESSERA_QUANT_CALIBRATION_MOMENTS_H

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera::quant {

/// Parameters of a convolution over an input [N, C, D...]. A matmul of [N, K] is a convolution without spatial dims D.
struct Window {
  int64_t groups = 1;
  std::vector<int64_t> kernel, strides, pads, dilations; ///< one entry per D; pads lists all begins, then all ends
};

/// The im2col matrix of an input: one row per output position of a convolution, with the inputs that the position
/// reads.
class Patches {
public:
  /// |shape| is the shape of the input. Throws std::invalid_argument if |window| does not fit it.
  Patches(std::vector<int64_t> shape, Window window);

  /// Returns the number of output positions, summed over all N.
  int64_t positions() const { return count; }
  /// Returns the length of a row: channels of one group times taps; the taps of a channel are adjacent.
  int64_t depth() const { return channels * taps; }
  int64_t groups() const { return window.groups; }
  /// Returns the number of elements of the input.
  int64_t elements() const { return batch * window.groups * channels * plane; }

  /// Source positions of the elements of rows. They are the same for every group and therefore computed only once.
  struct Places {
    std::vector<int64_t> samples; ///< for each position, its index in N
    std::vector<int64_t> taps;    ///< [positions, taps] offset in a channel's plane; -1 outside the input
  };
  /// Returns the source positions of the rows at |positions|.
  Places locate(const std::vector<int64_t> &positions) const;

  /// Copies the rows of |group| to |rows|, |stride| floats apart. Elements outside the input are zero.
  void gather(const float *input, const Places &places, int64_t group, float *rows, int64_t stride) const;

private:
  Window window;
  std::vector<int64_t> sizes, outputs;
  std::vector<int64_t> offsets; ///< [taps][rank], relative to the window's first element
  int64_t batch, channels, taps = 1, plane = 1, count;
};

/// A quantised type: real value = scale * (q - zeroPoint), with q in [lowest, 127].
struct Grid {
  float scale;
  int zeroPoint, lowest;
};

/// First and second moments of rows over all samples. Their size does not depend on the number of samples.
class Moments {
public:
  /// Allocates second moments only if |second| is set.
  Moments(int64_t groups, int64_t depth, bool second);

  /// Adds the rows of one sample at |positions| (the same for every group), quantised by |grid| if it is given.
  void add(const Patches &patches, const float *input, const std::vector<int64_t> &positions,
           const std::optional<Grid> &grid);

  const int64_t groups, depth;
  int64_t count = 0;                  ///< rows of each group
  std::vector<double> exact, rounded; ///< [groups, depth]: sums of values clipped to the grid's range, before and after
                                      ///< rounding
  /// Returns the second moments of the rounded values [groups, depth, depth], without padding; empty if they were not
  /// requested.
  std::vector<float> products() const;

private:
  std::vector<float> lower; ///< [groups, depth, padded(depth)]; valid on and below the diagonal
};

/// Sums of products of the elements of two kinds of rows at the same positions.
class CrossMoments {
public:
  CrossMoments(int64_t groups, int64_t left, int64_t right);

  /// Adds the rows of one sample at |positions|. Both kinds of rows have the same number of positions.
  void add(const Patches &leftPatches, const float *left, const Patches &rightPatches, const float *right,
           const std::vector<int64_t> &positions);

  const int64_t groups, left, right; ///< row lengths
  int64_t count = 0;                 ///< rows of each group
  /// Returns the sums [groups, left, right] without padding.
  std::vector<float> products() const;

private:
  std::vector<float> sums; ///< [groups, left, padded(right)]
};

} // namespace tessera::quant

#endif // TESSERA_QUANT_CALIBRATION_MOMENTS_H

//===- ResizeTaps.cpp - Interpolation weights of resize -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Reference/ResizeTaps.h"

#include "top_dialect/IR/Sizes.h"

#include <algorithm>
#include <cmath>

using namespace tessera::top;

namespace {

/// Parameters of one dim of a resize.
struct ResizeDim {
  mutable ResizeOp op; // generated accessors are not const
  int64_t inSize, outSize;
  double scale;
  double roiStart, roiEnd;

  /// Returns the input coordinate of output position `o`.
  double coordinate(int64_t o) const {
    auto out = static_cast<double>(outSize), in = static_cast<double>(inSize);
    auto x = static_cast<double>(o);
    switch (op.getCoord()) {
    case ResizeCoord::half_pixel:
      return (x + 0.5) / scale - 0.5;
    case ResizeCoord::pytorch_half_pixel:
      return outSize > 1 ? (x + 0.5) / scale - 0.5 : 0;
    case ResizeCoord::align_corners:
      return outSize > 1 ? x * (in - 1) / (out - 1) : 0;
    case ResizeCoord::asymmetric:
      return x / scale;
    case ResizeCoord::half_pixel_symmetric: {
      // The result size was rounded: align the centres of both images.
      double adjustment = out / (scale * in);
      return in / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5;
    }
    case ResizeCoord::tf_crop_and_resize:
      return outSize > 1 ? roiStart * (in - 1) + x * (roiEnd - roiStart) * (in - 1) / (out - 1)
                         : 0.5 * (roiStart + roiEnd) * (in - 1);
    case ResizeCoord::tf_half_pixel_for_nn:
      return (x + 0.5) / scale;
    }
    return x;
  }

  double rounded(double x) const {
    switch (op.getRound()) {
    case ResizeRound::round_prefer_floor:
      return std::ceil(x - 0.5);
    case ResizeRound::round_prefer_ceil:
      return std::floor(x + 0.5);
    case ResizeRound::floor:
      return std::floor(x);
    case ResizeRound::ceil:
      return std::ceil(x);
    }
    return x;
  }

  /// Returns the value of the interpolation kernel at distance x.
  double kernel(double x) const {
    x = std::fabs(x);
    if (op.getMode() == ResizeMode::linear) {
      return x < 1 ? 1 - x : 0;
    }
    double a = op.getCubicCoeff().convertToDouble();
    if (x <= 1) {
      return ((a + 2) * x - (a + 3)) * x * x + 1;
    }
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
  }

  ResizeTaps tapsOf(int64_t o) const {
    ResizeTaps result;
    double x = coordinate(o);
    result.outside = op.getCoord() == ResizeCoord::tf_crop_and_resize && (x < 0 || x > static_cast<double>(inSize - 1));
    if (op.getMode() == ResizeMode::nearest) {
      // A scale such as 1.7 is a rounded single. Rounding the coordinate to single removes its error, so that ties are
      // ties.
      result.taps.push_back({clampPosition(static_cast<int64_t>(rounded(static_cast<float>(x)))), 1.0});
      return result;
    }
    // Antialiasing widens the kernel of a reduction to cover all input positions that an output position represents.
    double stretch = op.getAntialias() ? std::min(scale, 1.0) : 1.0;
    double radius = (op.getMode() == ResizeMode::linear ? 1 : 2) / stretch;
    double sum = 0;
    auto first = static_cast<int64_t>(std::ceil(x - radius));
    for (int64_t i = first; static_cast<double>(i) <= x + radius; ++i) {
      bool excluded = op.getExcludeOutside() && (i < 0 || i >= inSize);
      double weight = excluded ? 0 : kernel((static_cast<double>(i) - x) * stretch);
      result.taps.push_back({clampPosition(i), weight});
      sum += weight;
    }
    // At an exact position of x, neighbours have the weight 0. Without them, most tables have a third fewer taps.
    if (sum != 0) {
      llvm::erase_if(result.taps, [](const ResizeTap &tap) { return tap.weight == 0; });
    }
    for (ResizeTap &tap : result.taps) {
      tap.weight /= sum;
    }
    return result;
  }

  int64_t clampPosition(int64_t i) const { return std::clamp<int64_t>(i, 0, inSize - 1); }
};

} // namespace

std::vector<ResizeTaps> tessera::top::resizeTaps(ResizeOp op, unsigned d, int64_t inSize, int64_t outSize) {
  bool hasRoi = !op.getRoi().empty();
  ResizeDim dim{op,
                inSize,
                outSize,
                op.getScales()[d],
                hasRoi ? op.getRoi()[d] : 0.0,
                hasRoi ? op.getRoi()[op.getScales().size() + d] : 1.0};
  std::vector<ResizeTaps> positions;
  for (int64_t o = 0; o < outSize; ++o) {
    positions.push_back(dim.tapsOf(o));
  }
  return positions;
}

bool tessera::top::keepsDim(ResizeOp op, unsigned d, int64_t inSize, int64_t outSize) {
  return inSize == outSize && op.getScales()[d] == 1.0 && op.getCoord() != ResizeCoord::tf_crop_and_resize;
}

std::optional<int64_t> tessera::top::findRepetition(ResizeOp op, unsigned d) {
  double scale = op.getScales()[d];
  auto times = static_cast<int64_t>(scale);
  bool dependsOnSize = op.getCoord() == ResizeCoord::align_corners || op.getCoord() == ResizeCoord::tf_crop_and_resize;
  if (scale < 1 || scale > 64 || static_cast<double>(times) != scale || dependsOnSize ||
      !tessera::sameSize(tessera::Shape(op.getX())[d] * times, tessera::Shape(op.getY())[d])) {
    return std::nullopt;
  }
  // With an integer scale, the taps of o + scale are those of o, moved by one element. So a small image shows all.
  constexpr int64_t kSample = 6;
  for (auto [o, position] : llvm::enumerate(resizeTaps(op, d, kSample, kSample * times))) {
    auto own = static_cast<int64_t>(o) / times;
    if (position.taps.size() != 1 || position.taps[0].position != own || position.taps[0].weight != 1.0) {
      return std::nullopt;
    }
  }
  return times;
}

bool tessera::top::hasNeighbouringTaps(ResizeOp op) {
  return op.getMode() == ResizeMode::linear && !op.getAntialias() && !op.getExcludeOutside() &&
         op.getCoord() != ResizeCoord::tf_crop_and_resize;
}

//===- ReferenceResize.cpp - Interpolating resize ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Every interpolation here is separable: one list of weighted input positions per output position
// and dim; the dims are resized one after the other.
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>
#include <functional>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

namespace {

struct Tap {
  int64_t position;
  double weight;
};

/// What one output position of one dim is made of.
struct Taps {
  llvm::SmallVector<Tap, 4> taps;
  bool outside = false; // tf_crop_and_resize: beyond the input, gives the extrapolation value
};

/// One dim of a resize.
struct ResizeDim {
  mutable ResizeOp op; // generated accessors are not const
  int64_t inSize, outSize;
  double scale;
  double roiStart, roiEnd;

  /// The input coordinate of output position `o`.
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
      // The result size was rounded: the centres of both images are kept together.
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

  /// The interpolation kernel at distance x.
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

  Taps tapsOf(int64_t o) const {
    Taps result;
    double x = coordinate(o);
    result.outside = op.getCoord() == ResizeCoord::tf_crop_and_resize &&
                     (x < 0 || x > static_cast<double>(inSize - 1));
    if (op.getMode() == ResizeMode::nearest) {
      result.taps.push_back({clampPosition(static_cast<int64_t>(rounded(x))), 1.0});
      return result;
    }
    // Antialiasing widens the kernel of a reduction to cover all the input it stands for.
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
    for (Tap &tap : result.taps) {
      tap.weight /= sum;
    }
    return result;
  }

  int64_t clampPosition(int64_t i) const { return std::clamp<int64_t>(i, 0, inSize - 1); }
};

/// Resizes dim `axis` of values of `shape` to taps.size().
std::vector<double> resizeAxis(const std::vector<double> &x, DimsRef shape, int64_t axis,
                               llvm::ArrayRef<Taps> taps) {
  AxisView view(shape, axis);
  int64_t outSize = taps.size();
  std::vector<double> y(view.outer * outSize * view.inner, 0.0);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t k = 0; k < outSize; ++k) {
      double *to = &y[(o * outSize + k) * view.inner];
      for (const Tap &tap : taps[k].taps) {
        const double *from = &x[view.at(o, tap.position, 0)];
        for (int64_t i = 0; i < view.inner; ++i) {
          to[i] += tap.weight * from[i];
        }
      }
    }
  }
  return y;
}

} // namespace

LogicalResult ResizeOp::evaluate(Inputs inputs, Outputs outputs) {
  Dims shape(inputs[0]->getShape());
  DimsRef result = outputs[0].getShape();
  if (product(result) == 0) {
    return success();
  }
  std::vector<double> values = read<double>(*inputs[0]);
  std::vector<std::vector<Taps>> taps(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    bool hasRoi = !getRoi().empty();
    ResizeDim dim{*this,
                  shape[d],
                  result[d],
                  getScales()[d],
                  hasRoi ? getRoi()[d] : 0.0,
                  hasRoi ? getRoi()[shape.size() + d] : 1.0};
    for (int64_t o = 0; o < result[d]; ++o) {
      taps[d].push_back(dim.tapsOf(o));
    }
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    // A dim that keeps its size and scale maps onto itself, except when cropped.
    bool same = shape[d] == result[d] && getScales()[d] == 1.0 &&
                getCoord() != ResizeCoord::tf_crop_and_resize;
    if (!same) {
      values = resizeAxis(values, shape, d, taps[d]);
      shape[d] = result[d];
    }
  }
  int64_t next = 0;
  forEachIndex(result, [&](DimsRef index) {
    bool outside = false;
    for (size_t d = 0; d < index.size(); ++d) {
      outside |= taps[d][index[d]].outside;
    }
    double &v = values[next++];
    v = outside ? getExtrapolation().convertToDouble() : v;
  });
  write(values, outputs[0]);
  return success();
}

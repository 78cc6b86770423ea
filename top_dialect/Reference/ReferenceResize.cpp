//===- ReferenceResize.cpp - Interpolating resize ---===//
// SPDX-License-Identifier: Apache-2.0
//
// The dims are resized one after the other.
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/ResizeTaps.h"
#include "top_dialect/Reference/Support.h"

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// Resizes dim `axis` of values of shape `shape` to taps.size().
std::vector<double> resizeAxis(const std::vector<double> &x, DimsRef shape, int64_t axis,
                               llvm::ArrayRef<ResizeTaps> taps) {
  AxisView view(shape, axis);
  int64_t outSize = taps.size();
  std::vector<double> y(view.outer * outSize * view.inner, 0.0);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t k = 0; k < outSize; ++k) {
      double *to = &y[(o * outSize + k) * view.inner];
      for (const ResizeTap &tap : taps[k].taps) {
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
  std::vector<std::vector<ResizeTaps>> taps;
  for (size_t d = 0; d < shape.size(); ++d) {
    taps.push_back(resizeTaps(*this, d, shape[d], result[d]));
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!keepsDim(*this, d, shape[d], result[d])) {
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

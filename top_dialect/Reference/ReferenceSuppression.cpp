//===- ReferenceSuppression.cpp - Greedy selection of boxes ---------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Computes in float, in onnxruntime's order of operations: different rounding could reverse the comparison that decides
// whether two boxes overlap too much.
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// The interval that a box covers along one dim.
struct Span {
  float low, high;
};

Span cornerSpan(float a, float b) { return a >= b ? Span{b, a} : Span{a, b}; }
Span centerSpan(float center, float size) { return {center - size / 2.0f, center + size / 2.0f}; }

struct Box {
  Span x, y;
  Box(llvm::ArrayRef<float> v, bool center)
      : x(center ? centerSpan(v[0], v[2]) : cornerSpan(v[1], v[3])),
        y(center ? centerSpan(v[1], v[3]) : cornerSpan(v[0], v[2])) {}
  float area() const { return (x.high - x.low) * (y.high - y.low); }
};

Span intersect(Span a, Span b) { return {a.low < b.low ? b.low : a.low, b.high < a.high ? b.high : a.high}; }

bool overlaps(const Box &a, const Box &b, float threshold) {
  Span x = intersect(a.x, b.x), y = intersect(a.y, b.y);
  if (!(x.high > x.low) || !(y.high > y.low)) {
    return false;
  }
  float common = (x.high - x.low) * (y.high - y.low);
  float both = a.area() + b.area() - common;
  if (!(common > 0) || !(a.area() > 0) || !(b.area() > 0) || !(both > 0)) {
    return false;
  }
  return common / both > threshold;
}

/// Returns the selected boxes of one batch entry and class.
std::vector<int64_t> choose(llvm::ArrayRef<float> boxes, llvm::ArrayRef<float> scores, int64_t limit, float iou,
                            float least, bool center) {
  std::vector<int64_t> candidates, chosen;
  for (auto [i, score] : llvm::enumerate(scores)) {
    if (score > least || (std::isinf(least) && score == least && least < 0)) {
      candidates.push_back(static_cast<int64_t>(i));
    }
  }
  while (!candidates.empty() && static_cast<int64_t>(chosen.size()) < limit) {
    int64_t best = candidates.front();
    for (int64_t i : candidates) {
      best = scores[i] > scores[best] ? i : best;
    }
    chosen.push_back(best);
    Box box(boxes.slice(4 * best, 4), center);
    llvm::erase_if(candidates,
                   [&](int64_t i) { return i == best || overlaps(box, Box(boxes.slice(4 * i, 4), center), iou); });
  }
  return chosen;
}

} // namespace

LogicalResult NonMaxSuppressionOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[1]->getShape();
  int64_t classes = shape[1], count = shape[2], k = getK();
  llvm::ArrayRef<float> boxes = inputs[0]->data<float>(), scores = inputs[1]->data<float>();
  int64_t limit = std::min(inputs[2]->data<int64_t>()[0], k);
  float iou = inputs[3]->data<float>()[0], least = inputs[4]->data<float>()[0];
  std::vector<int64_t> y(outputs[0].getNumElements(), -1);
  for (int64_t item = 0; item < shape[0] * classes; ++item) {
    auto chosen = choose(boxes.slice(item / classes * count * 4, count * 4), scores.slice(item * count, count), limit,
                         iou, least, getCenter());
    llvm::copy(chosen, y.begin() + item * k);
  }
  write(y, outputs[0]);
  return success();
}

//===- ReferenceReduce.cpp - Reductions, running sums, selections ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>
#include <limits>
#include <numeric>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// Returns the smallest (or largest) value of an element type, as T.
template <typename T>
T extreme(mlir::Type type, bool largest) {
  if constexpr (std::is_same_v<T, double>) {
    double infinity = std::numeric_limits<double>::infinity();
    return largest ? infinity : -infinity;
  } else {
    unsigned bits = type.getIntOrFloatBitWidth();
    if constexpr (std::is_same_v<T, uint64_t>) {
      return largest ? ~uint64_t(0) >> (64 - bits) : 0;
    } else {
      int64_t most = std::numeric_limits<int64_t>::max() >> (64 - bits);
      return largest ? most : -most - 1;
    }
  }
}

/// Reduces the elements of x to one accumulator per element of y: acc = f(acc, x).
template <typename T, typename F>
std::vector<T> foldAxes(const std::vector<T> &x, DimsRef shape, DimsRef reducedStrides, int64_t results, T initial,
                        F f) {
  std::vector<T> acc(results, initial);
  forEachOffset(shape, reducedStrides, 0, [&](int64_t i, int64_t offset) { acc[offset] = f(acc[offset], x[i]); });
  return acc;
}

template <typename T>
T divide(T sum, int64_t count) {
  if constexpr (std::is_same_v<T, double>) {
    return sum / static_cast<double>(count);
  } else {
    return count ? sum / static_cast<T>(count) : 0;
  }
}

template <typename T>
T absolute(T x) {
  return x < 0 ? T(0) - x : x;
}

template <typename T>
struct Reduction {
  const std::vector<T> &x;
  DimsRef shape, strides;
  int64_t results;
  mlir::Type type;

  std::vector<T> fold(T initial, auto f) const { return foldAxes<T>(x, shape, strides, results, initial, f); }
  std::vector<T> sumOf(auto f) const {
    return fold(0, [&](T acc, T v) { return acc + f(v); });
  }
  std::vector<T> largest() const {
    return fold(extreme<T>(type, false), [](T acc, T v) { return largerOf(acc, v); });
  }
  std::vector<T> smallest() const {
    return fold(extreme<T>(type, true), [](T acc, T v) { return smallerOf(acc, v); });
  }
  static std::vector<T> map(std::vector<T> values, auto f) {
    for (T &v : values) {
      auto y = f(v);
      if constexpr (std::is_floating_point_v<decltype(y)>) {
        v = fromDouble<T>(y);
      } else {
        v = y;
      }
    }
    return values;
  }
  static T logarithm(T v) { return fromDouble<T>(std::log(static_cast<double>(v))); }

  /// Returns ln(sum e^x), each group shifted by its maximum to avoid overflow.
  std::vector<T> logSumExp() const {
    std::vector<T> shift = map(largest(), [](T v) { return std::isfinite(double(v)) ? v : T(0); });
    std::vector<double> sums(results, 0.0);
    forEachOffset(shape, strides, 0, [&](int64_t i, int64_t offset) {
      sums[offset] += std::exp(static_cast<double>(x[i]) - static_cast<double>(shift[offset]));
    });
    for (int64_t i = 0; i < results; ++i) {
      shift[i] = fromDouble<T>(static_cast<double>(shift[i]) + std::log(sums[i]));
    }
    return shift;
  }

  std::vector<T> run(ReduceKind kind) const {
    auto same = [](T v) { return v; };
    auto square = [](T v) { return v * v; };
    int64_t count = results ? static_cast<int64_t>(x.size()) / results : 0;
    switch (kind) {
    case ReduceKind::sum:
      return sumOf(same);
    case ReduceKind::mean:
      return map(sumOf(same), [&](T v) { return divide(v, count); });
    case ReduceKind::max:
      return largest();
    case ReduceKind::min:
      return smallest();
    case ReduceKind::prod:
      return fold(1, [](T acc, T v) { return acc * v; });
    case ReduceKind::l1:
      return sumOf(absolute<T>);
    case ReduceKind::l2:
      return map(sumOf(square), [](T v) { return std::sqrt(static_cast<double>(v)); });
    case ReduceKind::sum_square:
      return sumOf(square);
    case ReduceKind::log_sum:
      return map(sumOf(same), logarithm);
    case ReduceKind::log_sum_exp:
      return logSumExp();
    }
    return {};
  }
};

} // namespace

LogicalResult ReduceOp::evaluate(Inputs inputs, Outputs outputs) {
  if (getAxes().empty()) {
    outputs[0] = *inputs[0];
    return success();
  }
  DimsRef shape = inputs[0]->getShape();
  Dims kept(shape);
  for (int64_t axis : getAxes()) {
    kept[axis] = 1;
  }
  Dims strides = broadcastStrides(kept, shape);
  mlir::Type type = inputs[0]->getElementType();
  return withNumbers(type, [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> x = read<T>(*inputs[0]);
    Reduction<T> reduction{x, shape, strides, product(kept), type};
    write(reduction.run(getKind()), outputs[0]);
    return success();
  });
}

LogicalResult ArgReduceOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), getAxis());
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> x = read<T>(*inputs[0]);
    std::vector<int64_t> y;
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        int64_t best = 0;
        for (int64_t k = 1; k < view.size; ++k) {
          T v = x[view.at(o, k, i)], b = x[view.at(o, best, i)];
          bool better = getMin() ? v < b : v > b;
          best = better || (getSelectLast() && v == b) ? k : best;
        }
        y.push_back(best);
      }
    }
    write(y, outputs[0]);
    return success();
  });
}

LogicalResult CumSumOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), getAxis());
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> x = read<T>(*inputs[0]), y(x.size());
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        T sum = 0;
        for (int64_t step = 0; step < view.size; ++step) {
          int64_t at = view.at(o, getReverse() ? view.size - 1 - step : step, i);
          T before = sum;
          sum += x[at];
          y[at] = getExclusive() ? before : sum;
        }
      }
    }
    write(y, outputs[0]);
    return success();
  });
}

LogicalResult TopKOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), getAxis()), result(outputs[0].getShape(), getAxis());
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> x = read<T>(*inputs[0]), values(outputs[0].getNumElements());
    std::vector<int64_t> indices(values.size()), order(view.size);
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        std::iota(order.begin(), order.end(), 0);
        // NaN counts as larger than all numbers, which gives a total order.
        llvm::sort(order, [&](int64_t p, int64_t q) {
          T a = x[view.at(o, p, i)], b = x[view.at(o, q, i)];
          bool less = a < b || (a == a && b != b), greater = b < a || (b == b && a != a);
          return less == greater ? p < q : getLargest() ? greater : less;
        });
        for (int64_t k = 0; k < result.size; ++k) {
          values[result.at(o, k, i)] = x[view.at(o, order[k], i)];
          indices[result.at(o, k, i)] = order[k];
        }
      }
    }
    write(values, outputs[0]);
    write(indices, outputs[1]);
    return success();
  });
}

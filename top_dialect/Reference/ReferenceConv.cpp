//===- ReferenceConv.cpp - Convolution, matmul, pooling ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Convolution and matmul gather a panel of columns (one per output position), then multiply it by
// one row of weights per output channel: y = row * panel, summed in double.
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Panel.h"
#include "top_dialect/Reference/Support.h"

#include "llvm/Support/Parallel.h"

#include <cmath>
#include <limits>
#include <optional>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// Returns the position in dim d of the input that tap `k` of output position `o` reads, if there is one.
using TapPosition = llvm::function_ref<std::optional<int64_t>(size_t d, int64_t o, int64_t k)>;

/// Returns the linear input position for each (tap, output position); -1 if the tap does not read any.
std::vector<int64_t> tapTable(DimsRef input, DimsRef kernel, DimsRef output, TapPosition position) {
  std::vector<int64_t> table;
  table.reserve(product(kernel) * product(output));
  Dims strides = rowMajorStrides(input);
  forEachIndex(kernel, [&](DimsRef k) {
    forEachIndex(output, [&](DimsRef o) {
      int64_t linear = 0;
      for (size_t d = 0; d < input.size(); ++d) {
        std::optional<int64_t> i = position(d, o[d], k[d]);
        linear = i && linear >= 0 ? linear + *i * strides[d] : -1;
      }
      table.push_back(linear);
    });
  });
  return table;
}

/// Applies the activation fused into conv and matmul: y = max(y, 0) and, with limit > 0, min(y, limit).
template <typename T>
void activate(bool relu, double limit, std::vector<T> &values) {
  if (!relu) {
    return;
  }
  for (T &v : values) {
    v = v <= 0 ? T(0) : v; // also -0
    v = limit > 0 && static_cast<double>(v) > limit ? static_cast<T>(limit) : v;
  }
}

/// A convolution in either direction. `table` comes from tapTable. Row oc of `weights` [OC, C / groups * taps] computes
/// output channel oc.
template <typename T>
struct Convolution {
  const HostTensor &x;
  HostTensor &y;
  int64_t groups;
  std::vector<int64_t> table;
  std::vector<T> weights, bias;
  bool relu;
  double reluLimit;

  void run() const {
    int64_t planes = x.getShape()[1] / groups, planeSize = product(x.getShape().drop_front(2));
    std::vector<T> input(planes * planeSize);
    for (int64_t n = 0; n < x.getShape()[0]; ++n) {
      for (int64_t g = 0; g < groups; ++g) {
        readRange(x, (n * groups + g) * planes * planeSize, 1, planes * planeSize, input.data());
        runGroup(n, g, input, planes, planeSize);
      }
    }
  }

private:
  void runGroup(int64_t n, int64_t g, const std::vector<T> &input, int64_t planes, int64_t planeSize) const {
    int64_t outPlanes = y.getShape()[1] / groups, outSize = product(y.getShape().drop_front(2));
    int64_t taps = table.size() / outSize, depth = planes * taps;
    int64_t panelColumns = panelWidth(depth, outSize);
    std::vector<T> panel(depth * panelColumns);
    for (int64_t begin = 0; begin < outSize; begin += panelColumns) {
      int64_t width = std::min(panelColumns, outSize - begin);
      T *column = panel.data();
      for (int64_t c = 0; c < planes; ++c) {
        for (int64_t k = 0; k < taps; ++k) {
          for (int64_t o = begin; o < begin + width; ++o) {
            int64_t from = table[k * outSize + o];
            *column++ = from < 0 ? T(0) : input[c * planeSize + from];
          }
        }
      }
      llvm::parallelFor(g * outPlanes, (g + 1) * outPlanes, [&](size_t oc) {
        std::vector<T> sums(width, bias[oc]);
        multiplyPanel(&weights[oc * depth], panel.data(), depth, width, sums.data());
        activate(relu, reluLimit, sums);
        writeRange(y, (n * y.getShape()[1] + oc) * outSize + begin, width, sums.data());
      });
    }
  }
};

template <typename T>
std::vector<T> readBias(const HostTensor *bias, int64_t channels) {
  return bias ? read<T>(*bias) : std::vector<T>(channels, T(0));
}

/// Returns the weights of a transposed convolution [C, OC/groups, K...] as rows [OC, C/groups * K...].
template <typename T>
std::vector<T> transposedRows(const HostTensor &w, int64_t groups) {
  int64_t channels = w.getShape()[0] / groups, outChannels = w.getShape()[1];
  int64_t taps = product(w.getShape().drop_front(2));
  std::vector<T> weights = read<T>(w), rows(weights.size());
  forEachOffset({groups, outChannels, channels, taps}, {channels * outChannels * taps, taps, outChannels * taps, 1}, 0,
                [&](int64_t i, int64_t offset) { rows[i] = weights[offset]; });
  return rows;
}

} // namespace

LogicalResult ConvOp::evaluate(Inputs inputs, Outputs outputs) {
  const HostTensor &x = *inputs[0], &w = *inputs[1], *bias = operand(*this, inputs, 2);
  DimsRef input = x.getShape().drop_front(2), kernel = w.getShape().drop_front(2);
  auto position = [&](size_t d, int64_t o, int64_t k) -> std::optional<int64_t> {
    int64_t i = o * getStrides()[d] - getPads()[d] + k * getDilations()[d];
    return i >= 0 && i < input[d] ? std::optional(i) : std::nullopt;
  };
  std::vector<int64_t> table = tapTable(input, kernel, outputs[0].getShape().drop_front(2), position);
  return withNumbers(x.getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    Convolution<T>{x,
                   outputs[0],
                   static_cast<int64_t>(getGroups()),
                   std::move(table),
                   read<T>(w),
                   readBias<T>(bias, w.getShape()[0]),
                   getRelu(),
                   getReluLimit().convertToDouble()}
        .run();
    return success();
  });
}

LogicalResult ConvTransposeOp::evaluate(Inputs inputs, Outputs outputs) {
  const HostTensor &x = *inputs[0], &w = *inputs[1], *bias = operand(*this, inputs, 2);
  DimsRef input = x.getShape().drop_front(2), kernel = w.getShape().drop_front(2);
  int64_t groups = getGroups();
  // Input i contributes to output i stride - pad + k dilation. Find the i that contributes to a given output.
  auto position = [&](size_t d, int64_t o, int64_t k) -> std::optional<int64_t> {
    int64_t scaled = o + getPads()[d] - k * getDilations()[d];
    int64_t i = scaled / getStrides()[d];
    bool meets = scaled >= 0 && scaled % getStrides()[d] == 0 && i < input[d];
    return meets ? std::optional(i) : std::nullopt;
  };
  std::vector<int64_t> table = tapTable(input, kernel, outputs[0].getShape().drop_front(2), position);
  return withNumbers(x.getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    Convolution<T>{x,
                   outputs[0],
                   groups,
                   std::move(table),
                   transposedRows<T>(w, groups),
                   readBias<T>(bias, groups * w.getShape()[1]),
                   getRelu(),
                   getReluLimit().convertToDouble()}
        .run();
    return success();
  });
}

namespace {

/// One matrix multiplication a [M, K] b [K, N] -> y [M, N], with element strides per row and column.
struct MatrixProduct {
  const HostTensor &a, &b;
  HostTensor &y;
  int64_t rows, depth, columns;
  int64_t aRow, aColumn, bRow, bColumn;
  bool relu;
  double reluLimit;

  template <typename T>
  void run(int64_t aBegin, int64_t bBegin, int64_t yBegin, const std::vector<T> &bias) const {
    int64_t panelColumns = panelWidth(depth, columns);
    std::vector<T> panel;
    for (int64_t begin = 0; begin < columns; begin += panelColumns) {
      int64_t width = std::min(panelColumns, columns - begin);
      gatherPanel(bBegin + begin * bColumn, width, panel);
      llvm::parallelFor(0, rows, [&](size_t m) {
        std::vector<T> row(depth), sums(bias.begin() + begin, bias.begin() + begin + width);
        readRange(a, aBegin + m * aRow, aColumn, depth, row.data());
        multiplyPanel(row.data(), panel.data(), depth, width, sums.data());
        activate(relu, reluLimit, sums);
        writeRange(y, yBegin + m * columns + begin, width, sums.data());
      });
    }
  }

private:
  /// Fills panel[k][n] = b[k][n], reading along the contiguous dim of b.
  template <typename T>
  void gatherPanel(int64_t bBegin, int64_t width, std::vector<T> &panel) const {
    panel.resize(depth * width);
    if (bColumn == 1) {
      for (int64_t k = 0; k < depth; ++k) {
        readRange(b, bBegin + k * bRow, 1, width, &panel[k * width]);
      }
      return;
    }
    std::vector<T> column(depth);
    for (int64_t n = 0; n < width; ++n) {
      readRange(b, bBegin + n * bColumn, bRow, depth, column.data());
      for (int64_t k = 0; k < depth; ++k) {
        panel[k * width + n] = column[k];
      }
    }
  }
};

} // namespace

LogicalResult MatMulOp::evaluate(Inputs inputs, Outputs outputs) {
  const HostTensor &a = *inputs[0], &b = *inputs[1], *bias = operand(*this, inputs, 2);
  HostTensor &y = outputs[0];
  DimsRef aShape = a.getShape(), bShape = b.getShape(), yShape = y.getShape();
  size_t aRank = aShape.size(), yRank = yShape.size();
  bool transA = getTransA(), transB = getTransB();
  int64_t rows = yShape[yRank - 2], columns = yShape[yRank - 1];
  int64_t depth = aShape[transA ? aRank - 2 : aRank - 1];
  MatrixProduct matrices{a,
                         b,
                         y,
                         rows,
                         depth,
                         columns,
                         transA ? 1 : depth,
                         transA ? rows : 1,
                         transB ? 1 : columns,
                         transB ? depth : 1,
                         getRelu(),
                         getReluLimit().convertToDouble()};

  DimsRef batch = yShape.drop_back(2);
  Dims aBatch = broadcastStrides(aShape.drop_back(2), batch);
  Dims bBatch = broadcastStrides(bShape.drop_back(2), batch);
  return withNumbers(a.getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> biases = readBias<T>(bias, columns);
    int64_t n = 0;
    forEachIndex(batch, [&](DimsRef index) {
      matrices.run(dot(index, aBatch) * rows * depth, dot(index, bBatch) * depth * columns, n++ * rows * columns,
                   biases);
    });
    return success();
  });
}

namespace {

/// Geometry of a pooling window.
struct Window {
  DimsRef kernel, strides, pads, dilations, input;

  /// Calls `visit(linear input position)` for every tap inside the input. Returns the number of taps inside the input
  /// and its padding.
  template <typename Visit>
  int64_t forEachTap(DimsRef output, Visit visit) const {
    int64_t padded = 0;
    Dims inputStrides = rowMajorStrides(input);
    forEachIndex(kernel, [&](DimsRef k) {
      int64_t linear = 0;
      bool inside = true, insidePadding = true;
      for (size_t d = 0; d < input.size(); ++d) {
        int64_t i = output[d] * strides[d] - pads[d] + k[d] * dilations[d];
        inside &= i >= 0 && i < input[d];
        insidePadding &= i < input[d] + pads[input.size() + d];
        linear += i * inputStrides[d];
      }
      padded += insidePadding;
      if (inside) {
        visit(linear);
      }
    });
    return padded;
  }
};

/// Computes y[n, c, o...] = f(plane of (n, c), o).
template <typename T, typename F>
void evaluatePool(Inputs inputs, Outputs outputs, F f) {
  DimsRef shape = inputs[0]->getShape(), output = outputs[0].getShape().drop_front(2);
  int64_t planeSize = product(shape.drop_front(2)), outputSize = product(output);
  std::vector<T> plane(planeSize), results(outputSize);
  for (int64_t p = 0; p < shape[0] * shape[1]; ++p) {
    readRange(*inputs[0], p * planeSize, 1, planeSize, plane.data());
    int64_t i = 0;
    forEachIndex(output, [&](DimsRef o) { results[i++] = f(plane, o); });
    writeRange(outputs[0], p * outputSize, outputSize, results.data());
  }
}

} // namespace

LogicalResult MaxPoolOp::evaluate(Inputs inputs, Outputs outputs) {
  Window window{getKernel(), getStrides(), getPads(), getDilations(), inputs[0]->getShape().drop_front(2)};
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    T lowest = std::is_same_v<T, double> ? -std::numeric_limits<double>::infinity() : std::numeric_limits<T>::lowest();
    evaluatePool<T>(inputs, outputs, [&](const std::vector<T> &plane, DimsRef o) {
      T best = lowest;
      window.forEachTap(o, [&](int64_t i) { best = largerOf(best, plane[i]); });
      return best;
    });
    return success();
  });
}

LogicalResult AvgPoolOp::evaluate(Inputs inputs, Outputs outputs) {
  Window window{getKernel(), getStrides(), getPads(), getDilations(), inputs[0]->getShape().drop_front(2)};
  evaluatePool<double>(inputs, outputs, [&](const std::vector<double> &plane, DimsRef o) {
    double sum = 0;
    int64_t count = 0;
    int64_t padded = window.forEachTap(o, [&](int64_t i) {
      sum += plane[i];
      ++count;
    });
    return sum / static_cast<double>(getCountIncludePad() ? padded : count);
  });
  return success();
}

//===- ReferenceNorm.cpp - Softmax, normalisation, attention, rotary embedding ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/MaskedRows.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Panel.h"
#include "top_dialect/Reference/Support.h"

#include "llvm/Support/Parallel.h"

#include <cmath>
#include <limits>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// Replaces `count` values at x, x + stride, ... by their softmax or its logarithm.
void softmaxInPlace(double *x, int64_t count, int64_t stride, bool logarithm) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t k = 0; k < count; ++k) {
    largest = std::max(largest, x[k * stride]);
  }
  for (int64_t k = 0; k < count; ++k) {
    sum += std::exp(x[k * stride] - largest);
  }
  for (int64_t k = 0; k < count; ++k) {
    double shifted = x[k * stride] - largest;
    x[k * stride] = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
  }
}

/// Replaces `count` consecutive values by (x - mean) / sqrt(variance + epsilon); `rms` takes the mean as 0.
void normalise(double *x, int64_t count, double epsilon, bool rms) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; i < count && !rms; ++i) {
    mean += x[i] / static_cast<double>(count);
  }
  for (int64_t i = 0; i < count; ++i) {
    variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(count);
  }
  for (int64_t i = 0; i < count; ++i) {
    x[i] = (x[i] - mean) / std::sqrt(variance + epsilon);
  }
}

} // namespace

LogicalResult SoftmaxOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), getAxis());
  std::vector<double> x = read<double>(*inputs[0]);
  llvm::parallelFor(0, view.outer, [&](size_t o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      softmaxInPlace(x.data() + view.at(o, 0, i), view.size, view.inner, getLog());
    }
  });
  write(x, outputs[0]);
  return success();
}

LogicalResult BatchNormOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), 1);
  double epsilon = getEpsilon().convertToDouble();
  std::vector<double> x = read<double>(*inputs[0]), scale = read<double>(*inputs[1]), bias = read<double>(*inputs[2]),
                      mean = read<double>(*inputs[3]), variance = read<double>(*inputs[4]);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t c = 0; c < view.size; ++c) {
      for (int64_t i = 0; i < view.inner; ++i) {
        double &v = x[view.at(o, c, i)];
        v = (v - mean[c]) / std::sqrt(variance[c] + epsilon) * scale[c] + bias[c];
      }
    }
  }
  write(x, outputs[0]);
  return success();
}

LogicalResult LayerNormOp::evaluate(Inputs inputs, Outputs outputs) {
  const HostTensor *scale = operand(*this, inputs, 1), *bias = operand(*this, inputs, 2);
  DimsRef shape = inputs[0]->getShape();
  int64_t size = product(shape.drop_front(getAxis()));
  std::vector<double> x = read<double>(*inputs[0]);
  std::vector<double> scales = scale ? read<double>(*scale) : std::vector<double>(size, 1.0);
  std::vector<double> biases = bias ? read<double>(*bias) : std::vector<double>(size, 0.0);
  for (int64_t begin = 0; begin < static_cast<int64_t>(x.size()); begin += size) {
    normalise(&x[begin], size, getEpsilon().convertToDouble(), getRms());
    for (int64_t i = 0; i < size; ++i) {
      x[begin + i] = x[begin + i] * scales[i] + biases[i];
    }
  }
  write(x, outputs[0]);
  return success();
}

LogicalResult GroupNormOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), 1);
  std::vector<double> x = read<double>(*inputs[0]), scale = read<double>(*inputs[1]), bias = read<double>(*inputs[2]);
  int64_t groupSize = view.size / getGroups() * view.inner;
  for (int64_t begin = 0; groupSize && begin < static_cast<int64_t>(x.size()); begin += groupSize) {
    normalise(&x[begin], groupSize, getEpsilon().convertToDouble(), /*rms=*/false);
  }
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t c = 0; c < view.size; ++c) {
      for (int64_t i = 0; i < view.inner; ++i) {
        x[view.at(o, c, i)] = x[view.at(o, c, i)] * scale[c] + bias[c];
      }
    }
  }
  write(x, outputs[0]);
  return success();
}

LogicalResult LrnOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), 1);
  int64_t size = getSize();
  double alpha = getAlpha().convertToDouble(), beta = getBeta().convertToDouble(), bias = getBias().convertToDouble();
  std::vector<double> x = read<double>(*inputs[0]), y(x.size());
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t c = 0; c < view.size; ++c) {
      int64_t first = std::max<int64_t>(c - (size - 1) / 2, 0);
      int64_t last = std::min<int64_t>(c + size / 2, view.size - 1);
      for (int64_t i = 0; i < view.inner; ++i) {
        double squares = 0;
        for (int64_t k = first; k <= last; ++k) {
          squares += x[view.at(o, k, i)] * x[view.at(o, k, i)];
        }
        int64_t at = view.at(o, c, i);
        y[at] = x[at] / std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
      }
    }
  }
  write(y, outputs[0]);
  return success();
}

/// Rounds the exponentials of a row, relative to its largest score, to |levels| steps, and divides them by their sum.
static void roundPowers(llvm::MutableArrayRef<double> row, int64_t levels) {
  double largest = *llvm::max_element(row), sum = 0;
  for (double &power : row) {
    power = std::nearbyint(std::exp(power - largest) * static_cast<double>(levels));
    sum += power;
  }
  for (double &power : row) {
    power /= sum;
  }
}

LogicalResult AttentionOp::evaluate(Inputs inputs, Outputs outputs) {
  const HostTensor &q = *inputs[0], &k = *inputs[1], &v = *inputs[2];
  const HostTensor *mask = operand(*this, inputs, 3);
  DimsRef batch = q.getShape().drop_back(2);
  int64_t queries = q.getShape()[batch.size()], width = q.getShape().back();
  int64_t keys = k.getShape()[batch.size()], valueWidth = v.getShape().back();
  Dims scoreShape(batch);
  scoreShape.append({queries, keys});
  std::vector<double> qs = read<double>(q), ks = read<double>(k), vs = read<double>(v);
  std::vector<double> masks = mask ? readBroadcast<double>(*mask, scoreShape) : std::vector<double>();
  std::vector<double> y(product(batch) * queries * valueWidth, 0.0), columns(width * keys);
  const double factor = getScale().convertToDouble();

  Dims kBatch = broadcastStrides(k.getShape().drop_back(2), batch);
  Dims vBatch = broadcastStrides(v.getShape().drop_back(2), batch);
  int64_t first = 0; // index over the queries of all batches
  forEachIndex(batch, [&](DimsRef index) {
    const double *keyRows = ks.data() + dot(index, kBatch) * keys * width;
    const double *valueRows = vs.data() + dot(index, vBatch) * keys * valueWidth;
    for (int64_t t = 0; t < keys; ++t) {
      for (int64_t e = 0; e < width; ++e) {
        columns[e * keys + t] = keyRows[t * width + e];
      }
    }
    llvm::parallelFor(first, first + queries, [&](size_t row) {
      std::vector<double> scores(keys, 0.0);
      multiplyPanel(&qs[row * width], columns.data(), width, keys, scores.data());
      for (int64_t t = 0; t < keys; ++t) {
        scores[t] = scores[t] * factor + (mask ? masks[row * keys + t] : 0.0);
      }
      if (zeroesMaskedRows(*this) && llvm::all_of(scores, [](double score) { return score == -HUGE_VAL; })) {
        return; // y is zero-initialised
      }
      if (getLevels() && keys) {
        roundPowers(scores, *getLevels());
      } else {
        softmaxInPlace(scores.data(), keys, 1, /*logarithm=*/false);
      }
      multiplyPanel(scores.data(), valueRows, keys, valueWidth, &y[row * valueWidth]);
    });
    first += queries;
  });
  write(y, outputs[0]);
  return success();
}

LogicalResult RopeOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  int64_t half = shape.back() / 2;
  Dims halfShape(shape);
  halfShape.back() = half;
  std::vector<double> x = read<double>(*inputs[0]), y(x.size());
  std::vector<double> cosine = readBroadcast<double>(*inputs[1], halfShape);
  std::vector<double> sine = readBroadcast<double>(*inputs[2], halfShape);
  for (size_t i = 0; i < cosine.size(); ++i) {
    int64_t row = i / half * shape.back(), e = i % half;
    int64_t first = row + (getInterleaved() ? 2 * e : e);
    int64_t second = row + (getInterleaved() ? 2 * e + 1 : e + half);
    y[first] = x[first] * cosine[i] - x[second] * sine[i];
    y[second] = x[first] * sine[i] + x[second] * cosine[i];
  }
  write(y, outputs[0]);
  return success();
}

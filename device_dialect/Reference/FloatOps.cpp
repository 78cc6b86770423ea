//===- FloatOps.cpp - f32 ops in the order of bmodel/numerics_float.h -----===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/Reference/FloatOps.h"
#include "bmodel/numerics_float.h"
#include "top_dialect/IR/MaskedRows.h"
#include <limits>
#include <optional>

using bmodel::numerics::OrderedSum;
using bmodel::numerics::Single;
using llvm::ArrayRef;
using llvm::MutableArrayRef;
using tessera::top::HostTensor;
namespace numerics = bmodel::numerics;
namespace ref = tessera::top::reference;

namespace tessera::device::reference {

namespace {

/// Returns the largest of |count| values at x, x + stride, ...; NaN wins.
float largest(const float *x, int64_t count, int64_t stride) {
  float best = -std::numeric_limits<float>::infinity();
  for (int64_t k = 0; k < count; ++k) {
    float value = x[k * stride];
    best = value > best || value != value ? value : best;
  }
  return best;
}

/// Writes e^(x - best) for each value and returns their sum.
Single powers(const float *x, float *y, int64_t count, int64_t stride, float best) {
  OrderedSum sum;
  Single sequential{0.0f};
  for (int64_t k = 0; k < count; ++k) {
    Single power = numerics::expOfNegative(Single{x[k * stride]} - Single{best});
    y[k * stride] = power.v;
    sum.add(power);
    sequential = sequential + power;
  }
  return stride == 1 ? sum.total() : sequential;
}

ArrayRef<float> floats(const HostTensor &tensor) { return tensor.data<float>(); }
MutableArrayRef<float> floats(HostTensor &tensor) {
  return {reinterpret_cast<float *>(tensor.getBytes().data()), tensor.getBytes().size() / sizeof(float)};
}

/// Returns the values of a tensor of any float type as f32.
std::vector<float> widened(const HostTensor &tensor) {
  std::vector<double> values = ref::read<double>(tensor);
  return {values.begin(), values.end()};
}

} // namespace

Singles::Singles(Inputs inputs) {
  widened.reserve(inputs.size()); // keeps pointers to elements valid
  for (const HostTensor *input : inputs) {
    auto type = llvm::dyn_cast<mlir::FloatType>(input->getElementType());
    if (!type || type.getWidth() >= 32) {
      pointers.push_back(input);
      continue;
    }
    HostTensor &single = widened.emplace_back(mlir::Float32Type::get(type.getContext()), input->getShape());
    ref::write(ref::read<double>(*input), single);
    pointers.push_back(&single);
  }
}

bool fitSingle(Inputs inputs) {
  return llvm::all_of(inputs, [](const HostTensor *tensor) {
    auto type = llvm::dyn_cast<mlir::FloatType>(tensor->getElementType());
    return type && type.getWidth() <= 32;
  });
}

void inSingle(HostTensor &y, llvm::function_ref<void(HostTensor &)> compute) {
  if (y.getElementType().isF32()) {
    return compute(y);
  }
  HostTensor single(mlir::Float32Type::get(y.getElementType().getContext()), y.getShape());
  compute(single);
  ref::write(ref::read<double>(single), y);
}

void softmaxF32(const HostTensor &x, HostTensor &y, int64_t axis, bool log) {
  ref::AxisView view(x.getShape(), axis);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      const float *from = floats(x).data() + view.at(o, 0, i);
      float *to = floats(y).data() + view.at(o, 0, i);
      float best = largest(from, view.size, view.inner);
      Single total = powers(from, to, view.size, view.inner, best);
      Single factor = log ? numerics::log(total) : Single{1.0f} / total;
      for (int64_t k = 0; k < view.size; ++k) {
        float &result = to[k * view.inner];
        result = log ? ((Single{from[k * view.inner]} - Single{best}) - factor).v : (Single{result} * factor).v;
      }
    }
  }
}

void cumulateF32(const HostTensor &x, HostTensor &y, int64_t axis, bool exclusive, bool reverse) {
  ref::AxisView view(x.getShape(), axis);
  for (int64_t o = 0; o < view.outer; ++o) {
    for (int64_t i = 0; i < view.inner; ++i) {
      Single sum{0.0f};
      for (int64_t k = 0; k < view.size; ++k) {
        int64_t at = view.at(o, reverse ? view.size - 1 - k : k, i);
        Single next = sum + Single{floats(x)[size_t(at)]};
        floats(y)[size_t(at)] = (exclusive ? sum : next).v;
        sum = next;
      }
    }
  }
}

void normF32(NormOp op, Inputs inputs, HostTensor &y) {
  ArrayRef<float> x = floats(*inputs[0]);
  const float *scale = op.getScale() ? floats(*inputs[1]).data() : nullptr;
  const float *bias = op.getBias() ? floats(*inputs[op.getScale() ? 2 : 1]).data() : nullptr;
  int64_t row = ref::product(inputs[0]->getShape().drop_front(op.getAxis()));
  Single size{static_cast<float>(row)}, epsilon{static_cast<float>(op.getEpsilon().convertToDouble())};
  for (int64_t begin = 0; row && begin < static_cast<int64_t>(x.size()); begin += row) {
    OrderedSum sum, squares;
    for (int64_t i = 0; i < row; ++i) {
      sum.add({x[begin + i]});
    }
    Single mean = sum.total() / size;
    auto centred = [&](int64_t i) { return op.getRms() ? Single{x[begin + i]} : Single{x[begin + i]} - mean; };
    for (int64_t i = 0; i < row; ++i) {
      squares.addProduct(centred(i), centred(i));
    }
    Single factor = Single{1.0f} / Single{std::sqrt((squares.total() / size + epsilon).v)};
    for (int64_t i = 0; i < row; ++i) {
      Single value = centred(i) * factor;
      if (scale && bias) {
        value = mulAdd(value, Single{scale[i]}, Single{bias[i]});
      } else {
        value = scale ? value * Single{scale[i]} : bias ? value + Single{bias[i]} : value;
      }
      floats(y)[begin + i] = value.v;
    }
  }
}

void reduceF32(const HostTensor &x, HostTensor &y, ArrayRef<int64_t> axes, bool product) {
  ref::DimsRef shape = x.getShape();
  auto reduced = [&](size_t d) { return llvm::is_contained(axes, static_cast<int64_t>(d)); };
  size_t first = shape.size();
  while (first > 0 && reduced(first - 1)) {
    --first;
  }
  constexpr int64_t partial = OrderedSum::kPartial;
  int64_t run = ref::product(shape.drop_front(first));
  bool ordered = first < shape.size();
  std::vector<Single> sums(y.getNumElements() * partial, Single{product ? 1.0f : 0.0f});
  ref::Dims strides = ref::broadcastStrides(y.getShape(), shape);
  auto combine = [&](Single a, Single b) { return product ? a * b : a + b; };
  ref::forEachOffset(shape, strides, 0, [&](int64_t i, int64_t offset) {
    Single &sum = sums[offset * partial + (ordered ? i % run % partial : 0)];
    sum = combine(sum, {floats(x)[i]});
  });
  for (int64_t i = 0; i < y.getNumElements(); ++i) {
    Single *own = &sums[i * partial];
    for (int64_t half = ordered ? partial / 2 : 0; half > 0; half /= 2) {
      for (int64_t p = 0; p < half; ++p) {
        own[p] = combine(own[p], own[p + half]);
      }
    }
    floats(y)[i] = own[0].v;
  }
}

void averagePoolF32(PoolOp op, const HostTensor &x, HostTensor &y) {
  ref::DimsRef input = x.getShape().drop_front(2), output = y.getShape().drop_front(2);
  size_t spatial = input.size();
  ref::Dims strides = ref::rowMajorStrides(input);
  int64_t planeIn = ref::product(input), next = 0;
  for (int64_t plane = 0; plane < x.getShape()[0] * x.getShape()[1]; ++plane) {
    ref::forEachIndex(output, [&](ref::DimsRef at) {
      Single sum{0.0f};
      int64_t count = 0;
      ref::forEachIndex(ref::Dims(op.getKernel()), [&](ref::DimsRef tap) {
        bool inside = true, counted = true;
        int64_t offset = plane * planeIn;
        for (size_t d = 0; d < spatial; ++d) {
          int64_t begin = op.getPads()[d], end = op.getPads()[d + spatial];
          int64_t position = at[d] * op.getStrides()[d] - begin + tap[d] * op.getDilations()[d];
          inside &= position >= 0 && position < input[d];
          counted &= position < input[d] + end;
          offset += position * strides[d];
        }
        sum = inside ? sum + Single{floats(x)[offset]} : sum;
        count += op.getCountIncludePad() ? counted : inside;
      });
      floats(y)[next++] = (sum / Single{static_cast<float>(count)}).v;
    });
  }
}

namespace {

/// Computes one element of a resize by iterating over the taps of all axes.
struct ResizeSum {
  /// Taps of one axis: the elements that each element of the result reads, and their weights.
  struct Taps {
    int64_t count; ///< per element of the result
    const int32_t *indices;
    const float *weights;
  };

  const float *x;
  ref::DimsRef at, strides;
  llvm::ArrayRef<int64_t> axes;
  llvm::ArrayRef<Taps> taps; ///< per axis
  std::optional<Single> sum;

  void walk(size_t axis, int64_t offset, std::optional<Single> weight) {
    if (axis == axes.size()) {
      sum = sum ? mulAdd(Single{x[offset]}, *weight, *sum) : Single{x[offset]} * *weight;
      return;
    }
    int64_t d = axes[axis], count = taps[axis].count;
    for (int64_t t = at[d] * count; t < (at[d] + 1) * count; ++t) {
      Single factor{taps[axis].weights[t]};
      walk(axis + 1, offset + taps[axis].indices[t] * strides[d], weight ? *weight * factor : factor);
    }
  }
};

} // namespace

void resizeF32(const HostTensor &x, HostTensor &y, ArrayRef<int64_t> axes, Inputs tables) {
  ref::Dims strides = ref::rowMajorStrides(x.getShape());
  llvm::SmallVector<ResizeSum::Taps> taps;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const HostTensor &indices = *tables[2 * axis];
    taps.push_back({indices.getShape()[1], indices.data<int32_t>().data(), tables[2 * axis + 1]->data<float>().data()});
  }
  const float *values = floats(x).data();
  float *results = floats(y).data();
  int64_t next = 0;
  ref::forEachIndex(y.getShape(), [&](ref::DimsRef at) {
    int64_t offset = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      offset += llvm::is_contained(axes, static_cast<int64_t>(d)) ? 0 : at[d] * strides[d];
    }
    ResizeSum sum{values, at, strides, axes, taps, std::nullopt};
    sum.walk(0, offset, std::nullopt);
    results[next++] = sum.sum->v;
  });
}

void matmulF32(MatMulOp op, Inputs inputs, HostTensor &y) {
  ref::DimsRef aShape = inputs[0]->getShape(), bShape = inputs[1]->getShape(), shape = y.getShape();
  ref::DimsRef batch = shape.drop_back(2);
  int64_t rows = shape[batch.size()], columns = shape.back();
  int64_t depth = aShape[aShape.size() - (op.getTransA() ? 2 : 1)];
  int64_t aRow = op.getTransA() ? 1 : depth, aStep = op.getTransA() ? rows : 1;
  int64_t bColumn = op.getTransB() ? depth : 1, bStep = op.getTransB() ? 1 : columns;
  std::vector<float> a = widened(*inputs[0]), b = widened(*inputs[1]);
  std::vector<float> bias = op.getBias() ? widened(*inputs[2]) : std::vector<float>();
  ref::Dims aBatch = ref::broadcastStrides(aShape.drop_back(2), batch);
  ref::Dims bBatch = ref::broadcastStrides(bShape.drop_back(2), batch);
  int64_t next = 0;
  ref::forEachIndex(batch, [&](ref::DimsRef index) {
    const float *left = a.data() + ref::dot(index, aBatch) * rows * depth;
    const float *right = b.data() + ref::dot(index, bBatch) * depth * columns;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j, ++next) {
        Single sum{0.0f};
        for (int64_t k = 0; k < depth; ++k) {
          sum = mulAdd(Single{left[i * aRow + k * aStep]}, Single{right[j * bColumn + k * bStep]}, sum);
        }
        floats(y)[next] = (bias.empty() ? sum : sum + Single{bias[j]}).v;
      }
    }
  });
}

/// Returns the largest score of a row. If the row is masked and must become 0, returns the lowest finite number, so
/// that its powers are 0.
static float largestScore(AttentionOp op, ArrayRef<float> scores) {
  float best = largest(scores.data(), int64_t(scores.size()), 1);
  return top::zeroesMaskedRows(op) && best == -HUGE_VALF ? std::numeric_limits<float>::lowest() : best;
}

/// Returns the divisor of a row whose powers add up to |total|.
static Single divisorOf(AttentionOp op, Single total) {
  return top::zeroesMaskedRows(op) && total.v == 0 ? Single{1.0f} : total;
}

void attentionF32(AttentionOp op, Inputs inputs, HostTensor &y) {
  const HostTensor &q = *inputs[0], &k = *inputs[1], &v = *inputs[2];
  ref::DimsRef batch = q.getShape().drop_back(2);
  int64_t queries = q.getShape()[batch.size()], depth = q.getShape().back();
  int64_t keys = k.getShape()[k.getShape().size() - 2], features = v.getShape().back();
  ref::Dims scoreShape(batch);
  scoreShape.append({queries, keys});
  bool isMasked = inputs.size() > 3;
  std::vector<double> masks = isMasked ? ref::readBroadcast<double>(*inputs[3], scoreShape) : std::vector<double>();
  ref::Dims kBatch = ref::broadcastStrides(k.getShape().drop_back(2), batch);
  ref::Dims vBatch = ref::broadcastStrides(v.getShape().drop_back(2), batch);
  Single scale{static_cast<float>(op.getScale().convertToDouble())};
  std::vector<float> scores(keys);
  const float *queryRows = floats(q).data();
  float *result = floats(y).data();
  int64_t row = 0; // counted over the queries of all batches
  ref::forEachIndex(batch, [&](ref::DimsRef index) {
    const float *keyRows = floats(k).data() + ref::dot(index, kBatch) * keys * depth;
    const float *valueRows = floats(v).data() + ref::dot(index, vBatch) * keys * features;
    for (int64_t s = 0; s < queries; ++s, ++row) {
      for (int64_t t = 0; t < keys; ++t) {
        Single sum{0.0f};
        for (int64_t e = 0; e < depth; ++e) {
          sum = mulAdd(Single{queryRows[row * depth + e]}, Single{keyRows[t * depth + e]}, sum);
        }
        sum = sum * scale;
        scores[t] = (isMasked ? sum + Single{static_cast<float>(masks[row * keys + t])} : sum).v;
      }
      Single total = powers(scores.data(), scores.data(), keys, 1, largestScore(op, scores));
      Single factor = Single{1.0f} / divisorOf(op, total);
      for (int64_t f = 0; f < features; ++f) {
        Single sum{0.0f};
        for (int64_t t = 0; t < keys; ++t) {
          sum = mulAdd(Single{scores[t]}, Single{valueRows[t * features + f]}, sum);
        }
        result[row * features + f] = (sum * factor).v;
      }
    }
  });
}

/// Rounds the powers of a row of scores to integers; returns their sum.
static int32_t roundPowers(AttentionOp op, ArrayRef<float> scores, MutableArrayRef<int32_t> rounded) {
  auto levels = float(*op.getLevels());
  float best = largestScore(op, scores);
  int32_t total = 0;
  for (auto [score, u] : llvm::zip_equal(scores, rounded)) {
    Single power = numerics::expOfNegative(Single{score} - Single{best}) * Single{levels};
    u = power.v != power.v ? 0 : static_cast<int32_t>(std::nearbyint(power.v));
    total += u;
  }
  return total;
}

void attentionI8(AttentionOp op, Inputs inputs, HostTensor &y) {
  const HostTensor &q = *inputs[0], &k = *inputs[1], &v = *inputs[2];
  ref::DimsRef batch = q.getShape().drop_back(2);
  int64_t queries = q.getShape()[batch.size()], depth = q.getShape().back();
  int64_t keys = k.getShape()[k.getShape().size() - 2], features = v.getShape().back();
  ref::Dims scoreShape(batch);
  scoreShape.append({queries, keys});
  bool isMasked = inputs.size() > 3;
  std::vector<double> masks = isMasked ? ref::readBroadcast<double>(*inputs[3], scoreShape) : std::vector<double>();
  ref::Dims kBatch = ref::broadcastStrides(k.getShape().drop_back(2), batch);
  ref::Dims vBatch = ref::broadcastStrides(v.getShape().drop_back(2), batch);
  Single scale{static_cast<float>(op.getScale().convertToDouble())};
  Single valueScale{static_cast<float>(op.getValueScale()->convertToDouble())};
  std::vector<float> scores(keys);
  std::vector<int32_t> rounded(keys);
  const int8_t *queryRows = q.data<int8_t>().data();
  float *result = floats(y).data();
  int64_t row = 0; // counted over the queries of all batches
  ref::forEachIndex(batch, [&](ref::DimsRef index) {
    const int8_t *keyRows = k.data<int8_t>().data() + ref::dot(index, kBatch) * keys * depth;
    const int8_t *valueRows = v.data<int8_t>().data() + ref::dot(index, vBatch) * keys * features;
    for (int64_t s = 0; s < queries; ++s, ++row) {
      for (int64_t t = 0; t < keys; ++t) {
        int32_t sum = 0;
        for (int64_t e = 0; e < depth; ++e) {
          sum += int32_t(queryRows[row * depth + e]) * keyRows[t * depth + e];
        }
        Single score = Single{static_cast<float>(sum)} * scale;
        scores[t] = (isMasked ? score + Single{static_cast<float>(masks[row * keys + t])} : score).v;
      }
      auto total = static_cast<float>(roundPowers(op, scores, rounded));
      Single factor = valueScale / divisorOf(op, Single{total});
      for (int64_t f = 0; f < features; ++f) {
        int32_t sum = 0;
        for (int64_t t = 0; t < keys; ++t) {
          sum += rounded[t] * valueRows[t * features + f];
        }
        result[row * features + f] = (Single{static_cast<float>(sum)} * factor).v;
      }
    }
  });
}

} // namespace tessera::device::reference

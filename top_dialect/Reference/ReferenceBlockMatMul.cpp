//===- ReferenceBlockMatMul.cpp - Matmul of quantised rows and blocks of weights ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Unlike other ops, this one is specified to the last bit, so it is computed in float. Compiled with -ffp-contract=off.
#include "top_dialect/IR/BlockQuantization.h"
#include "top_dialect/IR/TopBlockOps.h"
#include "top_dialect/Reference/Support.h"

#include "llvm/ADT/bit.h"
#include <limits>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::ArrayRef;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// A block of a row: x is about scale * q.
struct QuantizedBlock {
  std::vector<int32_t> q;
  float scale;
};

QuantizedBlock quantizeBlock(ArrayRef<float> x) {
  float largest = 0;
  bool isFinite = true;
  for (float value : x) {
    isFinite &= std::isfinite(value);
    largest = std::max(largest, std::fabs(value));
  }
  QuantizedBlock block{std::vector<int32_t>(x.size(), 0), 0};
  if (!isFinite) {
    block.scale = std::numeric_limits<float>::quiet_NaN();
  } else if (largest >= kSmallestOfBlock) {
    block.scale = largest / kLargestOfRow;
    const float inverse = kLargestOfRow / largest;
    for (auto [q, value] : llvm::zip_equal(block.q, x)) {
      const float scaled = value * inverse, rounded = scaled + kRounding;
      q = static_cast<int8_t>(llvm::bit_cast<int32_t>(rounded));
    }
  }
  return block;
}

template <typename T>
const T *dataOf(const HostTensor &tensor) {
  return reinterpret_cast<const T *>(tensor.getBytes().data());
}

} // namespace

LogicalResult BlockMatMulOp::evaluate(Inputs inputs, Outputs outputs) {
  const int64_t columns = inputs[1]->getShape().back(), depth = inputs[1]->getShape().front(),
                block = static_cast<int64_t>(getBlock());
  const auto *w = dataOf<int8_t>(*inputs[1]);
  const auto *scales = dataOf<float>(*inputs[2]), *mins = getMins() ? dataOf<float>(*inputs[3]) : nullptr;
  const int64_t rows = columns ? outputs[0].getNumElements() / columns : 0;
  std::vector<int32_t> sums(columns);
  for (int64_t row = 0; row < rows; ++row) {
    auto *y = reinterpret_cast<float *>(outputs[0].getBytes().data()) + row * columns;
    std::fill_n(y, columns, 0.0f);
    for (int64_t first = 0, g = 0; first < depth; first += block, ++g) {
      const int64_t count = std::min(block, depth - first);
      const QuantizedBlock x = quantizeBlock({dataOf<float>(*inputs[0]) + row * depth + first, size_t(count)});
      std::fill(sums.begin(), sums.end(), 0);
      int32_t total = 0;
      for (int64_t k = 0; k < count; ++k) {
        total += x.q[k];
        for (int64_t n = 0; n < columns; ++n) {
          sums[n] += x.q[k] * w[(first + k) * columns + n];
        }
      }
      const float weightOfMin = static_cast<float>(total) * x.scale;
      for (int64_t n = 0; n < columns; ++n) {
        const float scaled = static_cast<float>(sums[n]) * scales[g * columns + n];
        y[n] = std::fma(scaled, x.scale, y[n]);
        if (mins) {
          y[n] = std::fma(mins[g * columns + n], weightOfMin, y[n]);
        }
      }
    }
  }
  return success();
}

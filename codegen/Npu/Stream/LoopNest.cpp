//===- LoopNest.cpp - Loops over several tensors at once ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Stream/LoopNest.h"

#include "llvm/ADT/STLExtras.h"

using llvm::ArrayRef;
using llvm::SmallVector;

namespace tessera::npu {

LoopNest LoopNest::simplified() const {
  LoopNest result;
  result.strides.resize(strides.size());
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 1) {
      continue;
    }
    bool joins = !result.sizes.empty() && llvm::all_of(llvm::zip(result.strides, strides), [&](auto both) {
      return std::get<0>(both).back() == std::get<1>(both)[dim] * sizes[dim];
    });
    if (joins) {
      result.sizes.back() *= sizes[dim];
    } else {
      result.sizes.push_back(sizes[dim]);
    }
    for (auto [to, from] : llvm::zip(result.strides, strides)) {
      if (joins) {
        to.back() = from[dim];
      } else {
        to.push_back(from[dim]);
      }
    }
  }
  return result;
}

LoopNest broadcastNest(ArrayRef<ArrayRef<int64_t>> shapes) {
  LoopNest nest;
  nest.sizes.assign(shapes[0].begin(), shapes[0].end());
  for (ArrayRef<int64_t> shape : shapes) {
    SmallVector<int64_t> strides(nest.sizes.size(), 0);
    int64_t stride = 1;
    for (size_t back = 1; back <= shape.size(); ++back) {
      int64_t size = shape[shape.size() - back];
      strides[strides.size() - back] = size == 1 ? 0 : stride;
      stride *= size;
    }
    nest.strides.push_back(strides);
  }
  return nest;
}

static Part emptyPart(size_t tensors) {
  return {{1, 1, 1, 1}, SmallVector<std::array<int64_t, 4>>(tensors, {0, 0, 0, 0}), SmallVector<int64_t>(tensors, 0)};
}

/// Spreads the elements of each row evenly over the lanes, row by row. The remainders of the rows form a second part.
static SmallVector<Part> spread(const LoopNest &nest, int64_t lanes) {
  SmallVector<Part> parts;
  bool hasRows = nest.sizes.size() > 1;
  int64_t count = nest.sizes.back(), columns = count / lanes, rest = count % lanes;
  size_t tensors = nest.strides.size();
  for (bool isRest : {false, true}) {
    if (isRest ? rest == 0 : columns == 0) {
      continue;
    }
    Part part = emptyPart(tensors);
    part.sizes[0] = hasRows ? nest.sizes[0] : 1;
    part.sizes[1] = isRest ? rest : lanes, part.sizes[3] = isRest ? 1 : columns;
    for (size_t t = 0; t < tensors; ++t) {
      int64_t step = nest.strides[t].back();
      part.strides[t] = {hasRows ? nest.strides[t][0] : 0, isRest ? step : step * columns, 0, step};
      part.offsets[t] = isRest ? step * columns * lanes : 0;
    }
    parts.push_back(part);
  }
  return parts;
}

SmallVector<int64_t> batchesOf(ArrayRef<int64_t> of, ArrayRef<int64_t> batch) {
  LoopNest nest = broadcastNest({batch, of});
  SmallVector<int64_t> numbers = {0};
  for (auto [size, stride] : llvm::zip(nest.sizes, nest.strides[1])) {
    SmallVector<int64_t> next;
    for (int64_t number : numbers) {
      for (int64_t i = 0; i < size; ++i) {
        next.push_back(number + i * stride);
      }
    }
    numbers = next;
  }
  return numbers;
}

SmallVector<LoopNestPart> cutToFour(const LoopNest &whole) {
  SmallVector<LoopNestPart> parts = {{whole, SmallVector<int64_t>(whole.strides.size(), 0)}};
  while (parts.front().nest.sizes.size() > 4) {
    SmallVector<LoopNestPart> next;
    for (const LoopNestPart &part : parts) {
      size_t dim = llvm::min_element(part.nest.sizes) - part.nest.sizes.begin();
      for (int64_t i = 0; i < part.nest.sizes[dim]; ++i) {
        LoopNestPart &result = next.emplace_back(part);
        result.nest.sizes.erase(result.nest.sizes.begin() + dim);
        for (size_t t = 0; t < whole.strides.size(); ++t) {
          result.offsets[t] += i * part.nest.strides[t][dim];
          result.nest.strides[t].erase(result.nest.strides[t].begin() + dim);
        }
      }
    }
    parts = std::move(next);
  }
  return parts;
}

SmallVector<Part> partsOf(const LoopNest &whole, int64_t lanes) {
  // Few long rows, such as the channels of pixels, would leave most lanes idle.
  bool isFewRows = whole.sizes.size() == 2 && whole.sizes[0] <= lanes / 2 && whole.sizes[1] >= lanes * lanes;
  if (whole.sizes.size() == 1 || isFewRows) {
    return spread(whole, lanes);
  }
  constexpr int kDim[] = {3, 1, 2, 0}; // from the last dim: w, c, h, n
  SmallVector<Part> parts;
  for (const auto &[nest, offsets] : cutToFour(whole)) {
    Part &part = parts.emplace_back(emptyPart(nest.strides.size()));
    part.offsets = offsets;
    for (size_t back = 0; back < nest.sizes.size(); ++back) {
      size_t dim = nest.sizes.size() - 1 - back;
      part.sizes[kDim[back]] = nest.sizes[dim];
      for (size_t t = 0; t < nest.strides.size(); ++t) {
        part.strides[t][kDim[back]] = nest.strides[t][dim];
      }
    }
  }
  return parts;
}

} // namespace tessera::npu

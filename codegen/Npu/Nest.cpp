//===- Nest.cpp - Walks over several tensors at once ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Nest.h"

#include "llvm/ADT/STLExtras.h"

using llvm::ArrayRef;
using llvm::SmallVector;

namespace tessera::npu {

Nest Nest::simplified() const {
  Nest made;
  made.strides.resize(strides.size());
  for (size_t dim = 0; dim < sizes.size(); ++dim) {
    if (sizes[dim] == 1) {
      continue;
    }
    bool joins = !made.sizes.empty() && llvm::all_of(llvm::zip(made.strides, strides), [&](auto both) {
      return std::get<0>(both).back() == std::get<1>(both)[dim] * sizes[dim];
    });
    if (joins) {
      made.sizes.back() *= sizes[dim];
    } else {
      made.sizes.push_back(sizes[dim]);
    }
    for (auto [to, from] : llvm::zip(made.strides, strides)) {
      if (joins) {
        to.back() = from[dim];
      } else {
        to.push_back(from[dim]);
      }
    }
  }
  return made;
}

Nest broadcastNest(ArrayRef<ArrayRef<int64_t>> shapes) {
  Nest nest;
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

/// A row of elements over the lanes, and what is left of it.
static SmallVector<Part> spread(const Nest &nest, int64_t lanes) {
  SmallVector<Part> parts;
  int64_t count = nest.sizes[0], columns = count / lanes, rest = count % lanes;
  size_t tensors = nest.strides.size();
  for (bool isRest : {false, true}) {
    if (isRest ? rest == 0 : columns == 0) {
      continue;
    }
    Part part = emptyPart(tensors);
    part.sizes[1] = isRest ? rest : lanes, part.sizes[3] = isRest ? 1 : columns;
    for (size_t t = 0; t < tensors; ++t) {
      int64_t step = nest.strides[t][0];
      part.strides[t] = {0, isRest ? step : step * columns, 0, step};
      part.offsets[t] = isRest ? step * columns * lanes : 0;
    }
    parts.push_back(part);
  }
  return parts;
}

SmallVector<Part> partsOf(const Nest &nest, int64_t lanes) {
  size_t dims = nest.sizes.size();
  if (dims == 1) {
    return spread(nest, lanes);
  }
  if (dims > 4) {
    return {};
  }
  constexpr int kDim[] = {3, 1, 2, 0}; // from the last: w, c, h, n
  Part part = emptyPart(nest.strides.size());
  for (size_t back = 0; back < dims; ++back) {
    size_t dim = dims - 1 - back;
    part.sizes[kDim[back]] = nest.sizes[dim];
    for (size_t t = 0; t < nest.strides.size(); ++t) {
      part.strides[t][kDim[back]] = nest.strides[t][dim];
    }
  }
  return {part};
}

} // namespace tessera::npu

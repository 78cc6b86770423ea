//===- ReferenceIndexing.cpp - Gather, scatter, one-hot, einsum ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <optional>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::failure;
using llvm::LogicalResult;
using llvm::success;

namespace {

/// Converts a negative index, which counts from the end. Emits an error at `op` if the index is outside -size..size-1.
template <typename Op>
LogicalResult normaliseIndex(Op op, int64_t &index, int64_t size) {
  if (index < -size || index >= size) {
    return op.emitOpError("index ") << index << " is outside the dim of " << size << " elements (allowed: " << -size
                                    << " to " << size - 1 << ")";
  }
  index += index < 0 ? size : 0;
  return success();
}

template <typename Op>
LogicalResult readIndices(Op op, const HostTensor &tensor, int64_t size, std::vector<int64_t> &indices) {
  indices = read<int64_t>(tensor);
  for (int64_t &index : indices) {
    if (failed(normaliseIndex(op, index, size))) {
      return failure();
    }
  }
  return success();
}

/// Converts index tuples [..., depth] to linear positions of the slices that they select in x. A tuple indexes the dims
/// batchDims .. batchDims + depth - 1; the dims before are indexed by the position of the tuple itself.
template <typename Op>
LogicalResult readTuples(Op op, const HostTensor &tensor, DimsRef shape, int64_t batchDims,
                         std::vector<int64_t> &positions) {
  std::vector<int64_t> values = read<int64_t>(tensor);
  Dims strides = rowMajorStrides(shape);
  int64_t depth = tensor.getShape().back(), next = 0;
  LogicalResult result = success();
  forEachIndex(tensor.getShape().drop_back(), [&](DimsRef index) {
    int64_t linear = dot(index.take_front(batchDims), DimsRef(strides).take_front(batchDims));
    for (int64_t d = batchDims; d < batchDims + depth; ++d) {
      int64_t i = values[next++];
      if (succeeded(result)) {
        result = normaliseIndex(op, i, shape[d]);
        linear += i * strides[d];
      }
    }
    positions.push_back(linear);
  });
  return result;
}

/// Combines a scattered value with the existing one.
template <typename T>
T combine(ScatterReduction kind, T old, T update) {
  switch (kind) {
  case ScatterReduction::none:
    return update;
  case ScatterReduction::add:
    return old + update;
  case ScatterReduction::mul:
    return old * update;
  case ScatterReduction::min:
    return smallerOf(old, update);
  case ScatterReduction::max:
    return largerOf(old, update);
  }
  return update;
}

} // namespace

// --- Gather --------------------------------------------------------------------

LogicalResult GatherOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(inputs[0]->getShape(), getAxis());
  std::vector<int64_t> indices;
  if (failed(readIndices(*this, *inputs[1], view.size, indices))) {
    return failure();
  }
  int64_t run = view.inner * elementBytes(inputs[0]->getElementType());
  const char *from = inputs[0]->getBytes().data();
  char *to = outputs[0].getBytes().data();
  for (int64_t o = 0; o < view.outer && run; ++o) {
    for (int64_t index : indices) {
      std::memcpy(to, from + (o * view.size + index) * run, run);
      to += run;
    }
  }
  return success();
}

LogicalResult GatherElementsOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  std::vector<int64_t> indices;
  if (failed(readIndices(*this, *inputs[1], shape[getAxis()], indices))) {
    return failure();
  }
  Dims strides = rowMajorStrides(shape);
  int64_t next = 0;
  moveElements(*inputs[0], outputs[0], [&](DimsRef index) {
    return dot(index, strides) + (indices[next++] - index[getAxis()]) * strides[getAxis()];
  });
  return success();
}

LogicalResult GatherNdOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  int64_t batchDims = getBatchDims(), depth = inputs[1]->getShape().back();
  std::vector<int64_t> positions;
  if (failed(readTuples(*this, *inputs[1], shape, batchDims, positions))) {
    return failure();
  }
  int64_t size = elementBytes(inputs[0]->getElementType());
  int64_t run = product(shape.drop_front(batchDims + depth)) * size;
  char *to = outputs[0].getBytes().data();
  for (int64_t position : positions) {
    std::memcpy(to, inputs[0]->getBytes().data() + position * size, run);
    to += run;
  }
  return success();
}

// --- Scatter -------------------------------------------------------------------

LogicalResult ScatterElementsOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  std::vector<int64_t> indices;
  if (failed(readIndices(*this, *inputs[1], shape[getAxis()], indices))) {
    return failure();
  }
  Dims strides = rowMajorStrides(shape);
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> y = read<T>(*inputs[0]), updates = read<T>(*inputs[2]);
    int64_t next = 0;
    forEachIndex(inputs[1]->getShape(), [&](DimsRef index) {
      int64_t at = dot(index, strides) + (indices[next] - index[getAxis()]) * strides[getAxis()];
      y[at] = combine(getReduction(), y[at], updates[next++]);
    });
    write(y, outputs[0]);
    return success();
  });
}

LogicalResult ScatterNdOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  std::vector<int64_t> positions;
  if (failed(readTuples(*this, *inputs[1], shape, /*batchDims=*/0, positions))) {
    return failure();
  }
  int64_t run = product(shape.drop_front(inputs[1]->getShape().back()));
  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> y = read<T>(*inputs[0]), updates = read<T>(*inputs[2]);
    int64_t next = 0;
    for (int64_t position : positions) {
      for (int64_t i = position; i < position + run; ++i) {
        y[i] = combine(getReduction(), y[i], updates[next++]);
      }
    }
    write(y, outputs[0]);
    return success();
  });
}

// --- Others --------------------------------------------------------------------

LogicalResult OneHotOp::evaluate(Inputs inputs, Outputs outputs) {
  AxisView view(outputs[0].getShape(), getAxis());
  std::vector<int64_t> indices = read<int64_t>(*inputs[0]);
  return withNumbers(inputs[1]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<T> values = read<T>(*inputs[1]), y(outputs[0].getNumElements(), values[0]);
    for (int64_t o = 0; o < view.outer; ++o) {
      for (int64_t i = 0; i < view.inner; ++i) {
        int64_t index = indices[o * view.inner + i];
        index += index < 0 ? view.size : 0;
        if (index >= 0 && index < view.size) {
          y[view.at(o, index, i)] = values[1];
        }
      }
    }
    write(y, outputs[0]);
    return success();
  });
}

LogicalResult NonZeroOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  std::vector<double> x = read<double>(*inputs[0]);
  std::vector<Dims> found;
  int64_t next = 0;
  forEachIndex(shape, [&](DimsRef index) {
    if (x[next++] != 0) {
      found.emplace_back(index);
    }
  });
  int64_t count = found.size(), rank = shape.size();
  std::vector<int64_t> y(rank * count);
  for (int64_t d = 0; d < rank; ++d) {
    for (int64_t i = 0; i < count; ++i) {
      y[d * count + i] = found[i][d];
    }
  }
  outputs[0].resize({rank, count});
  write(y, outputs[0]);
  return success();
}

namespace {

/// Splits an equation "ab,bc->ac" into its terms: one per operand, then the result's.
llvm::SmallVector<llvm::StringRef> einsumTerms(llvm::StringRef equation) {
  auto [operands, result] = equation.split("->");
  llvm::SmallVector<llvm::StringRef> terms;
  operands.split(terms, ',');
  terms.push_back(result);
  return terms;
}

/// Returns the stride of each letter in a tensor of `shape` indexed by `term`. The strides of a repeated letter (a
/// diagonal) are added.
Dims letterStrides(llvm::StringRef letters, llvm::StringRef term, DimsRef shape) {
  Dims dense = rowMajorStrides(shape), strides(letters.size(), 0);
  for (size_t d = 0; d < term.size(); ++d) {
    strides[letters.find(term[d])] += dense[d];
  }
  return strides;
}

} // namespace

LogicalResult EinsumOp::evaluate(Inputs inputs, Outputs outputs) {
  llvm::SmallVector<llvm::StringRef> terms = einsumTerms(getEquation());
  // Collect all letters with their dims, those of the result first.
  std::string letters = terms.back().str();
  Dims dims(outputs[0].getShape());
  for (auto [term, input] : llvm::zip(terms, inputs)) {
    for (auto [letter, dim] : llvm::zip_equal(term, input->getShape())) {
      if (letters.find(letter) == std::string::npos) {
        letters.push_back(letter);
        dims.push_back(dim);
      }
    }
  }
  DimsRef kept = DimsRef(dims).take_front(terms.back().size());
  DimsRef summed = DimsRef(dims).drop_front(terms.back().size());

  return withNumbers(inputs[0]->getElementType(), [&](auto zero) -> LogicalResult {
    using T = decltype(zero);
    std::vector<std::vector<T>> values;
    std::vector<Dims> strides;
    for (auto [term, input] : llvm::zip(terms, inputs)) {
      values.push_back(read<T>(*input));
      strides.push_back(letterStrides(letters, term, input->getShape()));
    }
    std::vector<T> y;
    forEachIndex(kept, [&](DimsRef outer) {
      T sum = 0;
      forEachIndex(summed, [&](DimsRef inner) {
        T factor = 1;
        for (auto [x, stride] : llvm::zip_equal(values, strides)) {
          factor *= x[dot(outer, DimsRef(stride).take_front(outer.size())) +
                      dot(inner, DimsRef(stride).drop_front(outer.size()))];
        }
        sum += factor;
      });
      y.push_back(sum);
    });
    write(y, outputs[0]);
    return success();
  });
}

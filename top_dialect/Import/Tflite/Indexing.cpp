//===- Indexing.cpp - Handlers of slices and gathers ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include "llvm/Support/FormatVariadic.h"

namespace tessera::top::tflite_import {
namespace {

/// A size of -1 means up to the end.
void slice(OperatorImporter &n) {
  Value x = n.input(0);
  Ints starts = n.constantInts(1, "the begin"), sizes = n.constantInts(2, "the size");
  auto rank = static_cast<size_t>(n.rank(x));
  if (n.failed() || starts.size() != rank || sizes.size() != rank) {
    return n.fail("begin and size must have one entry per dim");
  }
  for (size_t d = 0; d < rank; ++d) {
    int64_t dim = n.shape(x)[d];
    sizes[d] = sizes[d] == -1 ? dim - starts[d] : sizes[d];
    if (starts[d] < 0 || sizes[d] < 0 || starts[d] > dim || sizes[d] > dim - starts[d]) {
      return n.fail(llvm::formatv("{0} elements from {1} on are not within dim {2}", sizes[d], starts[d], dim));
    }
  }
  n.setOutput(0, n.slice(x, starts, sizes, Ints(rank, 1)));
}

/// The entries of a strided slice for one dim.
struct Range {
  int64_t begin, end, stride;
  bool fromFirst, toLast; ///< begin or end is masked
};

/// Returns the first index and the number of elements of |range| in a dim of |size|.
std::pair<int64_t, int64_t> resolve(const Range &range, int64_t size) {
  int64_t low = range.stride > 0 ? 0 : -1, high = range.stride > 0 ? size : size - 1;
  auto bound = [&](int64_t index) { return std::clamp(index < 0 ? index + size : index, low, high); };
  int64_t begin = range.fromFirst ? (range.stride > 0 ? low : high) : bound(range.begin);
  int64_t end = range.toLast ? (range.stride > 0 ? high : low) : bound(range.end);
  int64_t span = range.stride > 0 ? end - begin : begin - end, step = std::abs(range.stride);
  return {begin, std::max<int64_t>((span + step - 1) / step, 0)};
}

void stridedSlice(OperatorImporter &n) {
  const auto &options = n.options<tflite::StridedSliceOptions>();
  Value x = n.input(0);
  Ints begins = n.constantInts(1, "the begin"), ends = n.constantInts(2, "the end"),
       strides = n.constantInts(3, "the stride");
  auto rank = static_cast<size_t>(n.rank(x));
  if (options.ellipsis_mask() || options.new_axis_mask() || options.offset()) {
    n.unsupported("an ellipsis, a new axis and ends relative to the begin are not supported");
  }
  if (n.failed() || begins.size() > rank || ends.size() != begins.size() || strides.size() != begins.size()) {
    return n.fail("begin, end and stride must have at most one entry per dim");
  }
  Ints starts(rank, 0), sizes(n.shape(x)), steps(rank, 1), rest;
  for (size_t d = 0; d < rank; ++d) {
    int64_t dim = n.shape(x)[d];
    bool removes = d < begins.size() && (options.shrink_axis_mask() >> d & 1);
    if (removes) {
      starts[d] = begins[d] < 0 ? begins[d] + dim : begins[d], sizes[d] = 1;
      if (starts[d] < 0 || starts[d] >= dim || strides[d] != 1 || (options.begin_mask() >> d & 1)) {
        return n.unsupported(llvm::formatv("it selects element {0} of dim {1}, which has {2}, with stride {3}",
                                           begins[d], d, dim, strides[d]));
      }
    } else if (d < begins.size()) {
      if (strides[d] == 0) {
        return n.fail("a stride is 0");
      }
      Range range{begins[d], ends[d], strides[d], (options.begin_mask() >> d & 1) != 0,
                  (options.end_mask() >> d & 1) != 0};
      std::tie(starts[d], sizes[d]) = resolve(range, dim);
      steps[d] = strides[d];
      if (sizes[d] == 0) {
        return n.unsupported("an empty slice is not supported");
      }
    }
    if (!removes) {
      rest.push_back(sizes[d]);
    }
  }
  Value y = n.slice(x, starts, sizes, steps);
  n.setOutput(0, rest.size() == rank ? y : n.reshape(y, rest));
}

void gather(OperatorImporter &n) {
  const auto &options = n.options<tflite::GatherOptions>();
  if (options.batch_dims() != 0) {
    n.unsupported("batch_dims other than 0 are not supported");
  }
  Value x = n.input(0);
  n.setOutput(0, n.create<GatherOp>(x, n.input(1), n.normalizeAxis(options.axis(), n.rank(x))));
}

void gatherNd(OperatorImporter &n) { n.setOutput(0, n.create<GatherNdOp>(n.input(0), n.input(1), 0)); }

void reverse(OperatorImporter &n) {
  Value x = n.input(0);
  Ints starts(n.rank(x), 0), steps(n.rank(x), 1);
  for (int64_t given : n.constantInts(1, "the axes")) {
    int64_t axis = n.normalizeAxis(given, n.rank(x));
    if (!n.failed()) {
      starts[axis] = n.shape(x)[axis] - 1, steps[axis] = -1;
    }
  }
  n.setOutput(0, n.slice(x, starts, Ints(n.shape(x)), steps));
}

} // namespace

llvm::ArrayRef<HandlerEntry> indexHandlers() {
  using Code = tflite::BuiltinOperator;
  static const HandlerEntry entries[] = {
      {Code::SLICE, slice},        {Code::STRIDED_SLICE, stridedSlice}, {Code::GATHER, gather},
      {Code::GATHER_ND, gatherNd}, {Code::REVERSE_V2, reverse},
  };
  return entries;
}

} // namespace tessera::top::tflite_import

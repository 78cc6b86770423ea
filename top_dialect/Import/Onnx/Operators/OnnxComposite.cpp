//===- OnnxComposite.cpp - Handlers of operators made of several others ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

bool requireStatic(NodeImporter &n, llvm::ArrayRef<Value> values) {
  for (Value value : values) {
    if (value && llvm::any_of(NodeImporter::shape(value), mlir::ShapedType::isDynamic)) {
      n.unsupported("needs static dims: fix them with --input_shapes");
    }
  }
  return !n.failed();
}

//===----------------------------------------------------------------------===//
// AffineGrid, Col2Im, ReverseSequence
//===----------------------------------------------------------------------===//

/// Multiplies the grid of |size| = [N, C, spatial...] in homogeneous coordinates (innermost dim first, then 1) by the
/// transpose of theta [N, spatial, spatial + 1].
void affineGrid(NodeImporter &n) {
  Value theta = n.input(0);
  Ints size = n.constantInts(1, "the size of the result");
  if (n.failed() || !requireStatic(n, {theta})) {
    return;
  }
  int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  if ((spatial != 2 && spatial != 3) || llvm::any_of(size, [](int64_t dim) { return dim <= 0; })) {
    n.fail(llvm::formatv("a size of {0} entries; allowed: 4 or 5, all positive", size.size()));
    return;
  }
  bool corners = n.intAttr("align_corners", 0) != 0;
  Ints extent(llvm::ArrayRef<int64_t>(size).drop_front(2));
  int64_t points = std::accumulate(extent.begin(), extent.end(), int64_t{1}, std::multiplies<>());
  llvm::SmallVector<double> grid;
  for (int64_t point = 0; point < points; ++point) {
    int64_t rest = point;
    for (int64_t d = spatial - 1; d >= 0; --d) {
      auto at = static_cast<double>(rest % extent[d]), count = static_cast<double>(extent[d]);
      rest /= extent[d];
      grid.push_back(corners ? (count > 1 ? 2 * at / (count - 1) - 1 : 0) : (2 * at + 1) / count - 1);
    }
    grid.push_back(1);
  }
  Value base = n.floatConstant(NodeImporter::elementType(theta), {1, points, spatial + 1}, grid);
  Value y = n.create<MatMulOp>(base, theta, Value(), false, true, false, llvm::APFloat(-1.0));
  Ints shape{size[0]};
  shape.append(extent.begin(), extent.end());
  shape.push_back(spatial);
  n.setOutput(0, n.reshape(y, shape));
}

/// Adds up columns [N, C * K, L] into an image: a transposed convolution whose filters each select one tap.
void col2Im(NodeImporter &n) {
  Value x = n.input(0);
  Ints image = n.constantInts(1, "the image's size"), block = n.constantInts(2, "the block's size");
  if (n.failed() || !requireStatic(n, {x})) {
    return;
  }
  size_t spatial = block.size();
  Ints strides = n.intsAttr("strides", Ints(spatial, 1)), dilations = n.intsAttr("dilations", Ints(spatial, 1));
  Ints pads = n.intsAttr("pads", Ints(2 * spatial, 0));
  int64_t taps = std::accumulate(block.begin(), block.end(), int64_t{1}, std::multiplies<>());
  llvm::ArrayRef<int64_t> shape = NodeImporter::shape(x);
  if (image.size() != spatial || strides.size() != spatial || dilations.size() != spatial ||
      pads.size() != 2 * spatial || shape.size() != 3 || taps <= 0 || taps > 4096 || shape[1] % taps != 0 ||
      llvm::any_of(strides, [](int64_t s) { return s <= 0; })) {
    n.fail("image_shape, block_shape, strides, dilations, pads and the input [N, C * block, L] do not match");
    return;
  }
  int64_t channels = shape[1] / taps, positions = 1;
  Ints columns{shape[0], shape[1]}, filter{shape[1], 1}, rest(spatial);
  for (size_t d = 0; d < spatial; ++d) {
    int64_t padded = image[d] + pads[d] + pads[spatial + d], reach = dilations[d] * (block[d] - 1) + 1;
    columns.push_back((padded - reach) / strides[d] + 1);
    positions *= columns.back();
    rest[d] = (padded - reach) % strides[d]; // the part after the last block
    filter.push_back(block[d]);
  }
  if (positions != shape[2]) {
    n.fail(llvm::formatv("the input has {0} columns, the image has room for {1} blocks", shape[2], positions));
    return;
  }
  llvm::SmallVector<double> picks(channels * taps * taps, 0.0);
  for (int64_t row = 0; row < channels * taps; ++row) {
    picks[row * taps + row % taps] = 1.0;
  }
  Value w = n.floatConstant(NodeImporter::elementType(x), filter, picks);
  n.setOutput(0, n.create<ConvTransposeOp>(n.reshape(x, columns), w, Value(), strides, pads, dilations, rest, channels,
                                           false, llvm::APFloat(-1.0)));
}

/// As the lengths are constant, this is a gather along the time axis with one list of positions per batch entry.
void reverseSequence(NodeImporter &n) {
  Value x = n.input(0);
  Ints lengths = n.constantInts(1, "the list of sequence lengths");
  int64_t batchAxis = n.intAttr("batch_axis", 1), timeAxis = n.intAttr("time_axis", 0);
  if (n.failed() || !requireStatic(n, {x})) {
    return;
  }
  Ints shape(NodeImporter::shape(x));
  if (shape.size() < 2 || batchAxis + timeAxis != 1 || batchAxis * timeAxis != 0 ||
      static_cast<int64_t>(lengths.size()) != shape[batchAxis]) {
    n.fail(llvm::formatv("{0} lengths, batch_axis {1} and time_axis {2} do not match an input of rank {3}",
                         lengths.size(), batchAxis, timeAxis, shape.size()));
    return;
  }
  Ints order;
  for (int64_t b = 0; b < shape[batchAxis]; ++b) {
    for (int64_t t = 0; t < shape[timeAxis]; ++t) {
      order.append({b, t < lengths[b] ? lengths[b] - 1 - t : t});
    }
  }
  if (llvm::any_of(order, [](int64_t at) { return at < 0; }) ||
      llvm::any_of(lengths, [&](int64_t length) { return length > shape[timeAxis]; })) {
    n.fail(llvm::formatv("a sequence length is outside 0..{0}", shape[timeAxis]));
    return;
  }
  Ints swap(shape.size());
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[0], swap[batchAxis]);
  Value batchFirst = n.transpose(x, swap);
  Value y = n.create<GatherNdOp>(batchFirst, n.reshape(n.intVector(order), {shape[batchAxis], shape[timeAxis], 2}), 0);
  n.setOutput(0, n.transpose(y, swap));
}

//===----------------------------------------------------------------------===//
// CenterCropPad, Det
//===----------------------------------------------------------------------===//

/// Crops each axis that is too long to its middle, and pads each axis that is too short with zeros on both sides. An
/// odd element is cut or added at the end.
void centerCropPad(NodeImporter &n) {
  Value x = n.input(0);
  Ints target = n.constantInts(1, "the shape of the result");
  if (n.failed() || !requireStatic(n, {x})) {
    return;
  }
  int64_t rank = NodeImporter::rank(x);
  Ints axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes = n.normalizeAxes(n.intsAttr("axes", axes), rank);
  if (!n.failed() && (axes.size() != target.size() || llvm::any_of(target, [](int64_t size) { return size < 1; }))) {
    n.fail(llvm::formatv("its shape has {0} entries for {1} axes; all must be positive", target.size(), axes.size()));
  }
  if (n.failed()) {
    return;
  }
  Ints starts(rank, 0), sizes(NodeImporter::shape(x)), pads(2 * rank, 0);
  bool cuts = false, adds = false;
  for (auto [axis, size] : llvm::zip_equal(axes, target)) {
    int64_t more = size - sizes[axis];
    if (more < 0) {
      starts[axis] = -more / 2;
      sizes[axis] = size;
      cuts = true;
    } else if (more > 0) {
      pads[axis] = more / 2;
      pads[rank + axis] = more - more / 2;
      adds = true;
    }
  }
  Value y = cuts ? n.create<SliceOp>(x, starts, sizes, Ints(rank, 1)) : x;
  n.setOutput(0, adds ? n.create<PadOp>(y, pads, PadMode::constant, llvm::APFloat(0.0)) : y);
}

/// Returns element [row, column] of the matrices |x| [..., M, M], as [...].
Value entry(NodeImporter &n, Value x, int64_t row, int64_t column) {
  Ints dims(NodeImporter::shape(x)), starts(dims.size(), 0), steps(dims.size(), 1), rest(dims);
  size_t rank = dims.size();
  rest.resize(rank - 2);
  dims[rank - 2] = dims[rank - 1] = 1;
  starts[rank - 2] = row;
  starts[rank - 1] = column;
  return n.reshape(n.create<SliceOp>(x, starts, dims, steps), rest);
}

/// Returns the determinant of the rows from |row| on and |columns| of |x|, by Laplace expansion along the first of
/// these rows.
Value determinant(NodeImporter &n, Value x, int64_t row, const Ints &columns) {
  Value sum;
  for (auto [i, column] : llvm::enumerate(columns)) {
    Value term = entry(n, x, row, column);
    if (columns.size() > 1) {
      Ints others(columns);
      others.erase(others.begin() + i);
      term = n.create<MulOp>(term, determinant(n, x, row + 1, others));
    }
    sum = !sum ? term : i % 2 == 0 ? n.create<AddOp>(sum, term) : n.create<SubOp>(sum, term);
  }
  return sum;
}

void det(NodeImporter &n) {
  Value x = n.input(0);
  constexpr int64_t kLargest = 4;
  int64_t rank = NodeImporter::rank(x), size = NodeImporter::dim(x, rank - 1);
  if (n.failed() || !requireStatic(n, {x})) {
    return;
  }
  if (rank < 2 || NodeImporter::dim(x, rank - 2) != size) {
    n.fail("its input does not hold square matrices");
    return;
  }
  if (size < 1 || size > kLargest) {
    n.unsupported(llvm::formatv("matrices of {0} rows; 1 to {1} are supported", size, kLargest));
    return;
  }
  Ints columns(size);
  std::iota(columns.begin(), columns.end(), 0);
  n.setOutput(0, determinant(n, x, 0, columns));
}

constexpr HandlerEntry kHandlers[] = {
    {"", "CenterCropPad", centerCropPad, 18}, {"", "Det", det, 11},
    {"", "AffineGrid", affineGrid},           {"", "Col2Im", col2Im},
    {"", "ReverseSequence", reverseSequence},
};

} // namespace

llvm::ArrayRef<HandlerEntry> compositeHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

//===- OnnxConv.cpp - Handlers of convolution, matmul and pooling ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

#include <limits>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Larger than any realistic window, and small enough that computations of sizes cannot overflow.
constexpr int64_t kMaxEntry = int64_t(1) << 31;

/// The parameters that the windowed operators share, with one entry per spatial dim. The pads at all begins come first,
/// then those at the ends.
struct Window {
  Ints kernel, strides, pads, dilations;
};

/// Computes explicit pads for |autoPad|. With SAME_*, the output size is ceil(in / stride).
void resolveAutoPad(NodeImporter &n, Window &w, llvm::StringRef autoPad, llvm::ArrayRef<Dim> spatial) {
  size_t rank = w.kernel.size();
  if (autoPad == "VALID") {
    w.pads.assign(2 * rank, 0);
    return;
  }
  bool upper = autoPad == "SAME_UPPER";
  if (!upper && autoPad != "SAME_LOWER") {
    n.fail(llvm::formatv("auto_pad '{0}' is unknown; allowed are NOTSET, SAME_UPPER, SAME_LOWER and VALID", autoPad));
    return;
  }
  for (size_t d = 0; d < rank; ++d) {
    Dim out = ceilDiv(spatial[d], w.strides[d]);
    Dim needed = max((out - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 - spatial[d], 0);
    if (!needed.isKnown()) {
      n.unsupported(llvm::formatv("auto_pad with stride {0} of an open dim needs multiples of {0}: give --dims "
                                  "NAME=MIN..MAX:{0}, or fix the dim with --input_shapes",
                                  w.strides[d]));
      return;
    }
    int64_t total = needed.value();
    w.pads[d] = upper ? total / 2 : total - total / 2;
    w.pads[rank + d] = total - w.pads[d];
  }
}

bool checkEntries(NodeImporter &n, llvm::StringRef name, const Ints &values, size_t count, int64_t least) {
  if (values.size() != count) {
    n.fail(llvm::formatv("attribute '{0}' has {1} entries; expected {2}", name, values.size(), count));
  } else if (llvm::any_of(values, [&](int64_t v) { return v < least || v > kMaxEntry; })) {
    n.fail(llvm::formatv("attribute '{0}' has an entry below {1} or above 2^31", name, least));
  }
  return !n.failed();
}

/// If |kernel| is empty, uses the attribute kernel_shape.
std::optional<Window> readWindow(NodeImporter &n, Value x, llvm::ArrayRef<int64_t> kernel) {
  Window w;
  int64_t rank = NodeImporter::rank(x) - 2;
  if (rank < 1) {
    n.fail(llvm::formatv("its input has rank {0}; expected at least 3", rank + 2));
    return std::nullopt;
  }
  w.kernel = n.intsAttr("kernel_shape", kernel);
  w.strides = n.intsAttr("strides", Ints(rank, 1));
  w.pads = n.intsAttr("pads", Ints(2 * rank, 0));
  w.dilations = n.intsAttr("dilations", Ints(rank, 1));
  if (!checkEntries(n, "kernel_shape", w.kernel, rank, 1) || !checkEntries(n, "strides", w.strides, rank, 1) ||
      !checkEntries(n, "pads", w.pads, 2 * rank, 0) || !checkEntries(n, "dilations", w.dilations, rank, 1)) {
    return std::nullopt;
  }
  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  if (autoPad != "NOTSET" && !autoPad.empty()) {
    resolveAutoPad(n, w, autoPad, llvm::ArrayRef(NodeImporter::sizes(x)).drop_front(2));
  }
  return n.failed() ? std::nullopt : std::optional(w);
}

/// Reads the spatial dims of a filter, which may be computed at run time, and checks them against kernel_shape.
std::optional<Window> readFilterWindow(NodeImporter &n, Value x, Value w) {
  if (n.failed()) {
    return std::nullopt;
  }
  if (NodeImporter::rank(x) != NodeImporter::rank(w)) {
    n.fail(llvm::formatv("its input has rank {0}, its filter rank {1}; they must agree", NodeImporter::rank(x),
                         NodeImporter::rank(w)));
    return std::nullopt;
  }
  auto kernel = NodeImporter::shape(w).drop_front(std::min<int64_t>(2, NodeImporter::rank(w)));
  auto window = readWindow(n, x, kernel);
  if (window && llvm::ArrayRef<int64_t>(window->kernel) != kernel) {
    n.fail("attribute 'kernel_shape' contradicts the filter's dims");
    return std::nullopt;
  }
  return window;
}

} // namespace

Value makeConv(NodeImporter &n, Value x, Value w, Value bias) {
  auto window = readFilterWindow(n, x, w);
  return window ? n.create<ConvOp>(x, w, bias, window->strides, window->pads, window->dilations, n.intAttr("group", 1),
                                   false, llvm::APFloat(-1.0))
                : x;
}

Value makeFusedActivation(NodeImporter &n, Value y, llvm::ArrayRef<double> params) {
  std::string activation = n.stringAttr("activation", "");
  auto number = [&](size_t i) { return llvm::APFloat(static_cast<float>(params[i])); };
  if (activation.empty()) {
    return y;
  }
  if (activation == "Relu") {
    return n.create<ReluOp>(y);
  }
  if (activation == "Sigmoid") {
    return n.create<SigmoidOp>(y);
  }
  if (activation == "Tanh") {
    return n.create<TanhOp>(y);
  }
  if (activation == "LeakyRelu" && params.size() >= 1) {
    return n.create<LeakyReluOp>(y, number(0));
  }
  if (activation == "Clip" && params.size() == 2) {
    return n.create<ClipOp>(y, llvm::APFloat(params[0]), llvm::APFloat(params[1]));
  }
  if (activation == "HardSigmoid" && params.size() == 2) {
    return n.create<HardSigmoidOp>(y, number(0), number(1));
  }
  if (activation == "HardSwish" && params.empty()) {
    return n.create<HardSwishOp>(y);
  }
  n.unsupported(llvm::formatv("activation '{0}' with {1} parameters is not supported", activation, params.size()));
  return y;
}

namespace {

void conv(NodeImporter &n) { n.setOutput(0, makeConv(n, n.input(0), n.input(1), n.optionalInput(2))); }

/// FusedConv of com.microsoft: convolution, optional residual, activation.
void fusedConv(NodeImporter &n) {
  n.allowOnly({"activation", "activation_params", "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"},
              4);
  Value y = makeConv(n, n.input(0), n.input(1), n.optionalInput(2));
  if (n.hasInput(3)) {
    y = n.create<AddOp>(y, n.input(3));
  }
  n.setOutput(0, makeFusedActivation(n, y, n.floatsAttr("activation_params")));
}

/// Computes the pads that give a result of size `output_shape`. As in ONNX, the odd element is at the end unless
/// auto_pad is SAME_UPPER. If the result is larger than what the windows reach, it is padded at its end.
void padsForOutputShape(NodeImporter &n, Window &w, Ints &outputPadding, llvm::ArrayRef<int64_t> spatial) {
  size_t rank = w.kernel.size();
  Ints wanted = n.intsAttr("output_shape");
  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  if (wanted.empty() && (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER")) {
    for (size_t d = 0; d < rank; ++d) {
      wanted.push_back(detail::mulDims(spatial[d], w.strides[d]));
    }
  }
  if (wanted.empty()) {
    return;
  }
  if (llvm::any_of(spatial, mlir::ShapedType::isDynamic)) {
    n.unsupported("output_shape and auto_pad need static spatial dims: fix them with --input_shapes");
    return;
  }
  if (!checkEntries(n, "output_shape", wanted, rank, 1)) {
    return;
  }
  for (size_t d = 0; d < rank; ++d) {
    int64_t total = detail::mulDims(w.strides[d], spatial[d] - 1) + outputPadding[d] +
                    (w.kernel[d] - 1) * w.dilations[d] + 1 - wanted[d];
    if (total < 0) {
      outputPadding[d] -= total;
      total = 0;
    }
    w.pads[d] = autoPad == "SAME_UPPER" ? total / 2 : total - total / 2;
    w.pads[rank + d] = total - w.pads[d];
  }
}

void convTranspose(NodeImporter &n) {
  Value x = n.input(0), w = n.input(1);
  // Here auto_pad refers to the result, so the window is read without it.
  auto window = readFilterWindow(n, x, w);
  if (!window) {
    return;
  }
  Window geometry = *window;
  std::string autoPad = n.stringAttr("auto_pad", "NOTSET");
  if (autoPad != "NOTSET" && !autoPad.empty()) {
    geometry.pads.assign(geometry.pads.size(), 0);
  }
  Ints outputPadding = n.intsAttr("output_padding", Ints(geometry.kernel.size(), 0));
  if (!checkEntries(n, "output_padding", outputPadding, geometry.kernel.size(), 0)) {
    return;
  }
  padsForOutputShape(n, geometry, outputPadding, NodeImporter::shape(x).drop_front(2));
  n.setOutput(0,
              n.create<ConvTransposeOp>(x, w, n.optionalInput(2), geometry.strides, geometry.pads, geometry.dilations,
                                        outputPadding, n.intAttr("group", 1), false, llvm::APFloat(-1.0)));
}

Value makeMatMul(NodeImporter &n, Value a, Value b, Value bias = {}, bool transA = false, bool transB = false) {
  return n.create<MatMulOp>(a, b, bias, transA, transB, false, llvm::APFloat(-1.0));
}

} // namespace

Value makeNumpyMatMul(NodeImporter &n, Value a, Value b) {
  int64_t rankA = NodeImporter::rank(a), rankB = NodeImporter::rank(b);
  if (rankA == 0 || rankB == 0) {
    n.fail("an operand is a scalar");
    return a;
  }
  Ints shapeA(NodeImporter::shape(a)), shapeB(NodeImporter::shape(b));
  if (rankA == 1) {
    a = n.reshape(a, {1, shapeA[0]});
  }
  if (rankB == 1) {
    b = n.reshape(b, {shapeB[0], 1});
  }
  Value y = makeMatMul(n, a, b);
  Ints shape(NodeImporter::shape(y));
  if (rankB == 1 && !shape.empty()) {
    shape.pop_back();
  }
  if (rankA == 1 && !shape.empty()) {
    shape.erase(shape.end() - (rankB == 1 ? 1 : 2));
  }
  return n.reshape(y, shape);
}

namespace {

void matMul(NodeImporter &n) { n.setOutput(0, makeNumpyMatMul(n, n.input(0), n.input(1))); }

} // namespace

/// A bias [N] or [1, N] becomes the bias of the matmul. Any other bias is added separately.
Value makeGemm(NodeImporter &n) {
  Value a = n.input(0), b = n.input(1), c = n.optionalInput(2);
  double alpha = n.floatAttr("alpha", 1.0), beta = n.floatAttr("beta", 1.0);
  bool transA = n.intAttr("transA", 0) != 0, transB = n.intAttr("transB", 0) != 0;
  if (NodeImporter::rank(a) != 2 || NodeImporter::rank(b) != 2) {
    n.fail(
        llvm::formatv("its operands have ranks {0} and {1}; expected 2", NodeImporter::rank(a), NodeImporter::rank(b)));
    return a;
  }
  if (alpha != 1.0) {
    // Scale the constant operand, so that the product is computed at import.
    Value &scaled = isConstant(a) ? a : b;
    scaled = n.create<MulOp>(scaled, n.scalarLike(scaled, alpha));
  }
  if (c && beta != 1.0) {
    c = n.create<MulOp>(c, n.scalarLike(c, beta));
  }
  int64_t columns = NodeImporter::shape(b)[transB ? 0 : 1];
  auto isRow = [&](Value v) {
    auto shape = NodeImporter::shape(v);
    return (shape.size() == 1 || (shape.size() == 2 && shape[0] == 1)) && shape.back() == columns;
  };
  if (c && beta == 0.0) {
    c = {};
  }
  Value bias = c && isRow(c) ? n.reshape(c, {columns}) : Value();
  Value y = makeMatMul(n, a, b, bias, transA, transB);
  return c && !bias ? n.create<AddOp>(y, c) : y;
}

namespace {

void gemm(NodeImporter &n) { n.setOutput(0, makeGemm(n)); }

/// Pads |x| with -inf to the extent that the windows |w| of a result of shape |out| reach. With ceil_mode they may
/// reach beyond the end padding.
Value padForWindows(NodeImporter &n, Value x, const Window &w, const Ints &out) {
  Ints in(NodeImporter::shape(x));
  size_t rank = in.size();
  Ints pads(2 * rank, 0);
  for (size_t d = 0; d + 2 < rank; ++d) {
    int64_t reach = (out[d + 2] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
    pads[d + 2] = w.pads[d];
    pads[rank + d + 2] = std::max<int64_t>(reach - in[d + 2] - w.pads[d], 0);
  }
  return n.create<PadOp>(x, pads, PadMode::constant, llvm::APFloat(-std::numeric_limits<double>::infinity()));
}

/// For each window |w| of |x|, returns the position of its largest tap (the first of equal ones) in the channel,
/// relative to the first tap of the window. |taps| is the number of taps of a window.
Value largestTaps(NodeImporter &n, Value x, const Window &w, const Ints &out, int64_t taps) {
  Ints in(NodeImporter::shape(x)), steps(in.size(), 1), offsets, one(out);
  size_t spatial = in.size() - 2;
  for (size_t d = 0; d < spatial; ++d) {
    steps[d + 2] = w.strides[d];
  }
  one.insert(one.begin(), 1);
  Value padded = padForWindows(n, x, w, out);
  llvm::SmallVector<Value> parts;
  for (int64_t tap = 0; tap < taps && !n.failed(); ++tap) {
    Ints starts(in.size(), 0);
    int64_t rest = tap, stride = 1, offset = 0;
    for (size_t d = spatial; d-- > 0;) {
      starts[d + 2] = rest % w.kernel[d] * w.dilations[d];
      offset += starts[d + 2] * stride;
      rest /= w.kernel[d];
      stride *= in[d + 2];
    }
    parts.push_back(n.reshape(n.create<SliceOp>(padded, starts, out, steps), one));
    offsets.push_back(offset);
  }
  Value tap = n.create<ArgReduceOp>(n.create<ConcatOp>(parts, 0), 0, false, false, false);
  return n.create<GatherOp>(n.intVector(offsets), tap, 0);
}

/// Converts positions in images with dims |in| [N, C, spatial...] to an order with the first spatial dim innermost.
Value toColumnMajor(NodeImporter &n, Value place, const Ints &in) {
  auto times = [&](Value x, int64_t factor) {
    return n.create<MulOp>(x, n.scalarLike(x, static_cast<double>(factor)));
  };
  Value rest = place, sum;
  int64_t stride = std::accumulate(in.begin() + 2, in.end(), int64_t{1}, std::multiplies<>());
  for (size_t d = in.size(); d-- > 2;) {
    stride /= in[d];
    Value size = n.scalarLike(rest, static_cast<double>(in[d]));
    Value part = times(n.create<ModOp>(rest, size, false), stride);
    sum = sum ? n.create<AddOp>(sum, part) : part;
    rest = n.create<DivOp>(rest, size);
  }
  return sum;
}

/// Returns the positions in |x| of the maxima |y| of the windows |w|, numbered over the whole tensor. Finds the largest
/// tap and converts it to a position with tables.
Value maxPlaces(NodeImporter &n, Value x, Value y, const Window &w) {
  Ints in(NodeImporter::shape(x)), out(NodeImporter::shape(y));
  size_t spatial = in.size() - 2;
  int64_t taps = 1, image = 1;
  for (size_t d = 0; d < spatial; ++d) {
    taps *= w.kernel[d];
    image *= in[d + 2];
  }
  constexpr int64_t kMostTaps = 256;
  if (!NodeImporter::isFloat(x) || taps > kMostTaps) {
    n.unsupported(llvm::formatv("the indices of windows of {0} numbers; supported are floats, up to {1} per window",
                                taps, kMostTaps));
    return y;
  }
  Value place = largestTaps(n, x, w, out, taps);
  // Add the position of the window's first tap, which may be in the padding, and then the offset of the channel.
  for (size_t d = 0; d < spatial; ++d) {
    int64_t stride = 1;
    for (size_t e = d + 1; e < spatial; ++e) {
      stride *= in[e + 2];
    }
    Ints firsts, shape(spatial - d, 1);
    for (int64_t o = 0; o < out[d + 2]; ++o) {
      firsts.push_back((o * w.strides[d] - w.pads[d]) * stride);
    }
    shape[0] = out[d + 2];
    place = n.create<AddOp>(place, n.reshape(n.intVector(firsts), shape));
  }
  place = n.intAttr("storage_order", 0) != 0 ? toColumnMajor(n, place, in) : place;
  Ints channels, dims(in.size(), 1);
  for (int64_t c = 0; c < in[0] * in[1]; ++c) {
    channels.push_back(c * image);
  }
  dims[0] = in[0];
  dims[1] = in[1];
  return n.create<AddOp>(place, n.reshape(n.intVector(channels), dims));
}

void maxPool(NodeImporter &n) {
  Value x = n.input(0);
  auto w = readWindow(n, x, {});
  if (!w) {
    return;
  }
  Value y = n.create<MaxPoolOp>(x, w->kernel, w->strides, w->pads, w->dilations, n.intAttr("ceil_mode", 0) != 0);
  n.setOutput(0, y);
  if (n.wantsOutput(1) && !n.failed() && llvm::any_of(NodeImporter::shape(x), mlir::ShapedType::isDynamic)) {
    n.unsupported("its indices need static dims: fix them with --input_shapes");
  }
  if (n.wantsOutput(1) && !n.failed()) {
    n.setOutput(1, maxPlaces(n, x, y, *w));
  }
}

int64_t productOf(llvm::ArrayRef<int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

/// Writes each value to the position from which max pooling took it, numbered over the whole tensor. All other
/// positions are zero.
void maxUnpool(NodeImporter &n) {
  Value x = n.input(0), places = n.input(1);
  if (!n.failed() && (llvm::any_of(NodeImporter::shape(x), mlir::ShapedType::isDynamic) ||
                      llvm::any_of(NodeImporter::shape(places), mlir::ShapedType::isDynamic))) {
    n.unsupported("needs static dims: fix them with --input_shapes");
  }
  if (n.failed()) {
    return;
  }
  Ints dims(NodeImporter::shape(x)), kernel = n.intsAttr("kernel_shape");
  auto spatial = static_cast<size_t>(std::max<int64_t>(NodeImporter::rank(x) - 2, 0));
  Ints strides = n.intsAttr("strides", Ints(spatial, 1)), pads = n.intsAttr("pads", Ints(2 * spatial, 0));
  if (spatial < 1 || kernel.size() != spatial || strides.size() != spatial || pads.size() != 2 * spatial ||
      NodeImporter::shape(places) != NodeImporter::shape(x) || productOf(dims) == 0) {
    n.fail("kernel_shape, strides, pads, the input and its indices do not match");
    return;
  }
  Ints flat{productOf(dims)};
  for (size_t d = 0; d < spatial; ++d) {
    dims[d + 2] = (dims[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[spatial + d];
  }
  if (llvm::any_of(dims, [](int64_t dim) { return dim < 1; })) {
    n.fail("its pads remove the whole result");
    return;
  }
  Ints whole{productOf(dims)};
  Value zeros = n.floatConstant(NodeImporter::elementType(x), {1}, {0.0});
  Value y = n.create<ScatterElementsOp>(n.create<ExpandOp>(zeros, Value(), whole), n.reshape(places, flat),
                                        n.reshape(x, flat), 0, ScatterReduction::none);
  y = n.reshape(y, dims);
  if (n.hasInput(2)) {
    Ints target = n.constantInts(2, "the shape of the result"), grow(2 * dims.size(), 0);
    bool fits = target.size() == dims.size();
    for (size_t d = 0; fits && d < dims.size(); ++d) {
      grow[dims.size() + d] = target[d] - dims[d];
      fits = target[d] >= dims[d];
    }
    if (!fits) {
      n.fail("its output_shape is smaller than the unpooled input or has another rank");
      return;
    }
    y = target == dims ? y : n.create<PadOp>(y, grow, PadMode::constant, llvm::APFloat(0.0));
  }
  n.setOutput(0, y);
}

} // namespace

Value makeAveragePool(NodeImporter &n, Value x) {
  auto w = readWindow(n, x, {});
  return w ? n.create<AvgPoolOp>(x, w->kernel, w->strides, w->pads, w->dilations, n.intAttr("ceil_mode", 0) != 0,
                                 n.intAttr("count_include_pad", 0) != 0)
           : x;
}

Ints spatialAxes(NodeImporter &n, Value x) {
  if (NodeImporter::rank(x) < 3) {
    n.fail(llvm::formatv("its input has rank {0}; expected at least 3", NodeImporter::rank(x)));
  }
  Ints axes;
  for (int64_t d = 2; d < NodeImporter::rank(x); ++d) {
    axes.push_back(d);
  }
  return axes;
}

namespace {

void averagePool(NodeImporter &n) { n.setOutput(0, makeAveragePool(n, n.input(0))); }

/// Reads the attribute p of a p-norm.
double readNorm(NodeImporter &n) {
  int64_t p = n.intAttr("p", 2);
  if (p < 1) {
    n.fail(llvm::formatv("attribute 'p' is {0}; it must be at least 1", p));
    return 1.0;
  }
  return static_cast<double>(p);
}

/// Increases the end pads of |w| until the additional windows of ceil_mode are complete. A mean then counts zeros
/// instead of ignoring the positions outside.
void padToWholeWindows(NodeImporter &n, Value x, Window &w) {
  llvm::ArrayRef<int64_t> dims = NodeImporter::shape(x).drop_front(2);
  for (auto [d, in] : llvm::enumerate(dims)) {
    if (mlir::ShapedType::isDynamic(in)) {
      n.unsupported("its ceil_mode needs static dims: fix them with --input_shapes");
      return;
    }
    int64_t extent = detail::mulDims(w.dilations[d], w.kernel[d] - 1) + 1, &behind = w.pads[d + dims.size()];
    int64_t count = detail::pooledSize(in, extent, w.strides[d], w.pads[d], behind, true).value();
    behind = std::max<int64_t>(0, detail::mulDims(count - 1, w.strides[d]) + extent - in - w.pads[d]);
  }
}

/// Computes (sum |x|^p)^(1/p) over windows as (window size * mean(|x|^p))^(1/p).
void lpPool(NodeImporter &n) {
  Value x = n.input(0);
  auto w = readWindow(n, x, {});
  if (!w) {
    return;
  }
  if (n.intAttr("ceil_mode", 0) != 0) {
    padToWholeWindows(n, x, *w);
  }
  double p = readNorm(n);
  double count = 1;
  for (int64_t k : w->kernel) {
    count *= static_cast<double>(k);
  }
  Value powers = n.create<PowOp>(n.create<AbsOp>(x), n.scalarLike(x, p));
  Value mean = n.create<AvgPoolOp>(powers, w->kernel, w->strides, w->pads, w->dilations, false, true);
  n.setOutput(0, n.create<PowOp>(n.create<MulOp>(mean, n.scalarLike(x, count)), n.scalarLike(x, 1.0 / p)));
}

template <ReduceKind kind>
void globalPool(NodeImporter &n) {
  Value x = n.input(0);
  n.setOutput(0, n.create<ReduceOp>(x, kind, spatialAxes(n, x), true));
}

void globalLpPool(NodeImporter &n) {
  Value x = n.input(0);
  double p = readNorm(n);
  Value sum = n.create<ReduceOp>(n.create<PowOp>(n.create<AbsOp>(x), n.scalarLike(x, p)), ReduceKind::sum,
                                 spatialAxes(n, x), true);
  n.setOutput(0, n.create<PowOp>(sum, n.scalarLike(x, 1.0 / p)));
}

} // namespace

llvm::ArrayRef<HandlerEntry> convHandlers() {
  static const HandlerEntry entries[] = {
      {"", "Conv", conv},
      {"com.microsoft", "FusedConv", fusedConv},
      {"", "ConvTranspose", convTranspose},
      {"", "MatMul", matMul},
      {"", "Gemm", gemm},
      {"", "MaxPool", maxPool},
      {"", "MaxUnpool", maxUnpool, 9},
      {"", "AveragePool", averagePool},
      {"com.microsoft.nchwc", "MaxPool", maxPool},
      {"com.microsoft.nchwc", "AveragePool", averagePool},
      {"com.microsoft.nchwc", "GlobalAveragePool", globalPool<ReduceKind::mean>},
      {"com.microsoft.nchwc", "GlobalMaxPool", globalPool<ReduceKind::max>},
      {"", "LpPool", lpPool},
      {"", "GlobalAveragePool", globalPool<ReduceKind::mean>},
      {"", "GlobalMaxPool", globalPool<ReduceKind::max>},
      {"", "GlobalLpPool", globalLpPool},
  };
  return entries;
}

} // namespace tessera::top::onnx_import

//===- OnnxSignal.cpp - Handlers of Fourier transforms and windows ---===//
// SPDX-License-Identifier: Apache-2.0
//
// A transform of N numbers is a product with the constant matrix of its roots of unity. A long one, if N is not prime,
// consists of two shorter ones with a multiplication between them (Cooley and Tukey, 1965).
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Transforms up to this length, and longer ones of prime length, are a single product.
constexpr int64_t kDirectLength = 1024;
/// Largest supported prime length, which limits the size of the matrix.
constexpr int64_t kLongestPrime = 4096;
/// Largest supported length of transforms and windows, because their tables are part of the model.
constexpr int64_t kLongest = int64_t(1) << 22;

struct Complex {
  double re, im;
};

/// Returns e^(2 pi i k / n). The result is exact if it is 0, 1 or -1, and symmetric angles give the same values.
Complex rootOfUnity(int64_t k, int64_t n) {
  k = ((k % n) + n) % n;
  int64_t octant = 8 * k / n;
  if (8 * k % n == 0 && octant % 2 == 0) {
    constexpr Complex axes[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return axes[octant / 2];
  }
  // The angle to the nearest axis is below pi / 4.
  int64_t axis = (octant + 1) / 2;
  double angle = 2 * M_PI * static_cast<double>(4 * k - axis * n) / static_cast<double>(4 * n);
  double c = std::cos(angle), s = std::sin(angle);
  switch (axis % 4) {
  case 0:
    return {c, s};
  case 1:
    return {-s, c};
  case 2:
    return {-c, -s};
  default:
    return {s, -c};
  }
}

/// A transform along one dim.
struct Transform {
  int64_t length;   ///< number of inputs, padded with zeros up to |period|
  int64_t period;   ///< N
  int64_t kept;     ///< number of leading results to keep
  bool inverse;     ///< inverts the sign of the angles and adds a factor 1 / N
  bool complexData; ///< the inputs are complex pairs, not real numbers
};

/// Returns the matrix [length * (2 or 1), kept * 2]. Real and imaginary parts alternate.
Value transformMatrix(NodeImporter &n, mlir::Type element, const Transform &t, bool scaled) {
  int64_t parts = t.complexData ? 2 : 1;
  llvm::SmallVector<double> values(t.length * parts * t.kept * 2);
  double factor = scaled && t.inverse ? 1.0 / static_cast<double>(t.period) : 1.0;
  for (int64_t row = 0; row < t.length; ++row) {
    for (int64_t k = 0; k < t.kept; ++k) {
      int64_t turns = row * k % t.period;
      Complex root = rootOfUnity(t.inverse ? turns : -turns, t.period);
      double *to = &values[row * parts * t.kept * 2 + 2 * k];
      to[0] = factor * root.re;
      to[1] = factor * root.im;
      if (t.complexData) { // i times the root
        to[t.kept * 2] = -factor * root.im;
        to[t.kept * 2 + 1] = factor * root.re;
      }
    }
  }
  return n.floatConstant(element, {t.length * parts, t.kept * 2}, values);
}

Value matmul(NodeImporter &n, Value a, Value b) {
  return n.create<MatMulOp>(a, b, Value(), false, false, false, llvm::APFloat(-1.0));
}

/// Returns the largest factor of |length| up to its square root, which is 1 for a prime.
int64_t factorOf(int64_t length) {
  for (auto factor = static_cast<int64_t>(std::sqrt(static_cast<double>(length))); factor > 1; --factor) {
    if (length % factor == 0) {
      return factor;
    }
  }
  return 1;
}

/// Returns elements [begin, end) of dim |axis|.
Value sliceAxis(NodeImporter &n, Value x, int64_t axis, int64_t begin, int64_t end) {
  Ints sizes(NodeImporter::shape(x)), starts(sizes.size(), 0), steps(sizes.size(), 1);
  if (n.failed() || (begin == 0 && end == sizes[axis])) {
    return x;
  }
  starts[axis] = begin;
  sizes[axis] = end - begin;
  return n.create<SliceOp>(x, starts, sizes, steps);
}

/// Multiplies |x| [rows, a, b, 2] by the roots e^(-+ 2 pi i ja jb / (a b)).
Value twiddle(NodeImporter &n, Value x, int64_t a, int64_t b, bool inverse) {
  llvm::SmallVector<double> re, im;
  for (int64_t i = 0; i < a; ++i) {
    for (int64_t j = 0; j < b; ++j) {
      Complex root = rootOfUnity(inverse ? i * j : -i * j, a * b);
      re.push_back(root.re);
      im.push_back(root.im);
    }
  }
  mlir::Type element = NodeImporter::elementType(x);
  Value c = n.floatConstant(element, {a, b, 1}, re), s = n.floatConstant(element, {a, b, 1}, im);
  Value real = sliceAxis(n, x, 3, 0, 1), imaginary = sliceAxis(n, x, 3, 1, 2);
  Value first = n.create<SubOp>(n.create<MulOp>(real, c), n.create<MulOp>(imaginary, s));
  Value second = n.create<AddOp>(n.create<MulOp>(real, s), n.create<MulOp>(imaginary, c));
  return n.create<ConcatOp>(mlir::ValueRange{first, second}, 3);
}

/// Transforms rows [rows, length, 2 or 1] to [rows, kept, 2].
Value transformRows(NodeImporter &n, Value x, const Transform &t, bool scaled = true) {
  int64_t rows = NodeImporter::dim(x, 0), parts = t.complexData ? 2 : 1;
  mlir::Type element = NodeImporter::elementType(x);
  int64_t a = t.period > kDirectLength ? factorOf(t.period) : 1;
  if (a == 1) {
    if (t.period > kLongestPrime) {
      n.unsupported(llvm::formatv("a transform of {0} numbers, which is prime; allowed are up to {1}, or a length "
                                  "with factors: pad the signal",
                                  t.period, kLongestPrime));
    }
    if (n.failed()) {
      return x;
    }
    Value flat = n.reshape(x, {rows, t.length * parts});
    return n.reshape(matmul(n, flat, transformMatrix(n, element, t, scaled)), {rows, t.kept, 2});
  }
  // The number b i + j is at row i, column j. The result p + a q comes from transforms of the columns, then of the
  // rows.
  int64_t b = t.period / a;
  if (t.length < t.period && !n.failed()) {
    x = n.create<PadOp>(x, Ints{0, 0, 0, 0, t.period - t.length, 0}, PadMode::constant, llvm::APFloat(0.0));
  }
  Value columns = n.transpose(n.reshape(x, {rows, a, b, parts}), {0, 2, 1, 3});
  Transform inner{a, a, a, t.inverse, t.complexData};
  columns = transformRows(n, n.reshape(columns, {rows * b, a, parts}), inner, false);
  columns = n.transpose(n.reshape(columns, {rows, b, a, 2}), {0, 2, 1, 3});
  Value turned = twiddle(n, columns, a, b, t.inverse);
  Transform outer{b, b, b, t.inverse, true};
  Value y = transformRows(n, n.reshape(turned, {rows * a, b, 2}), outer, false);
  y = n.reshape(n.transpose(n.reshape(y, {rows, a, b, 2}), {0, 2, 1, 3}), {rows, t.period, 2});
  y = sliceAxis(n, y, 1, 0, t.kept);
  double factor = 1.0 / static_cast<double>(t.period);
  return scaled && t.inverse && !n.failed() ? n.create<MulOp>(y, n.scalarLike(y, factor)) : y;
}

/// Returns the number in input |i|, or |byDefault| if it is absent.
int64_t scalarInput(NodeImporter &n, unsigned i, llvm::StringRef what, int64_t byDefault) {
  if (!n.hasInput(i)) {
    return byDefault;
  }
  Ints values = n.constantInts(i, what);
  if (!n.failed() && values.size() != 1) {
    n.fail(llvm::formatv("{0} is not a single number", what));
  }
  return n.failed() ? byDefault : values.front();
}

/// Returns whether the last dim of |x| contains complex pairs. It is an error unless it has 1 or 2 entries and |x| is a
/// float tensor with static dims.
bool holdsPairs(NodeImporter &n, Value x) {
  int64_t rank = NodeImporter::rank(x), last = NodeImporter::dim(x, rank - 1);
  if (!n.failed() && llvm::any_of(NodeImporter::shape(x), mlir::ShapedType::isDynamic)) {
    n.unsupported("needs static dims: fix them with --input_shapes");
  } else if (!n.failed() && (!NodeImporter::isFloat(x) || rank < 2 || (last != 1 && last != 2))) {
    n.fail(llvm::formatv("its input of rank {0} has {1} entries in the last dim; allowed are floats, real ones with a "
                         "last dim of 1 or pairs with one of 2",
                         rank, last));
  }
  return last == 2;
}

void makeDft(NodeImporter &n, int64_t axis) {
  Value x = n.input(0);
  bool pairs = holdsPairs(n, x), onesided = n.intAttr("onesided", 0) != 0, inverse = n.intAttr("inverse", 0) != 0;
  int64_t rank = NodeImporter::rank(x);
  axis = n.normalizeAxis(axis, rank);
  if (!n.failed() && axis == rank - 1) {
    n.fail(llvm::formatv("axis {0} is the last one, which holds real and imaginary parts", axis));
  }
  if (onesided && (inverse || pairs)) {
    n.fail("onesided is only allowed for forward transforms of real numbers");
  }
  int64_t size = NodeImporter::dim(x, axis), period = scalarInput(n, 1, "dft_length", size);
  if (!n.failed() && (period < 1 || period > kLongest || size < 1)) {
    n.fail(
        llvm::formatv("a transform of length {0} of a dim of size {1}; allowed are 1 to {2}", period, size, kLongest));
  }
  if (n.failed()) {
    return;
  }
  Transform t{std::min(size, period), period, onesided ? period / 2 + 1 : period, inverse, pairs};
  x = sliceAxis(n, x, axis, 0, t.length);
  Ints toBack;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != axis && d != rank - 1) {
      toBack.push_back(d);
    }
  }
  toBack.append({axis, rank - 1});
  Value rows = n.transpose(x, toBack);
  Ints dims(NodeImporter::shape(rows)), back(rank);
  int64_t count = std::accumulate(dims.begin(), dims.end() - 2, int64_t{1}, std::multiplies<>());
  Value y = transformRows(n, n.reshape(rows, {count, t.length, pairs ? 2 : 1}), t);
  dims[rank - 2] = t.kept;
  dims[rank - 1] = 2;
  for (int64_t d = 0; d < rank; ++d) {
    back[toBack[d]] = d;
  }
  n.setOutput(0, n.transpose(n.reshape(y, dims), back));
}

void dft17(NodeImporter &n) { makeDft(n, n.intAttr("axis", 1)); }

void dft20(NodeImporter &n) { makeDft(n, scalarInput(n, 2, "the axis", -2)); }

/// Returns frames [batch, frames, length, parts] of |signal| [batch, L, parts], one every |step|. The frames are
/// assembled from strided blocks of the largest length that divides both |length| and |step|.
Value cutFrames(NodeImporter &n, Value signal, int64_t frames, int64_t length, int64_t step) {
  int64_t batch = NodeImporter::dim(signal, 0), parts = NodeImporter::dim(signal, 2);
  int64_t block = std::gcd(length, step), blocks = length / block, stride = step / block;
  constexpr int64_t kMostSlices = 16, kMostIndices = int64_t(1) << 26;
  if (blocks > kMostSlices) {
    if (frames > kMostIndices / length) {
      n.unsupported(
          llvm::formatv("{0} frames of {1} numbers; up to {2} numbers are supported", frames, length, kMostIndices));
      return signal;
    }
    Ints indices;
    for (int64_t f = 0; f < frames; ++f) {
      for (int64_t i = 0; i < length; ++i) {
        indices.push_back(f * step + i);
      }
    }
    return n.create<GatherOp>(signal, n.reshape(n.intVector(indices), {frames, length}), 1);
  }
  int64_t used = (frames - 1) * stride + blocks;
  Value apart = n.reshape(sliceAxis(n, signal, 1, 0, used * block), {batch, used, block, parts});
  llvm::SmallVector<Value> pieces;
  for (int64_t i = 0; i < blocks && !n.failed(); ++i) {
    pieces.push_back(
        n.create<SliceOp>(apart, Ints{0, i, 0, 0}, Ints{batch, frames, block, parts}, Ints{1, stride, 1, 1}));
  }
  return n.failed() ? signal : blocks == 1 ? pieces.front() : n.create<ConcatOp>(pieces, 2);
}

void stft(NodeImporter &n) {
  Value signal = n.input(0), window = n.optionalInput(2);
  if (!n.failed() && NodeImporter::rank(signal) == 2) { // as written by PyTorch and accepted by onnxruntime
    signal = n.reshape(signal, {NodeImporter::dim(signal, 0), NodeImporter::dim(signal, 1), 1});
  }
  bool pairs = holdsPairs(n, signal), onesided = n.intAttr("onesided", 1) != 0;
  int64_t step = scalarInput(n, 1, "frame_step", 0);
  int64_t windowed = window ? NodeImporter::dim(window, 0) : 0, length = scalarInput(n, 3, "frame_length", windowed);
  if (!n.failed() && (NodeImporter::rank(signal) != 3 || (window && NodeImporter::rank(window) != 1) || step < 1 ||
                      length < 1 || length > NodeImporter::dim(signal, 1) || (window && windowed != length))) {
    n.fail(llvm::formatv("a signal of rank {0} and {1} numbers, frame_step {2}, frame_length {3} and a window of {4}; "
                         "expected rank 3, a positive step, frames no longer than the signal and as long as the window",
                         NodeImporter::rank(signal), NodeImporter::dim(signal, 1), step, length, windowed));
  }
  if (onesided && pairs) {
    n.fail("onesided, which is the default, is only allowed for real signals");
  }
  if (n.failed()) {
    return;
  }
  int64_t batch = NodeImporter::dim(signal, 0), frames = (NodeImporter::dim(signal, 1) - length) / step + 1;
  Value cut = cutFrames(n, signal, frames, length, step);
  int64_t parts = pairs ? 2 : 1;
  Transform t{length, length, onesided ? length / 2 + 1 : length, false, pairs};
  mlir::Type element = NodeImporter::elementType(signal);
  if (window && getConstantDoubles(window) && length <= kDirectLength) {
    // A constant window is multiplied into the matrix.
    Ints wide{length, parts};
    Value scale = n.create<ExpandOp>(n.reshape(window, {length, 1}), Value(), wide);
    Value matrix =
        n.create<MulOp>(transformMatrix(n, element, t, false), n.reshape(n.cast(scale, element), {length * parts, 1}));
    Value y = matmul(n, n.reshape(cut, {batch * frames, length * parts}), matrix);
    n.setOutput(0, n.reshape(y, {batch, frames, t.kept, 2}));
    return;
  }
  Value rows = n.reshape(cut, {batch * frames, length, parts});
  rows = window ? n.create<MulOp>(rows, n.reshape(n.cast(window, element), {length, 1})) : rows;
  n.setOutput(0, n.reshape(transformRows(n, rows, t), {batch, frames, t.kept, 2}));
}

/// Computes a - b cos(2 pi i / N) + c cos(4 pi i / N), where N is the size, or one less for symmetric windows.
void makeWindow(NodeImporter &n, double a, double b, double c) {
  int64_t size = scalarInput(n, 0, "the window's size", 0);
  bool periodic = n.intAttr("periodic", 1) != 0;
  mlir::Type element = n.typeOf(n.intAttr("output_datatype", onnx::TensorProto::FLOAT));
  if (!n.failed() && (size < 1 || size > kLongest)) {
    n.fail(llvm::formatv("a window of {0} numbers; 1 to {1} are allowed", size, kLongest));
  }
  if (n.failed()) {
    return;
  }
  int64_t period = std::max(periodic ? size : size - 1, int64_t(1));
  llvm::SmallVector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    values.push_back(a - b * rootOfUnity(i, period).re + c * rootOfUnity(2 * i, period).re);
  }
  n.setOutput(0, n.floatConstant(element, {size}, values));
}

void hannWindow(NodeImporter &n) { makeWindow(n, 0.5, 0.5, 0); }
void hammingWindow(NodeImporter &n) { makeWindow(n, 25.0 / 46.0, 21.0 / 46.0, 0); }
void blackmanWindow(NodeImporter &n) { makeWindow(n, 0.42, 0.5, 0.08); }

/// Returns the number in the constant input |i|.
double realInput(NodeImporter &n, unsigned i, llvm::StringRef what) {
  llvm::SmallVector<double> values = n.constantDoubles(i, what);
  if (!n.failed() && values.size() != 1) {
    n.fail(llvm::formatv("{0} is not a single number", what));
  }
  return n.failed() ? 0 : values.front();
}

/// Returns triangles between points equally spaced on the mel scale, [bins of the spectrum, mel bins].
void melWeightMatrix(NodeImporter &n) {
  int64_t bins = scalarInput(n, 0, "num_mel_bins", 0), length = scalarInput(n, 1, "dft_length", 0);
  int64_t rate = scalarInput(n, 2, "sample_rate", 0);
  double low = realInput(n, 3, "lower_edge_hertz"), high = realInput(n, 4, "upper_edge_hertz");
  mlir::Type element = n.typeOf(n.intAttr("output_datatype", onnx::TensorProto::FLOAT));
  int64_t rows = length / 2 + 1;
  if (!n.failed() && (bins < 1 || length < 1 || rate < 1 || rows > kLongest / bins || low < 0 || high < low ||
                      high > static_cast<double>(rate))) {
    n.fail(llvm::formatv("{0} mel bins between {1} and {2} Hz of a transform of {3} at {4} Hz are not possible", bins,
                         low, high, length, rate));
  }
  if (n.failed()) {
    return;
  }
  auto toMel = [](double hertz) { return 2595 * std::log1p(hertz / 700) / std::log(10); };
  double step = (toMel(high) - toMel(low)) / static_cast<double>(bins + 2);
  Ints points;
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = 700 * std::expm1((static_cast<double>(i) * step + toMel(low)) / 2595 * std::log(10));
    auto point = static_cast<int64_t>(std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate)));
    points.push_back(std::min(point, rows - 1));
  }
  llvm::SmallVector<double> weights(rows * bins, 0.0);
  for (int64_t i = 0; i < bins; ++i) {
    int64_t left = points[i], centre = points[i + 1], right = points[i + 2];
    weights[centre * bins + i] = 1;
    for (int64_t j = left; j < centre; ++j) {
      weights[j * bins + i] = static_cast<double>(j - left) / static_cast<double>(centre - left);
    }
    for (int64_t j = centre; j < right; ++j) {
      weights[j * bins + i] = static_cast<double>(right - j) / static_cast<double>(right - centre);
    }
  }
  n.setOutput(0, n.floatConstant(element, {rows, bins}, weights));
}

constexpr HandlerEntry kHandlers[] = {
    {"", "MelWeightMatrix", melWeightMatrix, 17},
    {"", "DFT", dft17, 17},
    {"", "DFT", dft20, 20},
    {"", "STFT", stft, 17},
    {"", "HannWindow", hannWindow, 17},
    {"", "HammingWindow", hammingWindow, 17},
    {"", "BlackmanWindow", blackmanWindow, 17},
};

} // namespace

llvm::ArrayRef<HandlerEntry> signalHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

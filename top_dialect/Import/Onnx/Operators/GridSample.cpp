//===- GridSample.cpp - Handler of GridSample -----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Operators/GridSample.h"

#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

enum class Outside { zeros, border, reflection };

/// One spatial dim of the sampled input. The lists contain one entry per tap of the kernel.
struct SampledDim {
  Dim size;
  llvm::SmallVector<Value> index;  ///< the position that the tap reads, inside the input: float, [N, points]
  llvm::SmallVector<Value> weight; ///< [N, points]; a null value means 1
};

/// Samples x [N, C, spatial...] at the points of grid [N, points..., coordinates]. The coordinates are in -1..1, one
/// per spatial dim, starting with the last dim. Each tap of the kernel is a gather of all channels, and the taps are
/// summed up.
class GridSampler {
public:
  explicit GridSampler(NodeImporter &n) : n(n) {}

  void run() {
    x = n.input(0);
    grid = n.input(1);
    readAttributes();
    checkShapes();
    if (n.failed()) {
      return;
    }
    Shape shape = x;
    llvm::SmallVector<SampledDim> dims;
    for (int64_t d = 0; d < spatialRank; ++d) {
      dims.push_back(sampleDim(d, shape[d + 2]));
    }
    // Channels last, so that the channels of a point are contiguous.
    Value rows = n.reshapeTo(x, {shape[0], shape[1], countElements(shape.dropFront(2))});
    rows = n.transpose(rows, {0, 2, 1});
    addTaps(rows, dims, 0, Value(), Value());
    llvm::SmallVector<Dim> result{shape[0], shape[1]};
    llvm::append_range(result, Shape(grid).dropFront().dropBack().dims());
    n.setOutput(0, n.reshapeTo(n.transpose(sum, {0, 2, 1}), result));
  }

private:
  void readAttributes() {
    std::string kernel = n.stringAttr("mode", "linear"), padding = n.stringAttr("padding_mode", "zeros");
    auto taps = llvm::StringSwitch<int>(kernel)
                    .Case("nearest", 1)
                    .Cases({"linear", "bilinear"}, 2)
                    .Cases({"cubic", "bicubic"}, 4)
                    .Default(0);
    if (taps == 0) {
      n.fail(llvm::formatv("mode '{0}' is unknown; allowed are nearest, linear and cubic", kernel));
    }
    auto mode = llvm::StringSwitch<std::optional<Outside>>(padding)
                    .Case("zeros", Outside::zeros)
                    .Case("border", Outside::border)
                    .Case("reflection", Outside::reflection)
                    .Default(std::nullopt);
    if (!mode) {
      n.fail(llvm::formatv("padding_mode '{0}' is unknown; allowed are zeros, border and reflection", padding));
    }
    tapCount = taps;
    outside = mode.value_or(Outside::zeros);
    alignCorners = n.intAttr("align_corners", 0) != 0;
  }

  void checkShapes() {
    Shape shape = x, points = grid;
    spatialRank = NodeImporter::rank(x) - 2;
    auto isImpossible = [](Dim a, Dim b) { return a.isKnown() && b.isKnown() && !sameSize(a, b); };
    if (!shape.isDetermined() || !points.isDetermined()) {
      n.unsupported("needs sizes that are known or have a range: fix them with --input_shapes, or give a range with "
                    "--dims");
    } else if (spatialRank < 1 || points.rank() != shape.rank() || !points.back().is(spatialRank) ||
               isImpossible(points[0], shape[0])) {
      n.fail(llvm::formatv(
          "its input is {0} and its grid {1}; the grid must have the same rank and batch, and a coordinate for each "
          "of the input's spatial dims",
          detail::formatShape(NodeImporter::shape(x)), detail::formatShape(NodeImporter::shape(grid))));
    } else if (shape.dropFront(2).isKnown() && numElements(shape.dropFront(2)) == 0) {
      n.fail("its input has no elements to sample");
    } else if (minOf(countElements(shape.dropFront(2))) < 1) {
      n.unsupported("its input may be empty: give its dims ranges from 1 with --dims");
    } else if (!NodeImporter::isFloat(x) || !NodeImporter::isFloat(grid)) {
      n.fail("its input and grid must hold floats");
    }
  }

  /// A number that depends on the size of a dim: |factor| * |size| + |offset|.
  struct SizeTerm {
    Dim size;
    double factor, offset;
    double known() const { return factor * static_cast<double>(size.value()) + offset; }
    SizeTerm operator*(double by) const { return {size, factor * by, offset * by}; }
  };

  Value valueOf(const SizeTerm &term, Value like) {
    if (term.size.isKnown()) {
      return n.scalarLike(like, term.known());
    }
    Arithmetic f{n, NodeImporter::elementType(like)};
    Value size = n.cast(sizeVector(n, {term.size}), f.element);
    return f.add(f.mul(size, f.number(term.factor)), f.number(term.offset));
  }

  template <typename OpTy>
  Value with(Value value, double number) {
    return n.create<OpTy>(value, n.scalarLike(value, number));
  }
  template <typename OpTy>
  Value with(Value value, const SizeTerm &term) {
    return n.create<OpTy>(value, valueOf(term, value));
  }

  Value clip(Value value, const SizeTerm &low, const SizeTerm &high) {
    return low.size.isKnown() ? n.create<ClipOp>(value, llvm::APFloat(low.known()), llvm::APFloat(high.known()))
                              : with<MinOp>(with<MaxOp>(value, low), high);
  }

  /// Reflects |v| at both ends of |dim| as often as needed (a triangular wave).
  Value reflect(Value v, const SampledDim &dim) {
    SizeTerm low = lowEnd(dim), high = highEnd(dim), range{dim.size, 1, high.offset - low.offset};
    if (dim.size.isKnown() && range.known() == 0) {
      return clip(v, low, high);
    }
    Value wave = n.create<ModOp>(n.create<AbsOp>(with<SubOp>(v, low)), valueOf(range * 2, v), true);
    Value back = n.create<SubOp>(valueOf(range * 2, v), wave);
    Value reflected = with<AddOp>(n.create<MinOp>(wave, back), low);
    if (!alignCorners || minOf(dim.size) > 1) {
      return reflected;
    }
    Value isSingle = n.create<CompareOp>(valueOf(range, v), n.scalarLike(v, 0.0), CompareKind::eq);
    return n.create<WhereOp>(isSingle, clip(v, low, high), reflected);
  }

  SizeTerm lowEnd(const SampledDim &dim) const { return {dim.size, 0, alignCorners ? 0.0 : -0.5}; }
  SizeTerm highEnd(const SampledDim &dim) const { return {dim.size, 1, alignCorners ? -1.0 : -0.5}; }
  static SizeTerm first(const SampledDim &dim) { return {dim.size, 0, 0}; }
  static SizeTerm last(const SampledDim &dim) { return {dim.size, 1, -1}; }

  SampledDim sampleDim(int64_t d, Dim size) {
    SampledDim dim{size, {}, {}};
    Value at = n.cast(coordinate(d), n.b.getF32Type());
    // The ends are at -1 and 1: their distance is 2, their middle 0.
    at = with<MulOp>(at, SizeTerm{size, 1, alignCorners ? -1.0 : 0.0} * 0.5);
    at = with<AddOp>(at, last(dim) * 0.5);
    if (tapCount == 1) {
      at = n.create<RoundOp>(at);
    }
    // The point of a cubic kernel is not clamped here; addTap clamps each of its taps.
    if (outside == Outside::border && tapCount < 4) {
      Value beyond = n.create<CompareOp>(at, clip(at, lowEnd(dim), highEnd(dim)), CompareKind::ne);
      at = n.create<WhereOp>(beyond, clip(at, first(dim), last(dim)), at);
    } else if (outside == Outside::reflection) {
      at = reflect(at, dim);
    }
    Value base = tapCount == 1 ? at : n.create<FloorOp>(at);
    Value fraction = tapCount == 1 ? Value() : n.create<SubOp>(at, base);
    for (int tap = 0; tap < tapCount; ++tap) {
      int offset = tapCount == 4 ? tap - 1 : tap;
      addTap(dim, offset == 0 ? base : with<AddOp>(base, offset), tapWeight(fraction, offset));
    }
    return dim;
  }

  /// Returns the coordinate of spatial dim |d| as [N, points].
  Value coordinate(int64_t d) {
    Shape shape = grid;
    Dim points = countElements(shape.dropFront().dropBack());
    Value flat = n.reshapeTo(grid, {shape[0], points, Dim(spatialRank)});
    Value one = n.slice(flat, {Dim(0), Dim(0), Dim(spatialRank - 1 - d)}, {shape[0], points, Dim(1)}, {1, 1, 1});
    return n.reshapeTo(one, {shape[0], points});
  }

  /// Returns the weight of the tap at |offset| from the floor of the coordinate.
  Value tapWeight(Value fraction, int offset) {
    if (tapCount == 1) {
      return {};
    }
    if (tapCount == 2) {
      return offset == 1 ? fraction : n.create<SubOp>(n.scalarLike(fraction, 1.0), fraction);
    }
    // Keys' cubic convolution with a = -0.75, as a polynomial of the distance to the tap.
    constexpr double a = -0.75;
    Value t = n.create<AbsOp>(with<SubOp>(fraction, offset));
    bool near = offset == 0 || offset == 1;
    double c3 = near ? a + 2 : a, c2 = near ? -(a + 3) : -5 * a, c1 = near ? 0 : 8 * a, c0 = near ? 1 : -4 * a;
    Value y = with<AddOp>(with<MulOp>(t, c3), c2);
    y = with<AddOp>(n.create<MulOp>(y, t), c1);
    return with<AddOp>(n.create<MulOp>(y, t), c0);
  }

  /// Adds a tap. Taps outside the input read what padding_mode requires; zeros are implemented as a weight of 0.
  void addTap(SampledDim &dim, Value index, Value weight) {
    if (outside == Outside::zeros) {
      Value inside = n.create<AndOp>(n.create<CompareOp>(index, n.scalarLike(index, 0.0), CompareKind::ge),
                                     n.create<CompareOp>(index, valueOf(last(dim), index), CompareKind::le));
      Value one = weight ? weight : n.scalarLike(index, 1.0);
      weight = n.create<WhereOp>(inside, one, n.scalarLike(index, 0.0));
    } else if (outside == Outside::reflection) {
      index = reflect(index, dim);
    }
    dim.index.push_back(clip(index, first(dim), last(dim)));
    dim.weight.push_back(weight);
  }

  /// Adds the products of the taps of the dims from |d| on. |index| and |weight| are those of the preceding dims.
  void addTaps(Value rows, llvm::ArrayRef<SampledDim> dims, int64_t d, Value index, Value weight) {
    if (d == spatialRank) {
      return addGather(rows, index, weight);
    }
    for (auto [tapIndex, tapWeight] : llvm::zip_equal(dims[d].index, dims[d].weight)) {
      // Computed as integers, because f32 cannot represent all indices above 2^24.
      Value at = n.cast(tapIndex, n.b.getI64Type());
      Value flat = index ? n.create<AddOp>(with<MulOp>(index, SizeTerm{dims[d].size, 1, 0}), at) : at;
      Value product = weight && tapWeight ? n.create<MulOp>(weight, tapWeight) : weight ? weight : tapWeight;
      addTaps(rows, dims, d + 1, flat, product);
    }
  }

  void addGather(Value rows, Value index, Value weight) {
    auto column = NodeImporter::sizes(index);
    column.push_back(Dim(1));
    Value values = n.create<GatherNdOp>(rows, n.reshapeTo(index, column), 1);
    if (weight) {
      values = n.create<MulOp>(values, n.cast(n.reshapeTo(weight, column), NodeImporter::elementType(x)));
    }
    sum = sum ? n.create<AddOp>(sum, values) : values;
  }

  NodeImporter &n;
  Value x, grid, sum;
  int64_t spatialRank = 0;
  int tapCount = 0;
  Outside outside = Outside::zeros;
  bool alignCorners = false;
};

} // namespace

void gridSample(NodeImporter &n) { GridSampler(n).run(); }

} // namespace tessera::top::onnx_import

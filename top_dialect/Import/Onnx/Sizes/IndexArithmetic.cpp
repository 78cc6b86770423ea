//===- IndexArithmetic.cpp - Arithmetic on sizes and positions ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/IndexArithmetic.h"

#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

#include <numeric>

using mlir::Value;

namespace tessera::top::onnx_import {

Value iotaTo(NodeImporter &n, Dim size) {
  Ints numbers(std::max<int64_t>(maxOf(size), 0));
  std::iota(numbers.begin(), numbers.end(), 0);
  Value all = n.intVector(numbers);
  return size.isKnown() ? all : n.slice(all, {Dim(0)}, {size}, {1});
}

Value shapeVector(NodeImporter &n, Value x) { return n.create<ShapeOp>(x, 0, NodeImporter::rank(x)); }

Value alignWith(NodeImporter &n, Value vector, int64_t axis, int64_t rank) {
  llvm::SmallVector<Dim> sizes(rank - axis, Dim(1));
  sizes.front() = NodeImporter::sizes(vector).front();
  return n.reshapeTo(vector, sizes);
}

Value takeFront(NodeImporter &n, Value x, int64_t axis, Dim size) {
  auto sizes = NodeImporter::sizes(x);
  Dim own = std::exchange(sizes[axis], size);
  if (n.failed() || sameSize(own, size)) {
    return x;
  }
  llvm::SmallVector<Dim> starts(sizes.size(), Dim(0));
  return minOf(own - size) >= 0 ? n.slice(x, starts, sizes, Ints(sizes.size(), 1))
                                : n.create<GatherOp>(x, iotaTo(n, size), axis);
}

Value vectorInput(NodeImporter &n, unsigned i) {
  Value value = n.input(i);
  return n.failed() ? value : n.cast(n.reshape(value, {knownNumElements(value).value_or(1)}), n.b.getI64Type());
}

Value normalAxes(NodeImporter &n, Value axes, int64_t rank) { return Arithmetic{n}.fromEnd(axes, n.intVector({rank})); }

Value spread(NodeImporter &n, Value base, Value axes, Value values) {
  Value places = axes ? normalAxes(n, axes, countOf(base)) : iotaTo(n, countOf(values));
  return n.create<ScatterElementsOp>(base, places, values, 0, ScatterReduction::none);
}

std::optional<Ints> largestSizes(NodeImporter &n, Value x) {
  if (!Shape(x).isDetermined()) {
    n.unsupported("its input has dims that are not known, and its shape arguments are computed at run time: fix the "
                  "dims with --input_shapes");
  }
  return n.failed() ? std::nullopt : std::optional<Ints>(llvm::map_to_vector(Shape(x).dims(), maxOf));
}

void require(NodeImporter &n, Value value, int64_t wanted, llvm::StringRef what) {
  Arithmetic i{n};
  Value error = i.where(i.is(value, CompareKind::eq, i.number(wanted)), i.number(0), i.number(2));
  if (!n.failed() && !isConstant(error)) {
    std::string name = llvm::formatv("{0} of {1}", what, nodeName(n.node));
    BindOp::create(n.b, n.loc, error, 0, SizeSymbolAttr::get(n.b.getContext(), name, 0, 1, 1));
  }
}

Dim bindDim(NodeImporter &n, Value sizes, int64_t axis, int64_t most, unsigned output) {
  auto known = n.failed() ? std::nullopt : readSizes(sizes);
  if (n.failed() || (known && !(*known)[axis].isUnknown())) {
    return n.failed() ? Dim(1) : (*known)[axis];
  }
  std::string name = llvm::formatv("{0}.{1}", n.graph.nameOf(n.node.output(int(output))), axis);
  return n.graph.model.state->runTimeSizes.bind(n.b, n.loc, {sizes, axis}, name, {0, most, 1, most});
}

llvm::SmallVector<Dim> bindDims(NodeImporter &n, Value sizes, llvm::ArrayRef<int64_t> most) {
  llvm::SmallVector<Dim> dims;
  for (size_t d = 0; d < most.size(); ++d) {
    dims.push_back(bindDim(n, sizes, int64_t(d), most[d]));
  }
  return dims;
}

} // namespace tessera::top::onnx_import

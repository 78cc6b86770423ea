//===- CarriedSizes.cpp - Sizes that change from pass to pass -------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Control/CarriedSizes.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Number of passes after which the growth of a size is taken to be the same in all further passes.
constexpr int64_t kSteady = 64;

/// Sizes that are tried without a limit on the number of passes: a pass may limit the size, as min(size + 1, 100) does,
/// which sizes below the limit do not show.
constexpr int64_t kLargestProbe = int64_t(1) << 15;

SizeRange unite(SizeRange a, SizeRange b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

bool isSame(SizeRange a, SizeRange b) { return a.min == b.min && a.max == b.max; }

} // namespace

//===----------------------------------------------------------------------===//
// PassLimit
//===----------------------------------------------------------------------===//

Dim PassLimit::count() {
  auto sizes = trips ? readSizes(trips) : std::nullopt;
  return sizes && sizes->size() == 1 && !sizes->front().isUnknown() ? max(sizes->front(), 0)
                                                                    : Dim(mlir::ShapedType::kDynamic);
}

int64_t PassLimit::most() {
  if (known || !trips || n.failed()) {
    return known.value_or(INT64_MAX);
  }
  if (Dim size = count(); !size.isUnknown()) {
    return *(known = maxOf(size));
  }
  known = INT64_MAX;
  RunTimeSizes &sizes = n.graph.model.state->runTimeSizes;
  std::string name = nameOf(traceElement(trips, 0), n.graph.nameOf(nodeName(n.node)));
  if (sizes.opensAll() || sizes.givenRange(name)) {
    Value vector = n.cast(n.reshape(trips, {1}), n.b.getI64Type());
    Value passes = n.create<MaxOp>(vector, n.intVector({0}));
    known = maxOf(sizes.bind(n.b, n.loc, {passes, 0}, name, {0, 64, 1, 64}));
  }
  return *known;
}

std::string PassLimit::advice() const {
  std::string name = trips ? nameOf(traceElement(trips, 0), n.graph.nameOf(nodeName(n.node))) : "";
  return name.empty() ? name : llvm::formatv(", or for the number of passes, --dims '{0}=0..MAX'", name).str();
}

//===----------------------------------------------------------------------===//
// CarriedSizes
//===----------------------------------------------------------------------===//

CarriedSizes::CarriedSizes(NodeImporter &n, mlir::ValueRange init, const onnx::GraphProto &body, PassLimit &limit)
    : n(n), init(init), body(body), limit(limit), types(init.getTypes()),
      names(n.graph.model.state->runTimeSizes.getNames()) {}

CarriedSizes::OpenDim *CarriedSizes::find(size_t value, size_t dim) {
  auto found = llvm::find_if(dims, [&](const OpenDim &open) { return open.value == value && open.dim == dim; });
  return found == dims.end() ? nullptr : &*found;
}

SizeSymbolAttr CarriedSizes::makeSymbol(const OpenDim &open) const {
  int64_t most = std::max(open.range.max, open.range.min + 1);
  return SizeSymbolAttr::get(n.b.getContext(), open.argumentName, open.range.min, most, most);
}

void CarriedSizes::open(size_t value, size_t dim) {
  RunTimeSizes &sizes = n.graph.model.state->runTimeSizes;
  auto index = static_cast<int>(value);
  bool isNamed = n.wantsOutput(index);
  std::string name = n.graph.nameOf(isNamed ? n.node.output(index) : body.input(index + 2).name());
  OpenDim added{value, dim, llvm::formatv("{0}.{1}", name, dim)};
  added.first = Shape(init[value])[dim];
  added.given = sizes.givenRange(added.name);
  added.range = rangeOf(added.first);
  if (added.given) {
    added.range = {added.given->min, added.given->max};
  } else if (added.first.isUnknown()) {
    n.unsupported(llvm::formatv("the size of its carried value '{0}' is not known before the loop", name));
  }
  sizes.setNames(names);
  added.argumentName = sizes.takeName(added.name + " in a pass");
  names = sizes.getNames();
  dims.push_back(added);
}

/// Widens the ranges by one more pass. Returns false if they stay the same.
bool CarriedSizes::widen() {
  std::vector<SizeRange> next;
  for (const OpenDim &open : dims) {
    Dim size = substitute(open.next, [&](SizeSymbolAttr symbol) {
      auto known = llvm::find_if(dims, [&](const OpenDim &other) { return other.argumentName == symbol.getName(); });
      return known == dims.end() ? sizeOf(symbol) : sizeOf(makeSymbol(*known));
    });
    next.push_back(unite(open.range, rangeOf(size)));
  }
  bool isWider = false;
  for (auto [open, range] : llvm::zip_equal(dims, next)) {
    isWider |= !open.given && !isSame(open.range, range);
    open.range = open.given ? open.range : range;
  }
  return isWider;
}

/// Finds the ranges after up to |passes| passes. Returns true if further passes do not widen them.
bool CarriedSizes::simulate(int64_t passes) {
  for (OpenDim &open : dims) {
    open.range = open.given ? open.range : rangeOf(open.first);
  }
  while (passes-- > 0) {
    if (!widen()) {
      return true;
    }
  }
  return false;
}

void CarriedSizes::findRanges() {
  int64_t counted = maxOf(limit.count());
  if (simulate(std::min(counted, kSteady)) || counted <= kSteady) {
    return;
  }
  int64_t most = limit.most();
  if (most <= kSteady) {
    simulate(most);
    return;
  }
  if (most == INT64_MAX && probe < kLargestProbe) {
    probe *= 8;
    for (OpenDim &open : dims) {
      open.range.max = open.given ? open.range.max : probe;
    }
    return;
  }
  auto before = llvm::map_to_vector(dims, [](const OpenDim &open) { return open.range.max; });
  (void)widen();
  for (auto [open, last] : llvm::zip_equal(dims, before)) {
    double end = double(open.range.max) + double(open.range.max - last) * double(most - kSteady - 1);
    if (end > double(detail::kMaxTensorBytes)) {
      n.unsupported(
          llvm::formatv("each pass changes dim {0} of its carried value '{1}', without a bound: give the range "
                        "of the dim after the loop, --dims '{2}=0..MAX'{3}",
                        open.dim, body.input(static_cast<int>(open.value) + 2).name(), open.name, limit.advice()));
      return;
    }
    open.range.max = static_cast<int64_t>(end);
  }
}

bool CarriedSizes::update(mlir::ValueRange yielded) {
  bool isChanged = false;
  for (auto [i, value] : llvm::enumerate(yielded.take_front(types.size()))) {
    Shape argument = mlir::cast<mlir::RankedTensorType>(types[i]), returned = value;
    for (size_t d = 0; d < argument.rank() && argument.rank() == returned.rank(); ++d) {
      if (!find(i, d) && !sameSize(argument[d], returned[d])) {
        open(i, d);
        isChanged = true;
      }
      if (OpenDim *known = find(i, d)) {
        known->next = returned[d];
      }
    }
  }
  auto before = types;
  if (!dims.empty() && !n.failed()) {
    findRanges();
    setTypes();
  }
  isChanged = !n.failed() && (isChanged || types != before);
  if (isChanged) {
    n.graph.model.state->runTimeSizes.setNames(names);
  }
  return isChanged;
}

void CarriedSizes::setTypes() {
  for (size_t i = 0; i < types.size(); ++i) {
    auto sizes = Shape(mlir::cast<mlir::RankedTensorType>(types[i])).dims();
    for (size_t d = 0; d < sizes.size(); ++d) {
      OpenDim *open = find(i, d);
      sizes[d] = open ? sizeOf(makeSymbol(*open)) : sizes[d];
    }
    types[i] = tensorType(sizes, NodeImporter::elementType(init[i]));
  }
}

mlir::RankedTensorType CarriedSizes::resultType(size_t i) {
  auto sizes = Shape(mlir::cast<mlir::RankedTensorType>(types[i])).dims();
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (OpenDim *open = find(i, d)) {
      SizeSymbolAttr symbol = makeSymbol(*open);
      sizes[d] = n.graph.model.state->runTimeSizes.declare(n.b.getContext(), open->name,
                                                           {symbol.getMin(), symbol.getMax(), 1, symbol.getLikely()});
    }
  }
  return tensorType(sizes, NodeImporter::elementType(init[i]));
}

} // namespace tessera::top::onnx_import

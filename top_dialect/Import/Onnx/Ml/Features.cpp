//===- Features.cpp - Handlers of ai.onnx.ml operators that prepare features --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Limit on the number of comparisons of elements with keys, because all of them are made in a single op.
constexpr int64_t kMostComparisons = int64_t(1) << 26;

Value toFloat(NodeImporter &n, Value x) { return n.cast(x, n.b.getF32Type()); }

Value floatVector(NodeImporter &n, llvm::ArrayRef<double> values) {
  return n.floatConstant(n.b.getF32Type(), {static_cast<int64_t>(values.size())}, values);
}

/// Returns the attribute |name|, which has one number or one per column of |x|.
Value perColumn(NodeImporter &n, llvm::StringRef name, Value x) {
  llvm::SmallVector<double> values = n.floatsAttr(name);
  auto count = static_cast<int64_t>(values.size()), columns = NodeImporter::dim(x, NodeImporter::rank(x) - 1);
  if (!n.failed() && count != 1 && count != columns) {
    n.fail(
        llvm::formatv("attribute '{0}' has {1} entries for {2} columns; allowed are 1 and {2}", name, count, columns));
  }
  return floatVector(n, values);
}

void binarizer(NodeImporter &n) {
  Value x = n.input(0);
  Value isAbove = n.create<CompareOp>(x, n.scalarLike(x, n.floatAttr("threshold", 0)), CompareKind::gt);
  n.setOutput(0, n.cast(isAbove, NodeImporter::elementType(x)));
}

void scaler(NodeImporter &n) {
  Value x = toFloat(n, n.input(0));
  Value y = n.hasAttr("offset") ? n.create<SubOp>(x, perColumn(n, "offset", x)) : x;
  n.setOutput(0, n.hasAttr("scale") ? n.create<MulOp>(y, perColumn(n, "scale", x)) : y);
}

/// Divides rows by their largest element, or by their L1 or L2 norm. Rows with a divisor of 0 are unchanged.
void normalizer(NodeImporter &n) {
  Value x = toFloat(n, n.input(0));
  int64_t rank = NodeImporter::rank(x);
  std::string norm = n.stringAttr("norm", "MAX");
  auto kind = llvm::StringSwitch<std::optional<ReduceKind>>(norm)
                  .Case("MAX", ReduceKind::max)
                  .Case("L1", ReduceKind::l1)
                  .Case("L2", ReduceKind::l2)
                  .Default(std::nullopt);
  if (!n.failed() && (!kind || rank < 1 || rank > 2)) {
    n.fail(
        llvm::formatv("norm '{0}' of an input of rank {1}; allowed are MAX, L1 and L2 of ranks 1 and 2", norm, rank));
  }
  if (n.failed()) {
    return;
  }
  Value divisor = n.create<ReduceOp>(x, *kind, Ints{rank - 1}, true);
  Value isZero = n.create<CompareOp>(divisor, n.scalarLike(x, 0), CompareKind::eq);
  n.setOutput(0, n.create<DivOp>(x, n.create<WhereOp>(isZero, n.scalarLike(x, 1), divisor)));
}

/// Selects columns of |x| by index. A vector counts as one row.
void arrayFeatureExtractor(NodeImporter &n) {
  Value x = n.input(0), columns = n.input(1);
  Ints dims(NodeImporter::shape(columns));
  int64_t count = 1;
  for (int64_t dim : dims) {
    count *= dim;
  }
  if (!n.failed() && (NodeImporter::rank(x) < 1 || count < 1)) {
    n.fail("its input has no columns, or the list of columns is open or empty");
  }
  x = NodeImporter::rank(x) == 1 ? n.reshape(x, {1, NodeImporter::dim(x, 0)}) : x;
  n.setOutput(0, n.create<GatherOp>(x, n.reshape(columns, {count}), NodeImporter::rank(x) - 1));
}

/// Concatenates the inputs, converted to floats.
void featureVectorizer(NodeImporter &n) {
  Ints widths = n.intsAttr("inputdimensions");
  llvm::SmallVector<Value> parts;
  for (auto [i, x] : llvm::enumerate(n.inputs())) {
    x = NodeImporter::rank(x) == 1 ? n.reshape(x, {NodeImporter::dim(x, 0), 1}) : x;
    int64_t width = NodeImporter::dim(x, 1);
    if (!n.failed() && (NodeImporter::rank(x) != 2 || (i < widths.size() && widths[i] != width))) {
      n.fail(llvm::formatv("input {0} has rank {1} and {2} columns; inputdimensions requires {3}", i,
                           NodeImporter::rank(x), width, i < widths.size() ? widths[i] : width));
    }
    parts.push_back(toFloat(n, x));
  }
  n.setOutput(0, n.create<ConcatOp>(parts, 1));
}

void imputer(NodeImporter &n) {
  Value x = n.input(0);
  bool isFloat = NodeImporter::isFloat(x);
  llvm::SmallVector<double> values;
  for (int64_t value : n.intsAttr("imputed_value_int64s")) {
    values.push_back(static_cast<double>(value));
  }
  values = isFloat ? n.floatsAttr("imputed_value_floats") : values;
  auto count = static_cast<int64_t>(values.size()), columns = NodeImporter::dim(x, NodeImporter::rank(x) - 1);
  if (!n.failed() && count != 1 && count != columns) {
    n.fail(llvm::formatv("it imputes {0} values in {1} columns; allowed are 1 and {1}", count, columns));
  }
  double replaced =
      isFloat ? n.floatAttr("replaced_value_float", 0) : static_cast<double>(n.intAttr("replaced_value_int64", 0));
  Value isMissing =
      std::isnan(replaced) ? n.create<IsNanOp>(x) : n.create<CompareOp>(x, n.scalarLike(x, replaced), CompareKind::eq);
  n.setOutput(0, n.create<WhereOp>(isMissing, n.floatConstant(NodeImporter::elementType(x), {count}, values), x));
}

/// Compares each element of |x| with each of the constant |keys| [K]. The i1 result has one more dim.
Value matchKeys(NodeImporter &n, Value x, Value keys) {
  Ints dims(NodeImporter::shape(x));
  int64_t comparisons = NodeImporter::dim(keys, 0);
  for (int64_t dim : dims) {
    comparisons *= std::max<int64_t>(dim, 1);
  }
  if (!n.failed() && (llvm::any_of(dims, mlir::ShapedType::isDynamic) || comparisons > kMostComparisons)) {
    n.unsupported(llvm::formatv("its input has open dims, or takes more than {0} comparisons with {1} keys",
                                kMostComparisons, NodeImporter::dim(keys, 0)));
  }
  dims.push_back(1);
  x = n.reshape(x, dims);
  Value isEqual = n.create<CompareOp>(x, keys, CompareKind::eq);
  auto known = getConstantDoubles(keys);
  if (!NodeImporter::isFloat(x) || !known || llvm::none_of(*known, [](double key) { return std::isnan(key); })) {
    return isEqual;
  }
  Value bothNan = n.create<AndOp>(n.create<IsNanOp>(x), n.create<IsNanOp>(keys));
  return n.create<OrOp>(isEqual, bothNan);
}

void oneHotEncoder(NodeImporter &n) {
  if (n.hasAttr("cats_strings")) {
    n.unsupported("attribute 'cats_strings': strings are not supported");
  }
  Ints categories = n.intsAttr("cats_int64s");
  Value x = n.cast(n.input(0), n.b.getI64Type());
  n.setOutput(0, toFloat(n, matchKeys(n, x, n.intVector(categories))));
}

/// Returns the keys or values of a LabelEncoder from an attribute of one of three types, or null if there is none.
Value readList(NodeImporter &n, const std::string &what) {
  if (const onnx::AttributeProto *tensor = n.findAttr(what + "_tensor")) {
    if (tensor->t().data_type() == onnx::TensorProto::STRING) {
      n.unsupported(llvm::formatv("attribute '{0}_tensor': strings are not supported", what));
      return {};
    }
    Value list = n.constant(tensor->t(), what);
    return n.reshape(list, {NodeImporter::rank(list) == 1 ? NodeImporter::dim(list, 0) : 1});
  }
  if (n.hasAttr(what + "_int64s")) {
    return n.intVector(n.intsAttr(what + "_int64s"));
  }
  if (n.hasAttr(what + "_floats")) {
    return floatVector(n, n.floatsAttr(what + "_floats"));
  }
  if (n.hasAttr(what + "_strings")) {
    n.unsupported(llvm::formatv("attribute '{0}_strings': strings are not supported", what));
  }
  return {};
}

void labelEncoder(NodeImporter &n) {
  Value x = n.input(0), keys = readList(n, "keys"), values = readList(n, "values");
  if (!n.failed() && (n.hasAttr("classes_strings") || !keys || !values)) {
    n.unsupported("it has no numeric keys and values");
  }
  if (n.failed()) {
    return;
  }
  mlir::Type type = NodeImporter::elementType(values);
  bool isFloat = mlir::isa<mlir::FloatType>(type);
  Value fallback = n.scalar(type, isFloat ? n.floatAttr("default_float", -0.0)
                                          : static_cast<double>(n.intAttr("default_int64", -1)));
  if (const onnx::AttributeProto *given = n.findAttr("default_tensor")) {
    fallback = n.reshape(n.constant(given->t(), "default"), {});
  }
  if (NodeImporter::elementType(x) != NodeImporter::elementType(keys) ||
      NodeImporter::shape(keys) != NodeImporter::shape(values) || NodeImporter::elementType(fallback) != type) {
    n.fail("its input has another type than the keys, or keys, values and default do not match");
  }
  Value match = n.cast(matchKeys(n, x, keys), n.b.getI32Type());
  int64_t last = NodeImporter::rank(x);
  Value first = n.create<ArgReduceOp>(match, last, false, false, false);
  Value isKnown = n.cast(n.create<ReduceOp>(match, ReduceKind::max, Ints{last}, false), n.b.getI1Type());
  n.setOutput(0, n.create<WhereOp>(isKnown, n.create<GatherOp>(values, first, 0), fallback));
}

constexpr llvm::StringLiteral kDomain = "ai.onnx.ml";
constexpr HandlerEntry kHandlers[] = {
    {kDomain, "Binarizer", binarizer},
    {kDomain, "Scaler", scaler},
    {kDomain, "Normalizer", normalizer},
    {kDomain, "ArrayFeatureExtractor", arrayFeatureExtractor},
    {kDomain, "FeatureVectorizer", featureVectorizer},
    {kDomain, "Imputer", imputer},
    {kDomain, "OneHotEncoder", oneHotEncoder},
    {kDomain, "LabelEncoder", labelEncoder, 2},
};

} // namespace

llvm::ArrayRef<HandlerEntry> featureHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

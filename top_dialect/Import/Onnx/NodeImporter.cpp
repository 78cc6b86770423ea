//===- NodeImporter.cpp - Accessors, op creation and folding for handlers --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/OnnxInputs.h"
#include "top_dialect/Import/Onnx/Sizes/ShapeArithmetic.h"
#include "top_dialect/Import/Onnx/Sizes/SizeAssumptions.h"
#include "top_dialect/Reference/Evaluator.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using mlir::Value;

namespace tessera::top::onnx_import {

void NodeImporter::fail(const llvm::Twine &message) {
  if (error.empty()) {
    error = message.str();
  }
}

void NodeImporter::unsupported(const llvm::Twine &message) {
  isUnsupported |= !failed();
  fail(message);
}

void NodeImporter::fail(llvm::Error cause) {
  isUnsupported |= !failed() && cause.isA<UnsupportedError>();
  fail(llvm::toString(std::move(cause)));
}

void NodeImporter::allowOnly(llvm::ArrayRef<StringRef> attributes, unsigned inputs) {
  for (const auto &attribute : node.attribute()) {
    if (!llvm::is_contained(attributes, StringRef(attribute.name()))) {
      unsupported(llvm::formatv("attribute '{0}' is not supported", attribute.name()));
    }
  }
  for (unsigned i = inputs; i < numInputs(); ++i) {
    if (hasInput(i)) {
      unsupported(llvm::formatv("input {0}, tensor '{1}', is not supported", i, node.input(i)));
    }
  }
}

llvm::Error NodeImporter::getError() const {
  return isUnsupported ? top::unsupported(error) : llvm::createStringError(llvm::inconvertibleErrorCode(), error);
}

mlir::RankedTensorType NodeImporter::placeholder(mlir::OpBuilder &builder) {
  return mlir::RankedTensorType::get({}, builder.getF32Type());
}

Value NodeImporter::dummy() { return createScalar(b, loc, b.getF32Type(), 0.0); }

//--- inputs ---

Value NodeImporter::input(unsigned i) {
  if (!hasInput(i)) {
    fail(llvm::formatv("input {0} is missing; the node has {1}", i, numInputs()));
    return dummy();
  }
  Value value = graph.lookup(node.input(i));
  if (!value && graph.lookupSequence(node.input(i))) {
    unsupported(llvm::formatv("input {0}, '{1}', is a sequence of tensors; only sequence operators can read it", i,
                              node.input(i)));
    return dummy();
  }
  if (!value) {
    fail(llvm::formatv("input {0}, tensor '{1}', cannot be read", i, node.input(i)));
    return dummy();
  }
  return useIn(graph.model.state->regions, value);
}

const StorageType *NodeImporter::inputStorage(unsigned i) const {
  return hasInput(i) ? graph.storageOf(node.input(i)) : nullptr;
}

void NodeImporter::setOutputStorage(unsigned i, const StorageType *type) {
  if (wantsOutput(i)) {
    graph.bindStorage(node.output(i), type);
  }
}

mlir::SmallVector<Value> NodeImporter::inputs() {
  mlir::SmallVector<Value> values;
  for (unsigned i = 0; i < numInputs(); ++i) {
    values.push_back(input(i));
  }
  return values;
}

llvm::ArrayRef<int64_t> NodeImporter::shape(Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getShape();
}

bool NodeImporter::hasSizes(Value value, llvm::ArrayRef<Dim> wanted) {
  auto own = sizes(value);
  return own.size() == wanted.size() &&
         llvm::all_of(llvm::zip(own, wanted), [](auto pair) { return sameSize(std::get<0>(pair), std::get<1>(pair)); });
}

mlir::Type NodeImporter::elementType(Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType()).getElementType();
}

Ints NodeImporter::constantInts(unsigned i, StringRef what) {
  Value value = input(i);
  if (failed()) {
    return {};
  }
  if (auto ints = getConstantInts(value)) {
    return *ints;
  }
  if (knownNumElements(value) == 0) {
    return {};
  }
  rejectRunTime(i, what);
  return {};
}

/// Returns advice for a |value| that must be constant: use --input_shapes if it depends on open dims or --input_values
/// if it depends on a small input, and otherwise end the network before it.
static std::string adviceFor(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size() && i < 1024; ++i) {
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(reached[i]);
    auto type = mlir::cast<mlir::RankedTensorType>(reached[i].getType());
    if (argument && !type.hasStaticShape()) {
      return "fix the dims it depends on with --input_shapes";
    }
    if (argument && type.getRank() <= 1 && type.getNumElements() <= 16 &&
        mlir::isa_and_nonnull<mlir::func::FuncOp>(argument.getOwner()->getParentOp())) {
      return llvm::formatv("if input '{0}' always has the same value, give it with --input_values {0}=VALUE",
                           getInputName(argument));
    }
    if (mlir::Operation *op = reached[i].getDefiningOp()) {
      reached.insert(op->operand_begin(), op->operand_end());
    }
  }
  return "it depends on the input data; cut the network before it with --output_names and do the rest outside";
}

void NodeImporter::rejectRunTime(unsigned i, StringRef what) {
  unsupported(llvm::formatv("{0} (input {1}, tensor '{2}') is computed at run time; it must be constant: {3}", what, i,
                            node.input(i), adviceFor(input(i))));
}

std::optional<llvm::SmallVector<Dim>> NodeImporter::openSizes(Value value) {
  return failed() ? std::nullopt : readOpenSizes(value);
}

bool NodeImporter::bindsSizes() const { return !failed() && graph.model.state->runTimeSizes.isEnabled(); }

Dim NodeImporter::bindCount(Value count, unsigned i, int64_t axis, int64_t most) {
  if (failed()) {
    return most;
  }
  std::string name = llvm::formatv("{0}.{1}", graph.nameOf(node.output(int(i))), axis);
  Element element{cast(reshape(count, {1}), b.getI64Type()), 0};
  return graph.model.state->runTimeSizes.bind(b, loc, element, name, {0, most, 1, most});
}

std::optional<llvm::SmallVector<Dim>> NodeImporter::bindSizes(Value value, int64_t most) {
  auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
  constexpr int64_t kMostElements = 32;
  bool isVector = type.getRank() <= 1 && knownNumElements(type).value_or(kMostElements + 1) <= kMostElements &&
                  type.getElementType().isSignlessInteger();
  if (!bindsSizes() || !isVector) {
    return std::nullopt;
  }
  auto known = readSizes(value);
  llvm::SmallVector<Dim> sizes;
  for (int64_t i = 0; i < numElements(type); ++i) {
    if (known && !(*known)[i].isUnknown()) {
      sizes.push_back((*known)[i]);
      continue;
    }
    Element element = traceElement(value, i);
    Dim bound = findBound(element);
    if (bound.isUnknown()) {
      std::string name = nameOf(element, graph.nameOf(nodeName(node)));
      element.tensor = cast(element.tensor, b.getI64Type());
      bound = graph.model.state->runTimeSizes.bind(b, loc, element, name, {0, most, 1, most});
    }
    sizes.push_back(bound);
  }
  return sizes;
}

/// Returns the sizes of operands that give |count| sizes of one tensor, such that a tensor of the largest sizes has
/// about a million elements.
static int64_t defaultMost(int64_t count) {
  constexpr int64_t kElements = int64_t(1) << 20;
  int64_t most = 1;
  auto power = [&](int64_t base) {
    int64_t product = 1;
    for (int64_t i = 0; i < count && product <= kElements; ++i) {
      product *= base;
    }
    return product;
  };
  while (count > 0 && power(most + 1) <= kElements) {
    ++most;
  }
  return most;
}

llvm::SmallVector<Dim> NodeImporter::sizesInput(unsigned i, StringRef what) {
  Value value = input(i);
  if (auto sizes = openSizes(value)) {
    return *sizes;
  }
  if (!failed() && !getConstantInts(value)) {
    if (auto sizes = bindSizes(value, defaultMost(knownNumElements(value).value_or(1)))) {
      return *sizes;
    }
  }
  return toSizes(constantInts(i, what));
}

llvm::SmallVector<double> NodeImporter::constantDoubles(unsigned i, StringRef what) {
  Value value = input(i);
  if (failed()) {
    return {};
  }
  if (auto values = getConstantDoubles(value)) {
    return *values;
  }
  rejectRunTime(i, what);
  return {};
}

int64_t NodeImporter::normalizeAxis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    fail(rank == 0 ? llvm::formatv("axis {0} is given for a scalar", axis).str()
                   : llvm::formatv("axis {0} is outside {1}..{2}", axis, -rank, rank - 1).str());
    return 0;
  }
  return axis < 0 ? axis + rank : axis;
}

Ints NodeImporter::normalizeAxes(llvm::ArrayRef<int64_t> axes, int64_t rank) {
  Ints result;
  for (int64_t axis : axes) {
    int64_t normal = normalizeAxis(axis, rank);
    if (llvm::is_contained(result, normal)) {
      fail(llvm::formatv("axis {0} is listed twice", axis));
    }
    result.push_back(normal);
  }
  return result;
}

//--- attributes ---

const onnx::AttributeProto *NodeImporter::findAttr(StringRef name) const {
  for (const auto &attribute : node.attribute()) {
    if (attribute.name() == name) {
      return &attribute;
    }
  }
  return nullptr;
}

const onnx::AttributeProto *NodeImporter::typedAttr(StringRef name, onnx::AttributeProto::AttributeType type) {
  const onnx::AttributeProto *attribute = findAttr(name);
  if (attribute && attribute->type() != type) {
    // Files of IR version 1 do not contain the type. The field that is set determines it.
    if (attribute->type() != onnx::AttributeProto::UNDEFINED) {
      fail(llvm::formatv("attribute '{0}' has type {1}, expected {2}", name,
                         onnx::AttributeProto::AttributeType_Name(attribute->type()),
                         onnx::AttributeProto::AttributeType_Name(type)));
      return nullptr;
    }
  }
  return attribute;
}

int64_t NodeImporter::intAttr(StringRef name, int64_t byDefault) {
  auto *attribute = typedAttr(name, onnx::AttributeProto::INT);
  return attribute ? attribute->i() : byDefault;
}

int64_t NodeImporter::requiredInt(StringRef name) {
  if (!hasAttr(name)) {
    fail(llvm::formatv("attribute '{0}' is missing", name));
  }
  return intAttr(name, 0);
}

double NodeImporter::floatAttr(StringRef name, double byDefault) {
  auto *attribute = typedAttr(name, onnx::AttributeProto::FLOAT);
  return attribute ? attribute->f() : byDefault;
}

Ints NodeImporter::intsAttr(StringRef name, llvm::ArrayRef<int64_t> byDefault) {
  auto *attribute = typedAttr(name, onnx::AttributeProto::INTS);
  return attribute ? Ints(attribute->ints().begin(), attribute->ints().end()) : Ints(byDefault);
}

llvm::SmallVector<double> NodeImporter::floatsAttr(StringRef name) {
  auto *attribute = typedAttr(name, onnx::AttributeProto::FLOATS);
  return attribute ? llvm::SmallVector<double>(attribute->floats().begin(), attribute->floats().end())
                   : llvm::SmallVector<double>();
}

std::string NodeImporter::stringAttr(StringRef name, StringRef byDefault) {
  auto *attribute = typedAttr(name, onnx::AttributeProto::STRING);
  return attribute ? attribute->s() : byDefault.str();
}

llvm::SmallVector<std::string> NodeImporter::stringsAttr(StringRef name) {
  auto *attribute = typedAttr(name, onnx::AttributeProto::STRINGS);
  return attribute ? llvm::SmallVector<std::string>(attribute->strings().begin(), attribute->strings().end())
                   : llvm::SmallVector<std::string>();
}

mlir::Type NodeImporter::typeOf(int64_t dataType) {
  auto type = elementTypeOf(static_cast<int>(dataType), b.getContext());
  if (!type) {
    fail(type.takeError());
    return b.getF32Type();
  }
  return *type;
}

//--- building ---

/// Returns the size of the unknown entry of |target|, to which |value| is reshaped; unknown if it cannot be computed.
static Dim remainingSize(Value value, llvm::ArrayRef<Dim> target) {
  Dim count = countElements(value), others = 1;
  for (Dim dim : target) {
    others *= dim.isUnknown() ? Dim(1) : dim;
  }
  Dim size = others.is(0) ? Dim(mlir::ShapedType::kDynamic) : floorDiv(count, others);
  return sameSize(size * others, count) ? size : Dim(mlir::ShapedType::kDynamic);
}

Value NodeImporter::scalar(mlir::Type element, double value) { return createScalar(b, loc, element, value); }

Value NodeImporter::intVector(llvm::ArrayRef<int64_t> values) { return createIntVector(b, loc, values); }

Value NodeImporter::reshape(Value value, llvm::ArrayRef<int64_t> shape) {
  if (failed() || NodeImporter::shape(value) == shape) {
    return value;
  }
  if (llvm::count_if(shape, mlir::ShapedType::isDynamic) > 1) {
    unsupported("its result has several open dims: fix them with --input_shapes");
    return value;
  }
  llvm::SmallVector<Dim> target(shape.begin(), shape.end());
  if (auto *open = llvm::find_if(target, [](Dim dim) { return dim.isUnknown(); }); open != target.end()) {
    *open = remainingSize(value, target);
  }
  return reshapeTo(value, target);
}

Value NodeImporter::reshapeTo(Value value, llvm::ArrayRef<Dim> sizes) {
  if (failed()) {
    return value;
  }
  SizeList list = makeSizeList(sizes, b.getContext());
  auto op = ReshapeOp::create(b, loc, placeholder(), value, Value(), list.numbers);
  setDims(op, kDimsAttr, list.dims);
  return finish(op).front();
}

Value NodeImporter::expandTo(Value value, llvm::ArrayRef<Dim> sizes) {
  if (failed() || hasSizes(value, sizes)) {
    return value;
  }
  SizeList list = makeSizeList(sizes, b.getContext());
  auto op = ExpandOp::create(b, loc, placeholder(), value, Value(), list.numbers);
  setDims(op, kDimsAttr, list.dims);
  return finish(op).front();
}

Value NodeImporter::slice(Value value, llvm::ArrayRef<Dim> starts, llvm::ArrayRef<Dim> sizes,
                          llvm::ArrayRef<int64_t> steps) {
  if (failed()) {
    return value;
  }
  SizeList first = makeSizeList(starts, b.getContext()), list = makeSizeList(sizes, b.getContext());
  auto op = SliceOp::create(b, loc, placeholder(), value, first.numbers, list.numbers, steps);
  setDims(op, kDimsAttr, list.dims);
  setDims(op, kStartDimsAttr, first.dims);
  return finish(op).front();
}

Value NodeImporter::transpose(Value value, llvm::ArrayRef<int64_t> perm) {
  if (failed() || llvm::is_sorted(perm)) {
    return value;
  }
  return create<TransposeOp>(value, perm);
}

Value NodeImporter::cast(Value value, mlir::Type element) {
  return failed() || elementType(value) == element ? value : create<CastOp>(value, element);
}

Value NodeImporter::constant(const onnx::TensorProto &proto, StringRef hint) {
  auto tensor = readTensor(proto, graph.model, b.getContext());
  if (!tensor) {
    fail(tensor.takeError());
    return dummy();
  }
  graph.model.state->readBytes += static_cast<int64_t>(tensor->bytes.size());
  return createConstant(b, loc, tensor->type, tensor->bytes, hint);
}

bool NodeImporter::charge(int64_t bytes) {
  ImportState &state = *graph.model.state;
  int64_t limit = graph.model.foldLimit > 0 ? graph.model.foldLimit : (int64_t(2) << 30) + 4 * state.readBytes;
  if (bytes <= limit - state.foldedBytes) {
    state.foldedBytes += std::max<int64_t>(bytes, 0);
    return !failed();
  }
  auto gib = [](int64_t count) { return static_cast<double>(count) / (1 << 30); };
  fail(llvm::formatv(
      "its result is constant and takes {0:F2} GiB; with the {1:F2} GiB of constants computed before it, that is "
      "more than the {2:F2} GiB allowed for this model: --memory_limit GIB allows more",
      gib(bytes), gib(state.foldedBytes), gib(limit)));
  return false;
}

Value NodeImporter::floatConstant(mlir::Type element, llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<double> values) {
  auto *begin = reinterpret_cast<const char *>(values.data());
  std::vector<char> bytes(begin, begin + values.size() * sizeof(double));
  auto type = mlir::RankedTensorType::get(shape, b.getF64Type());
  return cast(createConstant(b, loc, type, std::move(bytes), nodeName(node)), element);
}

namespace {

/// Removes internals from a verifier message that mean nothing to users: "'top.pad' op " at the start, and the
/// constraint " (C2)" at the end.
std::string withoutInternals(StringRef text) {
  if (text.starts_with("'top.")) {
    auto [op, rest] = text.split("' op ");
    text = rest.empty() ? text : rest;
  }
  size_t constraint = text.rfind(" (C");
  bool isLast = constraint != StringRef::npos && text.ends_with(")") && text.size() - constraint <= 6;
  return (isLast ? text.take_front(constraint) : text).str();
}

/// Runs |body| and collects its error diagnostics.
bool succeedsQuietly(mlir::MLIRContext *context, std::string &message, llvm::function_ref<mlir::LogicalResult()> body) {
  mlir::ScopedDiagnosticHandler handler(context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && message.empty()) {
      message = withoutInternals(diagnostic.str());
    }
    return mlir::success();
  });
  return mlir::succeeded(body());
}

/// Returns the result of an op of shape arithmetic if all its elements are numbers although its operands are not
/// constant.
std::optional<Ints> foldInts(mlir::Operation *op) {
  if (op->getNumResults() != 1 || !NodeImporter::elementType(op->getResult(0)).isSignlessInteger(64)) {
    return std::nullopt;
  }
  auto elements = readSizes(op->getResult(0));
  if (!elements || llvm::any_of(*elements, [](Dim element) { return !element.isKnown(); })) {
    return std::nullopt;
  }
  return llvm::map_to_vector(*elements, [](Dim element) { return element.value(); });
}

/// Returns the bytes of the result of an op of shape arithmetic, or of a comparison of sizes, if all its elements are
/// the same at all sizes although its operands are not constant.
std::optional<std::vector<char>> foldSizes(mlir::Operation *op) {
  if (auto ints = foldInts(op)) {
    auto *begin = reinterpret_cast<const char *>(ints->data());
    return std::vector<char>(begin, begin + ints->size() * sizeof(int64_t));
  }
  auto flags = mlir::isa<CompareOp>(op) ? readFlags(op->getResult(0)) : std::nullopt;
  if (!flags || llvm::any_of(*flags, [](std::optional<bool> flag) { return !flag; })) {
    return std::nullopt;
  }
  auto bytes = llvm::map_range(*flags, [](std::optional<bool> flag) { return static_cast<char>(*flag); });
  return std::vector<char>(bytes.begin(), bytes.end());
}

/// Limits the size of folded results. ConstantOfShape may be larger, because some published models create all filters
/// with it. Dequantize is not folded: the weights stay integers until it is known which ops read them.
bool mayFold(mlir::Operation *op, int64_t maxBytes) {
  if (mlir::isa<DequantizeOp>(op) || op->getNumRegions() != 0 || op->getNumOperands() == 0 ||
      !llvm::all_of(op->getOperands(), isConstant) || dependsOnSizes(op)) {
    return false;
  }
  int64_t operandBytes = 0, resultBytes = 0;
  llvm::SmallPtrSet<Value, 4> distinct(op->operand_begin(), op->operand_end());
  for (Value operand : distinct) {
    operandBytes += byteSize(mlir::cast<mlir::RankedTensorType>(operand.getType()));
  }
  for (mlir::Type type : op->getResultTypes()) {
    int64_t bytes = byteSize(mlir::cast<mlir::RankedTensorType>(type));
    resultBytes += bytes < 0 ? 0 : bytes; // dims of shape arithmetic may depend on values
  }
  return resultBytes <= (mlir::isa<ConstantOfShapeOp>(op) ? 4 * maxBytes : std::max(maxBytes, operandBytes));
}

} // namespace

std::string NodeImporter::describeResult(unsigned i) const {
  bool isNamed = i < numOutputs() && !node.output(i).empty();
  return isNamed ? llvm::formatv("its result '{0}'", node.output(i)).str() : "its result";
}

Value NodeImporter::paddedShape(ShapeOp shape) {
  const Padding *padding = graph.paddedRows().find(shape.getX());
  auto start = static_cast<int64_t>(shape.getStart()), end = static_cast<int64_t>(shape.getEnd());
  if (!padding || padding->axis < start || padding->axis >= end) {
    return {};
  }
  llvm::SmallVector<Value> dims;
  for (int64_t d = start; d < end; ++d) {
    bool isOpen = mlir::ShapedType::isDynamic(dim(shape.getX(), d));
    dims.push_back(d == padding->axis ? reshape(padding->count, {1})
                   : isOpen           ? create<ShapeOp>(shape.getX(), d, d + 1)
                                      : intVector({dim(shape.getX(), d)}));
  }
  return dims.size() == 1 ? dims.front() : create<ConcatOp>(dims, 0);
}

/// Returns a text that is to follow the failure of an op with symbolic sizes, which may only fail at some of them; ""
/// for an op without.
static std::string adviceForRange(mlir::Operation *op) {
  llvm::SetVector<SizeSymbolAttr> symbols;
  for (Value operand : op->getOperands()) {
    collectSymbols(operand, symbols);
  }
  auto names = llvm::map_range(symbols, [](SizeSymbolAttr symbol) { return symbol.getName().str(); });
  std::string list = llvm::join(names, ", ");
  return list.empty() ? list
                      : llvm::formatv("; this must not occur at any size in the range of {0}: narrow or fix {0} with "
                                      "--dims",
                                      list)
                            .str();
}

bool NodeImporter::inferTypes(mlir::Operation *op, llvm::SmallVectorImpl<mlir::RankedTensorType> &types) {
  while (true) {
    std::string message;
    detail::UnequalSizesRecorder recorder;
    types.clear();
    if (succeedsQuietly(b.getContext(), message, [&] { return mlir::cast<ShapeInterface>(op).inferShapes(types); })) {
      return true;
    }
    if (!recorder.last) {
      std::string advice = adviceForRange(op);
      advice.empty() ? fail(message) : unsupported(message + advice);
      return false;
    }
    ImportState &state = *graph.model.state;
    if (!assumeEqual(*recorder.last, op, state.replacedSymbols) && !assumeEqual(*recorder.last, op, state.regions)) {
      unsupported(message + adviceFor(*recorder.last));
      return false;
    }
  }
}

llvm::SmallVector<Value> NodeImporter::finish(mlir::Operation *op) {
  llvm::SmallVector<Value> results(op->getResults());
  if (auto shape = mlir::dyn_cast<ShapeOp>(op)) {
    if (Value dims = paddedShape(shape)) {
      op->erase();
      return {dims};
    }
  }
  llvm::SmallVector<mlir::RankedTensorType> types;
  if (!inferTypes(op, types)) {
    return results;
  }
  int64_t resultBytes = 0;
  for (auto [result, type] : llvm::zip_equal(op->getResults(), types)) {
    result.setType(type);
    if (llvm::Error error = checkTensorSize(type, describeResult(result.getResultNumber()), graph.model.tensorLimit)) {
      fail(std::move(error));
      return results;
    }
    resultBytes += type.hasStaticShape() ? byteSize(type) : 0; // open dims: no larger than the operands
  }
  if (auto bytes = foldSizes(op)) {
    mlir::Value folded = createConstant(b, loc, types.front(), std::move(*bytes), nodeName(node));
    op->erase();
    return {folded};
  }
  if (!mayFold(op, graph.model.maxFoldBytes)) {
    if (llvm::Error rejection = graph.paddedRows().propagate(op)) {
      fail(std::move(rejection));
    }
    return results;
  }
  if (!charge(resultBytes)) {
    return results;
  }
  llvm::SmallVector<HostTensor> inputs, outputs;
  llvm::SmallVector<const HostTensor *> inputPointers;
  for (Value operand : op->getOperands()) {
    auto data = getConstantData(operand);
    inputs.push_back(HostTensor::borrow(data->type, data->bytes, data->owner));
  }
  for (HostTensor &tensor : inputs) {
    inputPointers.push_back(&tensor);
  }
  std::string message;
  if (!succeedsQuietly(b.getContext(), message, [&] { return evaluateOp(op, inputPointers, outputs); })) {
    fail(message);
    return results;
  }
  op->erase();
  results.clear();
  for (HostTensor &output : outputs) {
    results.push_back(createConstant(b, loc, output.getType(), output.getBytes(), nodeName(node)));
  }
  return results;
}

//--- outputs ---

void NodeImporter::setOutput(unsigned i, Value value) {
  if (!wantsOutput(i) || failed()) {
    return;
  }
  graph.bind(node.output(i), value);
  mlir::Operation *op = value.getDefiningOp();
  // A value produced by another node (the case of an identity) keeps its name. Constants are not layers.
  if (!op || op->getLoc() != loc || isConstant(value)) {
    return;
  }
  // Padded tensors and decoded values differ from the tensor in the file, so they get another name here. Outputs are
  // converted in OnnxImport.cpp.
  const StorageType *storage = graph.storageOf(node.output(i));
  bool isDecoded = storage && storage->isFloat();
  std::string name = graph.nameOf(node.output(i)) + (graph.paddedRows().find(value) ? " (padded)"
                                                     : isDecoded                    ? " (decoded)"
                                                                                    : "");
  llvm::SmallVector<StringRef> names;
  for (Value result : op->getResults()) {
    names.push_back(result == value ? StringRef(name) : getTensorName(result));
  }
  setTensorNames(op, names);
}

} // namespace tessera::top::onnx_import

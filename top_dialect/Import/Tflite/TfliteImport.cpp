//===- TfliteImport.cpp - Import of a .tflite file as a Top module --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Tflite/TfliteImport.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Tflite/QuantisedImporter.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

#include <set>

namespace tessera::top {
namespace {
using namespace tflite_import;

class GraphReader {
public:
  GraphReader(const TfliteFile &file, const ImportOptions &options, mlir::MLIRContext &context)
      : file(file), options(options), b(&context, options.modelName) {}

  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> run() {
    if (llvm::Error error = checkOperators()) {
      return std::move(error);
    }
    addConstants();
    addInputs();
    for (const tflite::Operator *op : *file.graph().operators()) {
      addOperator(*op);
    }
    addOutputs();
    return b.finish();
  }

private:
  /// How an operator is imported.
  struct Route {
    Handler handler = nullptr;
    bool dequantises = false; ///< weights are quantised, activations are floats
  };

  Route routeOf(const tflite::Operator &op) const {
    tflite::BuiltinOperator code = file.code(op);
    if (code == tflite::BuiltinOperator::CUSTOM) {
      bool isDetection = file.customName(op) == "TFLite_Detection_PostProcess";
      return isDetection ? Route{detectionPostProcess, true} : Route{};
    }
    auto anyOf = [&](const flatbuffers::Vector<int32_t> &list, auto &&check) {
      return llvm::any_of(list, [&](int32_t index) { return index >= 0 && check(file.tensor(index)); });
    };
    auto isFloat = [](const tflite::Tensor &tensor) { return tensor.type() == tflite::TensorType::FLOAT32; };
    bool quantised = anyOf(*op.inputs(), isQuantised) || anyOf(*op.outputs(), isQuantised);
    if (takesQuantisedWeights(code)) {
      // These operators have no meaning for integers without a quantisation.
      bool floats = anyOf(*op.outputs(), isFloat);
      return {floats ? findHandler(code) : findQuantisedHandler(code), floats && quantised};
    }
    return {quantised ? findQuantisedHandler(code) : findHandler(code)};
  }

  /// Returns what is not supported about |op|, or "".
  std::string describeUnsupported(const tflite::Operator &op) const {
    std::string name = file.operatorName(op);
    // Fields 9 to 12 of an operator are large custom options and the options of StableHLO operators.
    constexpr unsigned kNewOptions[] = {9, 10, 11, 12};
    bool hasNewOptions = llvm::any_of(kNewOptions, [&](unsigned field) {
      return reinterpret_cast<const flatbuffers::Table &>(op).GetOptionalFieldOffset(4 + 2 * field) != 0;
    });
    bool isCustom = file.code(op) == tflite::BuiltinOperator::CUSTOM;
    if (hasNewOptions || (isCustom ? !routeOf(op).handler : op.custom_options() && op.custom_options()->size())) {
      return name;
    }
    for (const auto *list : {op.inputs(), op.outputs()}) {
      for (int32_t index : *list) {
        if (std::string reason = index < 0 ? "" : describeUnsupported(index); !reason.empty()) {
          return name + " with " + reason;
        }
      }
    }
    return routeOf(op).handler ? "" : findHandler(file.code(op)) ? name + " with quantised operands" : name;
  }

  std::string describeUnsupported(int32_t index) const {
    const tflite::Tensor &tensor = file.tensor(index);
    if (!elementType(tensor.type(), context())) {
      return std::string("type ") + tflite::EnumNameTensorType(tensor.type());
    }
    return tensor.is_variable() ? "variables" : "";
  }

  llvm::Error checkOperators() const {
    std::vector<std::string> rejected;
    for (const tflite::Operator *op : *file.graph().operators()) {
      if (std::string what = describeUnsupported(*op); !what.empty()) {
        std::string at = op->outputs()->size() ? tensorName(file, op->outputs()->Get(0)) : "";
        rejected.push_back(what + " ('" + at + "')");
      }
    }
    return rejected.empty() ? llvm::Error::success()
                            : unsupported(llvm::formatv("{0} operator(s) are not supported: {1}", rejected.size(),
                                                        llvm::join(rejected, ", "))
                                              .str());
  }

  /// Adds the constants that operators read. The operator DENSIFY decodes sparse ones.
  void addConstants() {
    std::set<int32_t> read(file.graph().outputs()->begin(), file.graph().outputs()->end());
    for (const tflite::Operator *op : *file.graph().operators()) {
      read.insert(op->inputs()->begin(), op->inputs()->end());
    }
    for (int32_t index : read) {
      if (index >= 0 && !file.data(file.tensor(index)).empty()) {
        addConstant(index);
      }
    }
  }

  void addConstant(int32_t index) {
    const tflite::Tensor &tensor = file.tensor(index);
    std::string name = tensorName(file, index);
    mlir::Type element = elementType(tensor.type(), context());
    if (tensor.sparsity() || !element) {
      return;
    }
    auto type = mlir::RankedTensorType::get(shapeOf(tensor), element);
    llvm::ArrayRef<char> bytes = file.data(tensor);
    if (byteSize(type) != int64_t(bytes.size())) {
      return b.fail(
          llvm::formatv("constant '{0}' has {1} bytes; its type needs {2}", name, bytes.size(), byteSize(type)));
    }
    if (element.isInteger(1) && llvm::any_of(bytes, [](char value) { return value != 0 && value != 1; })) {
      return b.fail("constant '" + name + "' contains truth values other than 0 and 1");
    }
    b.setName(name);
    bool isAligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignof(int64_t) == 0;
    values[index] = isAligned ? b.constant(type, bytes, file.owner(), file.isMapped(), name)
                              : b.constant(type, std::vector<char>(bytes.begin(), bytes.end()), name);
  }

  void addInputs() {
    for (auto [position, index] : llvm::enumerate(*file.graph().inputs())) {
      const tflite::Tensor &tensor = file.tensor(index);
      mlir::Type element = elementType(tensor.type(), context());
      std::string name = uniqueName(index);
      if (!element || values.count(index)) {
        return b.fail(unsupported("input '" + name + "' has an unsupported type, or is a constant"));
      }
      Ints shape = inputShape(tensor, name, position);
      values[index] = b.addInput(name, element, llvm::SmallVector<Dim>(shape.begin(), shape.end()));
    }
    for (const auto &[name, shape] : options.inputShapes.byName) {
      if (!names.count(name)) {
        b.fail("the model has no input '" + name + "'");
      }
    }
    if (options.inputShapes.byPosition.size() > file.graph().inputs()->size()) {
      b.fail(llvm::formatv("{0} shapes are given for {1} inputs", options.inputShapes.byPosition.size(),
                           file.graph().inputs()->size()));
    }
  }

  /// Returns the given shape of an input, or that of the file, in which open dims are 1.
  Ints inputShape(const tflite::Tensor &tensor, const std::string &name, size_t position) {
    Ints shape = shapeOf(tensor);
    auto byName = options.inputShapes.byName.find(name);
    std::vector<int64_t> given;
    if (byName != options.inputShapes.byName.end()) {
      given = byName->second;
    } else if (position < options.inputShapes.byPosition.size()) {
      given = options.inputShapes.byPosition[position];
    }
    bool isOpen = tensor.shape_signature() && llvm::is_contained(*tensor.shape_signature(), -1);
    hasFileShapes &= given.empty() && !isOpen;
    if (given.empty()) {
      if (isOpen && options.assumed) {
        options.assumed(name, shape);
      }
      return shape;
    }
    if (given.size() != shape.size()) {
      b.fail(llvm::formatv("input '{0}' has rank {1}; the given shape has {2} dims", name, shape.size(), given.size()));
      return shape;
    }
    for (auto [dim, wanted] : llvm::zip_equal(shape, given)) {
      dim = wanted < 0 ? dim : wanted;
    }
    return shape;
  }

  void addOperator(const tflite::Operator &op) {
    if (b.hasFailed()) {
      return;
    }
    b.setName(op.outputs()->size() ? tensorName(file, op.outputs()->Get(0)) : file.operatorName(op));
    Route route = routeOf(op);
    OperatorImporter n(b, file, op, values, route.dequantises);
    route.handler(n);
    for (int32_t index : *op.outputs()) {
      checkOutput(n, index);
    }
  }

  /// Checks that the operator set output |index|, and that its shape is the one in the file: otherwise the file, or the
  /// handler, misunderstands the operator.
  void checkOutput(OperatorImporter &n, int32_t index) {
    if (b.hasFailed()) {
      return;
    }
    Value value = values.lookup(index);
    const tflite::Tensor &tensor = file.tensor(index);
    if (!value) {
      return n.unsupported("its output '" + tensorName(file, index) + "' is not supported");
    }
    if (hasFileShapes && tensor.shape() && tensor.shape()->size() &&
        n.shape(value) != llvm::ArrayRef(shapeOf(tensor))) {
      n.fail(llvm::formatv(
          "the shape of '{0}' is [{1}]; the file declares [{2}]", tensorName(file, index),
          llvm::join(llvm::map_range(n.shape(value), [](int64_t d) { return std::to_string(d); }), ", "),
          llvm::join(llvm::map_range(shapeOf(tensor), [](int64_t d) { return std::to_string(d); }), ", ")));
    }
  }

  void addOutputs() {
    std::vector<int32_t> wanted(file.graph().outputs()->begin(), file.graph().outputs()->end());
    if (!options.outputs.empty()) {
      wanted.clear();
      for (const std::string &name : options.outputs) {
        wanted.push_back(findTensor(name));
      }
    }
    names.clear();
    for (int32_t index : wanted) {
      Value value = b.hasFailed() ? Value() : values.lookup(index);
      if (b.hasFailed() || !value) {
        return b.fail("no operator computes output '" + (index < 0 ? "" : tensorName(file, index)) + "'");
      }
      b.addOutput(uniqueName(index), value);
    }
  }

  int32_t findTensor(const std::string &name) {
    for (int32_t i = 0, count = file.graph().tensors()->size(); i < count; ++i) {
      if (tensorName(file, i) == name) {
        return i;
      }
    }
    b.fail("the model has no tensor '" + name + "', which is to become an output");
    return -1;
  }

  std::string uniqueName(int32_t index) {
    std::string name = tensorName(file, index), unique = name;
    for (int number = 1; !names.insert(unique).second; ++number) {
      unique = name + ":" + std::to_string(number);
    }
    return unique;
  }

  static Ints shapeOf(const tflite::Tensor &tensor) {
    return tensor.shape() ? Ints(tensor.shape()->begin(), tensor.shape()->end()) : Ints();
  }
  mlir::MLIRContext *context() const { return const_cast<GraphBuilder &>(b).getBuilder().getContext(); }

  const TfliteFile &file;
  const ImportOptions &options;
  GraphBuilder b;
  llvm::DenseMap<int32_t, Value> values;
  std::set<std::string> names;
  bool hasFileShapes = true; ///< all inputs have the shapes of the file, so that all tensors have
};

} // namespace

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importTflite(std::shared_ptr<llvm::MemoryBuffer> buffer, const ImportOptions &options, mlir::MLIRContext &context) {
  if (options.dims.isGiven() || !options.inputValues.byName.empty()) {
    return unsupported("ranges of dims and values of inputs are not supported for .tflite files; give --input_shapes");
  }
  auto file = TfliteFile::open(std::move(buffer));
  return file ? GraphReader(*file, options, context).run()
              : llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>(file.takeError());
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importTflite(llvm::StringRef path, const ImportOptions &options,
                                                               mlir::MLIRContext &context) {
  auto buffer = readRegularFile(path);
  if (!buffer) {
    return llvm::createStringError("cannot read '" + path + "': " + llvm::toString(buffer.takeError()));
  }
  ImportOptions named = options;
  if (named.modelName.empty()) {
    named.modelName = llvm::sys::path::stem(path).str();
  }
  auto module = importTflite(std::move(*buffer), named, context);
  return module ? std::move(module)
                : llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>(prefixed(module.takeError(), "'" + path + "': "));
}

} // namespace tessera::top

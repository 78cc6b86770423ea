//===- OnnxImport.cpp - ONNX file to Top module ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Network.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;

namespace tessera::top {

namespace {

using namespace onnx_import;

llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// A graph input that is no initializer.
struct Input {
  std::string name;
  mlir::Type element;
  llvm::SmallVector<int64_t> shape;  ///< kDynamic where open
  std::vector<std::string> dimNames; ///< dim_param where it names one size, else ""
};

std::string format(llvm::ArrayRef<int64_t> shape) { return detail::formatShape(shape); }

/// Whether dims of this dim_param are equal. Exporters also write "?", "-1" or "None" for any open dim.
bool namesOneSize(StringRef name) {
  return !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') && name != "None" &&
         !name.equals_insensitive("unknown");
}

class ModelImporter {
public:
  ModelImporter(OnnxModel model, const ImportOptions &options, mlir::MLIRContext &context)
      : model(std::move(model)), options(options), builder(&context) {}

  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> run() {
    if (llvm::Error error = checkOperators(model, graph())) {
      return error;
    }
    if (llvm::Error error = collectInputs()) {
      return error;
    }
    if (llvm::Error error = applyShapes()) {
      return error;
    }
    return build();
  }

private:
  const onnx::GraphProto &graph() { return model.proto->graph(); }

  llvm::Error collectInputs() {
    llvm::StringSet<> initializers;
    for (const auto &tensor : graph().initializer()) {
      initializers.insert(tensor.name());
    }
    for (const auto &proto : graph().input()) {
      if (initializers.contains(proto.name())) {
        continue;
      }
      auto input = readInput(proto);
      if (!input) {
        return input.takeError();
      }
      inputs.push_back(std::move(*input));
    }
    return llvm::Error::success();
  }

  llvm::Expected<Input> readInput(const onnx::ValueInfoProto &proto) {
    if (!proto.type().has_tensor_type()) {
      return unsupported(
          llvm::formatv("input '{0}' is no tensor; sequences, maps and optionals are not supported", proto.name()));
    }
    const auto &tensor = proto.type().tensor_type();
    auto element = elementTypeOf(tensor.elem_type(), builder.getContext());
    if (!element) {
      return prefixed(element.takeError(), llvm::formatv("input '{0}': ", proto.name()));
    }
    if (!tensor.has_shape() && !findShape(proto.name())) {
      return unsupported(
          llvm::formatv("input '{0}' has no shape in the file; give it with --input_shapes {0}=...", proto.name()));
    }
    Input input{proto.name(), *element, {}, {}};
    for (const auto &dim : tensor.shape().dim()) {
      input.shape.push_back(dim.has_dim_value() && dim.dim_value() > 0 ? dim.dim_value() : mlir::ShapedType::kDynamic);
      input.dimNames.push_back(namesOneSize(dim.dim_param()) ? dim.dim_param() : "");
      if (dim.has_dim_value() && dim.dim_value() < -1) {
        return fail(llvm::formatv("input '{0}' has the dim {1}", proto.name(), dim.dim_value()));
      }
    }
    if (!tensor.has_shape()) {
      input.shape.assign(findShape(proto.name())->size(), mlir::ShapedType::kDynamic);
      input.dimNames.resize(input.shape.size());
    }
    return input;
  }

  const std::vector<int64_t> *findShape(StringRef name) {
    auto it = options.inputShapes.byName.find(name.str());
    return it == options.inputShapes.byName.end() ? nullptr : &it->second;
  }

  std::string inputList() {
    std::string text;
    for (const Input &input : inputs) {
      text += (text.empty() ? "" : ", ") + llvm::formatv("'{0}' [{1}]", input.name, format(input.shape)).str();
    }
    return text;
  }

  llvm::Error applyShapes() {
    const InputShapes &given = options.inputShapes;
    for (const auto &[name, dims] : given.byName) {
      auto it = llvm::find_if(inputs, [&](const Input &input) { return input.name == name; });
      if (it == inputs.end()) {
        return fail(llvm::formatv("input shapes name '{0}', which is no input; the inputs are {1}", name, inputList()));
      }
      if (llvm::Error error = applyShape(*it, dims)) {
        return error;
      }
    }
    if (given.byPosition.size() > inputs.size()) {
      return fail(llvm::formatv("{0} input shapes are given; the model has {1} input{2}: {3}", given.byPosition.size(),
                                inputs.size(), inputs.size() == 1 ? "" : "s", inputList()));
    }
    for (auto [input, dims] : llvm::zip(inputs, given.byPosition)) {
      if (!dims.empty() || input.shape.empty()) {
        if (llvm::Error error = applyShape(input, dims)) {
          return error;
        }
      }
    }
    return bindDimNames();
  }

  llvm::Error applyShape(Input &input, const std::vector<int64_t> &dims) {
    if (dims.size() != input.shape.size()) {
      return fail(llvm::formatv("the shape given for input '{0}' has rank {1} ({2}); the model wants rank {3} ({4})",
                                input.name, dims.size(), format(dims), input.shape.size(), format(input.shape)));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == -1) {
        continue;
      }
      if (dims[d] < 0 || dims[d] > int64_t(1) << 40) {
        return fail(llvm::formatv("dim {0} of input '{1}' is given as {2}; a size is wanted", d, input.name, dims[d]));
      }
      if (!mlir::ShapedType::isDynamic(input.shape[d]) && input.shape[d] != dims[d]) {
        return fail(llvm::formatv(
            "dim {0} of input '{1}' is {2} in the model and cannot be {3}: only the open dims of [{4}] can be "
            "chosen",
            d, input.name, input.shape[d], dims[d], format(input.shape)));
      }
      input.shape[d] = dims[d];
    }
    return llvm::Error::success();
  }

  /// One name, one size, in all inputs.
  llvm::Error bindDimNames() {
    llvm::StringMap<std::pair<int64_t, std::string>> sizes;
    for (const Input &input : inputs) {
      for (auto [dim, name] : llvm::zip_equal(input.shape, input.dimNames)) {
        if (name.empty() || mlir::ShapedType::isDynamic(dim)) {
          continue;
        }
        auto [it, added] = sizes.try_emplace(name, dim, input.name);
        if (!added && it->second.first != dim) {
          return fail(llvm::formatv("the dim '{0}' is {1} in input '{2}' and {3} in input '{4}'; one name is one size",
                                    name, it->second.first, it->second.second, dim, input.name));
        }
      }
    }
    for (Input &input : inputs) {
      for (auto [dim, name] : llvm::zip_equal(input.shape, input.dimNames)) {
        auto it = sizes.find(name);
        if (mlir::ShapedType::isDynamic(dim) && it != sizes.end()) {
          dim = it->second.first;
        }
      }
    }
    return llvm::Error::success();
  }

  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> build() {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
    std::string name = options.modelName.empty() ? graph().name() : options.modelName;
    (*module)->setAttr(TopDialect::kModelNameAttr, builder.getStringAttr(name));
    builder.setInsertionPointToEnd(module->getBody());
    llvm::SmallVector<mlir::Type> types;
    for (const Input &input : inputs) {
      auto type = mlir::RankedTensorType::get(input.shape, input.element);
      if (detail::exceedsLimit(type)) {
        return fail(llvm::formatv("input '{0}' of {1} elements exceeds the limit of {2} GiB per tensor", input.name,
                                  format(input.shape), detail::kMaxTensorBytes >> 30));
      }
      types.push_back(type);
    }
    auto function =
        mlir::func::FuncOp::create(builder, builder.getUnknownLoc(), "main", builder.getFunctionType(types, {}));
    mlir::Block *body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    GraphImporter importer(model, graph(), builder);
    for (auto [i, input] : llvm::enumerate(inputs)) {
      function.setArgAttr(i, TopDialect::kNameAttr, builder.getStringAttr(input.name));
      importer.bind(input.name, body->getArgument(i));
    }
    if (llvm::Error error = importer.importNodes()) {
      return error;
    }
    if (llvm::Error error = finishFunction(function, importer)) {
      return error;
    }
    if (llvm::Error error = verify(*module)) {
      return error;
    }
    return module;
  }

  llvm::Error finishFunction(mlir::func::FuncOp function, GraphImporter &importer) {
    llvm::SmallVector<mlir::Value> results;
    std::vector<std::string> names = options.outputs;
    if (names.empty()) {
      for (const auto &output : graph().output()) {
        names.push_back(output.name());
      }
    }
    if (names.empty()) {
      return fail("the graph has no outputs");
    }
    llvm::StringSet<> seen;
    for (const std::string &name : names) {
      if (!seen.insert(name).second) {
        return fail(llvm::formatv("two outputs are named '{0}': names must be unique", name));
      }
      mlir::Value value = importer.lookup(name);
      if (!value) {
        return fail(llvm::formatv("no node, input or initializer makes the output '{0}'", name));
      }
      results.push_back(value);
    }
    if (llvm::Error error = checkDeclaredOutputs(importer)) {
      return error;
    }
    mlir::func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
    function.setType(builder.getFunctionType(function.getArgumentTypes(), mlir::ValueRange(results).getTypes()));
    for (auto [i, name] : llvm::enumerate(names)) {
      function.setResultAttr(i, TopDialect::kNameAttr, builder.getStringAttr(name));
    }
    return llvm::Error::success();
  }

  /// The types that the file declares for its outputs must be the ones its nodes give.
  llvm::Error checkDeclaredOutputs(GraphImporter &importer) {
    for (const auto &output : graph().output()) {
      mlir::Value value = importer.lookup(output.name());
      if (!value || !output.type().has_tensor_type() || output.type().tensor_type().elem_type() == 0) {
        continue;
      }
      auto element = elementTypeOf(output.type().tensor_type().elem_type(), builder.getContext());
      if (!element) {
        return prefixed(element.takeError(), llvm::formatv("output '{0}': ", output.name()));
      }
      if (*element != NodeImporter::elementType(value)) {
        std::string actual;
        llvm::raw_string_ostream(actual) << NodeImporter::elementType(value);
        return fail(llvm::formatv("the file declares output '{0}' as {1}; its nodes give {2}", output.name(),
                                  dataTypeName(output.type().tensor_type().elem_type()), actual));
      }
    }
    return llvm::Error::success();
  }

  llvm::Error verify(mlir::ModuleOp module) {
    std::string message;
    mlir::ScopedDiagnosticHandler handler(builder.getContext(), [&](mlir::Diagnostic &diagnostic) {
      llvm::raw_string_ostream(message) << (message.empty() ? "" : "\n") << diagnostic.getLocation() << ": "
                                        << diagnostic.str();
      return mlir::success();
    });
    return mlir::failed(mlir::verify(module)) ? fail(message) : llvm::Error::success();
  }

  OnnxModel model;
  const ImportOptions &options;
  mlir::OpBuilder builder;
  std::vector<Input> inputs;
};

} // namespace

static llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importModel(llvm::Expected<onnx_import::OnnxModel> model, const ImportOptions &options, mlir::MLIRContext &context) {
  if (!model) {
    return model.takeError();
  }
  model->maxFoldBytes = options.maxFoldBytes;
  auto module = ModelImporter(*model, options, context).run();
  if (!module) {
    return module;
  }
  if (std::string network = onnx_import::identifyNetwork(*model, options.outputs, &context); !network.empty()) {
    (**module)->setAttr(kNetworkAttr, mlir::StringAttr::get(&context, network));
  }
  return module;
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(StringRef path, const ImportOptions &options,
                                                             mlir::MLIRContext &context) {
  return importModel(onnx_import::loadOnnxModel(path), options, context);
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnxBytes(StringRef bytes, StringRef path, const ImportOptions &options, mlir::MLIRContext &context) {
  return importModel(onnx_import::parseOnnxModel(bytes, path), options, context);
}

} // namespace tessera::top

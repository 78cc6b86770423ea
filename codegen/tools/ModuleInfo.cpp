//===- ModuleInfo.cpp - The info subcommand: ports of a module ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/ModuleInfo.h"

#include "codegen/Pipelines/Instrument.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/InputUses.h"
#include "codegen/tools/OpenModule.h"
#include "codegen/tools/Subcommand.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/ModuleIO.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/OutputOrigin.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/State.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/TopOps.h"

#include "CLI/CLI.hpp"
#include "llvm/Support/Base64.h"

using namespace mlir;
using namespace tessera::tool;
using tessera::Dim;
using tessera::Shape;
using tessera::top::SizeSymbolAttr;
using tessera::top::TopDialect;

std::string tessera::tool::numpyName(Type element) {
  if (element.isInteger(1)) {
    return "bool";
  }
  if (element.isBF16()) {
    return "bfloat16";
  }
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  const char *kind = isa<FloatType>(element) ? "float" : element.isUnsignedInteger() ? "uint" : "int";
  return kind + std::to_string(bits);
}

/// Returns the shape of a tensor if each symbol has the value that `valueOf` returns.
static llvm::json::Array shapeAt(RankedTensorType type, llvm::function_ref<int64_t(SizeSymbolAttr)> valueOf) {
  llvm::json::Array shape;
  for (Dim size : Shape(type).dims()) {
    shape.push_back(tessera::substitute(size, [&](SizeSymbolAttr symbol) { return Dim(valueOf(symbol)); }).value());
  }
  return shape;
}

/// Returns the shapes of a tensor with symbolic sizes at the smallest, likely and largest values of all symbols, and
/// the numbers that divide its sizes.
static llvm::json::Object describeSizes(RankedTensorType type) {
  return llvm::json::Object{{"divisor", llvm::json::Array(llvm::map_range(Shape(type).dims(), tessera::divisorOf))},
                            {"min", shapeAt(type, [](SizeSymbolAttr symbol) { return symbol.getMin(); })},
                            {"likely", shapeAt(type, [](SizeSymbolAttr symbol) { return symbol.getLikely(); })},
                            {"max", shapeAt(type, [](SizeSymbolAttr symbol) { return symbol.getMax(); })}};
}

/// Returns the bytes of |value| as in a tensor file, in base 64.
static std::string encodeBytes(DenseElementsAttr value) {
  OpBuilder builder(value.getContext());
  auto constant = tessera::top::ConstantOp::create(builder, builder.getUnknownLoc(), value.getType(), value);
  std::string text = llvm::encodeBase64(tessera::top::getConstantData(constant)->bytes);
  constant->erase();
  return text;
}

static llvm::json::Object describe(Type type, StringAttr name, StringAttr preprocess) {
  llvm::json::Object object;
  object["name"] = llvm::json::fixUTF8(name ? name.getValue() : "");
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    llvm::json::Array shape;
    for (int64_t dim : tensor.getShape()) {
      shape.push_back(ShapedType::isDynamic(dim) ? -1 : dim);
    }
    object["shape"] = std::move(shape);
    if (!Shape(tensor).isKnown() && Shape(tensor).isDetermined()) {
      object["sizes"] = describeSizes(tensor);
    }
    object["dtype"] = numpyName(tensor.getElementType());
  }
  if (preprocess) {
    object["preprocess"] = llvm::json::fixUTF8(preprocess.getValue());
  }
  return object;
}

llvm::Expected<Operation *> tessera::tool::findMain(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function || function.isExternal()) {
    return llvm::createStringError("the module does not have func.func @main: it is not the output of model_transform");
  }
  return function.getOperation();
}

/// Returns the types of the f16 and bf16 tensors that have a name in the ONNX file. Targets compute them in f32.
static llvm::json::Object listNarrow(func::FuncOp function) {
  llvm::json::Object types;
  function.walk([&](Operation *op) {
    for (OpResult result : op->getResults()) {
      auto tensor = dyn_cast<RankedTensorType>(result.getType());
      StringRef name = tessera::top::getTensorName(result);
      if (tensor && !name.empty() && (tensor.getElementType().isF16() || tensor.getElementType().isBF16())) {
        types[llvm::json::fixUTF8(name)] = numpyName(tensor.getElementType());
      }
    }
  });
  return types;
}

llvm::Expected<llvm::json::Object> tessera::tool::describeModule(ModuleOp module) {
  auto found = findMain(module);
  if (!found) {
    return found.takeError();
  }
  auto function = cast<func::FuncOp>(*found);
  llvm::json::Array inputs;
  llvm::DenseMap<SizeSymbolAttr, Dim> lengths = tessera::top::lengthsBelowCapacity(function);
  auto usable = [&](Type type) -> Type {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return !tensor || lengths.empty() ? type : tessera::substitute(tensor, [&](SizeSymbolAttr symbol) {
      auto found = lengths.find(symbol);
      return found == lengths.end() ? tessera::top::sizeOf(symbol) : found->second;
    });
  };
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto object = describe(usable(type), function.getArgAttrOfType<StringAttr>(i, TopDialect::kNameAttr),
                           function.getArgAttrOfType<StringAttr>(i, TopDialect::kPreprocessAttr));
    object["uses"] = describeUses(function.getArgument(i));
    if (auto state = function.getArgAttrOfType<StringAttr>(i, tessera::top::kStateAttr)) {
      object["state"] = llvm::json::fixUTF8(state.getValue());
    }
    if (std::optional<tessera::top::Growth> growth = tessera::top::findGrowth(function, i)) {
      object["growth"] = llvm::json::Object{{"axis", int64_t(growth->axis)}, {"capacity", maxOf(growth->before)}};
    }
    if (auto initial = function.getArgAttrOfType<DenseElementsAttr>(i, tessera::top::kInitialAttr)) {
      object["initial"] = encodeBytes(initial);
    }
    inputs.push_back(std::move(object));
  }
  llvm::json::Array outputs;
  Operation *terminator = function.front().getTerminator();
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    auto object = describe(usable(type), function.getResultAttrOfType<StringAttr>(i, TopDialect::kNameAttr), {});
    if (StringRef origin = tessera::top::findOutputOrigin(terminator->getOperand(i)); !origin.empty()) {
      object["computed_by"] = origin;
    }
    if (auto state = function.getResultAttrOfType<StringAttr>(i, tessera::top::kStateAttr)) {
      object["state"] = llvm::json::fixUTF8(state.getValue());
    }
    if (auto axis = function.getResultAttrOfType<IntegerAttr>(i, tessera::top::kPaddedAxisAttr)) {
      object["padded_axis"] = axis.getInt();
    }
    outputs.push_back(std::move(object));
  }
  int64_t ops = 0;
  function.walk([&](Operation *op) { ops += isa_and_nonnull<TopDialect>(op->getDialect()); });
  auto name = module->getAttrOfType<StringAttr>(TopDialect::kModelNameAttr);
  return llvm::json::Object{{"inputs", std::move(inputs)},
                            {"outputs", std::move(outputs)},
                            {"narrow", listNarrow(function)},
                            {"model_hash", tessera::top::hashModule(module)},
                            {"network", tessera::top::networkOf(module)},
                            {"model_name", llvm::json::fixUTF8(name ? name.getValue() : "")},
                            {"ops", ops}};
}

static llvm::json::Array listTensors(ModuleOp module) {
  auto function = module.lookupSymbol<func::FuncOp>("main");
  tessera::top::nameEveryTensor(function);
  llvm::json::Array names;
  for (const std::string &name : tessera::codegen::listFloatNames(function)) {
    names.push_back(llvm::json::fixUTF8(name));
  }
  return names;
}

std::function<llvm::Error()> tessera::tool::addInfo(CLI::App &app) {
  CLI::App *sub = app.add_subcommand("info", "Show the inputs and outputs of a NAME_top.mlir");
  auto path = std::make_shared<std::string>();
  sub->add_option("--mlir", *path, "The module")->required();
  auto tensors = std::make_shared<bool>(false);
  sub->add_flag("--tensors", *tensors, "Also list the names of all float tensors, as in calibration tables");
  return [path, tensors]() -> llvm::Error {
    auto opened = openModule(*path);
    if (!opened) {
      return opened.takeError();
    }
    OwningOpRef<ModuleOp> *module = &opened->module;
    auto object = describeModule(**module);
    if (!object) {
      return object.takeError();
    }
    if (*tensors) {
      (*object)["tensors"] = listTensors(**module);
    }
    reportResult(std::move(*object));
    return llvm::Error::success();
  };
}

//===- Evaluator.cpp - Runs Top functions and single ops on host tensors ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Reference/Evaluator.h"
#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/SizeUpdates.h"
#include "top_dialect/IR/SymbolicLists.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"

using namespace tessera::top;
using llvm::failure;
using llvm::LogicalResult;
using llvm::success;
using mlir::RankedTensorType;

// --- Inputs and results ----------------------------------------------------------

namespace {

std::string argumentName(mlir::func::FuncOp function, unsigned i) {
  auto name = function.getArgAttrOfType<mlir::StringAttr>(i, TopDialect::kNameAttr);
  return name ? name.str() : "arg" + std::to_string(i);
}

std::string resultName(mlir::func::FuncOp function, unsigned i) {
  auto name = function.getResultAttrOfType<mlir::StringAttr>(i, TopDialect::kNameAttr);
  return name ? name.str() : "result" + std::to_string(i);
}

/// Checks that a tensor of type `actual` is compatible with the type `declared`.
bool fits(RankedTensorType declared, const HostTensor &actual) {
  return declared.getElementType() == actual.getElementType() &&
         succeeded(mlir::verifyCompatibleShape(declared.getShape(), actual.getShape()));
}

/// Checks that every name in `inputs` is the name of an argument.
LogicalResult checkNames(mlir::func::FuncOp function, const TensorMap &inputs) {
  llvm::SmallVector<std::string> names;
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    names.push_back(argumentName(function, i));
  }
  for (const auto &[name, tensor] : inputs) {
    if (!llvm::is_contained(names, name)) {
      return function.emitError("unknown input '") << name << "'; the inputs are: " << llvm::join(names, ", ");
    }
  }
  return success();
}

/// Returns a copy of |function| in which each symbol is the number that the sizes of |inputs| give.
llvm::FailureOr<mlir::OwningOpRef<mlir::func::FuncOp>> bindSymbols(mlir::func::FuncOp function,
                                                                   llvm::ArrayRef<llvm::SmallVector<int64_t>> shapes) {
  llvm::DenseMap<mlir::Attribute, int64_t> values;
  if (failed(readSymbols(function, shapes, values))) {
    return failure();
  }
  mlir::OwningOpRef<mlir::func::FuncOp> bound(function.clone());
  replaceSymbols(*bound, [&](SizeSymbolAttr symbol) {
    auto known = values.find(symbol);
    return known == values.end() ? sizeOf(symbol) : tessera::Dim(known->second);
  });
  return bound;
}

} // namespace

llvm::FailureOr<TensorMap> Evaluator::run(mlir::func::FuncOp function, const TensorMap &inputs) {
  if (function.isExternal()) {
    return function.emitError("has no body to evaluate");
  }
  if (failed(checkNames(function, inputs))) {
    return failure();
  }
  tensors.clear();
  symbols.clear();
  deaths.clear();
  llvm::SmallVector<llvm::SmallVector<int64_t>> shapes;
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    std::string name = argumentName(function, i);
    auto input = inputs.find(name);
    auto declared = llvm::cast<RankedTensorType>(argument.getType());
    if (input == inputs.end()) {
      return function.emitError("input '") << name << "' is missing: expected " << declared;
    }
    if (!fits(declared, input->second)) {
      return function.emitError("input '")
             << name << "' has type " << input->second.getType() << ", expected " << declared;
    }
    shapes.emplace_back(input->second.getShape());
  }
  if (!symbolsOf(function).empty()) {
    auto bound = bindSymbols(function, shapes);
    return failed(bound) ? llvm::FailureOr<TensorMap>(failure()) : runBound(**bound, inputs);
  }
  return runBound(function, inputs);
}

llvm::FailureOr<TensorMap> Evaluator::runBound(mlir::func::FuncOp function, const TensorMap &inputs) {
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    tensors.try_emplace(argument, inputs.find(argumentName(function, i))->second);
  }
  Tensors results;
  if (failed(runBlock(function.getBody().front(), results))) {
    return failure();
  }
  TensorMap named;
  for (auto [i, result] : llvm::enumerate(results)) {
    named.insert_or_assign(resultName(function, i), std::move(result));
  }
  return named;
}

// --- Blocks ------------------------------------------------------------------------

const HostTensor *Evaluator::lookup(mlir::Value value) {
  auto known = tensors.find(value);
  if (known != tensors.end()) {
    return &known->second;
  }
  std::optional<TensorData> constant = getConstantData(value);
  if (!constant) {
    return nullptr;
  }
  HostTensor tensor = HostTensor::borrow(constant->type, constant->bytes, constant->owner);
  return &tensors.try_emplace(value, std::move(tensor)).first->second;
}

const HostTensor *Evaluator::lookupOrError(mlir::Operation *user, mlir::Value value) {
  const HostTensor *tensor = lookup(value);
  if (!tensor) {
    user->emitOpError("uses a value that is not known here: ") << value.getType();
  }
  return tensor;
}

const llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Value>> &Evaluator::lastUses(mlir::Block &block) {
  auto [entry, isNew] = deaths.try_emplace(&block);
  if (!isNew) {
    return entry->second;
  }
  auto add = [&](mlir::Value value) {
    mlir::Operation *last = value.getDefiningOp();
    for (mlir::Operation *user : value.getUsers()) {
      mlir::Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (!last || (inBlock && last->isBeforeInBlock(inBlock))) {
        last = inBlock;
      }
    }
    if (last) {
      entry->second[last].push_back(value);
    }
  };
  llvm::for_each(block.getArguments(), add);
  for (mlir::Operation &op : block) {
    llvm::for_each(op.getResults(), add);
  }
  return entry->second;
}

LogicalResult Evaluator::runBlock(mlir::Block &block, Tensors &yielded) {
  const auto &dying = lastUses(block);
  const bool isRunOnce = llvm::isa<mlir::func::FuncOp>(block.getParentOp());
  for (mlir::Operation &op : block.without_terminator()) {
    if (!llvm::isa<ConstantOp, WeightOp>(op) && failed(runInBlock(&op))) {
      return failure();
    }
    auto dead = dying.find(&op);
    if (dead != dying.end()) {
      for (mlir::Value value : dead->second) {
        tensors.erase(value);
        if (isRunOnce) {
          releaseWeight(value);
        }
      }
    }
  }
  mlir::Operation *terminator = block.getTerminator();
  for (mlir::Value value : terminator->getOperands()) {
    const HostTensor *tensor = lookupOrError(terminator, value);
    if (!tensor) {
      return failure();
    }
    yielded.push_back(*tensor);
  }
  return success();
}

LogicalResult Evaluator::runInBlock(mlir::Operation *op) {
  // Load constants first, as loading may move the other entries of the map.
  for (mlir::Value value : op->getOperands()) {
    if (!lookupOrError(op, value)) {
      return failure();
    }
  }
  if (auto bind = llvm::dyn_cast<BindOp>(op)) {
    return runBind(bind);
  }
  llvm::SmallVector<const HostTensor *> inputs;
  for (mlir::Value value : op->getOperands()) {
    inputs.push_back(lookup(value));
  }
  Tensors outputs;
  if (failed(runSimpleOp(op, inputs, outputs))) {
    return failure();
  }
  for (auto [result, output] : llvm::zip_equal(op->getResults(), outputs)) {
    llvm::StringRef name = getTensorName(result);
    if (callback && !name.empty()) {
      callback(name, output);
    }
    tensors.insert_or_assign(result, std::move(output));
  }
  return success();
}

LogicalResult Evaluator::runBind(BindOp op) {
  int64_t value = 0;
  llvm::ArrayRef<char> bytes = lookup(op.getValues())->getBytes();
  std::memcpy(&value, bytes.data() + op.getIndex() * sizeof(value), sizeof(value));
  return setSymbol(op, op.getSymbol(), value);
}

LogicalResult Evaluator::setSymbol(mlir::Operation *op, SizeSymbolAttr symbol, int64_t value) {
  if (value < symbol.getMin() || value > symbol.getMax()) {
    return op->emitError("size '") << symbol.getName() << "' is " << value << ", allowed are " << symbol.getMin()
                                   << " to " << symbol.getMax();
  }
  symbols[symbol] = value;
  return success();
}

LogicalResult Evaluator::setSymbols(mlir::Operation *op, mlir::TypeRange types, llvm::ArrayRef<HostTensor> values) {
  llvm::SetVector<SizeSymbolAttr> own = symbolsSetBy(op);
  for (auto [type, value] : llvm::zip_equal(types, values)) {
    tessera::Shape sizes = llvm::cast<RankedTensorType>(type);
    for (size_t d = 0; d < sizes.rank(); ++d) {
      SizeSymbolAttr symbol = asSymbol(sizes[d]);
      if (own.contains(symbol) && failed(setSymbol(op, symbol, value.getShape()[d]))) {
        return failure();
      }
    }
  }
  return success();
}

// --- Ops ---------------------------------------------------------------------------

namespace {

/// Infers the result types of `op` for the actual operands. Uses a copy of the op whose operands have the actual shapes
/// and, if small enough to matter for shapes, are constants.
LogicalResult inferActualTypes(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs,
                               llvm::SmallVectorImpl<RankedTensorType> &types) {
  mlir::OwningOpRef<mlir::ModuleOp> scratch = mlir::ModuleOp::create(op->getLoc());
  mlir::OpBuilder builder(scratch->getBodyRegion());
  llvm::SmallVector<mlir::Value> operands;
  for (const HostTensor *input : inputs) {
    bool small = static_cast<int64_t>(input->getBytes().size()) <= kMaxInlineBytes;
    operands.push_back(small ? createConstant(builder, op->getLoc(), input->getType(), input->getBytes(), "")
                             : scratch->getBody()->addArgument(input->getType(), op->getLoc()));
  }
  mlir::Operation *copy = builder.insert(op->cloneWithoutRegions());
  copy->setOperands(operands);
  auto shapes = llvm::dyn_cast<ShapeInterface>(copy);
  return shapes ? shapes.inferShapes(types) : op->emitOpError("has no shape inference");
}

bool hasDynamicType(mlir::Operation *op) {
  auto isDynamic = [](mlir::Type type) { return !llvm::cast<RankedTensorType>(type).hasStaticShape(); };
  return llvm::any_of(op->getOperandTypes(), isDynamic) || llvm::any_of(op->getResultTypes(), isDynamic);
}

/// Checks the results against the declared types, which may be more precise than the inferred ones.
LogicalResult checkResults(mlir::Operation *op, llvm::ArrayRef<HostTensor> outputs) {
  for (auto [i, output] : llvm::enumerate(outputs)) {
    auto declared = llvm::cast<RankedTensorType>(op->getResult(i).getType());
    if (!fits(declared, output)) {
      return op->emitOpError("result ") << i << " has actual type " << output.getType() << ", but is declared as "
                                        << declared;
    }
  }
  return success();
}

} // namespace

LogicalResult Evaluator::runSimpleOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs) {
  if (auto branch = llvm::dyn_cast<IfOp>(op)) {
    if (failed(runIf(branch, *inputs[0], outputs))) {
      return failure();
    }
  } else if (auto loop = llvm::dyn_cast<LoopOp>(op)) {
    if (failed(runLoop(loop, inputs, outputs))) {
      return failure();
    }
  } else if (isSizeCast(op)) {
    outputs.push_back(*inputs[0]);
    return checkResults(op, outputs);
  } else if (symbols.empty() || !(hasDynamicType(op) || dependsOnSizes(op) || sizeAttributesOf(op))) {
    return evaluate(op, inputs, outputs);
  } else {
    mlir::OwningOpRef<mlir::Operation *> known(op->clone());
    replaceSymbols(*known, [&](SizeSymbolAttr symbol) {
      auto value = symbols.find(symbol);
      return value == symbols.end() ? sizeOf(symbol) : tessera::Dim(value->second);
    });
    return evaluate(*known, inputs, outputs);
  }
  return success(succeeded(checkResults(op, outputs)) && succeeded(setSymbols(op, op->getResultTypes(), outputs)));
}

LogicalResult Evaluator::evaluate(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs, Tensors &outputs) {
  LogicalResult result = failure();
  if (auto reference = llvm::dyn_cast<ReferenceInterface>(op)) {
    llvm::SmallVector<RankedTensorType> types;
    if (!hasDynamicType(op)) {
      llvm::append_range(types, llvm::map_range(op->getResultTypes(),
                                                [](mlir::Type type) { return llvm::cast<RankedTensorType>(type); }));
    } else if (failed(inferActualTypes(op, inputs, types))) {
      return failure();
    }
    for (RankedTensorType type : types) {
      llvm::SmallVector<int64_t> shape(type.getShape());
      if (!type.hasStaticShape() && !llvm::isa<NonZeroOp>(op)) {
        return op->emitOpError("the shape of a result depends on too large a tensor: ") << type;
      }
      // Only the op itself can determine the number of its results; it resizes the tensor.
      llvm::replace(shape, mlir::ShapedType::kDynamic, int64_t(0));
      outputs.emplace_back(type.getElementType(), shape);
    }
    result = reference.evaluate(inputs, outputs);
  } else {
    return op->emitOpError("has no reference evaluation");
  }
  return succeeded(result) ? checkResults(op, outputs) : failure();
}

LogicalResult Evaluator::runOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs,
                               llvm::SmallVectorImpl<HostTensor> &outputs) {
  Tensors results;
  if (failed(runSimpleOp(op, inputs, results))) {
    return failure();
  }
  llvm::move(results, std::back_inserter(outputs));
  return success();
}

LogicalResult tessera::top::evaluateOp(mlir::Operation *op, llvm::ArrayRef<const HostTensor *> inputs,
                                       llvm::SmallVectorImpl<HostTensor> &outputs) {
  return Evaluator().runOp(op, inputs, outputs);
}

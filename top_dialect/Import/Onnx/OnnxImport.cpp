//===- OnnxImport.cpp - Import of an ONNX file as a Top module ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "top_dialect/IR/BindDims.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/TensorNames.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Onnx/CutGraph.h"
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/Model/ImportError.h"
#include "top_dialect/Import/Onnx/Model/OnnxFunctions.h"
#include "top_dialect/Import/Onnx/Network.h"
#include "top_dialect/Import/Onnx/OnnxInputs.h"
#include "top_dialect/Import/Onnx/Sizes/OpenDims.h"
#include "top_dialect/Import/Onnx/Sizes/SizeValues.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <sys/resource.h>
#include <unistd.h>

#include <numeric>

using llvm::StringRef;

namespace tessera::top {

namespace {

using namespace onnx_import;

/// Returns the number of proposals for open dims to try. Each trial imports the whole model, so large models get fewer.
size_t trialCount(const onnx::GraphProto &graph) {
  int64_t bytes = 0;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    int64_t elements = 1;
    for (int64_t dim : tensor.dims()) {
      elements = std::min<int64_t>(elements * std::max<int64_t>(dim, 1), int64_t(1) << 40);
    }
    bytes += 4 * elements;
  }
  constexpr int64_t kMiB = int64_t(1) << 20;
  return bytes <= 64 * kMiB ? 4 : bytes <= 256 * kMiB ? 1 : 0;
}

class ModelImporter {
public:
  ModelImporter(OnnxModel model, const ImportOptions &options, mlir::MLIRContext &context)
      : model(std::move(model)), options(options), builder(&context) {}

  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> run() {
    if (!options.outputs.empty()) {
      keepAncestors(*model.proto->mutable_graph(), options.outputs);
    }
    if (llvm::Error error = checkCalls(model)) {
      return error;
    }
    if (llvm::Error error = checkOperators(model, {&graph()})) {
      return error;
    }
    auto read = readInputs(model, options, builder.getContext());
    if (!read) {
      return read.takeError();
    }
    inputs = std::move(*read);
    if (llvm::Error error = openDims()) {
      return error;
    }
    if (options.requireStatic && llvm::any_of(inputs, [](const Input &input) { return input.isOpen(); })) {
      return importOpen();
    }
    return build();
  }

private:
  const onnx::GraphProto &graph() { return model.proto->graph(); }

  /// Replaces the open dims of the inputs by symbols if the user asks for it.
  llvm::Error openDims() {
    if (!options.dims.isGiven()) {
      return llvm::Error::success();
    }
    DimRanges ranges = options.dims;
    separateBranchDims(inputs, graph(), ranges);
    std::map<std::string, DimRange> missing;
    llvm::StringMap<std::string> unknown;
    std::vector<Input> asRead = inputs;
    llvm::Error error = declareDims(inputs, ranges, builder.getContext(), options.opened, missing, unknown);
    if (!missing.empty() && deduceRanges(missing, ranges)) {
      llvm::consumeError(std::move(error));
      inputs = std::move(asRead);
      missing.clear();
      error = declareDims(inputs, ranges, builder.getContext(), options.opened, missing, unknown);
    }
    if (error) {
      return error;
    }
    model.state->runTimeSizes = RunTimeSizes(options.dims, std::move(unknown), options.opened);
    for (const Input &input : inputs) {
      if (llvm::Error error =
              checkTensorSize(input.getType(), llvm::formatv("input '{0}'", input.name), options.tensorLimit())) {
        return error;
      }
    }
    return llvm::Error::success();
  }

  /// Returns options for an import that only finds something out.
  ImportOptions trialOptions() const {
    ImportOptions trial(options);
    trial.requireStatic = false;
    trial.fixed = nullptr;
    trial.assumed = nullptr;
    trial.opened = nullptr;
    trial.warn = nullptr;
    return trial;
  }

  /// Imports the model with |trial| in |context|.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importTrial(const ImportOptions &trial,
                                                                mlir::MLIRContext &context) const {
    mlir::DialectRegistry registry;
    registry.insert<mlir::func::FuncDialect, TopDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    OnnxModel copy(model);
    copy.state = std::make_shared<ImportState>();
    return ModelImporter(std::move(copy), trial, context).run();
  }

  /// Adds the ranges of the |missing| names that other sizes determine, as past and seq determine total, to |ranges|.
  /// Returns true if there is one.
  bool deduceRanges(const std::map<std::string, DimRange> &missing, DimRanges &ranges) const {
    ImportOptions trial = trialOptions();
    for (const auto &[name, range] : missing) { // without a divisor, the symbol has the name of the dim
      trial.dims.byName.try_emplace(name, DimRange{range.min, range.max, 1, range.likely});
    }
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    auto module = importTrial(trial, context);
    if (!module) {
      llvm::consumeError(module.takeError());
      return false;
    }
    auto function = *(*module)->getOps<mlir::func::FuncOp>().begin();
    auto symbols = llvm::map_to_vector(symbolsOf(function), [](SizeSymbolAttr symbol) { return symbol.getName(); });
    unsigned next = 0, before = ranges.byName.size();
    for (const Input &input : inputs) {
      for (size_t axis = 0; !input.value && axis < input.shape.size(); ++axis) {
        std::string name = dimName(input, axis);
        Dim size = Shape(function.getArgument(next))[axis];
        if (missing.count(name) && size.isSymbolic() && !llvm::is_contained(symbols, name)) {
          ranges.byName.try_emplace(name, DimRange{minOf(size), maxOf(size), 1, likelyOf(size)});
        }
      }
      next += !input.value;
    }
    return ranges.byName.size() > before;
  }

  /// Imports the model with batch 1 if no other dim is open. Otherwise fails with a proposal of sizes.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOpen() {
    std::vector<Input> asRead = inputs;
    if (!options.inputShapes.byName.empty() || !options.inputShapes.byPosition.empty()) {
      return proposeSizes();
    }
    std::vector<Input *> assumed = assumeSingleBatch(inputs);
    if (assumed.empty()) {
      return proposeSizes();
    }
    auto module = build();
    if (!module) {
      llvm::Error error = module.takeError();
      if (error.isA<UnsupportedError>()) {
        return error;
      }
      llvm::consumeError(std::move(error));
      inputs = std::move(asRead);
      return proposeSizes();
    }
    for (const Input *input : assumed) {
      if (options.assumed) {
        options.assumed(input->name, input->shape);
      }
    }
    return module;
  }

  /// Returns the error for open dims. If possible, it contains sizes with which the import succeeds.
  llvm::Error proposeSizes() {
    constexpr LikelySizes kLikely[] = {{224, 128}, {256, 512}, {640, 1024}, {512, 16000}};
    std::string rejection;
    std::map<std::string, std::vector<int64_t>> before;
    for (const LikelySizes &likely : llvm::ArrayRef(kLikely).take_front(trialCount(graph()))) {
      auto proposal = proposeShapes(inputs, likely);
      if (proposal == before) {
        break; // the sizes do not depend on |likely|
      }
      before = proposal;
      ImportOptions trial = trialOptions();
      trial.dims = {};
      trial.inputShapes.byPosition.clear();
      for (const auto &[name, dims] : proposal) {
        trial.inputShapes.byName[name] = dims;
      }
      for (auto [input, dims] : llvm::zip(inputs, options.inputShapes.byPosition)) {
        trial.inputShapes.byName.try_emplace(input.name, dims);
      }
      mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
      auto module = importTrial(trial, context);
      if (module) {
        return onnx_import::openDims(inputs, proposal, "");
      }
      std::string reason = llvm::toString(module.takeError());
      rejection = rejection.empty() ? reason : rejection;
    }
    return onnx_import::openDims(inputs, proposeShapes(inputs, kLikely[0]), rejection);
  }

  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> build() {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(builder.getUnknownLoc());
    std::string name = options.modelName.empty() ? graph().name() : options.modelName;
    (*module)->setAttr(TopDialect::kModelNameAttr, builder.getStringAttr(name));
    builder.setInsertionPointToEnd(module->getBody());
    llvm::SmallVector<mlir::Type> types;
    for (const Input &input : inputs) {
      if (!input.value) {
        types.push_back(input.getType());
      }
    }
    auto function =
        mlir::func::FuncOp::create(builder, builder.getUnknownLoc(), "main", builder.getFunctionType(types, {}));
    mlir::Block *body = function.addEntryBlock();
    builder.setInsertionPointToStart(body);
    GraphImporter importer(model, graph(), builder);
    unsigned next = 0;
    for (const Input &input : inputs) {
      importer.bindStorage(input.name, input.storage);
      if (input.value) {
        auto loc = mlir::NameLoc::get(builder.getStringAttr(input.name));
        importer.bind(input.name, createConstant(builder, loc, input.getType(), *input.value, input.name));
        if (options.fixed) {
          options.fixed(input.name, input.getType(), *input.value);
        }
        continue;
      }
      function.setArgAttr(next, TopDialect::kNameAttr, builder.getStringAttr(input.name));
      importer.bind(input.name, body->getArgument(next++));
    }
    if (llvm::Error error = decodeInputs(importer)) {
      return error;
    }
    model.state->addInput = [&](StringRef name, llvm::ArrayRef<int64_t> shape, mlir::Type element) {
      return addInput(function, name, shape, element);
    };
    if (llvm::Error error = importer.importNodes()) {
      return error;
    }
    if (llvm::Error error = model.state->runTimeSizes.finish()) {
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

  /// Adds an input that the file does not have, or a constant if the user gives its values: one for each element, or a
  /// single one for all.
  llvm::Expected<mlir::Value> addInput(mlir::func::FuncOp function, StringRef name, llvm::ArrayRef<int64_t> shape,
                                       mlir::Type element) {
    auto type = mlir::RankedTensorType::get(shape, element);
    auto loc = mlir::NameLoc::get(builder.getStringAttr(name));
    auto given = options.inputValues.byName.find(name.str());
    if (given == options.inputValues.byName.end()) {
      unsigned index = function.getNumArguments();
      auto attribute = builder.getNamedAttr(TopDialect::kNameAttr, builder.getStringAttr(name));
      if (mlir::failed(function.insertArgument(index, type, builder.getDictionaryAttr(attribute), loc))) {
        return fail(llvm::formatv("the input '{0}' cannot be added", name));
      }
      return function.getArgument(index);
    }
    llvm::SmallVector<int64_t> expected;
    if (!given->second.shape.empty()) {
      llvm::append_range(expected, shape);
    }
    auto bytes = given->second.encode(name, expected, element);
    if (!bytes) {
      return bytes.takeError();
    }
    std::vector<char> values;
    while (static_cast<int64_t>(values.size()) < byteSize(type)) {
      llvm::append_range(values, *bytes);
    }
    if (options.fixed) {
      options.fixed(name, type, values);
    }
    return createConstant(builder, loc, type, std::move(values), name);
  }

  /// Runs |convert| as if it were a node named |name|.
  llvm::Expected<mlir::Value> convert(GraphImporter &importer, StringRef name,
                                      llvm::function_ref<mlir::Value(NodeImporter &)> convert) {
    onnx::NodeProto node;
    node.set_op_type("Cast");
    node.set_name(name.str());
    NodeImporter n(importer, node, kNewestOpset, builder, mlir::NameLoc::get(builder.getStringAttr(name)));
    mlir::Value value = convert(n);
    return n.failed() ? llvm::Expected<mlir::Value>(n.getError()) : value;
  }

  /// Binds the values of inputs whose tensors contain codes.
  llvm::Error decodeInputs(GraphImporter &importer) {
    for (const Input &input : inputs) {
      if (!input.storage || !input.storage->isFloat()) {
        continue;
      }
      mlir::Value codes = importer.lookup(input.name);
      auto values = convert(importer, input.name, [&](NodeImporter &n) { return decode(n, codes, *input.storage); });
      if (!values) {
        return values.takeError();
      }
      importer.bind(input.name, *values);
    }
    return llvm::Error::success();
  }

  /// Returns |value| in the form of the output |name|: as codes if it has a storage type.
  llvm::Expected<mlir::Value> encodeOutput(GraphImporter &importer, mlir::Value value, StringRef name) {
    const StorageType *storage = importer.storageOf(name);
    if (!storage || !storage->isFloat()) {
      return value;
    }
    auto codes = convert(importer, name, [&](NodeImporter &n) { return encode(n, value, *storage); });
    if (codes && !isConstant(*codes)) {
      setTensorNames(codes->getDefiningOp(), {name});
    }
    return codes;
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
    dropRepeated(names);
    for (const std::string &name : names) {
      mlir::Value value = importer.lookup(name);
      if (!value && importer.lookupSequence(name)) {
        return unsupported(
            llvm::formatv("output '{0}' is a sequence of tensors; only tensors are supported as outputs", name));
      }
      if (!value) {
        return fail(llvm::formatv("no node, input or initializer produces the output '{0}'", name));
      }
      auto codes = encodeOutput(importer, value, name);
      if (!codes) {
        return codes.takeError();
      }
      results.push_back(*codes);
    }
    if (llvm::Error error = checkDeclaredOutputs(importer)) {
      return error;
    }
    llvm::SmallVector<std::optional<int64_t>> paddedAxes;
    for (auto [value, name] : llvm::zip_equal(results, names)) {
      const Padding *padding = importer.paddedRows().find(value);
      paddedAxes.push_back(padding ? std::optional(padding->axis) : std::nullopt);
      value = padding ? fillPadding(value, *padding, name) : value;
    }
    replaceAgain(function, model.state->replacedSymbols);
    limitSizes(function);
    auto ret = mlir::func::ReturnOp::create(builder, builder.getUnknownLoc(), results);
    if (llvm::Error error = tabulateSizeValues(function, importer)) {
      return error;
    }
    function.setType(
        builder.getFunctionType(mlir::ValueRange(function.getArguments()).getTypes(), ret.getOperandTypes()));
    for (auto [i, name] : llvm::enumerate(names)) {
      function.setResultAttr(i, TopDialect::kNameAttr, builder.getStringAttr(name));
      if (paddedAxes[i]) {
        function.setResultAttr(i, kPaddedAxisAttr, builder.getI64IntegerAttr(*paddedAxes[i]));
      }
    }
    return llvm::Error::success();
  }

  /// Keeps the stated ranges of dims that turned out to be sums of other sizes: import may have relied on them.
  void limitSizes(mlir::func::FuncOp function) {
    unsigned next = 0;
    for (const Input &input : inputs) {
      if (input.value || input.sizes.empty()) {
        next += !input.value;
        continue;
      }
      llvm::SmallVector<int64_t> limits;
      bool isNarrower = false;
      for (auto [stated, found] : llvm::zip_equal(input.sizes, Shape(function.getArgument(next)).dims())) {
        limits.append({std::max(minOf(stated), minOf(found)), std::min(maxOf(stated), maxOf(found))});
        isNarrower |= minOf(stated) > minOf(found) || maxOf(stated) < maxOf(found);
      }
      if (isNarrower) {
        function.setArgAttr(next, kSizeLimitsAttr, builder.getDenseI64ArrayAttr(limits));
      }
      ++next;
    }
  }

  /// Lets ops read sizes of open dims, where they are data, from constant tables.
  llvm::Error tabulateSizeValues(mlir::func::FuncOp function, GraphImporter &importer) {
    mlir::OpBuilder::InsertionGuard guard(builder);
    for (mlir::Value value : findSizeValues(function)) {
      builder.setInsertionPointAfterValue(value);
      auto loc = mlir::dyn_cast<mlir::NameLoc>(value.getLoc());
      auto table = convert(importer, loc ? loc.getName().getValue() : "",
                           [&](NodeImporter &n) { return tabulateSizes(n, value); });
      if (!table) {
        return table.takeError();
      }
      replaceSizeValue(value, *table);
    }
    return llvm::Error::success();
  }

  /// Removes repeated names of outputs. Exporters list a tensor as often as the network returns it.
  void dropRepeated(std::vector<std::string> &names) {
    llvm::StringSet<> seen;
    llvm::erase_if(names, [&](const std::string &name) {
      bool isRepeated = !seen.insert(name).second;
      if (isRepeated) {
        model.state->warnOnce(
            llvm::formatv("output '{0}' is listed more than once; the compiled model contains it once", name));
      }
      return isRepeated;
    });
  }

  /// Returns |value| with kPadding after its real entries, as the output |name|.
  mlir::Value fillPadding(mlir::Value value, const Padding &padding, StringRef name) {
    auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
    mlir::Operation *op = value.getDefiningOp();
    if (!padding.filled) {
      mlir::Location loc = value.getLoc();
      Ints numbers(type.getDimSize(padding.axis)), dims(type.getRank() - padding.axis, 1);
      std::iota(numbers.begin(), numbers.end(), 0);
      dims.front() = type.getDimSize(padding.axis);
      auto *begin = reinterpret_cast<const char *>(numbers.data());
      std::vector<char> bytes(begin, begin + numbers.size() * sizeof(int64_t));
      mlir::Value number = createConstant(builder, loc, mlir::RankedTensorType::get(dims, builder.getI64Type()),
                                          std::move(bytes), "row_numbers");
      auto flags = mlir::RankedTensorType::get(dims, builder.getI1Type());
      mlir::Value real = CompareOp::create(builder, loc, flags, number, padding.count, CompareKind::lt);
      mlir::Type element = type.getElementType();
      bool holdsIt = !element.isUnsignedInteger() && !element.isInteger(1);
      op =
          WhereOp::create(builder, loc, type, real, value, createScalar(builder, loc, element, holdsIt ? kPadding : 0));
    }
    setTensorNames(op, {name});
    return op->getResult(0);
  }

  /// Checks that the declared types of the outputs match those computed from the nodes.
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
      const StorageType *storage = importer.storageOf(output.name());
      if (*element != NodeImporter::elementType(value) ||
          findStorageType(output.type().tensor_type().elem_type()) != storage) {
        std::string actual;
        llvm::raw_string_ostream stream(actual);
        storage ? stream << storage->name : stream << NodeImporter::elementType(value);
        return fail(llvm::formatv("the file declares output '{0}' as {1}; its nodes produce {2}", output.name(),
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

/// Returns the size of this machine's memory, or the limit for this process if it is lower.
static int64_t availableMemory() {
  int64_t bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    bytes = std::min(bytes, static_cast<int64_t>(limit.rlim_cur));
  }
  if (auto group = llvm::MemoryBuffer::getFile("/sys/fs/cgroup/memory.max")) {
    int64_t max = 0;
    if (!(*group)->getBuffer().trim().getAsInteger(10, max)) { // "max" means no limit
      bytes = std::min(bytes, max);
    }
  }
  return bytes;
}

int64_t ImportOptions::tensorLimit() const { return memoryLimit > 0 ? memoryLimit : availableMemory(); }

static void sayConversion(const onnx_import::OnnxModel &model) {
  auto opset = model.opsets.find("");
  if (opset != model.opsets.end() && opset->second < onnx_import::kFirstModernOpset) {
    model.state->warnOnce(llvm::formatv("'{0}' uses ONNX opset {1}: converted to opset {2} during import", model.path,
                                        opset->second, onnx_import::kFirstModernOpset)
                              .str());
  }
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(onnx_import::OnnxModel model, const ImportOptions &options,
                                                             mlir::MLIRContext &context) {
  model.maxFoldBytes = options.maxFoldBytes;
  model.tensorLimit = options.tensorLimit();
  model.foldLimit = options.memoryLimit;
  model.keepsFormats = options.keepsFormats;
  model.state->warn = options.warn;
  sayConversion(model);
  auto module = ModelImporter(model, options, context).run();
  if (!module) {
    return module;
  }
  if (std::string network = onnx_import::identifyNetwork(model, options, &context); !network.empty()) {
    (**module)->setAttr(kNetworkAttr, mlir::StringAttr::get(&context, network));
  }
  return module;
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnx(StringRef path, const ImportOptions &options,
                                                             mlir::MLIRContext &context) {
  auto model = onnx_import::loadOnnxModel(path);
  return model ? importOnnx(std::move(*model), options, context) : model.takeError();
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
importOnnxBytes(StringRef bytes, StringRef path, const ImportOptions &options, mlir::MLIRContext &context) {
  auto model = onnx_import::parseOnnxModel(bytes, path);
  return model ? importOnnx(std::move(*model), options, context) : model.takeError();
}

} // namespace tessera::top

//===- GraphImporter.cpp - Import of the nodes of a graph in order --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/GraphImporter.h"

#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Import/Onnx/Model/ImportError.h"
#include "top_dialect/Import/Onnx/Model/OnnxFunctions.h"
#include "top_dialect/Import/Onnx/Model/OnnxSchemas.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>
#include <set>

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

const HandlerTable &handlerTable() {
  static const HandlerTable table = [] {
    llvm::Expected<HandlerTable> entries = makeHandlerTable({elementwiseHandlers(),   convHandlers(),
                                                             reduceHandlers(),        constantHandlers(),
                                                             reshapeHandlers(),       sliceHandlers(),
                                                             padHandlers(),           indexHandlers(),
                                                             resizeHandlers(),        roiHandlers(),
                                                             controlHandlers(),       recurrentHandlers(),
                                                             compositeHandlers(),     quantizeHandlers(),
                                                             qLinearHandlers(),       integerProductHandlers(),
                                                             selectionHandlers(),     sequenceHandlers(),
                                                             signalHandlers(),        trainingHandlers(),
                                                             attentionHandlers(),     microsoftAttentionHandlers(),
                                                             microsoftHandlers(),     packedWeightHandlers(),
                                                             blockedLayoutHandlers(), expertHandlers(),
                                                             randomHandlers(),        deformConvHandlers(),
                                                             featureHandlers(),       tfIdfHandlers(),
                                                             treeHandlers()});
    if (!entries) {
      llvm::report_fatal_error(entries.takeError());
    }
    return std::move(*entries);
  }();
  return table;
}

/// Maps operator, domain and opset to the nodes that use it.
using UnknownOperators = std::map<std::tuple<std::string, std::string, int64_t>, std::vector<std::string>>;

/// Searches graphs, their sub-graphs and called functions for operators without a handler.
class OperatorCheck {
public:
  OperatorCheck(const OnnxModel &model) : model(model) {}

  UnknownOperators unknown; ///< operators in nodes that are certain to run
  UnknownOperators maybe;   ///< operators in branches that may turn out not to be taken

  llvm::Error visit(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                    const llvm::StringMap<int64_t> &opsets, bool inBranch) {
    for (const onnx::NodeProto &node : nodes) {
      StringRef domain = normalizeDomain(node.domain());
      auto known = opsets.find(domain);
      int64_t opset = known == opsets.end() ? 1 : known->second;
      if (!findHandler(domain, node.op_type(), opset)) {
        if (const onnx::FunctionProto *function = findFunction(model, node)) {
          if (llvm::Error error = visitFunction(*function, inBranch)) {
            return error;
          }
        } else {
          (inBranch ? maybe : unknown)[{domain.empty() ? "ai.onnx" : domain.str(), node.op_type(), opset}].push_back(
              nodeName(node));
        }
      }
      for (const auto &attribute : node.attribute()) {
        if (!attribute.has_g()) {
          continue;
        }
        if (llvm::Error error = visit(attribute.g().node(), opsets, inBranch || node.op_type() == "If")) {
          return error;
        }
      }
    }
    return llvm::Error::success();
  }

private:
  llvm::Error visitFunction(const onnx::FunctionProto &function, bool inBranch) {
    if (!visited.insert({&function, inBranch}).second) {
      return llvm::Error::success();
    }
    auto opsets = opsetsOf(model, function);
    return opsets ? visit(function.node(), *opsets, inBranch) : opsets.takeError();
  }

  const OnnxModel &model;
  std::set<std::pair<const onnx::FunctionProto *, bool>> visited;
};

} // namespace

llvm::Expected<HandlerTable> makeHandlerTable(llvm::ArrayRef<llvm::ArrayRef<HandlerEntry>> families) {
  HandlerTable table;
  for (llvm::ArrayRef<HandlerEntry> family : families) {
    for (const HandlerEntry &entry : family) {
      auto &versions = table[{entry.domain, entry.name}];
      if (llvm::any_of(versions, [&](const HandlerEntry &other) { return other.since == entry.since; })) {
        return fail(llvm::formatv("the importer's tables name two handlers for {0}.{1} from opset {2} on: only one of "
                                  "them can be right",
                                  entry.domain.empty() ? StringRef("ai.onnx") : StringRef(entry.domain), entry.name,
                                  entry.since));
      }
      versions.push_back(entry);
    }
  }
  return table;
}

Handler findHandler(StringRef domain, StringRef name, int64_t opset) {
  if (Handler legacy = domain.empty() ? findLegacyHandler(name, opset) : nullptr) {
    return legacy;
  }
  auto it = handlerTable().find({domain, name});
  if (it == handlerTable().end()) {
    return findCustomHandler(domain, name);
  }
  const HandlerEntry *best = nullptr;
  for (const HandlerEntry &entry : it->second) {
    if (entry.since <= opset && (!best || entry.since > best->since)) {
      best = &entry;
    }
  }
  return best ? best->handler : nullptr;
}

llvm::Error checkOperators(const OnnxModel &model, llvm::ArrayRef<const onnx::GraphProto *> graphs) {
  OperatorCheck check(model);
  for (const onnx::GraphProto *graph : graphs) {
    if (llvm::Error error = check.visit(graph->node(), model.opsets, false)) {
      return error;
    }
  }
  UnknownOperators &unknown = check.unknown;
  if (unknown.empty()) {
    return llvm::Error::success(); // branches are checked when they are imported
  }
  for (auto &[key, nodes] : check.maybe) {
    llvm::append_range(unknown[key], nodes);
  }
  std::string text = llvm::formatv("{0} operator{1} of this model {2} not supported:", unknown.size(),
                                   unknown.size() == 1 ? "" : "s", unknown.size() == 1 ? "is" : "are");
  for (const auto &[key, nodes] : unknown) {
    const auto &[domain, name, opset] = key;
    text += llvm::formatv("\n  {0} (domain {1}, opset {2}): {3} node{4}: '{5}'{6}", name, domain, opset, nodes.size(),
                          nodes.size() == 1 ? "" : "s", llvm::join(llvm::ArrayRef(nodes).take_front(5), "', '"),
                          nodes.size() > 5 ? ", ..." : "");
  }
  return unsupported(text + "\nReplace them in the model, bind them to C functions with --custom_ops "
                            "(docs/custom-operators.md), or add them: docs/adding-an-op.md");
}

/// Changes the name of the ONNX tensor that |value| represents.
static void renameTensor(mlir::Value value, StringRef name) {
  mlir::Operation *op = value.getDefiningOp();
  llvm::SmallVector<StringRef> names;
  for (mlir::Value result : op->getResults()) {
    names.push_back(result == value ? name : getTensorName(result));
  }
  setTensorNames(op, names);
}

void GraphImporter::indexInitializers() {
  if (indexed) {
    return;
  }
  indexed = true;
  for (const auto &tensor : proto.initializer()) {
    initializers[tensor.name()] = &tensor;
  }
}

bool GraphImporter::knows(StringRef name) const {
  auto *self = const_cast<GraphImporter *>(this);
  self->indexInitializers();
  return bound.values.contains(name) || bound.sequences.contains(name) || initializers.contains(name) ||
         (parent && parent->knows(name));
}

const llvm::SmallVector<mlir::Value> *GraphImporter::lookupSequence(StringRef name) const {
  auto it = bound.sequences.find(name);
  return it != bound.sequences.end() ? &it->second : parent ? parent->lookupSequence(name) : nullptr;
}

const StorageType *GraphImporter::storageOf(StringRef name) const {
  const_cast<GraphImporter *>(this)->indexInitializers();
  if (auto it = bound.storages.find(name); it != bound.storages.end()) {
    return it->second;
  }
  if (bound.values.contains(name) && !initializers.contains(name)) {
    return nullptr;
  }
  if (auto it = initializers.find(name); it != initializers.end()) {
    return findStorageType(it->second->data_type());
  }
  return parent ? parent->storageOf(name) : nullptr;
}

llvm::Error GraphImporter::passStorage(const onnx::NodeProto &node) {
  StringRef domain = normalizeDomain(node.domain());
  unsigned data = 0;
  bool moves = domain.empty() && movesElements(node.op_type(), data);
  for (auto [i, name] : llvm::enumerate(node.input())) {
    const StorageType *type = name.empty() ? nullptr : storageOf(name);
    if (!type || findFunction(model, node)) {
      continue;
    }
    if (!readsStorage(domain, node.op_type())) {
      return unsupported(llvm::formatv("{0}: its input {1}, tensor '{2}', is {3}, which only Cast, QuantizeLinear, "
                                       "DequantizeLinear and operators that move elements can read: insert a Cast",
                                       describeNode(node), i, name, type->name));
    }
    if (moves && i >= data) {
      for (const std::string &output : node.output()) {
        bindStorage(output, type);
      }
    }
  }
  return llvm::Error::success();
}

mlir::Value GraphImporter::materialize(const onnx::TensorProto &proto) {
  auto tensor = readTensor(proto, model, getContext());
  if (!tensor) {
    llvm::Error error = tensor.takeError();
    initializerUnsupported = error.isA<UnsupportedError>();
    initializerError = llvm::toString(std::move(error));
    return {};
  }
  model.state->readBytes += static_cast<int64_t>(tensor->bytes.size());
  auto loc = mlir::NameLoc::get(builder.getStringAttr(proto.name()));
  auto &store = getContext()->getLoadedDialect<TopDialect>()->getWeightStore();
  if (static_cast<int64_t>(tensor->bytes.size()) <= kMaxInlineBytes) {
    return createConstant(builder, loc, tensor->type, tensor->bytes, proto.name());
  }
  std::string key = store.add(proto.name(), tensor->type.getElementType(), tensor->type.getShape(), tensor->bytes,
                              tensor->owner, tensor->isMapped);
  store.release(key); // already hashed; it is not needed again before the file is written
  return WeightOp::create(builder, loc, tensor->type, key);
}

llvm::Error GraphImporter::takeInitializerError() {
  return initializerUnsupported ? unsupported(initializerError) : fail(initializerError);
}

mlir::Value GraphImporter::lookup(StringRef name) {
  indexInitializers();
  if (auto it = bound.values.find(name); it != bound.values.end()) {
    return it->second;
  }
  if (auto it = initializers.find(name); it != initializers.end()) {
    mlir::Value value = materialize(*it->second);
    if (value) {
      bound.values[name] = value;
    }
    return value;
  }
  return parent ? parent->lookup(name) : mlir::Value();
}

/// Imports the nodes of |function| in place of |node|. The results get their names outside the function.
llvm::Error GraphImporter::callFunction(const onnx::FunctionProto &function, const onnx::NodeProto &node) {
  auto body = instantiate(model, function, node);
  if (!body) {
    return body.takeError();
  }
  GraphImporter inner(*body, node, *this);
  for (int i = 0; i < node.input_size(); ++i) {
    if (node.input(i).empty()) {
      continue;
    }
    mlir::Value value = lookup(node.input(i));
    if (!value) {
      return initializerError.empty() ? fail(llvm::formatv("input {0}, tensor '{1}', cannot be read", i, node.input(i)))
                                      : takeInitializerError();
    }
    inner.bind(function.input(i), value);
    inner.bindStorage(function.input(i), storageOf(node.input(i)));
  }
  if (llvm::Error error = inner.importNodes()) {
    return error;
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) {
      continue;
    }
    mlir::Value value = inner.lookup(function.output(i));
    if (!value) {
      return fail(
          llvm::formatv("no node of function '{0}' produces its output '{1}'", function.name(), function.output(i)));
    }
    bind(node.output(i), value);
    bindStorage(node.output(i), inner.storageOf(function.output(i)));
    if (getTensorName(value).starts_with(inner.prefix)) {
      renameTensor(value, nameOf(node.output(i)));
    }
  }
  return llvm::Error::success();
}

llvm::Error GraphImporter::importNode(const onnx::NodeProto &node) {
  StringRef domain = normalizeDomain(node.domain());
  int64_t opset = model.opsetOf(domain);
  if (++model.state->nodes > 4 * kMaxNodes) {
    return fail("the model has too many nodes after its loops are unrolled");
  }
  Handler handler = findHandler(domain, node.op_type(), opset);
  if (handler && domain.empty()) {
    if (llvm::Error error = checkSchema(node, opset, *model.state)) {
      return error;
    }
  }
  if (!handler) {
    const onnx::FunctionProto *function = findFunction(model, node);
    if (!function) {
      return unsupported(llvm::formatv("{0}: the operator does not exist", describeNode(node)));
    }
    llvm::Error error = callFunction(*function, node);
    return error ? prefixed(std::move(error), describeNode(node) + ": ") : llvm::Error::success();
  }
  if (llvm::Error error = passStorage(node)) {
    return error;
  }
  auto loc = mlir::NameLoc::get(builder.getStringAttr(nameOf(nodeName(node))));
  NodeImporter importer(*this, node, opset, builder, loc);
  handler(importer);
  if (importer.failed()) {
    return prefixed(initializerError.empty() ? importer.getError() : takeInitializerError(), describeNode(node) + ": ");
  }
  for (const std::string &output : node.output()) {
    if (!isFinished && !output.empty() && !bound.values.contains(output) && !bound.sequences.contains(output)) {
      return unsupported(llvm::formatv("{0}: its output '{1}' is not supported", describeNode(node), output));
    }
  }
  return llvm::Error::success();
}

llvm::Error GraphImporter::importNodes() {
  auto nodes = sortNodes(proto, [&](StringRef name) { return parent && parent->knows(name); });
  if (!nodes) {
    return nodes.takeError();
  }
  pending = *nodes;
  return importPending();
}

llvm::Error GraphImporter::importPending() {
  while (!pending.empty()) {
    const onnx::NodeProto &node = *pending.front();
    pending = pending.drop_front();
    if (llvm::Error error = importNode(node)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<mlir::Value>> GraphImporter::importRest(llvm::function_ref<llvm::Error()> first) {
  llvm::scope_exit restore([this, bindings = bound, nodes = pending]() mutable {
    bound = std::move(bindings);
    pending = nodes;
    isFinished = false;
  });
  if (llvm::Error error = first()) {
    return error;
  }
  if (llvm::Error error = importPending()) {
    return error;
  }
  return outputs();
}

void GraphImporter::finishWith(llvm::ArrayRef<mlir::Value> values) {
  for (auto [declared, value] : llvm::zip(proto.output(), values)) {
    bind(declared.name(), value);
  }
  pending = {};
  isFinished = true;
}

llvm::Expected<mlir::Value> GraphImporter::output(StringRef name) {
  mlir::Value value = lookup(name);
  if (!value && lookupSequence(name)) {
    return unsupported(
        llvm::formatv("output '{0}' of a sub-graph is a sequence of tensors; only tensors are supported", name));
  }
  if (!value && !initializerError.empty()) {
    return takeInitializerError();
  }
  if (!value) {
    return fail(llvm::formatv("no node, input or initializer produces the output '{0}'", name));
  }
  return value;
}

llvm::Expected<llvm::SmallVector<mlir::Value>> GraphImporter::outputs() {
  llvm::SmallVector<mlir::Value> results;
  for (const auto &declared : proto.output()) {
    auto value = output(declared.name());
    if (!value) {
      return value.takeError();
    }
    results.push_back(*value);
  }
  return results;
}

} // namespace tessera::top::onnx_import

std::vector<tessera::top::SupportedOperator> tessera::top::supportedOperators() {
  std::vector<SupportedOperator> operators;
  for (const auto &[key, entries] : onnx_import::handlerTable()) {
    int64_t since = entries.front().since;
    for (const auto &entry : entries) {
      since = std::min(since, entry.since);
    }
    operators.push_back({key.first, key.second, since});
  }
  return operators;
}

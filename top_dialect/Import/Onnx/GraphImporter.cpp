//===- GraphImporter.cpp - Imports the nodes of a graph in order ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/GraphImporter.h"

#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

const HandlerTable &handlerTable() {
  static const HandlerTable table = [] {
    llvm::Expected<HandlerTable> entries =
        makeHandlerTable({elementwiseHandlers(), convHandlers(), reduceHandlers(), shapeHandlers(), indexHandlers(),
                          resizeHandlers(), controlHandlers(), recurrentHandlers(), compositeHandlers(),
                          quantizeHandlers(), qLinearHandlers(), integerProductHandlers()});
    if (!entries) {
      llvm::report_fatal_error(entries.takeError());
    }
    return std::move(*entries);
  }();
  return table;
}

/// Operator, domain and opset -> the nodes that use it.
using UnknownOperators = std::map<std::tuple<std::string, std::string, int64_t>, std::vector<std::string>>;

void collectUnknown(const OnnxModel &model, const onnx::GraphProto &graph, UnknownOperators &unknown) {
  for (const auto &node : graph.node()) {
    StringRef domain = normalizeDomain(node.domain());
    int64_t opset = model.opsetOf(domain);
    if (!findHandler(domain, node.op_type(), opset)) {
      unknown[{domain.empty() ? "ai.onnx" : domain.str(), node.op_type(), opset}].push_back(nodeName(node));
    }
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_g()) {
        collectUnknown(model, attribute.g(), unknown);
      }
    }
  }
}

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
  auto it = handlerTable().find({domain, name});
  if (it == handlerTable().end()) {
    return nullptr;
  }
  const HandlerEntry *best = nullptr;
  for (const HandlerEntry &entry : it->second) {
    if (entry.since <= opset && (!best || entry.since > best->since)) {
      best = &entry;
    }
  }
  return best ? best->handler : nullptr;
}

llvm::Error checkOperators(const OnnxModel &model, const onnx::GraphProto &graph) {
  UnknownOperators unknown;
  collectUnknown(model, graph, unknown);
  if (unknown.empty()) {
    return llvm::Error::success();
  }
  std::string text = llvm::formatv("{0} operator{1} of this model {2} not supported:", unknown.size(),
                                   unknown.size() == 1 ? "" : "s", unknown.size() == 1 ? "is" : "are");
  for (const auto &[key, nodes] : unknown) {
    const auto &[domain, name, opset] = key;
    text += llvm::formatv("\n  {0} (domain {1}, opset {2}): {3} node{4}: '{5}'{6}", name, domain, opset, nodes.size(),
                          nodes.size() == 1 ? "" : "s", llvm::join(llvm::ArrayRef(nodes).take_front(5), "', '"),
                          nodes.size() > 5 ? ", ..." : "");
  }
  return unsupported(text + "\nReplace them in the model, or add them: docs/adding-an-op.md");
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
  return values.contains(name) || initializers.contains(name) || (parent && parent->knows(name));
}

mlir::Value GraphImporter::materialize(const onnx::TensorProto &proto) {
  auto tensor = readTensor(proto, model, getContext());
  if (!tensor) {
    llvm::Error error = tensor.takeError();
    initializerUnsupported = error.isA<UnsupportedError>();
    initializerError = llvm::toString(std::move(error));
    return {};
  }
  auto loc = mlir::NameLoc::get(builder.getStringAttr(proto.name()));
  auto &store = getContext()->getLoadedDialect<TopDialect>()->getWeightStore();
  if (static_cast<int64_t>(tensor->bytes.size()) <= kMaxInlineBytes) {
    return createConstant(builder, loc, tensor->type, tensor->bytes, proto.name());
  }
  std::string key =
      store.add(proto.name(), tensor->type.getElementType(), tensor->type.getShape(), tensor->bytes, tensor->owner);
  return WeightOp::create(builder, loc, tensor->type, key);
}

llvm::Error GraphImporter::takeInitializerError() {
  return initializerUnsupported ? unsupported(initializerError) : fail(initializerError);
}

mlir::Value GraphImporter::lookup(StringRef name) {
  indexInitializers();
  if (auto it = values.find(name); it != values.end()) {
    return it->second;
  }
  if (auto it = initializers.find(name); it != initializers.end()) {
    mlir::Value value = materialize(*it->second);
    if (value) {
      values[name] = value;
    }
    return value;
  }
  return parent ? parent->lookup(name) : mlir::Value();
}

llvm::Error GraphImporter::importNode(const onnx::NodeProto &node) {
  StringRef domain = normalizeDomain(node.domain());
  int64_t opset = model.opsetOf(domain);
  Handler handler = findHandler(domain, node.op_type(), opset);
  auto loc = mlir::NameLoc::get(builder.getStringAttr(nodeName(node)));
  NodeImporter importer(*this, node, opset, builder, loc);
  handler(importer);
  if (importer.failed()) {
    return prefixed(initializerError.empty() ? importer.getError() : takeInitializerError(), describeNode(node) + ": ");
  }
  for (const std::string &output : node.output()) {
    if (!output.empty() && !values.contains(output)) {
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
  for (const onnx::NodeProto *node : *nodes) {
    if (llvm::Error error = importNode(*node)) {
      return error;
    }
  }
  return llvm::Error::success();
}

llvm::Expected<llvm::SmallVector<mlir::Value>> GraphImporter::outputs() {
  llvm::SmallVector<mlir::Value> results;
  for (const auto &output : proto.output()) {
    mlir::Value value = lookup(output.name());
    if (!value) {
      return initializerError.empty()
                 ? fail(llvm::formatv("no node, input or initializer makes the output '{0}'", output.name()))
                 : takeInitializerError();
    }
    results.push_back(value);
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

//===- OnnxModel.cpp - Parsing and structural checks of ONNX files --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"

#include "top_dialect/IR/RegularFile.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Onnx/Model/ImportError.h"
#include "top_dialect/Import/Onnx/Model/OnnxFunctions.h"
#include "top_dialect/Import/Onnx/Model/OnnxNames.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"

#include <climits>
#include <queue>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

/// Returns what kind of file the first bytes suggest, for the error about a file that cannot be parsed.
StringRef guessContents(StringRef bytes) {
  if (bytes.empty()) {
    return "it is empty";
  }
  if (bytes.starts_with("version https://git-lfs")) {
    return "it is a git-lfs pointer: fetch the real file with 'git lfs pull'";
  }
  if (bytes.starts_with("PK")) {
    return "it is a zip archive";
  }
  if (bytes.starts_with("\x1f\x8b")) {
    return "it is gzip-compressed";
  }
  bool text = llvm::all_of(bytes.take_front(256),
                           [](char c) { return c == '\n' || c == '\r' || c == '\t' || (c >= 32 && c < 127); });
  return text ? "it is text" : "its bytes are not an ONNX protobuf; it may be truncated or damaged";
}

llvm::Error parseBytes(StringRef bytes, StringRef path, onnx::ModelProto &proto) {
  auto reject = [&]() { return fail(llvm::formatv("'{0}' is not an ONNX model: {1}", path, guessContents(bytes))); };
  if (bytes.size() > size_t(INT_MAX)) {
    return fail(llvm::formatv("'{0}' has {1} bytes; protobuf supports at most 2 GiB: save the weights as external data "
                              "(onnx.save_model(..., save_as_external_data=True))",
                              path, bytes.size()));
  }
  google::protobuf::LogSilencer silence;
  google::protobuf::io::ArrayInputStream stream(bytes.data(), static_cast<int>(bytes.size()));
  google::protobuf::io::CodedInputStream coded(&stream);
  coded.SetTotalBytesLimit(INT_MAX);
  if (!proto.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    return reject();
  }
  // Most short byte strings parse as some protobuf. A model has a graph and an IR version.
  if (!proto.has_graph() || proto.ir_version() <= 0) {
    return reject();
  }
  return llvm::Error::success();
}

llvm::Error readOpsets(OnnxModel &model) {
  for (const auto &entry : model.proto->opset_import()) {
    model.opsets[normalizeDomain(entry.domain())] = entry.version();
  }
  if (!model.opsets.contains("")) {
    if (model.proto->ir_version() < 3) {
      model.opsets[""] = 1; // the default for these files in the specification
    } else if (llvm::any_of(model.proto->graph().node(),
                            [](const onnx::NodeProto &node) { return normalizeDomain(node.domain()).empty(); })) {
      return unsupported(llvm::formatv("'{0}' does not name an ONNX opset, which IR version {1} requires: export the "
                                       "model again",
                                       model.path, model.proto->ir_version()));
    } else {
      return llvm::Error::success(); // a model that only uses other domains
    }
  }
  int64_t version = model.opsetOf("");
  if (version > kNewestOpset) {
    return unsupported(
        llvm::formatv("'{0}' uses ONNX opset {1}; the newest supported opset is {2}: export it for that one or update "
                      "Tessera",
                      model.path, version, kNewestOpset));
  }
  if (version < 1) {
    return fail(llvm::formatv("'{0}' names ONNX opset {1}; opsets are numbered from 1", model.path, version));
  }
  return llvm::Error::success();
}

} // namespace

StringRef normalizeDomain(StringRef domain) { return domain == "ai.onnx" ? StringRef("") : domain; }

std::string nodeName(const onnx::NodeProto &node) {
  if (!node.name().empty()) {
    return node.name();
  }
  for (const std::string &output : node.output()) {
    if (!output.empty()) {
      return output;
    }
  }
  return node.op_type();
}

std::string describeNode(const onnx::NodeProto &node) {
  return llvm::formatv("node '{0}' ({1})", nodeName(node), node.op_type());
}

llvm::Expected<OnnxModel> loadOnnxModel(StringRef path) {
  auto buffer = readRegularFile(path);
  if (!buffer) {
    return fail(llvm::formatv("cannot read '{0}': {1}", path, llvm::toString(buffer.takeError())));
  }
  return parseOnnxModel((*buffer)->getBuffer(), path);
}

llvm::Expected<OnnxModel> parseOnnxModel(StringRef bytes, StringRef path) {
  OnnxModel model;
  model.path = path.str();
  model.folder = llvm::sys::path::parent_path(path).str();
  if (model.folder.empty()) {
    model.folder = ".";
  }
  auto [low, high] = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(bytes));
  model.hash = {low, high};
  model.proto = std::make_shared<onnx::ModelProto>();
  if (llvm::Error error = parseBytes(bytes, path, *model.proto)) {
    return error;
  }
  escapeNames(*model.proto);
  if (llvm::Error error = readOpsets(model)) {
    return error;
  }
  auto functions = readFunctions(*model.proto);
  if (!functions) {
    return functions.takeError();
  }
  model.functions = std::make_shared<FunctionTable>(std::move(*functions));
  return model;
}

namespace {

/// Sorts the nodes of one graph with Kahn's algorithm.
class NodeSorter {
public:
  NodeSorter(const onnx::GraphProto &graph, llvm::function_ref<bool(StringRef)> outer) : graph(graph), outer(outer) {}

  llvm::Expected<std::vector<const onnx::NodeProto *>> run() {
    if (llvm::Error error = collectProducers()) {
      return error;
    }
    if (llvm::Error error = collectEdges()) {
      return error;
    }
    return order();
  }

private:
  llvm::Error collectProducers() {
    for (const auto &input : graph.input()) {
      if (!given.insert(input.name()).second) {
        return fail(llvm::formatv("the graph has two inputs named '{0}': names must be unique", input.name()));
      }
    }
    // An initializer may have the name of an input. It is then the input's default.
    llvm::StringSet<> constants;
    for (const auto &tensor : graph.initializer()) {
      given.insert(tensor.name());
      if (!constants.insert(tensor.name()).second) {
        return fail(llvm::formatv("the graph has two initializers named '{0}': names must be unique", tensor.name()));
      }
    }
    if (graph.sparse_initializer_size() > 0) {
      return unsupported(llvm::formatv("initializer '{0}' is sparse, which is not supported: store it dense",
                                       graph.sparse_initializer(0).values().name()));
    }
    for (int i = 0; i < graph.node_size(); ++i) {
      for (const std::string &output : graph.node(i).output()) {
        if (output.empty()) {
          continue;
        }
        if (given.contains(output) || !producer.try_emplace(output, i).second) {
          return fail(llvm::formatv("{0} produces the tensor '{1}', which {2} already produces: names must be unique",
                                    describeNode(graph.node(i)), output,
                                    given.contains(output) ? "a graph input or initializer"
                                                           : describeNode(graph.node(producer.lookup(output)))));
        }
      }
    }
    return llvm::Error::success();
  }

  /// |user| is the index of a node of this graph. |node| is the same node or a node in one of its sub-graphs.
  llvm::Error addUses(int user, const onnx::NodeProto &node, const llvm::StringSet<> &local, unsigned depth) {
    if (depth > 64) {
      return fail(llvm::formatv("{0}: sub-graphs are nested more than 64 deep", describeNode(node)));
    }
    for (const std::string &input : node.input()) {
      if (input.empty() || local.contains(input)) {
        continue;
      }
      auto it = producer.find(input);
      if (it != producer.end()) {
        users[it->second].push_back(user);
        ++pending[user];
      } else if (!given.contains(input) && !outer(input)) {
        return fail(llvm::formatv("{0} reads the tensor '{1}', which no node, input or initializer produces",
                                  describeNode(node), input));
      }
    }
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_g()) {
        if (llvm::Error error = addSubgraph(user, attribute.g(), local, depth)) {
          return error;
        }
      }
    }
    return llvm::Error::success();
  }

  llvm::Error addSubgraph(int user, const onnx::GraphProto &sub, const llvm::StringSet<> &enclosing, unsigned depth) {
    llvm::StringSet<> local;
    for (const auto &entry : enclosing) {
      local.insert(entry.getKey());
    }
    for (const auto &input : sub.input()) {
      local.insert(input.name());
    }
    for (const auto &tensor : sub.initializer()) {
      local.insert(tensor.name());
    }
    for (const auto &node : sub.node()) {
      local.insert(node.output().begin(), node.output().end());
    }
    for (const auto &node : sub.node()) {
      if (llvm::Error error = addUses(user, node, local, depth + 1)) {
        return error;
      }
    }
    for (const auto &output : sub.output()) {
      auto it = producer.find(output.name());
      if (!local.contains(output.name()) && it != producer.end()) {
        users[it->second].push_back(user);
        ++pending[user];
      }
    }
    return llvm::Error::success();
  }

  llvm::Error collectEdges() {
    users.resize(graph.node_size());
    pending.assign(graph.node_size(), 0);
    llvm::StringSet<> none;
    for (int i = 0; i < graph.node_size(); ++i) {
      if (llvm::Error error = addUses(i, graph.node(i), none, 0)) {
        return error;
      }
    }
    return llvm::Error::success();
  }

  llvm::Expected<std::vector<const onnx::NodeProto *>> order() {
    // Ready nodes are taken by lowest index, so a file that is in order, as nearly all are, keeps its order.
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int i = 0; i < graph.node_size(); ++i) {
      if (pending[i] == 0) {
        ready.push(i);
      }
    }
    std::vector<const onnx::NodeProto *> sorted;
    sorted.reserve(graph.node_size());
    while (!ready.empty()) {
      int i = ready.top();
      ready.pop();
      sorted.push_back(&graph.node(i));
      for (int user : users[i]) {
        if (--pending[user] == 0) {
          ready.push(user);
        }
      }
    }
    if (static_cast<int>(sorted.size()) != graph.node_size()) {
      return describeCycle();
    }
    return sorted;
  }

  /// Walks backwards from an unfinished node along unfinished producers until a node repeats.
  llvm::Error describeCycle() {
    // Every unfinished node has an unfinished producer, otherwise it would have become ready.
    std::vector<int> waitsFor(graph.node_size(), -1);
    for (int i = 0; i < graph.node_size(); ++i) {
      for (int user : users[i]) {
        if (pending[i] > 0 && pending[user] > 0) {
          waitsFor[user] = i;
        }
      }
    }
    int at = static_cast<int>(llvm::find_if(pending, [](int count) { return count > 0; }) - pending.begin());
    std::vector<int> path;
    std::vector<bool> seen(graph.node_size(), false);
    for (; !seen[at]; at = waitsFor[at]) {
      seen[at] = true;
      path.push_back(at);
    }
    auto start = llvm::find(path, at);
    std::string text = describeNode(graph.node(at));
    for (auto it = path.rbegin(); it != std::make_reverse_iterator(start); ++it) {
      if (text.size() > 1000) {
        text += " -> ...";
        break;
      }
      text += " -> " + describeNode(graph.node(*it));
    }
    return fail(llvm::formatv("the graph is cyclic: {0}", text));
  }

  const onnx::GraphProto &graph;
  llvm::function_ref<bool(StringRef)> outer;
  llvm::StringSet<> given;
  llvm::StringMap<int> producer;
  std::vector<std::vector<int>> users;
  std::vector<int> pending;
};

} // namespace

bool isRandomResult(const onnx::GraphProto &graph, StringRef name) {
  return llvm::any_of(graph.node(), [&](const onnx::NodeProto &node) {
    return normalizeDomain(node.domain()).empty() && StringRef(node.op_type()).starts_with("Random") &&
           llvm::is_contained(node.output(), name);
  });
}

llvm::Expected<std::vector<const onnx::NodeProto *>> sortNodes(const onnx::GraphProto &graph,
                                                               llvm::function_ref<bool(StringRef)> outer) {
  return NodeSorter(graph, outer).run();
}

} // namespace tessera::top::onnx_import

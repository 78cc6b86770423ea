//===- CutGraph.cpp - Remove what the chosen outputs do not need ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/CutGraph.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <vector>

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

/// Calls |visit| for every tensor of enclosing graphs that |node| or its sub-graphs read.
void visitReads(const onnx::NodeProto &node, llvm::function_ref<void(StringRef)> visit) {
  for (const std::string &input : node.input()) {
    if (!input.empty()) {
      visit(input);
    }
  }
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (!attribute.has_g()) {
      continue;
    }
    const onnx::GraphProto &graph = attribute.g();
    llvm::StringSet<> local;
    for (const onnx::ValueInfoProto &input : graph.input()) {
      local.insert(input.name());
    }
    for (const onnx::TensorProto &tensor : graph.initializer()) {
      local.insert(tensor.name());
    }
    for (const onnx::NodeProto &inner : graph.node()) {
      local.insert(inner.output().begin(), inner.output().end());
    }
    auto visitOuter = [&](StringRef name) {
      if (!local.contains(name)) {
        visit(name);
      }
    };
    for (const onnx::NodeProto &inner : graph.node()) {
      visitReads(inner, visitOuter);
    }
    for (const onnx::ValueInfoProto &output : graph.output()) {
      visitOuter(output.name());
    }
  }
}

/// Returns the names of the tensors that |outputs| depend on, including |outputs|.
llvm::StringSet<> findAncestors(const onnx::GraphProto &graph, llvm::ArrayRef<std::string> outputs) {
  llvm::StringMap<std::vector<int>> producers;
  for (int i = 0; i < graph.node_size(); ++i) {
    for (const std::string &output : graph.node(i).output()) {
      producers[output].push_back(i);
    }
  }
  llvm::StringSet<> needed;
  std::vector<std::string> pending(outputs.begin(), outputs.end());
  while (!pending.empty()) {
    std::string name = std::move(pending.back());
    pending.pop_back();
    if (!needed.insert(name).second) {
      continue;
    }
    for (int i : producers.lookup(name)) {
      visitReads(graph.node(i), [&](StringRef read) { pending.push_back(read.str()); });
    }
  }
  return needed;
}

bool isTensor(const onnx::ValueInfoProto &value) {
  return value.type().has_tensor_type() && value.type().tensor_type().elem_type() != onnx::TensorProto::STRING;
}

} // namespace

void keepAncestors(onnx::GraphProto &graph, llvm::ArrayRef<std::string> outputs) {
  llvm::StringSet<> needed = findAncestors(graph, outputs);
  auto isNeeded = [&](const std::string &name) { return needed.contains(name); };
  auto &nodes = *graph.mutable_node();
  auto cut = std::stable_partition(nodes.begin(), nodes.end(),
                                   [&](const onnx::NodeProto &node) { return llvm::any_of(node.output(), isNeeded); });
  llvm::StringSet<> removed;
  for (auto it = cut; it != nodes.end(); ++it) {
    visitReads(*it, [&](StringRef name) { removed.insert(name); });
  }
  nodes.erase(cut, nodes.end());
  auto &inputs = *graph.mutable_input();
  auto unusable = std::stable_partition(inputs.begin(), inputs.end(), [&](const onnx::ValueInfoProto &input) {
    return isNeeded(input.name()) || !removed.contains(input.name()) || isTensor(input);
  });
  inputs.erase(unusable, inputs.end());
}

} // namespace tessera::top::onnx_import

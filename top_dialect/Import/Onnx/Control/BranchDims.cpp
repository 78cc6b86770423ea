//===- BranchDims.cpp - Dims of inputs that one branch reads --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Sizes/OpenDims.h"

#include "top_dialect/Import/Onnx/Model/OnnxProto.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

namespace tessera::top::onnx_import {

namespace {

/// The branches of the file's graph that read a name; null stands for the graph itself and the bodies of its loops.
using Readers = llvm::SmallPtrSet<const onnx::GraphProto *, 2>;
using ReadersByName = llvm::StringMap<Readers>;

/// Adds |reader| to all names that |graph| and its sub-graphs read.
void addReads(const onnx::GraphProto &graph, const onnx::GraphProto *reader, ReadersByName &readers) {
  for (const auto &output : graph.output()) {
    readers[output.name()].insert(reader);
  }
  for (const onnx::NodeProto &node : graph.node()) {
    for (const std::string &input : node.input()) {
      readers[input].insert(reader);
    }
    for (const auto &attribute : node.attribute()) {
      if (attribute.has_g()) {
        bool isBranch = !reader && node.op_type() == "If";
        addReads(attribute.g(), isBranch ? &attribute.g() : reader, readers);
      }
    }
  }
}

/// Returns the only branch that reads an input; null if there is none.
const onnx::GraphProto *branchOf(const Input &input, const ReadersByName &readers) {
  auto found = readers.find(input.name);
  return found != readers.end() && found->second.size() == 1 ? *found->second.begin() : nullptr;
}

} // namespace

void separateBranchDims(llvm::MutableArrayRef<Input> inputs, const onnx::GraphProto &graph, DimRanges &ranges) {
  ReadersByName readers;
  addReads(graph, nullptr, readers);
  using Key = std::pair<const onnx::GraphProto *, std::string>;
  std::map<std::string, const onnx::GraphProto *> owners; // of dim names: their first reader
  for (const Input &input : inputs) {
    for (const std::string &name : input.dimNames) {
      owners.emplace(name, branchOf(input, readers));
    }
  }
  std::map<Key, std::string> newNames;
  for (Input &input : inputs) {
    const onnx::GraphProto *branch = branchOf(input, readers);
    for (size_t axis = 0; branch && axis < input.shape.size(); ++axis) {
      std::string &name = input.dimNames[axis];
      if (name.empty() || owners[name] == branch || isBatch(input, axis)) {
        continue;
      }
      std::string own = llvm::formatv("{0}.{1}", input.name, axis);
      auto [entry, isNew] = newNames.try_emplace(Key(branch, name), own);
      if (auto given = ranges.byName.find(name); isNew && given != ranges.byName.end()) {
        DimRange range = given->second;
        range.min = 0;
        ranges.byName.emplace(own, range);
      }
      name = entry->second;
    }
  }
}

} // namespace tessera::top::onnx_import

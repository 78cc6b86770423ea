//===- Network.cpp - Identity of the network of a module ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Network.h"

#include "top_dialect/Import/Onnx/Model/OnnxTensor.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

using Visit = llvm::function_ref<bool(const onnx::TensorProto &)>;

bool visitTensors(const onnx::GraphProto &graph, Visit visit);

bool visitTensors(const onnx::AttributeProto &attribute, Visit visit) {
  return (!attribute.has_t() || visit(attribute.t())) && llvm::all_of(attribute.tensors(), visit) &&
         (!attribute.has_g() || visitTensors(attribute.g(), visit)) &&
         llvm::all_of(attribute.graphs(), [&](const auto &graph) { return visitTensors(graph, visit); });
}

bool visitNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes, Visit visit) {
  return llvm::all_of(nodes, [&](const onnx::NodeProto &node) {
    return llvm::all_of(node.attribute(), [&](const auto &each) { return visitTensors(each, visit); });
  });
}

/// Visits the tensors of the graph and of its sub-graphs in file order. Returns false as soon as |visit| returns false.
bool visitTensors(const onnx::GraphProto &graph, Visit visit) {
  return llvm::all_of(graph.initializer(), visit) && visitNodes(graph.node(), visit);
}

/// Appends the hash of the tensor's bytes if they are external. Returns false if they cannot be read.
bool addExternal(const onnx::TensorProto &tensor, const OnnxModel &model, mlir::MLIRContext *context,
                 std::string &hashes) {
  if (tensor.data_location() != onnx::TensorProto::EXTERNAL) {
    return true;
  }
  llvm::Expected<OnnxTensor> read = readTensor(tensor, model, context);
  if (!read) {
    llvm::consumeError(read.takeError());
    return false;
  }
  auto bytes = llvm::ArrayRef(reinterpret_cast<const uint8_t *>(read->bytes.data()), read->bytes.size());
  auto [low, high] = llvm::xxh3_128bits(bytes);
  hashes += llvm::formatv("{0:x-16}{1:x-16}", high, low);
  return true;
}

} // namespace

std::string identifyNetwork(const OnnxModel &model, const ImportOptions &options, mlir::MLIRContext *context) {
  std::string more = llvm::join(options.outputs, ",");
  for (const auto &[name, value] : options.inputValues.byName) {
    more += ";" + name + "=" + value.text;
  }
  auto add = [&](const onnx::TensorProto &tensor) { return addExternal(tensor, model, context, more); };
  if (!visitTensors(model.proto->graph(), add) ||
      !llvm::all_of(model.proto->functions(), [&](const auto &function) { return visitNodes(function.node(), add); })) {
    return "";
  }
  auto [low, high] = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(more));
  return llvm::formatv("{0:x-16}{1:x-16}", model.hash[1] ^ high, model.hash[0] ^ low);
}

} // namespace tessera::top::onnx_import

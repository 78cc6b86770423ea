//===- OnnxFunctions.cpp - Model-local functions of an ONNX file ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/OnnxFunctions.h"

#include "top_dialect/Import/Onnx/Model/ImportError.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/FormatVariadic.h"

#include <google/protobuf/unknown_field_set.h>

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

// Field numbers newer than the .proto of the linked protobuf classes, which keep them as unknown fields.
constexpr int kNodeOverload = 8;
constexpr int kFunctionAttributeDefault = 11;
constexpr int kFunctionOverload = 13;

/// Returns the last value of a field with a text or message, or "" if there is none.
template <typename Message>
std::string unknownField(const Message &message, int number) {
  const google::protobuf::UnknownFieldSet &fields = message.unknown_fields();
  std::string value;
  for (int i = 0; i < fields.field_count(); ++i) {
    if (fields.field(i).number() == number &&
        fields.field(i).type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
      value = fields.field(i).length_delimited();
    }
  }
  return value;
}

std::string keyOf(StringRef domain, StringRef name, StringRef overload) {
  return (normalizeDomain(domain) + StringRef("\0", 1) + name + StringRef("\0", 1) + overload).str();
}

std::string describe(const onnx::FunctionProto &function) {
  return llvm::formatv("function '{0}' of domain '{1}'", function.name(), function.domain());
}

/// Creates the body of a function for one call.
class Instance {
public:
  Instance(const onnx::FunctionProto &function, const onnx::NodeProto &call) : function(function), call(call) {}

  llvm::Error collect() {
    if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
      return fail(llvm::formatv("it has {0} inputs and {1} outputs; {2} has {3} and {4}", call.input_size(),
                                call.output_size(), describe(function), function.input_size(), function.output_size()));
    }
    for (int i = 0; i < function.input_size(); ++i) {
      if (i >= call.input_size() || call.input(i).empty()) {
        absent.insert(function.input(i));
      }
    }
    const google::protobuf::UnknownFieldSet &fields = function.unknown_fields();
    for (int i = 0; i < fields.field_count(); ++i) {
      const auto &field = fields.field(i);
      if (field.number() != kFunctionAttributeDefault ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
        continue;
      }
      onnx::AttributeProto attribute;
      if (!attribute.ParseFromString(field.length_delimited())) {
        return fail(describe(function) + " has an attribute default that cannot be read");
      }
      std::string name = attribute.name();
      attributes[name] = std::move(attribute);
    }
    for (const auto &attribute : call.attribute()) {
      attributes[attribute.name()] = attribute;
    }
    return llvm::Error::success();
  }

  bool isAbsent(StringRef name) const { return absent.contains(name); }

  llvm::Error rewrite(onnx::NodeProto &node) const {
    for (std::string &input : *node.mutable_input()) {
      if (absent.contains(input)) {
        input.clear();
      }
    }
    google::protobuf::RepeatedPtrField<onnx::AttributeProto> kept;
    for (onnx::AttributeProto &attribute : *node.mutable_attribute()) {
      if (!attribute.ref_attr_name().empty()) {
        auto it = attributes.find(attribute.ref_attr_name());
        if (it == attributes.end()) {
          continue; // neither given nor with a default: the default of the operator is used
        }
        std::string name = attribute.name();
        if (attribute.type() != onnx::AttributeProto::UNDEFINED &&
            it->second.type() != onnx::AttributeProto::UNDEFINED && attribute.type() != it->second.type()) {
          return fail(llvm::formatv("{0}: attribute '{1}' is attribute '{2}' of {3} and should have type {4}; the call "
                                    "gives it type {5}",
                                    describeNode(node), name, attribute.ref_attr_name(), describe(function),
                                    onnx::AttributeProto::AttributeType_Name(attribute.type()),
                                    onnx::AttributeProto::AttributeType_Name(it->second.type())));
        }
        attribute = it->second;
        attribute.set_name(name);
      } else if (attribute.has_g()) {
        if (llvm::Error error = rewrite(*attribute.mutable_g())) {
          return error;
        }
      }
      *kept.Add() = std::move(attribute);
    }
    node.mutable_attribute()->Swap(&kept);
    return llvm::Error::success();
  }

private:
  llvm::Error rewrite(onnx::GraphProto &graph) const {
    for (onnx::NodeProto &node : *graph.mutable_node()) {
      if (llvm::Error error = rewrite(node)) {
        return error;
      }
    }
    return llvm::Error::success();
  }

  const onnx::FunctionProto &function;
  const onnx::NodeProto &call;
  llvm::StringSet<> absent;
  llvm::StringMap<onnx::AttributeProto> attributes;
};

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// Counts nodes, including those of the functions they call.
class CallCounter {
public:
  explicit CallCounter(const OnnxModel &model) : model(model) {}

  llvm::Expected<int64_t> count(const Nodes &nodes) {
    int64_t sum = 0;
    for (const onnx::NodeProto &node : nodes) {
      const onnx::FunctionProto *function = findFunction(model, node);
      llvm::Expected<int64_t> below = function ? count(*function) : llvm::Expected<int64_t>(1);
      for (const auto &attribute : node.attribute()) {
        if (below && attribute.has_g()) {
          llvm::Expected<int64_t> inside = count(attribute.g().node());
          below = inside ? llvm::Expected<int64_t>(*below + *inside) : inside.takeError();
        }
      }
      if (!below) {
        return below;
      }
      sum = std::min(sum + *below, kMaxNodes + 1);
    }
    return sum;
  }

private:
  llvm::Expected<int64_t> count(const onnx::FunctionProto &function) {
    auto [it, isNew] = counts.try_emplace(&function, kOpen);
    if (!isNew && it->second != kOpen) {
      return it->second;
    }
    if (!isNew) {
      return fail(describe(function) + " calls itself, which functions must not");
    }
    auto found = count(function.node());
    if (found) {
      counts[&function] = *found;
    }
    return found;
  }

  static constexpr int64_t kOpen = -1;
  const OnnxModel &model;
  llvm::DenseMap<const onnx::FunctionProto *, int64_t> counts;
};

} // namespace

llvm::Error checkCalls(const OnnxModel &model) {
  if (model.functions->empty()) {
    return llvm::Error::success();
  }
  auto count = CallCounter(model).count(model.proto->graph().node());
  if (!count) {
    return count.takeError();
  }
  return *count <= kMaxNodes ? llvm::Error::success()
                             : fail(llvm::formatv("the model has more than {0} nodes with all function calls inlined; "
                                                  "that is the limit",
                                                  kMaxNodes));
}

llvm::Expected<FunctionTable> readFunctions(const onnx::ModelProto &proto) {
  FunctionTable table;
  for (const onnx::FunctionProto &function : proto.functions()) {
    std::string overload = unknownField(function, kFunctionOverload);
    if (!table.try_emplace(keyOf(function.domain(), function.name(), overload), &function).second) {
      return fail(llvm::formatv("the model has {0} twice{1}", describe(function),
                                overload.empty() ? "" : " with the overload '" + overload + "'"));
    }
  }
  return table;
}

const onnx::FunctionProto *findFunction(const OnnxModel &model, const onnx::NodeProto &node) {
  return model.functions->empty()
             ? nullptr
             : model.functions->lookup(keyOf(node.domain(), node.op_type(), unknownField(node, kNodeOverload)));
}

llvm::Expected<llvm::StringMap<int64_t>> opsetsOf(const OnnxModel &model, const onnx::FunctionProto &function) {
  llvm::StringMap<int64_t> opsets(model.opsets);
  for (const auto &entry : function.opset_import()) {
    opsets[normalizeDomain(entry.domain())] = entry.version();
  }
  if (opsets.lookup("") > kNewestOpset) {
    return fail(llvm::formatv("{0} uses ONNX opset {1}; the newest supported opset is {2}", describe(function),
                              opsets.lookup(""), kNewestOpset));
  }
  return opsets;
}

llvm::Expected<OnnxModel> instantiate(const OnnxModel &model, const onnx::FunctionProto &function,
                                      const onnx::NodeProto &call) {
  if (model.callDepth >= 64) {
    return fail(describe(function) + " is called more than 64 functions deep");
  }
  auto opsets = opsetsOf(model, function);
  if (!opsets) {
    return opsets.takeError();
  }
  Instance instance(function, call);
  if (llvm::Error error = instance.collect()) {
    return error;
  }
  OnnxModel body(model);
  body.opsets = std::move(*opsets);
  body.callDepth = model.callDepth + 1;
  body.proto = std::make_shared<onnx::ModelProto>();
  onnx::GraphProto &graph = *body.proto->mutable_graph();
  for (const std::string &input : function.input()) {
    if (!instance.isAbsent(input)) {
      graph.add_input()->set_name(input);
    }
  }
  for (const std::string &output : function.output()) {
    graph.add_output()->set_name(output);
  }
  *graph.mutable_node() = function.node();
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    if (llvm::Error error = instance.rewrite(node)) {
      return error;
    }
  }
  return body;
}

} // namespace tessera::top::onnx_import

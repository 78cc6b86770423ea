//===- OnnxSchemas.cpp - Check of nodes against the ONNX operator schemas --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Model/OnnxSchemas.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

constexpr int kAny = 1 << 30;

struct Schema {
  const char *name;
  int since;
  int minInputs, maxInputs, maxOutputs;
  const char *attributes; ///< separated by blanks; null means not checked
};

/// Sorted by name, and by version for each name.
constexpr Schema kSchemas[] = {
#include "top_dialect/Import/Onnx/Model/OnnxSchemas.inc"
};

const Schema *findSchema(StringRef name, int64_t opset) {
  const Schema *found = nullptr;
  const auto *first = llvm::partition_point(kSchemas, [&](const Schema &each) { return StringRef(each.name) < name; });
  for (; first != std::end(kSchemas) && first->name == name && first->since <= opset; ++first) {
    found = first;
  }
  return found;
}

/// Counts the names. Empty names at the end do not count.
int countGiven(const google::protobuf::RepeatedPtrField<std::string> &names) {
  int count = names.size();
  while (count > 0 && names.Get(count - 1).empty()) {
    --count;
  }
  return count;
}

bool hasWord(StringRef words, StringRef word) {
  llvm::SmallVector<StringRef> all;
  words.split(all, ' ');
  return llvm::is_contained(all, word);
}

std::string allowed(int least, int most) {
  return most == kAny    ? llvm::formatv("at least {0}", least).str()
         : least == most ? std::to_string(least)
                         : llvm::formatv("{0} to {1}", least, most).str();
}

} // namespace

llvm::Error checkSchema(const onnx::NodeProto &node, int64_t opset, ImportState &state) {
  const Schema *schema = findSchema(node.op_type(), opset);
  if (!schema) {
    return llvm::Error::success();
  }
  auto reject = [&](StringRef what, int actual, int least, int most) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                   llvm::formatv("{0}: it has {1} {2}{3}; {4} of opset {5} has {6}", describeNode(node),
                                                 actual, what, actual == 1 ? "" : "s", node.op_type(), opset,
                                                 allowed(least, most)));
  };
  int inputs = countGiven(node.input()), outputs = countGiven(node.output());
  if (inputs < schema->minInputs || inputs > schema->maxInputs) {
    return reject("input", inputs, schema->minInputs, schema->maxInputs);
  }
  if (outputs > schema->maxOutputs) {
    return reject("output", outputs, 0, schema->maxOutputs);
  }
  for (const auto &attribute : node.attribute()) {
    if (!schema->attributes || hasWord(schema->attributes, attribute.name()) || attribute.name().starts_with("_")) {
      continue;
    }
    // Warn once per operator and attribute, because an exporter writes the same attributes at every node.
    if (state.warned.insert(node.op_type() + " " + attribute.name()).second) {
      state.warnOnce(llvm::formatv("{0} has the attribute '{1}', which {2} of opset {3} does not have: other tools may "
                                   "interpret it differently",
                                   describeNode(node), attribute.name(), node.op_type(), opset)
                         .str());
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::top::onnx_import

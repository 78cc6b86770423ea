//===- OnnxDecoder.cpp - Import of language models from ONNX files --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/OnnxDecoder.h"

#include "top_dialect/IR/State.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Onnx/Model/OnnxModel.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"
#include "top_dialect/Import/StatePairs.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using llvm::StringRef;

namespace tessera::top {
namespace {

using namespace onnx_import;

constexpr StringRef kTokens = "input_ids", kLogits = "logits", kNew = "seq", kPast = "past";

/// Rewrites the graph of a decoder so that input_ids and the caches are its only inputs.
class DecoderGraph {
public:
  DecoderGraph(onnx::ModelProto &model, const DecoderOptions &options)
      : graph(*model.mutable_graph()), options(options) {}

  llvm::Error rewrite();
  /// Returns the number of positions that the caches are to hold.
  int64_t capacity() const { return options.context ? options.context : std::min(positions, kUsualContext); }

private:
  llvm::Error nameSizes();
  llvm::Error computeInputs();
  std::string computeInput(StringRef name, int64_t elementType);
  llvm::Error keepLastLogits();
  bool isConstant(StringRef tensor, unsigned depth = 4) const;
  const onnx::NodeProto *producerOf(StringRef tensor) const;
  llvm::Error readTables();

  static bool isCache(StringRef name) { return name.starts_with("past"); }
  std::string add(StringRef kind, std::vector<std::string> inputs, StringRef attribute = "", int64_t value = 0);
  std::string integers(std::vector<int64_t> values, bool isScalar = false);
  std::string sizeOf(StringRef tensor, int64_t axis);

  onnx::GraphProto &graph;
  const DecoderOptions &options;
  std::string firstCache;
  int64_t lengthAxis = -1;
  int64_t positions = std::numeric_limits<int64_t>::max(); ///< in the tables of rotary angles
  unsigned created = 0;
};

std::string DecoderGraph::add(StringRef kind, std::vector<std::string> inputs, StringRef attribute, int64_t value) {
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type(kind.str());
  node.set_name(llvm::formatv("tessera/{0}_{1}", kind, created++));
  for (std::string &input : inputs) {
    node.add_input(std::move(input));
  }
  node.add_output(node.name());
  if (!attribute.empty()) {
    onnx::AttributeProto &added = *node.add_attribute();
    added.set_name(attribute.str());
    added.set_type(onnx::AttributeProto::INT);
    added.set_i(value);
  }
  return node.name();
}

std::string DecoderGraph::integers(std::vector<int64_t> values, bool isScalar) {
  onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name(llvm::formatv("tessera/integers_{0}", created++));
  tensor.set_data_type(onnx::TensorProto::INT64);
  if (!isScalar) {
    tensor.add_dims(int64_t(values.size()));
  }
  for (int64_t value : values) {
    tensor.add_int64_data(value);
  }
  return tensor.name();
}

/// Returns dim |axis| of |tensor| as a scalar.
std::string DecoderGraph::sizeOf(StringRef tensor, int64_t axis) {
  return add("Gather", {add("Shape", {tensor.str()}), integers({axis}, /*isScalar=*/true)});
}

/// Gives one sequence to the inputs, and the names kNew and kPast to the numbers of new and of earlier tokens.
llvm::Error DecoderGraph::nameSizes() {
  bool hasTokens = false;
  for (onnx::ValueInfoProto &input : *graph.mutable_input()) {
    onnx::TensorShapeProto &shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
    if (input.name() == kTokens && shape.dim_size() == 2) {
      hasTokens = true;
      shape.mutable_dim(0)->set_dim_value(1);
      shape.mutable_dim(1)->set_dim_param(kNew.str());
    } else if (isCache(input.name()) && shape.dim_size() == 4) {
      shape.mutable_dim(0)->set_dim_value(1);
      for (int axis = 1; axis < 4; ++axis) {
        if (!shape.dim(axis).has_dim_value()) {
          shape.mutable_dim(axis)->set_dim_param(kPast.str());
          lengthAxis = axis, firstCache = input.name();
        }
      }
    }
  }
  return hasTokens && lengthAxis > 0
             ? llvm::Error::success()
             : unsupported("the file is not a decoder with caches: it needs the input 'input_ids' [batch, tokens] and "
                           "inputs 'past_key_values.N.key' and '.value' of rank 4 with an open number of tokens");
}

/// Returns a tensor with the value that an input of decoders has in each run; empty if |name| is not such an input.
std::string DecoderGraph::computeInput(StringRef name, int64_t elementType) {
  const bool isMask = name == "attention_mask", isVector = name == "cache_position";
  if (name == "use_cache_branch") {
    return add("Cast", {integers({1})}, "to", elementType);
  }
  if (!isMask && !isVector && name != "position_ids") {
    return "";
  }
  std::string past = sizeOf(firstCache, lengthAxis), total = add("Add", {past, sizeOf(kTokens, 1)}), value;
  if (isMask) {
    std::string shape = add("Concat", {integers({1}), add("Reshape", {total, integers({1})})}, "axis", 0);
    value = add("Expand", {integers({1}), shape});
  } else {
    value = add("Range", {past, total, integers({1}, /*isScalar=*/true)});
    value = isVector ? value : add("Unsqueeze", {value, integers({0})});
  }
  return elementType == onnx::TensorProto::INT64 ? value : add("Cast", {value}, "to", elementType);
}

/// Replaces the inputs that follow from the length of the caches by nodes.
llvm::Error DecoderGraph::computeInputs() {
  auto &inputs = *graph.mutable_input();
  for (int i = inputs.size(); i-- > 0;) {
    std::string name = inputs[i].name();
    auto isInitializer = [&](const onnx::TensorProto &tensor) { return tensor.name() == name; };
    if (name == kTokens || isCache(name) || llvm::any_of(graph.initializer(), isInitializer)) {
      continue;
    }
    std::string value = computeInput(name, inputs[i].type().tensor_type().elem_type());
    if (value.empty()) {
      return unsupported("the input '" + name +
                         "' is not one of a decoder: input_ids, attention_mask, position_ids, cache_position, "
                         "use_cache_branch and past_key_values.*");
    }
    onnx::NodeProto &node = *graph.add_node();
    node.set_op_type("Identity");
    node.add_input(value);
    node.add_output(name);
    inputs.DeleteSubrange(i, 1);
  }
  return llvm::Error::success();
}

const onnx::NodeProto *DecoderGraph::producerOf(StringRef tensor) const {
  for (const onnx::NodeProto &node : graph.node()) {
    if (llvm::is_contained(node.output(), tensor)) {
      return &node;
    }
  }
  return nullptr;
}

/// Returns true if |tensor| is a constant, or computed from one constant.
bool DecoderGraph::isConstant(StringRef tensor, unsigned depth) const {
  if (llvm::any_of(graph.initializer(), [&](const auto &constant) { return constant.name() == tensor; })) {
    return true;
  }
  const onnx::NodeProto *node = producerOf(tensor);
  return node && depth > 0 && node->input_size() > 0 &&
         llvm::all_of(node->input(), [&](const std::string &input) { return isConstant(input, depth - 1); });
}

/// Cuts the logits to those of the last token: before the matmul that computes them from [1, tokens, width], if there
/// is one, because it is the largest of the network.
llvm::Error DecoderGraph::keepLastLogits() {
  std::string name = kLogits.str();
  onnx::NodeProto *producer = nullptr;
  while (auto *node = const_cast<onnx::NodeProto *>(producerOf(name))) {
    producer = node;
    if (node->op_type() != "Cast" && node->op_type() != "Identity") {
      break;
    }
    name = node->input(0);
  }
  if (!producer) {
    return unsupported("the file has no output 'logits'");
  }
  const bool isMatMul =
      producer->op_type() == "MatMulNBits" || (producer->op_type() == "MatMul" && isConstant(producer->input(1)));
  auto last = [&](const std::string &tensor) {
    const int64_t end = std::numeric_limits<int64_t>::max();
    return add("Slice", {tensor, integers({-1}), integers({end}), integers({1})});
  };
  if (isMatMul) {
    const std::string output = producer->output(0); // add() may move the node
    std::string rows = last(producer->input(0));
    const_cast<onnx::NodeProto *>(producerOf(output))->set_input(0, rows);
    return llvm::Error::success();
  }
  std::string whole = kLogits.str() + "/all";
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    for (std::string &output : *node.mutable_output()) {
      output = output == kLogits ? whole : output;
    }
  }
  std::string rows = last(whole);
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type("Identity");
  node.add_input(rows);
  node.add_output(kLogits.str());
  return llvm::Error::success();
}

/// Reads the number of positions in the tables of rotary angles.
llvm::Error DecoderGraph::readTables() {
  constexpr int kAngles = 7, kRotaryAngles = 2; // cos_cache
  for (const onnx::NodeProto &node : graph.node()) {
    const int input = node.op_type() == "GroupQueryAttention" ? kAngles : kRotaryAngles;
    const bool isRotary = node.op_type() == "RotaryEmbedding" && node.domain() == "com.microsoft";
    if ((node.op_type() != "GroupQueryAttention" && !isRotary) || node.input_size() <= input) {
      continue;
    }
    for (const onnx::TensorProto &tensor : graph.initializer()) {
      const bool isTable = tensor.name() == node.input(input) && tensor.dims_size() == 2;
      positions = isTable ? std::min<int64_t>(positions, tensor.dims(0)) : positions;
    }
  }
  return options.context <= positions
             ? llvm::Error::success()
             : llvm::createStringError(llvm::formatv("--context {0}: the model has rotary angles for {1} positions; "
                                                     "choose at most these",
                                                     options.context, positions)
                                           .str());
}

llvm::Error DecoderGraph::rewrite() {
  if (llvm::Error error = nameSizes()) {
    return error;
  }
  if (llvm::Error error = readTables()) {
    return error;
  }
  if (llvm::Error error = computeInputs()) {
    return error;
  }
  return options.allLogits ? llvm::Error::success() : keepLastLogits();
}

/// Makes the caches states.
llvm::Error makeStates(mlir::func::FuncOp function) {
  std::vector<StatePair> pairs = findStatePairs(function);
  if (pairs.size() + 1 != function.getNumArguments()) {
    return unsupported(llvm::formatv("only {0} of the {1} caches have an output 'present.*' of their length and that "
                                     "of the new tokens",
                                     pairs.size(), function.getNumArguments() - 1));
  }
  return markStates(function, pairs);
}

} // namespace

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importOnnxDecoder(StringRef path, const DecoderOptions &options,
                                                                    std::function<void(StringRef)> warn,
                                                                    mlir::MLIRContext &context) {
  auto model = loadOnnxModel(path);
  if (!model) {
    return model.takeError();
  }
  DecoderGraph graph(*model->proto, options);
  if (llvm::Error error = graph.rewrite()) {
    return std::move(error);
  }
  const int64_t capacity = graph.capacity();
  ImportOptions importOptions;
  importOptions.modelName = options.modelName;
  importOptions.keepsFormats = options.keepsFormats;
  importOptions.warn = std::move(warn);
  importOptions.dims.byName[kNew.str()] = {1, std::min(options.chunk, capacity), 1, 1};
  importOptions.dims.byName[kPast.str()] = {0, capacity, 1, capacity / 4};
  auto module = importOnnx(std::move(*model), importOptions, context);
  if (!module) {
    return module;
  }
  if (llvm::Error error = makeStates((**module).lookupSymbol<mlir::func::FuncOp>("main"))) {
    return std::move(error);
  }
  return module;
}

} // namespace tessera::top

//===- OnnxInputs.cpp - The inputs of the graph, with the user's sizes and values --===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/OnnxInputs.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/ShapeInference.h"
#include "top_dialect/IR/Unsupported.h"
#include "top_dialect/Import/Onnx/Model/ImportError.h"
#include "top_dialect/Import/Onnx/Model/OnnxTensor.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;

namespace tessera::top::onnx_import {

namespace {

/// Limit on the number of dims of a tensor, the same as in the .bmodel (bmodel_format's ValidateTensors.cpp).
constexpr int64_t kMaxRank = 16;

std::string format(llvm::ArrayRef<int64_t> shape) { return detail::formatShape(shape); }

/// Returns whether dims with this dim_param are equal. Exporters also write "?", "-1" or "None" for any open dim.
bool namesOneSize(StringRef name) {
  return !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') && name != "None" &&
         !name.equals_insensitive("unknown");
}

class InputReader {
public:
  InputReader(const OnnxModel &model, const ImportOptions &options, mlir::MLIRContext *context)
      : graph(model.proto->graph()), options(options), context(context) {}

  llvm::Expected<std::vector<Input>> run() {
    for (auto step : {&InputReader::collect, &InputReader::applyShapes, &InputReader::applyValues,
                      &InputReader::bindDimNames, &InputReader::checkSizes}) {
      if (llvm::Error error = (this->*step)()) {
        return error;
      }
    }
    return std::move(inputs);
  }

private:
  llvm::Error collect() {
    llvm::StringSet<> initializers;
    for (const auto &tensor : graph.initializer()) {
      initializers.insert(tensor.name());
    }
    for (const auto &proto : graph.input()) {
      if (initializers.contains(proto.name())) {
        continue;
      }
      auto input = read(proto);
      if (!input) {
        return input.takeError();
      }
      inputs.push_back(std::move(*input));
    }
    return llvm::Error::success();
  }

  llvm::Expected<Input> read(const onnx::ValueInfoProto &proto) {
    if (!proto.type().has_tensor_type()) {
      return unsupported(
          llvm::formatv("input '{0}' is not a tensor; sequences, maps and optionals are not supported", proto.name()));
    }
    const auto &tensor = proto.type().tensor_type();
    auto element = elementTypeOf(tensor.elem_type(), context);
    if (!element) {
      return prefixed(element.takeError(), llvm::formatv("input '{0}': ", proto.name()));
    }
    const std::vector<int64_t> *given = findShape(proto.name());
    if (const auto &byPosition = options.inputShapes.byPosition; !given && inputs.size() < byPosition.size()) {
      given = &byPosition[inputs.size()];
    }
    if (!tensor.has_shape() && !given) {
      return unsupported(
          llvm::formatv("input '{0}' has no shape in the file; give it with --input_shapes {0}=..., e.g. "
                        "{0}=1x3x224x224, or {0}=scalar",
                        proto.name()));
    }
    const StorageType *storage = findStorageType(tensor.elem_type());
    Input input{proto.name(), storage ? storage->boundary(context) : *element, {}, {}, {}, storage};
    for (const auto &dim : tensor.shape().dim()) {
      // A size of 0 is an empty dim. Some exporters write -1 for an open dim.
      input.shape.push_back(dim.has_dim_value() && dim.dim_value() != -1 ? dim.dim_value()
                                                                         : mlir::ShapedType::kDynamic);
      input.dimNames.push_back(namesOneSize(dim.dim_param()) ? dim.dim_param() : "");
      if (dim.has_dim_value() && dim.dim_value() < -1) {
        return fail(llvm::formatv("input '{0}' has a dim of size {1}", proto.name(), dim.dim_value()));
      }
    }
    if (!tensor.has_shape()) {
      input.shape.assign(given->size(), mlir::ShapedType::kDynamic);
      input.dimNames.resize(input.shape.size());
    }
    return input;
  }

  const std::vector<int64_t> *findShape(StringRef name) {
    auto it = options.inputShapes.byName.find(name.str());
    return it == options.inputShapes.byName.end() ? nullptr : &it->second;
  }

  std::string inputList() {
    std::string text;
    for (const Input &input : inputs) {
      text += (text.empty() ? "" : ", ") + llvm::formatv("'{0}' [{1}]", input.name, format(input.shape)).str();
    }
    return text;
  }

  llvm::Error applyShapes() {
    const InputShapes &given = options.inputShapes;
    for (const auto &[name, dims] : given.byName) {
      auto it = llvm::find_if(inputs, [&](const Input &input) { return input.name == name; });
      if (it == inputs.end()) {
        return fail(
            llvm::formatv("input shapes name '{0}', which is not an input; the inputs are {1}", name, inputList()));
      }
      if (llvm::Error error = applyShape(*it, dims)) {
        return error;
      }
    }
    if (given.byPosition.size() > inputs.size()) {
      return fail(llvm::formatv("{0} input shapes are given, but the model has {1} input{2}: {3}",
                                given.byPosition.size(), inputs.size(), inputs.size() == 1 ? "" : "s", inputList()));
    }
    for (auto [input, dims] : llvm::zip(inputs, given.byPosition)) {
      if (!dims.empty() || input.shape.empty()) {
        if (llvm::Error error = applyShape(input, dims)) {
          return error;
        }
      }
    }
    return llvm::Error::success();
  }

  llvm::Error applyShape(Input &input, const std::vector<int64_t> &dims) {
    if (dims.size() != input.shape.size()) {
      return fail(llvm::formatv("the shape given for input '{0}' has rank {1} ({2}); the model expects rank {3} ({4})",
                                input.name, dims.size(), format(dims), input.shape.size(), format(input.shape)));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == -1) {
        continue;
      }
      if (dims[d] < 0 || dims[d] > int64_t(1) << 40) {
        return fail(llvm::formatv("dim {0} of input '{1}' is given as {2}; expected a size", d, input.name, dims[d]));
      }
      // Old exporters wrote 0 for an open dim, so a size given by the user replaces it.
      if (!mlir::ShapedType::isDynamic(input.shape[d]) && input.shape[d] != dims[d] && input.shape[d] != 0) {
        return fail(llvm::formatv(
            "dim {0} of input '{1}' is {2} in the model and cannot be {3}: only the open dims of [{4}] can be "
            "chosen",
            d, input.name, input.shape[d], dims[d], format(input.shape)));
      }
      input.shape[d] = dims[d];
    }
    return llvm::Error::success();
  }

  llvm::Error applyValues() {
    for (const auto &[name, value] : options.inputValues.byName) {
      auto it = llvm::find_if(inputs, [&](const Input &input) { return input.name == name; });
      if (it == inputs.end() && isRandomResult(graph, name)) {
        continue; // becomes an input when its node is imported
      }
      if (it == inputs.end()) {
        return fail(
            llvm::formatv("input values name '{0}', which is not an input; the inputs are {1}", name, inputList()));
      }
      auto bytes = value.encode(name, it->shape, it->element);
      if (!bytes) {
        return bytes.takeError();
      }
      it->value = std::move(*bytes);
    }
    return llvm::Error::success();
  }

  /// Checks that each dim name has the same size in all inputs.
  llvm::Error bindDimNames() {
    llvm::StringMap<std::pair<int64_t, std::string>> sizes;
    for (const Input &input : inputs) {
      for (auto [dim, name] : llvm::zip_equal(input.shape, input.dimNames)) {
        if (name.empty() || mlir::ShapedType::isDynamic(dim)) {
          continue;
        }
        auto [it, added] = sizes.try_emplace(name, dim, input.name);
        if (!added && it->second.first != dim) {
          return fail(llvm::formatv(
              "the dim '{0}' is {1} in input '{2}' and {3} in input '{4}'; a name must have a single size", name,
              it->second.first, it->second.second, dim, input.name));
        }
      }
    }
    for (Input &input : inputs) {
      for (auto [dim, name] : llvm::zip_equal(input.shape, input.dimNames)) {
        auto it = sizes.find(name);
        if (mlir::ShapedType::isDynamic(dim) && it != sizes.end()) {
          dim = it->second.first;
        }
      }
    }
    return llvm::Error::success();
  }

  llvm::Error checkSizes() {
    for (const Input &input : inputs) {
      if (llvm::Error error =
              checkTensorSize(input.getType(), llvm::formatv("input '{0}'", input.name), options.tensorLimit())) {
        return error;
      }
    }
    return llvm::Error::success();
  }

  const onnx::GraphProto &graph;
  const ImportOptions &options;
  mlir::MLIRContext *context;
  std::vector<Input> inputs;
};

//--- proposals for open dims ---

bool hasAny(StringRef text, llvm::ArrayRef<StringRef> words) {
  return llvm::any_of(words, [&](StringRef word) { return text.contains_insensitive(word); });
}

constexpr int64_t kSamples = 16000, kFrames = 8;

/// Returns a size based on the name of a dim, or nothing if the name is unknown.
std::optional<int64_t> sizeByName(StringRef name, const LikelySizes &likely) {
  if (name.contains('+')) { // "past_sequence_length + 1", as in exports by transformers
    int64_t sum = 0;
    llvm::SmallVector<StringRef> terms;
    name.split(terms, '+');
    for (StringRef term : terms) {
      int64_t number = 0;
      auto size = term.trim().getAsInteger(10, number) ? sizeByName(term.trim(), likely) : std::optional(number);
      if (!size) {
        return std::nullopt;
      }
      sum += *size;
    }
    return sum;
  }
  std::string lower = name.lower();
  if (hasAny(name, {"batch"}) || lower == "n" || lower == "b" || lower == "bs") {
    return 1;
  }
  if (hasAny(name, {"height", "width"}) || lower == "h" || lower == "w") {
    return likely.picture;
  }
  if (hasAny(name, {"channel"}) || lower == "c") {
    return 3;
  }
  if (hasAny(name, {"samples", "audio", "wave"})) {
    return kSamples;
  }
  if (hasAny(name, {"seq", "token", "length", "text", "past", "total", "ctx", "time"})) {
    return likely.tokens;
  }
  return hasAny(name, {"frame"}) ? std::optional(kFrames) : std::nullopt;
}

int64_t proposeDim(const Input &input, size_t axis, const LikelySizes &likely) {
  if (auto size = sizeByName(input.dimNames[axis], likely)) {
    return *size;
  }
  size_t rank = input.shape.size();
  bool audio = hasAny(input.name, {"audio", "wave", "speech", "pcm", "sample", "signal", "sound"});
  if (axis == 0) {
    return audio && rank == 1 ? kSamples : 1;
  }
  if (rank >= 4 && llvm::isa<mlir::FloatType, mlir::IntegerType>(input.element)) {
    bool lastAreChannels =
        input.shape[rank - 1] >= 1 && input.shape[rank - 1] <= 4 && input.shape[1] != 1 && input.shape[1] != 3;
    size_t channels = lastAreChannels ? rank - 1 : 1;
    bool spatial = axis != channels && axis >= rank - 2 - (lastAreChannels ? 1 : 0);
    return spatial ? likely.picture : axis == channels ? 3 : kFrames;
  }
  bool state = hasAny(input.name, {"state", "hidden", "cell"}) || input.name == "h0" || input.name == "c0";
  if (state && rank == 3 && axis == 1) {
    return 1; // for a recurrent op: layers, batch, features
  }
  return audio ? kSamples : likely.tokens;
}

} // namespace

bool isBatch(const Input &input, size_t axis) {
  StringRef name = input.dimNames[axis];
  if (name.contains('+')) {
    return false;
  }
  auto size = sizeByName(name, LikelySizes{2, 2});
  return size ? *size == 1 : axis == 0 && input.shape.size() > 1;
}

DimRange defaultRange(const Input &input, size_t axis) {
  constexpr LikelySizes kLikely{224, 128};
  int64_t size = proposeDim(input, axis, kLikely);
  if (isBatch(input, axis)) {
    return {1, 8, 1, 8};
  }
  if (size == kLikely.picture) {
    return {32, 1280, 32, 224};
  }
  if (size == kLikely.tokens) {
    return {hasAny(input.dimNames[axis], {"past"}) ? 0 : 1, 2048, 1, 128};
  }
  return size == kSamples ? DimRange{1, 16 * kSamples, 1, kSamples} : DimRange{size, size, 1, size};
}

std::vector<Input *> assumeSingleBatch(llvm::MutableArrayRef<Input> inputs) {
  std::vector<Input *> assumed;
  for (Input &input : inputs) {
    for (auto [axis, dim] : llvm::enumerate(input.shape)) {
      if (mlir::ShapedType::isDynamic(dim) && !isBatch(input, axis)) {
        return {};
      }
    }
    if (input.isOpen()) {
      assumed.push_back(&input);
    }
  }
  for (Input *input : assumed) {
    llvm::replace(input->shape, mlir::ShapedType::kDynamic, int64_t(1));
  }
  return assumed;
}

llvm::Expected<std::vector<Input>> readInputs(const OnnxModel &model, const ImportOptions &options,
                                              mlir::MLIRContext *context) {
  return InputReader(model, options, context).run();
}

std::map<std::string, std::vector<int64_t>> proposeShapes(llvm::ArrayRef<Input> inputs, const LikelySizes &likely) {
  std::map<std::string, std::vector<int64_t>> proposal;
  llvm::StringMap<int64_t> sizes;
  for (const Input &input : inputs) {
    if (!input.isOpen() || input.value) {
      continue;
    }
    std::vector<int64_t> &dims = proposal[input.name];
    for (auto [axis, dim] : llvm::enumerate(input.shape)) {
      StringRef name = input.dimNames[axis];
      if (!mlir::ShapedType::isDynamic(dim)) {
        dims.push_back(dim);
      } else if (name.empty()) {
        dims.push_back(proposeDim(input, axis, likely));
      } else {
        dims.push_back(sizes.try_emplace(name, proposeDim(input, axis, likely)).first->second);
      }
    }
  }
  return proposal;
}

llvm::Error openDims(llvm::ArrayRef<Input> inputs, const std::map<std::string, std::vector<int64_t>> &proposal,
                     StringRef rejection) {
  std::string list, flag;
  for (const Input &input : inputs) {
    auto it = proposal.find(input.name);
    if (it == proposal.end()) {
      continue;
    }
    list += (list.empty() ? "" : ", ") + llvm::formatv("'{0}' [{1}]", input.name, format(input.shape)).str();
    flag += (flag.empty() ? "" : ",") + llvm::formatv("{0}={1}", input.name, format(it->second)).str();
  }
  std::string text =
      llvm::formatv("the model does not fix the sizes of its inputs (? is open): {0}; add the flag, with "
                    "the sizes you need: --input_shapes {1}",
                    list, flag);
  if (!rejection.empty()) {
    text += llvm::formatv(" (these are a guess that the import rejects: {0})", rejection);
  }
  return fail(text);
}

/// Returns the number of bytes at the largest sizes, or 0 if a size is unknown.
static int64_t largestByteSize(mlir::RankedTensorType type) {
  if (!Shape(type).isDetermined()) {
    return 0;
  }
  auto largest = llvm::map_to_vector(Shape(type).dims(), [](Dim size) { return maxOf(size); });
  return byteSize(mlir::RankedTensorType::get(largest, type.getElementType()));
}

llvm::Error checkTensorSize(mlir::RankedTensorType type, const llvm::Twine &what, int64_t limit) {
  std::string shape = detail::formatShape(Shape(type).dims());
  if (type.getRank() > kMaxRank) {
    return unsupported(
        llvm::formatv("{0} has rank {1}; at most {2} is supported", what.str(), type.getRank(), kMaxRank));
  }
  if (detail::exceedsLimit(type)) {
    return fail(llvm::formatv("{0} of {1} elements exceeds the limit of {2} GiB per tensor", what.str(), shape,
                              detail::kMaxTensorBytes >> 30));
  }
  int64_t bytes = largestByteSize(type);
  if (bytes > limit) {
    return fail(llvm::formatv(
        "{0} of {1} elements takes {2:F1} GiB; the limit is {3:F1} GiB, the memory of this machine "
        "unless --memory_limit is given",
        what.str(), shape, static_cast<double>(bytes) / (1 << 30), static_cast<double>(limit) / (1 << 30)));
  }
  return llvm::Error::success();
}

} // namespace tessera::top::onnx_import

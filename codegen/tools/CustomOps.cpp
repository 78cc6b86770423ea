//===- CustomOps.cpp - Libraries of custom operators ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/CustomOps.h"

#include "bmodel/custom_ops.h"
#include "bmodel/kernel_abi.h"
#include "bmodel/tensor_layout.h"
#include "codegen/Target/Tensors.h"
#include "top_dialect/IR/CustomOperators.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/Builders.h"
#include <cstdlib>
#include <deque>

using namespace mlir;
using namespace tessera;

namespace {

/// Bytes at an address that custom operators accept.
class AlignedBytes {
public:
  explicit AlignedBytes(size_t bytes)
      : data(static_cast<char *>(std::aligned_alloc(BM_ALIGNMENT, (bytes / BM_ALIGNMENT + 1) * BM_ALIGNMENT))) {
    if (!data) {
      llvm::report_bad_alloc_error("no memory for a tensor of a custom operator");
    }
  }
  AlignedBytes(const AlignedBytes &) = delete;
  ~AlignedBytes() { std::free(data); }

  char *const data;
};

/// The open sizes of one call of a shape rule. The rule sees each as a number far from all sizes and from each other,
/// so that an open size with which it computes by itself is most likely none.
class OpenSizes {
public:
  /// Returns the value that stands for |size|; the same for equal sizes.
  int64_t encode(Dim size) {
    if (!size.isSymbolic()) {
      return size.isKnown() ? size.value() : TESSERA_NO_SIZE;
    }
    auto known = llvm::find(sizes, size.expression());
    int64_t index = known - sizes.begin();
    if (known == sizes.end()) {
      sizes.push_back(size.expression());
    }
    return kFirst - kDistance * index;
  }

  /// Returns an unknown size for a value that encode() has not returned.
  Dim decode(int64_t value) const {
    if (!tessera_is_open(value)) {
      return value;
    }
    bool isCode =
        value <= kFirst && (kFirst - value) % kDistance == 0 && size_t((kFirst - value) / kDistance) < sizes.size();
    return isCode ? Dim(sizes[size_t((kFirst - value) / kDistance)]) : Dim(ShapedType::kDynamic);
  }

  /// A size that the run finds.
  struct Found {
    int64_t index; ///< in the last output
    Dim most;
  };

  /// Returns null if |value| does not stand for a size that the run finds.
  const Found *findFound(int64_t value) const {
    int64_t distance = kFirst - kFoundOffset - value;
    bool isCode = distance >= 0 && distance % kDistance == 0 && size_t(distance / kDistance) < found.size();
    return isCode ? &found[size_t(distance / kDistance)] : nullptr;
  }

  int64_t combine(uint32_t op, int64_t first, int64_t second) {
    if (op == TESSERA_SIZE_FOUND) {
      Dim most = decode(second);
      if (most.isUnknown() || minOf(most) < 0) {
        return TESSERA_NO_SIZE;
      }
      found.push_back({first, most});
      return kFirst - kFoundOffset - kDistance * int64_t(found.size() - 1);
    }
    Dim a = decode(first), b = decode(second);
    switch (op) {
    case TESSERA_SIZE_ADD:
      return encode(a + b);
    case TESSERA_SIZE_SUB:
      return encode(a - b);
    case TESSERA_SIZE_MUL:
      return encode(a * b);
    case TESSERA_SIZE_FLOOR_DIV:
      return encode(floorDiv(a, b));
    case TESSERA_SIZE_CEIL_DIV:
      return encode(ceilDiv(a, b));
    case TESSERA_SIZE_MOD:
      return encode(mod(a, b));
    case TESSERA_SIZE_MIN:
      return encode(min(a, b));
    case TESSERA_SIZE_MAX:
      return encode(max(a, b));
    default:
      return TESSERA_NO_SIZE;
    }
  }

private:
  static constexpr int64_t kDistance = int64_t(1) << 24, kFirst = -(int64_t(1) << 62) - kDistance;
  static constexpr int64_t kFoundOffset = kDistance / 2; ///< no rule can compute with these values
  SmallVector<top::SizeAttr> sizes;
  SmallVector<Found> found;
};

std::optional<tessera_tensor_t> describe(RankedTensorType type, OpenSizes &sizes) {
  std::optional<bmodel::DType> dtype = codegen::dtypeOf(type.getElementType());
  Shape shape = type;
  if (!dtype || type.getRank() > TESSERA_CUSTOM_OP_MAX_RANK || !shape.isDetermined()) {
    return std::nullopt;
  }
  tessera_tensor_t tensor = {};
  tensor.dtype = uint32_t(*dtype), tensor.rank = uint32_t(type.getRank());
  llvm::transform(shape.dims(), tensor.shape, [&](Dim size) { return sizes.encode(size); });
  bool fits = !shape.isKnown() ||
              bmodel::storedBytes(*dtype, tensor.shape, tensor.rank, bmodel::LayoutKind::RowMajor, 0, 0, tensor.bytes);
  return fits ? std::optional(tensor) : std::nullopt;
}

Type elementOf(bmodel::DType dtype, MLIRContext *context) {
  Builder b(context);
  for (Type type : {Type(b.getF32Type()), Type(b.getF16Type()), Type(b.getBF16Type()), Type(b.getF64Type()),
                    Type(b.getI1Type()), Type(b.getI8Type()), Type(b.getI16Type()), Type(b.getI32Type()),
                    Type(b.getI64Type()), Type(b.getIntegerType(8, false)), Type(b.getIntegerType(16, false)),
                    Type(b.getIntegerType(32, false)), Type(b.getIntegerType(64, false))}) {
    if (codegen::dtypeOf(type) == dtype) {
      return type;
    }
  }
  llvm_unreachable("every element type of the format is in the list");
}

/// Returns the type of an output that a shape rule has set.
llvm::Expected<RankedTensorType> typeOf(const tessera_tensor_t &tensor, const OpenSizes &sizes, MLIRContext *context) {
  SmallVector<Dim> shape;
  for (int64_t size : ArrayRef(tensor.shape, tensor.rank)) {
    const OpenSizes::Found *found = sizes.findFound(size);
    shape.push_back(found ? found->most : sizes.decode(size));
    if (shape.back().isUnknown() || maxOf(shape.back()) < 0) {
      return llvm::createStringError("the shape rule of a custom operator gives an output a size that is neither a "
                                     "number nor a result of tessera_size_add and the like; these fail if a size may "
                                     "overflow or a divisor may be 0");
    }
  }
  return tensorType(shape, elementOf(bmodel::DType(tensor.dtype), context));
}

/// Adds the sizes of output |index| that the run finds.
void addFoundSizes(const tessera_tensor_t &output, unsigned index, const OpenSizes &sizes,
                   SmallVectorImpl<top::FoundSize> &result) {
  for (auto [dim, size] : llvm::enumerate(ArrayRef(output.shape, output.rank))) {
    if (const OpenSizes::Found *found = sizes.findFound(size)) {
      result.push_back({index, unsigned(dim), found->index});
    }
  }
}

llvm::Error errorOf(const bmodel::Status &status) { return llvm::createStringError(status.message); }

/// The tensors and the text of one call.
struct Arguments {
  std::vector<tessera_tensor_t> tensors;
  std::string attributes;
  OpenSizes sizes;

  /// Describes a call whose |inputs| are the first tensors; |types| are those of all known tensors.
  static llvm::Expected<Arguments> create(const top::CustomCall &call, ArrayRef<RankedTensorType> types) {
    Arguments result;
    result.attributes = call.attributes.str();
    for (RankedTensorType type : types) {
      std::optional<tessera_tensor_t> tensor = describe(type, result.sizes);
      if (!tensor) {
        std::string text;
        llvm::raw_string_ostream(text) << "a custom operator cannot take a tensor of type " << type;
        return llvm::createStringError(text);
      }
      result.tensors.push_back(*tensor);
    }
    return result;
  }

  tessera_custom_call_t callWith(const top::CustomCall &call, size_t inputs) {
    tessera_custom_call_t result = {};
    result.version = call.version, result.attributes = attributes.c_str();
    result.inputs = tensors.data(), result.input_count = uint32_t(inputs);
    result.outputs = tensors.data() + inputs, result.output_count = uint32_t(tensors.size() - inputs);
    return result;
  }
};

int64_t combineSizes(const tessera_custom_call_t *call, uint32_t op, int64_t a, int64_t b) {
  return static_cast<OpenSizes *>(call->sizes)->combine(op, a, b);
}

class LoadedOperators final : public top::CustomOperators {
public:
  bool contains(StringRef domain, StringRef name) const override { return find(domain, name); }
  bool acceptsOpenSizes(StringRef domain, StringRef name) const override {
    return bmodel::acceptsOpenSizes(*find(domain, name));
  }

  bool findsSizes(StringRef domain, StringRef name) const override { return bmodel::findsSizes(*find(domain, name)); }

  llvm::Expected<SmallVector<RankedTensorType>> infer(const top::CustomCall &call, ArrayRef<RankedTensorType> inputs,
                                                      unsigned outputs,
                                                      SmallVectorImpl<top::FoundSize> *found) const override {
    llvm::Expected<Arguments> arguments = Arguments::create(call, inputs);
    if (!arguments) {
      return arguments.takeError();
    }
    if (inputs.empty()) {
      return llvm::createStringError("a custom operator needs an input");
    }
    const bmodel::CustomOp &op = *find(call.domain, call.name);
    bool isOpen = !llvm::all_of(inputs, [](RankedTensorType type) { return Shape(type).isKnown(); });
    if (isOpen && !bmodel::acceptsOpenSizes(op)) {
      return llvm::createStringError("the shape rule of '" + call.domain + "::" + call.name + "' takes numbers only");
    }
    arguments->tensors.resize(inputs.size() + outputs);
    tessera_custom_call_t described = arguments->callWith(call, inputs.size());
    described.combine_sizes = combineSizes, described.sizes = &arguments->sizes;
    bmodel::Status status;
    if (!bmodel::inferCustomOp(op, described, status)) {
      return errorOf(status);
    }
    SmallVector<RankedTensorType> types;
    for (const tessera_tensor_t &output : ArrayRef(described.outputs, outputs)) {
      llvm::Expected<RankedTensorType> type = typeOf(output, arguments->sizes, inputs.front().getContext());
      if (!type) {
        return type.takeError();
      }
      if (found) {
        addFoundSizes(output, unsigned(types.size()), arguments->sizes, *found);
      }
      types.push_back(*type);
    }
    return types;
  }

  llvm::Error run(const top::CustomCall &call, ArrayRef<const top::HostTensor *> inputs,
                  MutableArrayRef<top::HostTensor> outputs) const override {
    auto types = llvm::map_to_vector(inputs, [](const top::HostTensor *input) { return input->getType(); });
    auto expected = llvm::map_to_vector(outputs, [](const top::HostTensor &each) { return each.getType(); });
    if (llvm::Error error = checkTypes(call, types, expected)) {
      return error;
    }
    llvm::append_range(types, expected);
    llvm::Expected<Arguments> arguments = Arguments::create(call, types);
    if (!arguments) {
      return arguments.takeError();
    }
    std::deque<AlignedBytes> buffers;
    for (auto [index, tensor] : llvm::enumerate(arguments->tensors)) {
      tensor.data = buffers.emplace_back(tensor.bytes).data;
      if (index < inputs.size()) {
        llvm::copy(inputs[index]->getBytes(), static_cast<char *>(tensor.data));
      }
    }
    bmodel::Status status;
    if (!bmodel::runCustomOp(*find(call.domain, call.name), arguments->callWith(call, inputs.size()), status)) {
      return errorOf(status);
    }
    for (auto [tensor, output] : llvm::zip_equal(ArrayRef(arguments->tensors).drop_front(inputs.size()), outputs)) {
      llvm::copy(ArrayRef(static_cast<const char *>(tensor.data), tensor.bytes), output.getBytes().begin());
    }
    return llvm::Error::success();
  }

private:
  /// Checks that the shape rule gives |outputs| for |inputs|.
  llvm::Error checkTypes(const top::CustomCall &call, ArrayRef<RankedTensorType> inputs,
                         ArrayRef<RankedTensorType> outputs) const {
    auto given = infer(call, inputs, unsigned(outputs.size()), nullptr);
    if (!given) {
      return given.takeError();
    }
    for (auto [type, expected] : llvm::zip_equal(*given, outputs)) {
      if (type != expected) {
        std::string text;
        llvm::raw_string_ostream(text) << "the shape rule of '" << call.domain << "::" << call.name << "' gives "
                                       << type << ", but its expressions of open sizes give " << expected;
        return llvm::createStringError(text);
      }
    }
    return llvm::Error::success();
  }

  static const bmodel::CustomOp *find(StringRef domain, StringRef name) {
    return bmodel::findCustomOp(domain.str().c_str(), name.str().c_str());
  }
};

} // namespace

llvm::Error tool::loadCustomOps() {
  static const LoadedOperators operators;
  const char *value = std::getenv("TESSERA_CUSTOM_OPS");
  if (!value || !*value) {
    return llvm::Error::success();
  }
  SmallVector<StringRef> paths;
  StringRef(value).split(paths, ':', -1, /*KeepEmpty=*/false);
  for (StringRef path : paths) {
    bmodel::Status status;
    if (!bmodel::loadCustomOps(path.str().c_str(), status)) {
      return errorOf(status);
    }
  }
  top::setCustomOperators(&operators);
  return llvm::Error::success();
}

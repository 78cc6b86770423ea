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

std::optional<tessera_tensor_t> describe(RankedTensorType type) {
  std::optional<bmodel::DType> dtype = codegen::dtypeOf(type.getElementType());
  if (!dtype || type.getRank() > TESSERA_CUSTOM_OP_MAX_RANK) {
    return std::nullopt;
  }
  tessera_tensor_t tensor = {};
  tensor.dtype = uint32_t(*dtype), tensor.rank = uint32_t(type.getRank());
  llvm::copy(Shape(type).values(), tensor.shape);
  bool fits = bmodel::storedBytes(*dtype, tensor.shape, tensor.rank, bmodel::LayoutKind::RowMajor, 0, 0, tensor.bytes);
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

llvm::Error errorOf(const bmodel::Status &status) { return llvm::createStringError(status.message); }

/// The tensors and the text of one call.
struct Arguments {
  std::vector<tessera_tensor_t> tensors;
  std::string attributes;

  /// Describes a call whose |inputs| are the first tensors; |types| are those of all known tensors.
  static llvm::Expected<Arguments> create(const top::CustomCall &call, ArrayRef<RankedTensorType> types) {
    Arguments result;
    result.attributes = call.attributes.str();
    for (RankedTensorType type : types) {
      std::optional<tessera_tensor_t> tensor = describe(type);
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

class LoadedOperators final : public top::CustomOperators {
public:
  bool contains(StringRef domain, StringRef name) const override { return find(domain, name); }

  llvm::Expected<SmallVector<RankedTensorType>> infer(const top::CustomCall &call, ArrayRef<RankedTensorType> inputs,
                                                      unsigned outputs) const override {
    llvm::Expected<Arguments> arguments = Arguments::create(call, inputs);
    if (!arguments) {
      return arguments.takeError();
    }
    arguments->tensors.resize(inputs.size() + outputs);
    bmodel::Status status;
    if (!bmodel::inferCustomOp(*find(call.domain, call.name), arguments->callWith(call, inputs.size()), status)) {
      return errorOf(status);
    }
    if (inputs.empty()) {
      return llvm::createStringError("a custom operator needs an input");
    }
    SmallVector<RankedTensorType> types;
    for (const tessera_tensor_t &output : ArrayRef(arguments->tensors).drop_front(inputs.size())) {
      types.push_back(RankedTensorType::get(ArrayRef(output.shape, output.rank),
                                            elementOf(bmodel::DType(output.dtype), inputs.front().getContext())));
    }
    return types;
  }

  llvm::Error run(const top::CustomCall &call, ArrayRef<const top::HostTensor *> inputs,
                  MutableArrayRef<top::HostTensor> outputs) const override {
    auto types = llvm::map_to_vector(inputs, [](const top::HostTensor *input) { return input->getType(); });
    llvm::append_range(types, llvm::map_range(outputs, [](const top::HostTensor &each) { return each.getType(); }));
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

//===- Contractions.cpp - Weights of convolutions and matmuls for tools ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Contractions.h"
#include "codegen/tools/TensorFile.h"
#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Weights/WeightOnly.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/IR/WeightStore.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tool;

namespace {

std::string nameOf(func::FuncOp function, Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), top::TopDialect::kNameAttr);
    return name ? name.str() : "";
  }
  return top::getTensorName(value).str();
}

/// Returns the op's geometry, or nothing for kinds that no tool handles.
std::optional<llvm::json::Object> geometryOf(Operation *op) {
  if (auto conv = dyn_cast<top::ConvOp>(op)) {
    return llvm::json::Object{{"kind", "conv"},
                              {"groups", conv.getGroups()},
                              {"strides", llvm::json::Array(conv.getStrides())},
                              {"pads", llvm::json::Array(conv.getPads())},
                              {"dilations", llvm::json::Array(conv.getDilations())}};
  }
  if (auto matmul = dyn_cast<top::MatMulOp>(op); matmul && !matmul.getTransA()) {
    return llvm::json::Object{{"kind", "matmul"}, {"trans_b", matmul.getTransB()}};
  }
  if (auto transposed = dyn_cast<top::ConvTransposeOp>(op)) {
    ArrayRef<int64_t> kernel = Shape(transposed.getW()).values().drop_front(2);
    bool isDisjoint = kernel == transposed.getStrides(); // each result depends on one tap, so the op is a set of
                                                         // matmuls
    return isDisjoint && transposed.getGroups() == 1 && llvm::all_equal(transposed.getDilations()) &&
                   transposed.getDilations().front() == 1
               ? std::optional(llvm::json::Object{{"kind", "conv_transpose"}})
               : std::nullopt;
  }
  return std::nullopt;
}

/// Returns true if tools may choose the op's weight.
bool isOffered(Operation *op) {
  return quant::kindOf(op) == quant::OpKind::contraction && !quant::multipliesActivations(op) &&
         !quant::reasonAgainst(op);
}

} // namespace

llvm::Expected<llvm::json::Array> tessera::tool::writeContractionWeights(func::FuncOp function, StringRef path,
                                                                         int64_t groupSize) {
  llvm::json::Array list;
  llvm::DenseSet<Operation *> last = quant::lastContractions(function);
  std::vector<NamedTensor> weights;
  for (Operation &op : function.getBody().front()) {
    if (!isOffered(&op)) {
      continue;
    }
    std::optional<llvm::json::Object> entry = geometryOf(&op);
    std::string name = nameOf(function, op.getResult(0)), input = nameOf(function, op.getOperand(0));
    if (!entry || name.empty() || input.empty()) {
      continue;
    }
    std::optional<top::TensorData> weight = top::getConstantData(quant::weightOf(&op).operand->get());
    weights.emplace_back(name, top::HostTensor(weight->type, weight->bytes));
    quant::WeightForm form = quant::weightFormOf(&op, !quant::keepsEightBits(&op, last.contains(&op)), groupSize);
    entry->try_emplace("bits", form.bits);
    entry->try_emplace("group", form.group);
    entry->try_emplace("name", llvm::json::fixUTF8(name));
    entry->try_emplace("input", llvm::json::fixUTF8(input));
    list.push_back(std::move(*entry));
  }
  if (llvm::Error error = writeTensorFile(path, weights)) {
    return error;
  }
  return list;
}

llvm::Error tessera::tool::replaceContractionWeights(func::FuncOp function, StringRef path) {
  top::WeightStore given(function.getContext());
  if (llvm::Error error = given.open(path)) {
    return error;
  }
  size_t used = 0;
  OpBuilder builder(function.getContext());
  for (Operation &op : function.getBody().front()) {
    std::string name = isOffered(&op) ? nameOf(function, op.getResult(0)) : "";
    std::optional<top::WeightStore::TensorView> found = name.empty() ? std::nullopt : given.lookup(name);
    if (!found) {
      continue;
    }
    OpOperand *weight = quant::weightOf(&op).operand;
    auto type = cast<RankedTensorType>(weight->get().getType());
    if (found->elementType != type.getElementType() || !sameSizes(found->shape, type)) {
      return llvm::createStringError("'" + path + "': '" + name + "' does not fit the op's weight");
    }
    builder.setInsertionPoint(&op);
    weight->set(top::createConstant(builder, weight->get().getLoc(), type,
                                    std::vector<char>(found->bytes.begin(), found->bytes.end()), name));
    ++used;
  }
  return used ? llvm::Error::success() : llvm::createStringError("'" + path + "' does not have a weight of this model");
}

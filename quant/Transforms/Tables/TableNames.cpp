//===- TableNames.cpp - Names that tables may use -------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Tables/TableNames.h"

#include "quant/Transforms/Precision/OpKinds.h"
#include "quant/Transforms/Quantize.h"
#include "quant/Transforms/Weights/ResidualWeights.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopDialect.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace tessera::quant {

TableNames::TableNames(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    if (auto name = function.getArgAttrOfType<StringAttr>(i, top::TopDialect::kNameAttr)) {
      tensors[name.getValue()];
    }
  }
  function.walk([&](Operation *op) {
    llvm::SmallSetVector<StringRef, 4> own;
    own.insert_range(top::getNodeNames(op->getLoc()));
    for (Value result : op->getResults()) {
      if (StringRef name = top::getTensorName(result); !name.empty()) {
        own.insert(name);
        tensors[name];
      }
    }
    for (StringRef name : own) {
      ops[name].push_back(op);
    }
  });
}

/// Returns a question with the known name most similar to `wanted`; empty if none is similar.
static std::string suggestion(StringRef wanted, const llvm::StringMap<SmallVector<Operation *>> &known) {
  StringRef best;
  unsigned least = std::max<size_t>(2, wanted.size() / 3) + 1;
  for (const auto &entry : known) {
    unsigned distance = wanted.edit_distance(entry.getKey(), true, least);
    if (distance < least || (distance == least && !best.empty() && entry.getKey() < best)) {
      least = distance, best = entry.getKey();
    }
  }
  return best.empty() ? "" : "; did you mean '" + best.str() + "'?";
}

llvm::Error checkTables(func::FuncOp function, const CalibrationTable &table, const QuantizeTable &choices) {
  TableNames index(function);
  for (const auto &line : table.tensors()) {
    if (!table.isOfOtherShapes && !index.tensors.contains(line.getKey())) {
      return llvm::createStringError("'" + table.path() + "': the model has no tensor '" + line.getKey() + "'" +
                                     suggestion(line.getKey(), index.tensors));
    }
    auto makers = index.ops.find(line.getKey());
    if (hasResidualWeights(&line.getValue()) && makers != index.ops.end() &&
        llvm::none_of(makers->second, [](Operation *op) { return kindOf(op) == OpKind::contraction; })) {
      return llvm::createStringError("'" + table.path() + "': tensor '" + line.getKey() +
                                     "': \"weight_terms\" is 2, but no convolution or matmul produces it");
    }
  }
  for (const Choice &choice : choices.choices) {
    if (!index.ops.contains(choice.name)) {
      return llvm::createStringError("'" + choices.path + "': the model has no op or tensor '" + choice.name + "'" +
                                     suggestion(choice.name, index.ops));
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::quant

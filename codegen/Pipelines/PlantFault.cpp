//===- PlantFault.cpp - Deliberate faults for tests -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/PlantFault.h"

#include "top_dialect/IR/Names.h"

#include "mlir/AsmParser/AsmParser.h"
#include "llvm/ADT/StringMap.h"
#include <cstdlib>

using namespace mlir;

namespace tessera::codegen {

namespace {

using Fault = llvm::StringMap<StringRef>;

/// Returns true if the fault's conditions select |op|.
bool isMeant(Operation *op, const Fault &fault) {
  if (op->getName().getStringRef() != fault.lookup("op")) {
    return false;
  }
  StringRef producer = fault.lookup("producer"), part = fault.lookup("contains");
  auto isMadeByProducer = [&](Value operand) {
    return operand.getDefiningOp() && operand.getDefiningOp()->getName().getStringRef() == producer;
  };
  bool hasPart = part.empty();
  op->walk([&](Operation *inner) { hasPart |= inner != op && inner->getName().getStringRef() == part; });
  return hasPart && (producer.empty() || llvm::any_of(op->getOperands(), isMadeByProducer));
}

/// Replaces the result by the first operand of its type; does nothing if no operand has the result's type.
void bypass(Operation *op) {
  for (Value operand : op->getOperands()) {
    if (operand.getType() == op->getResult(0).getType()) {
      return op->getResult(0).replaceAllUsesWith(operand);
    }
  }
}

llvm::Error breakOp(Operation *op, StringRef how) {
  if (how == "crash") {
    std::abort();
  }
  if (how == "refuse") {
    return llvm::createStringError("planted fault: '" + top::getDisplayName(op->getLoc()) + "' is rejected");
  }
  if (how == "bypass") {
    bypass(op);
    return llvm::Error::success();
  }
  auto [name, value] = how.substr(StringRef("set ").size()).split(' ');
  Attribute attribute = how.starts_with("set ") ? parseAttribute(value, op->getContext()) : Attribute();
  if (!attribute) {
    return llvm::createStringError("TESSERA_PLANTED_FAULT: unknown action '" + how + "'");
  }
  op->setAttr(name, attribute);
  return llvm::Error::success();
}

} // namespace

llvm::Error plantFault(func::FuncOp function) {
  const char *text = std::getenv("TESSERA_PLANTED_FAULT");
  if (!text || !*text) {
    return llvm::Error::success();
  }
  Fault fault;
  SmallVector<StringRef> entries;
  StringRef(text).split(entries, ';');
  for (StringRef entry : entries) {
    auto [key, value] = entry.split('=');
    fault[key] = value;
  }
  SmallVector<Operation *> found;
  function.walk([&](Operation *op) {
    if (isMeant(op, fault)) {
      found.push_back(op);
    }
  });
  for (Operation *op : found) {
    emitWarning(op->getLoc()) << "TESSERA_PLANTED_FAULT is set: this op is broken on purpose, for tests";
    if (llvm::Error error = breakOp(op, fault.lookup("do"))) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::codegen

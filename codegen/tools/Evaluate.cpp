//===- Evaluate.cpp - Evaluation of a function between files --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Evaluate.h"

#include "codegen/tools/Events.h"
#include "codegen/tools/TensorFile.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/Sizes.h"
#include "top_dialect/IR/TopDialect.h"

#include <set>

using namespace mlir;
using namespace tessera::tool;
using namespace tessera::top;

llvm::Error tessera::tool::readInputs(func::FuncOp network, const std::string &path, const WeightStore &store,
                                      unsigned begin, unsigned end, TensorMap &inputs) {
  for (unsigned i = begin; i < end; ++i) {
    auto name = network.getArgAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
    const auto tensor = name ? store.lookup(name.getValue()) : std::nullopt;
    if (!tensor) {
      return llvm::createStringError("%s does not have a tensor for input '%s'", path.c_str(),
                                     name ? name.str().c_str() : "?");
    }
    inputs.emplace(name.str(), HostTensor(RankedTensorType::get(tensor->shape, tensor->elementType), tensor->bytes));
  }
  return llvm::Error::success();
}

/// Returns true if a tensor of the type |actual| can have the type |declared|, whose sizes may be open.
static bool isOfType(RankedTensorType actual, RankedTensorType declared) {
  tessera::Shape sizes = actual, wanted = declared;
  return actual.getElementType() == declared.getElementType() && sizes.rank() == wanted.rank() &&
         llvm::all_of(llvm::seq<size_t>(0, sizes.rank()),
                      [&](size_t d) { return !wanted[d].isKnown() || sameSize(sizes[d], wanted[d]); });
}

llvm::Error tessera::tool::giveOperands(func::FuncOp network, const std::string &path, const WeightStore &store,
                                        bool skipsOthers) {
  Builder builder(network.getContext());
  Operation *terminator = network.getBody().front().getTerminator();
  for (Operation &op : network.getBody().front().without_terminator()) {
    for (OpResult result : op.getResults()) {
      llvm::StringRef name = getTensorName(result);
      const auto given = name.empty() ? std::nullopt : store.lookup(name);
      if (!given) {
        continue;
      }
      auto type = RankedTensorType::get(given->shape, given->elementType);
      if (!isOfType(type, cast<RankedTensorType>(result.getType()))) {
        if (skipsOthers) {
          continue;
        }
        return llvm::createStringError("%s has a different type or shape for '%s'", path.c_str(), name.str().c_str());
      }
      unsigned index = network.getNumArguments();
      auto named = builder.getNamedAttr(TopDialect::kNameAttr, builder.getStringAttr(name));
      (void)network.insertArgument(index, type, builder.getDictionaryAttr(named), op.getLoc());
      result.replaceAllUsesExcept(network.getArgument(index), terminator);
    }
  }
  return llvm::Error::success();
}

/// Returns the space in the file's header for every tensor that `network` may output.
static uint64_t headerBytes(func::FuncOp network, bool all) {
  uint64_t bytes = 0;
  auto add = [&](StringRef name, Type type) {
    bytes += name.empty() ? 0 : TensorFileWriter::headerBytes(name, cast<RankedTensorType>(type).getRank());
  };
  for (unsigned i = 0; i < network.getNumResults(); ++i) {
    auto name = network.getResultAttrOfType<StringAttr>(i, TopDialect::kNameAttr);
    add(name ? name.getValue() : "result" + std::to_string(i), network.getResultTypes()[i]);
  }
  network.walk([&](Operation *op) {
    for (OpResult result : op->getResults()) {
      if (all && isa<RankedTensorType>(result.getType())) {
        add(getTensorName(result), result.getType());
      }
    }
  });
  return bytes;
}

llvm::Expected<int64_t> tessera::tool::evaluate(func::FuncOp network, const TensorMap &inputs,
                                                const std::string &output, bool all) {
  TensorFileWriter file;
  if (llvm::Error error = file.create(output, headerBytes(network, all))) {
    return error;
  }
  std::set<std::string, std::less<>> seen;
  llvm::Error failure = llvm::Error::success();
  auto keep = [&](llvm::StringRef name, const HostTensor &tensor) {
    if (!name.empty() && seen.insert(name.str()).second) {
      failure = llvm::joinErrors(std::move(failure), file.append(name, tensor));
    }
  };
  std::string messages;
  ScopedDiagnosticHandler handler(network.getContext(), [&](Diagnostic &diagnostic) {
    llvm::raw_string_ostream(messages) << (messages.empty() ? "" : "; ") << diagnostic.getLocation() << ": "
                                       << diagnostic;
  });
  size_t done = 0, total = 0;
  network.walk([&](Operation *op) {
    auto names = op->getAttrOfType<ArrayAttr>(TopDialect::kOutputsAttr);
    total += names ? names.size() : 0;
  });
  Evaluator evaluator([&](llvm::StringRef name, const HostTensor &tensor) {
    reportProgress(std::min(++done, total), total); // bodies of loops are evaluated more than once
    if (all) {
      keep(name, tensor);
    }
  });
  auto outputs = evaluator.run(network, inputs);
  if (failed(outputs)) {
    llvm::consumeError(std::move(failure));
    return llvm::createStringError("the reference evaluation failed: %s", messages.c_str());
  }
  for (auto &[name, tensor] : *outputs) {
    keep(name, tensor);
  }
  if (failure) {
    return std::move(failure);
  }
  if (llvm::Error error = file.finish()) {
    return error;
  }
  return int64_t(seen.size());
}

//===- SupportedOps.cpp - The supported-ops subcommand: what the importer knows ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Events.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

std::function<llvm::Error()> tessera::tool::addSupportedOps(CLI::App &app) {
  app.add_subcommand("supported-ops", "Every ONNX operator the importer has a handler for");
  return []() -> llvm::Error {
    llvm::json::Array operators;
    for (const auto &op : tessera::top::supportedOperators()) {
      operators.push_back(llvm::json::Object{{"domain", op.domain}, {"name", op.name}, {"since", op.since}});
    }
    reportResult(llvm::json::Object{{"operators", std::move(operators)}});
    return llvm::Error::success();
  };
}

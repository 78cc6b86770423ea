//===- SupportedOps.cpp - The supported-ops subcommand --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Pipelines/SupportedOps.h"
#include "codegen/Target/Registry.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/Import/Onnx/OnnxImport.h"

#include "CLI/CLI.hpp"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::tool;

namespace {

llvm::json::Array describeImporter() {
  llvm::json::Array operators;
  for (const auto &op : top::supportedOperators()) {
    operators.push_back(llvm::json::Object{{"domain", op.domain}, {"name", op.name}, {"since", op.since}});
  }
  return operators;
}

/// Surveys every operator in every precision on the chip; "reasons" says why parts of it run on the host.
llvm::Error describeChip(MLIRContext &context, const std::string &name, llvm::json::Array &rows) {
  auto chip = codegen::createTarget({.name = name}), host = codegen::createTarget({.name = codegen::defaultHost()});
  if (!chip || !host) {
    std::string text = llvm::toString(llvm::joinErrors(chip ? llvm::Error::success() : chip.takeError(),
                                                       host ? llvm::Error::success() : host.takeError()));
    return llvm::make_error<CodedError>(kUsage, "--chip: " + text);
  }
  using quant::Precision;
  auto table = codegen::surveyOperators(
      context, **chip, **host, {Precision::INT8, Precision::INT16, Precision::BF16, Precision::F16, Precision::F32});
  if (!table) {
    return table.takeError();
  }
  for (const codegen::Support &row : *table) {
    rows.push_back(llvm::json::Object{{"operator", row.op},
                                      {"precision", quant::toString(row.precision)},
                                      {"chip", name},
                                      {"reasons", llvm::json::Array(row.reasons)}});
  }
  return llvm::Error::success();
}

llvm::Error run(const std::vector<std::string> &chips) {
  llvm::json::Object result{{"operators", describeImporter()}};
  if (!chips.empty()) {
    DialectRegistry registry;
    codegen::registerFamilies(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    context.loadAllAvailableDialects();
    llvm::json::Array rows;
    for (const std::string &chip : chips) {
      if (llvm::Error error = describeChip(context, chip, rows)) {
        return error;
      }
    }
    result["chips"] = std::move(rows);
  }
  reportResult(std::move(result));
  return llvm::Error::success();
}

} // namespace

std::function<llvm::Error()> tessera::tool::addSupportedOps(CLI::App &app) {
  CLI::App *sub =
      app.add_subcommand("supported-ops", "List the ONNX operators that are imported and which of them chips run");
  auto chips = std::make_shared<std::vector<std::string>>();
  sub->add_option("--chip", *chips, "Also list what these chips run themselves, by operator and precision")
      ->delimiter(',');
  return [chips] { return run(*chips); };
}

//===- Targets.cpp - The targets subcommand -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Targets.h"

#include "codegen/Target/Registry.h"
#include "codegen/tools/DeployReport.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/Subcommand.h"
#include "quant/Transforms/Tables/QuantizeTable.h"

#include "CLI/CLI.hpp"

using namespace tessera;
using namespace tessera::tool;

namespace {

llvm::Expected<llvm::json::Array> describeChips() {
  llvm::json::Array chips;
  for (const codegen::Family *family : codegen::families()) {
    for (const std::string &name : family->chips()) {
      auto chip = family->create({.name = name});
      if (!chip) {
        return chip.takeError();
      }
      chips.push_back(llvm::json::Object{{"name", name},
                                         {"family", family->name},
                                         {"runs_here", (*chip)->runsHere()},
                                         {"rates", describe((*chip)->machineModel())}});
    }
  }
  return chips;
}

/// Describes a precision: "activations" is the type of results, "activation_bits" and "weight_bits" are per element,
/// "needs_table" says whether it needs ranges from run_calibration.
llvm::json::Object describe(quant::Precision precision) {
  using quant::Precision;
  bool weightsAlone = quant::isOfWeights(precision) && !quant::quantizesBlocks(precision);
  llvm::StringRef name = quant::toString(precision);
  const quant::Widths widths = quant::widthsOf(precision);
  llvm::json::Array aliases;
  if (weightsAlone) {
    aliases.push_back((name + "F32").str());
  }
  return llvm::json::Object{
      {"name", name},
      {"aliases", std::move(aliases)},
      {"activations", quant::isOfWeights(precision) || precision == Precision::DYNAMIC_INT8 ? "F32" : name},
      {"activation_bits", widths.activation},
      {"weight_bits", widths.weight},
      {"needs_table", precision == Precision::INT8 || precision == Precision::INT16}};
}

llvm::json::Array describePrecisions() {
  llvm::json::Array precisions;
  llvm::SmallVector<llvm::StringRef> names;
  const std::string all = quant::precisionNames();
  llvm::StringRef(all).split(names, ", ");
  for (llvm::StringRef name : names) {
    precisions.push_back(describe(*quant::parsePrecision(name)));
  }
  return precisions;
}

llvm::Error run() {
  llvm::Expected<llvm::json::Object> result = describeTargets();
  if (!result) {
    return result.takeError();
  }
  reportResult(std::move(*result));
  return llvm::Error::success();
}

} // namespace

llvm::Expected<llvm::json::Object> tessera::tool::describeTargets() {
  using llvm::json::Array, llvm::json::Object;
  llvm::Expected<Array> chips = describeChips();
  if (!chips) {
    return chips.takeError();
  }
  Object flags;
  Array files;
  for (const codegen::Family *family : codegen::families()) {
    for (llvm::StringRef flag : family->flags) {
      Object::iterator known = flags.try_emplace(flag, Array()).first;
      known->second.getAsArray()->push_back(family->name);
    }
    if (family->hasDescriptions) {
      files.push_back(family->name);
    }
  }
  return Object{{"chips", std::move(*chips)},
                {"chip_files", std::move(files)},
                {"precisions", describePrecisions()},
                {"planned_precisions", Array{"INT4", "W8F16", "W8BF16", "W4F16", "W4BF16", "QDQ"}},
                {"flags", std::move(flags)},
                {"defaults", Object{{"chip", codegen::defaultHost()}, {"quantize", "F32"}}}};
}

std::function<llvm::Error()> tessera::tool::addTargets(CLI::App &app) {
  app.add_subcommand("targets", "List chips, precisions, and which flags apply to which family, as JSON");
  return run;
}

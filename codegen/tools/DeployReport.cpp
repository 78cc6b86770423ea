//===- DeployReport.cpp - JSON report of a deployed model -----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/DeployReport.h"

#include "quant/Transforms/Equalize/ChannelFlow.h"
#include "top_dialect/IR/Names.h"

#include <cmath>

using namespace mlir;

namespace tessera::tool {
namespace {

llvm::json::Array describe(ArrayRef<quant::FloatOp> ops) {
  llvm::json::Array list;
  for (const quant::FloatOp &op : ops) {
    list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(op.name)},
                                      {"op", op.op},
                                      {"reason", llvm::json::fixUTF8(op.reason)},
                                      {"products", op.macs}});
  }
  return list;
}

llvm::json::Object describe(const quant::QuantizeReport &report) {
  llvm::json::Array ops;
  for (const quant::DecidedOp &op : report.ops) {
    ops.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(op.name)},
                                     {"op", op.op},
                                     {"type", quant::toString(op.precision)},
                                     {"moves", op.moves},
                                     {"products", op.macs},
                                     {"weights", op.weights},
                                     {"reads", op.reads},
                                     {"writes", op.writes}});
  }
  return llvm::json::Object{{"ops", std::move(ops)},
                            {"float_inputs_outputs", llvm::json::Array(report.floatInputsOutputs)},
                            {"learned_weights", report.learnedWeights},
                            {"integer_ops", report.integerOps},
                            {"narrow_ops", report.narrowOps},
                            {"narrow_products", report.narrowMacs},
                            {"weight_ops", report.weightOps},
                            {"weight_products", report.weightMacs},
                            {"products", report.macs},
                            {"integer_products", report.integerMacs},
                            {"wide_products", report.wideMacs},
                            {"second_products", report.residualMacs},
                            {"split_weights", report.splitWeights},
                            {"wide_ops", describe(report.wide)},
                            {"float_ops", describe(report.kept)}};
}

double micro(double seconds) { return std::round(seconds * 1e9) / 1e3; }

/// Describes which part of the model runs where, and why. "host" is the last target. Times for which a target does not
/// have an exact model are rough estimates.
llvm::json::Object describePartition(const codegen::DeployResult &result, ArrayRef<const codegen::Target *> targets) {
  auto deviceOf = [&](uint32_t target) {
    return target + 1 == targets.size() ? "host" : targets[target]->family().str();
  };
  llvm::json::Array subnets, ops;
  int64_t macs = 0;
  double total = result.handOverSeconds;
  std::map<std::string, std::pair<int64_t, double>> byDevice;
  for (uint32_t target = 0; target < targets.size(); ++target) {
    byDevice[deviceOf(target)] = {0, 0};
  }
  for (const codegen::SubnetResult &subnet : result.subnets) {
    std::string device = deviceOf(subnet.target);
    macs += subnet.macs, total += subnet.seconds;
    byDevice[device].first += subnet.macs, byDevice[device].second += subnet.seconds;
    subnets.push_back(llvm::json::Object{{"name", subnet.name},
                                         {"device", device},
                                         {"chip", targets[subnet.target]->name()},
                                         {"ops", int64_t(subnet.ops)},
                                         {"products", subnet.macs},
                                         {"input_bytes", int64_t(subnet.inputBytes)},
                                         {"output_bytes", int64_t(subnet.outputBytes)},
                                         {"microseconds", micro(subnet.seconds)}});
  }
  for (const codegen::MovedOpResult &op : result.movedOps) {
    ops.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(op.name)},
                                     {"op", op.op},
                                     {"subnet", op.subnet},
                                     {"reason", llvm::json::fixUTF8(op.reason)},
                                     {"refused", op.isUnsupported},
                                     {"products", op.macs}});
  }
  llvm::json::Object report{{"subnets", std::move(subnets)},
                            {"host_ops", std::move(ops)},
                            {"products", macs},
                            {"transferred_bytes", int64_t(result.transferredBytes)},
                            {"hand_over_microseconds", micro(result.handOverSeconds)},
                            {"total_microseconds", micro(total)}};
  for (const auto &[device, sums] : byDevice) { // npu_products, npu_microseconds, host_microseconds, ...
    report[device + "_products"] = sums.first;
    report[device + "_microseconds"] = micro(sums.second);
  }
  return report;
}

} // namespace

llvm::json::Object describeResult(const codegen::DeployResult &result, const codegen::DeployOptions &options) {
  llvm::json::Object report{{"bmodel", llvm::json::fixUTF8(options.output)},
                            {"chip", options.targets.front()->name()},
                            {"workspace_bytes", int64_t(result.workspaceBytes)},
                            {"workspace_lower_bound", int64_t(result.workspaceLowerBound)},
                            {"code_bytes", int64_t(result.codeBytes)},
                            {"constant_bytes", int64_t(result.constantBytes)}};
  for (const auto &[key, value] : result.report) {
    report[key] = value;
  }
  if (options.targets.size() > 1) {
    report["partition"] = describePartition(result, options.targets);
  }
  // Nodes for which engines differ; null if the model does not promise equal bits.
  report["bit_equal_except"] =
      result.exceptions ? llvm::json::Value(llvm::json::Array(*result.exceptions)) : llvm::json::Value(nullptr);
  if (result.quantization) {
    report["quantization"] = describe(*result.quantization);
    report["quantization"].getAsObject()->try_emplace("rates", describe(options.targets.front()->machineModel()));
  }
  return report;
}

llvm::json::Object describe(const codegen::MachineModel &machineModel) {
  llvm::json::Object macs;
  for (const auto &[precision, rate] : machineModel.macs) {
    macs[precision] = rate;
  }
  return llvm::json::Object{{"products", std::move(macs)}, {"bytes", machineModel.bytes}};
}

llvm::json::Array describe(ArrayRef<quant::TensorForm> forms) {
  llvm::json::Array list;
  for (const quant::TensorForm &form : forms) {
    list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(form.name)},
                                      {"scale", form.scale},
                                      {"zero_point", form.zeroPoint},
                                      {"lowest", form.lowest},
                                      {"highest", form.highest},
                                      {"attention", llvm::json::fixUTF8(form.attention)},
                                      {"attention_products", form.attentionProducts}});
  }
  return list;
}

llvm::json::Array describe(ArrayRef<codegen::InstrumentedTensor> tensors) {
  llvm::json::Array list;
  for (const codegen::InstrumentedTensor &tensor : tensors) {
    list.push_back(llvm::json::Object{{"name", llvm::json::fixUTF8(tensor.name)},
                                      {"op", tensor.op},
                                      {"shape", llvm::json::Array(tensor.shape)},
                                      {"sizes", llvm::json::Array(tensor.sizes)},
                                      {"constant", tensor.isConstant},
                                      {"integer", tensor.isInteger},
                                      {"repeated", tensor.isRepeated},
                                      {"gate", llvm::json::fixUTF8(tensor.gate)},
                                      {"source", llvm::json::fixUTF8(tensor.source)}});
  }
  return list;
}

/// Returns, for the tensors that contractions read and write, the dim that holds their channels.
llvm::json::Object describeChannels(ModuleOp module) {
  llvm::json::Object axes;
  auto function = module.lookupSymbol<func::FuncOp>("main");
  if (!function) {
    return axes;
  }
  for (Operation &op : function.getBody().front()) {
    if (std::optional<quant::ContractionChannels> product = quant::contractionChannels(&op)) {
      for (auto [value, axis] : {std::pair<Value, int64_t>(op.getOperand(0), product->inputAxis),
                                 std::pair<Value, int64_t>(op.getResult(0), product->outputAxis)}) {
        if (StringRef name = top::getTensorName(value); !name.empty()) {
          axes[llvm::json::fixUTF8(name)] = axis;
        }
      }
    }
  }
  return axes;
}

} // namespace tessera::tool

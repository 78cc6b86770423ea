//===- EmissionFixture.h - Functions as text, run on every chip -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_NPU_EMISSIONFIXTURE_H
#define TESSERA_REGRESSION_NPU_EMISSIONFIXTURE_H

#include "regression/npu/NpuRunner.h"

#include "bmodel_format/test/TestChip.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/Transforms/Passes.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightStore.h"
#include "top_dialect/Reference/Support.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>
#include <random>

namespace tessera::npu {

using mlir::MLIRContext;
using mlir::ModuleOp;
using mlir::RankedTensorType;
namespace func = mlir::func;

using Dims = std::vector<int64_t>;

inline std::mt19937 generator(5);
inline int64_t between(int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(generator);
}

inline std::string typeText(const Dims &dims, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t dim : dims) {
    text += std::to_string(dim) + "x";
  }
  return text + element + ">";
}

/// Returns the context that owns the weights of the functions below.
inline MLIRContext &testContext() {
  static MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerNpuModels(registry);
    auto *created = new MLIRContext(registry);
    created->loadDialect<func::FuncDialect, top::TopDialect, device::DeviceDialect>();
    return created;
  }();
  return *context;
}

inline mlir::Type elementOf(int8_t) { return mlir::IntegerType::get(&testContext(), 8); }
inline mlir::Type elementOf(int32_t) { return mlir::IntegerType::get(&testContext(), 32); }
inline mlir::Type elementOf(int64_t) { return mlir::IntegerType::get(&testContext(), 64); }
inline mlir::Type elementOf(float) { return mlir::Float32Type::get(&testContext()); }

template <typename T>
std::string constantText(const Dims &dims, const std::string &element, llvm::function_ref<T()> draw) {
  std::vector<char> bytes;
  for (int64_t i = 0; i < mlir::ShapedType::getNumElements(dims); ++i) {
    T value = draw();
    auto *raw = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), raw, raw + sizeof value);
  }
  top::WeightStore &store = testContext().getLoadedDialect<top::TopDialect>()->getWeightStore();
  return "top.weight \"" + store.add("c", elementOf(T()), dims, std::move(bytes)) + "\" : " + typeText(dims, element);
}

/// Runs a function's text on every chip; check() returns "" or an error. Arguments hold random numbers of their types.
class Emission : public testing::Test {
protected:
  Emission() { generator.seed(5); } // the same numbers regardless of the tests that ran before

  std::string check(const std::string &text) {
    std::string messages;
    mlir::ScopedDiagnosticHandler handler(&context,
                                          [&](mlir::Diagnostic &diagnostic) { messages += diagnostic.str() + "; "; });
    mlir::OwningOpRef<ModuleOp> module = mlir::parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      return messages + text;
    }
    mlir::PassManager passes(&context);
    passes.nest<func::FuncOp>().addPass(device::createExpandLog1pPass());
    passes.nest<func::FuncOp>().addPass(device::createExpandScatterPass());
    passes.nest<func::FuncOp>().addPass(device::createAssignAddressesPass());
    if (mlir::failed(passes.run(*module))) {
      return messages;
    }
    auto function = *module->getOps<func::FuncOp>().begin();
    top::TensorMap inputs;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      inputs.emplace(function.getArgAttrOfType<mlir::StringAttr>(i, "top.name").str(),
                     randomTensor(mlir::cast<RankedTensorType>(function.getArgumentTypes()[i])));
    }
    for (const bmodel::npu::Chip &chip : chips) {
      for (bool together : {false, true}) {
        RunResult result = checkOnNpu(function, chip, inputs, 2, {together ? 2u : 0u});
        if (!result.fault.empty()) {
          return chip.name + (together ? ": " : ", op by op: ") + result.fault + " (" + messages + ")\n" + text;
        }
        commands = std::max(commands, result.commands), programs += result.programs, fills += result.fills;
        written = result.report.all.traffic[int(bmodel::npu::Purpose::output)].moved;
        groups += result.groups, pointwise += result.pointwise, last = result.report;
        intermediate[together] = result.report.all.traffic[int(bmodel::npu::Purpose::intermediate)].asked;
      }
    }
    return "";
  }

  std::vector<bmodel::npu::Chip> chips = {bmodel::npu::chipNamed("npu-edge"), bmodel::npu::chipNamed("npu-base"),
                                          bmodel::npu::chipNamed("npu-pro")};
  uint64_t intermediate[2] =
      {}; ///< bytes on the last chip of values that are neither inputs nor results: op by op, in groups

  uint64_t written = 0;     ///< bytes of bursts to results, on the last chip, with layer groups
  bmodel::npu::Report last; ///< the report of the last run

  bool signedZeros = false;  ///< floats are drawn from -1, -0, 0 and 1
  bool rareNumbers = false;  ///< some floats are NaN, infinite or tiny, or lie between zeros
  bool wholeNumbers = false; ///< floats are whole numbers, so that no sum is rounded in any order

  MLIRContext &context = testContext();
  size_t commands = 0, programs = 0, fills = 0, groups = 0; ///< commands: of the chip with the most
  size_t pointwise = 0;                                     ///< conv commands with a single tap

private:
  /// Returns |value|, or another number in some places: 64 zeros or tiny numbers in a row, NaN and infinities.
  static float rareNumber(float value, size_t at) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const size_t run = at / 64 % 5, draw = size_t(between(0, 600));
    return draw == 0   ? std::numeric_limits<float>::quiet_NaN()
           : draw == 1 ? kInfinity
           : draw == 2 ? -kInfinity
           : run == 1  ? 0
           : run == 3  ? std::ldexp(value, -122)
                       : value;
  }

  top::HostTensor randomTensor(RankedTensorType type) {
    top::HostTensor tensor(type);
    llvm::MutableArrayRef<char> bytes = tensor.getBytes();
    if (signedZeros && !type.getElementType().isInteger()) {
      constexpr double kNumbers[] = {-1, -0.0, -0.0, 0, 0, 1};
      std::vector<double> values(tensor.getNumElements());
      std::generate(values.begin(), values.end(), [&] { return kNumbers[between(0, 5)]; });
      top::reference::write(values, tensor);
      return tensor;
    }
    if (wholeNumbers && !type.getElementType().isInteger()) {
      std::vector<double> values(tensor.getNumElements());
      std::generate(values.begin(), values.end(), [] { return double(between(-9, 9)); });
      top::reference::write(values, tensor);
      return tensor;
    }
    if (type.getElementType().isF32()) {
      for (size_t i = 0; i < bytes.size() / 4; ++i) {
        float value = float(between(-4000, 4000)) * 1e-3f;
        value = rareNumbers ? rareNumber(value, i) : value;
        memcpy(bytes.data() + 4 * i, &value, 4);
      }
      return tensor;
    }
    for (char &byte : bytes) {
      byte = char(between(-128, 127));
    }
    if (type.getElementType().isInteger(1)) {
      for (char &byte : bytes) {
        byte = char(byte & 1);
      }
    }
    if (type.getElementType().isSignlessInteger(64)) { // mostly small, like indices
      for (size_t i = 0; i < bytes.size() / 8; ++i) {
        int64_t value = between(-60, 60);
        memcpy(bytes.data() + 8 * i, &value, between(0, 7) ? 8 : 0);
      }
    }
    return tensor;
  }
};

} // namespace tessera::npu

#endif // TESSERA_REGRESSION_NPU_EMISSIONFIXTURE_H

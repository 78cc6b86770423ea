//===- Abacus_test.cpp - Models on an Abacus and a host -------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Tests the smallest family in every part of the stack: partition, subnets, copies between its memory and the host's, a
// .bmodel, and the runtime with its back end. The expected values are those of a model that runs on the host alone.
//===----------------------------------------------------------------------===//
#include "AbacusTarget.h"
#include "RandomGraph.h"
#include "bmodel/reader.h"
#include "bmrt/bmrt.hpp"
#include "codegen/Pipelines/Deploy.h"
#include "codegen/test/FamiliesContext.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <unistd.h>

using namespace mlir;
using namespace tessera;

namespace {

class Scratch {
public:
  Scratch() : path(std::filesystem::temp_directory_path() / ("abacus_test_" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  std::string file(const char *name) const { return (path / name).string(); }

private:
  std::filesystem::path path;
};

/// An Abacus with another name and its own memory, which only supports one kind of op.
class Specialist final : public codegen::Target {
public:
  Specialist(std::string chip, StringRef op) : chip(std::move(chip)), op(op) {}

  StringRef family() const override { return abacus->family(); }
  bmodel::ChipDefT describe() const override {
    bmodel::ChipDefT told = abacus->describe();
    told.name = chip;
    return told;
  }
  std::optional<unsigned> mostMapOperands() const override { return abacus->mostMapOperands(); }
  std::vector<codegen::UnsupportedOp> survey(func::FuncOp function) const override {
    std::vector<codegen::UnsupportedOp> unsupportedOps = abacus->survey(function);
    for (Operation &other : function.getBody().front()) {
      if (other.getName().getStringRef() != op) {
        unsupportedOps.push_back({&other, "is not supported by " + chip});
      }
    }
    return unsupportedOps;
  }
  double secondsOf(Operation *each) const override { return abacus->secondsOf(each); }
  double transferSeconds(int64_t bytes) const override { return abacus->transferSeconds(bytes); }
  double handOverSeconds() const override { return abacus->handOverSeconds(); }
  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &options) const override {
    abacus->buildPasses(manager, options);
  }
  llvm::Expected<std::optional<codegen::TargetProgram>>
  compile(ArrayRef<codegen::Subnet> subnets, const codegen::CompileOptions &options,
          const codegen::PhaseObserver &observer, std::vector<codegen::UnsupportedOp> &unsupportedOps) const override {
    return abacus->compile(subnets, options, observer, unsupportedOps);
  }

private:
  std::unique_ptr<codegen::Target> abacus = llvm::cantFail(abacus::kFamily.create({}));
  std::string chip;
  StringRef op;
};

struct Deployed {
  std::string path;
  codegen::DeployResult result;
};

using Targets = ArrayRef<const codegen::Target *>;

Deployed deploy(const std::string &text, const std::string &path, Targets targets) {
  auto context = codegen::createFamiliesContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, context.get());
  EXPECT_TRUE(module) << text;
  codegen::DeployOptions options;
  options.output = path, options.compile.cacheFolder = "";
  options.targets = targets;
  llvm::Expected<codegen::DeployResult> made = codegen::deploy(*module, options, {});
  if (!made) {
    ADD_FAILURE() << llvm::toString(made.takeError()) << "\n" << text;
    return {};
  }
  return {path, std::move(*made)};
}

using Tensors = std::map<std::string, std::vector<float>>;

Tensors run(const std::string &path) {
  bmrt::Model model(path);
  bmrt::Net net(model, {.threads = 1});
  std::mt19937 generator(1);
  std::uniform_real_distribution<float> numbers(-2, 2);
  Tensors inputs, outputs;
  for (const bmrt_tensor_info_t &info : net.inputs()) {
    std::vector<float> &data = inputs[info.name];
    data.resize(info.bytes / sizeof(float));
    std::generate(data.begin(), data.end(), [&] { return numbers(generator); });
    net.setInput(info.name, data.data(), info.bytes);
  }
  net.run();
  net.run(); // a second run gives the same outputs
  for (const bmrt_tensor_info_t &info : net.outputs()) {
    const float *data = net.output<float>(info.name);
    outputs[info.name].assign(data, data + info.bytes / sizeof(float));
  }
  return outputs;
}

/// Returns an empty string if the outputs agree: bit-identical if the function is exact, otherwise up to the order of
/// sums.
std::string compare(const Tensors &made, const Tensors &expected, bool isExact) {
  for (const auto &[name, wanted] : expected) {
    const std::vector<float> &found = made.at(name);
    float largest = 1e-3f;
    for (float each : wanted) {
      largest = std::isfinite(each) ? std::max(largest, std::fabs(each)) : largest;
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      bool isSame = std::memcmp(&found[i], &wanted[i], sizeof(float)) == 0 ||
                    (std::isnan(found[i]) && std::isnan(wanted[i])) ||
                    (!isExact && std::fabs(found[i] - wanted[i]) <= 1e-5f * largest);
      if (!isSame) {
        return llvm::formatv("{0}[{1}] is {2}, expected {3}", name, i, found[i], wanted[i]).str();
      }
    }
  }
  return made.size() == expected.size() ? "" : "other outputs";
}

std::vector<std::string> subnetsOf(const codegen::DeployResult &result) {
  std::vector<std::string> names;
  for (const codegen::SubnetResult &subnet : result.subnets) {
    names.push_back(subnet.target == 0 ? "abacus" : "host");
  }
  return names;
}

class Abacus : public testing::Test {
protected:
  /// Deploys and runs a model on these targets and on the last of them alone, and compares the outputs.
  codegen::DeployResult check(const std::string &text) { return check(text, {chip.get(), host.get()}); }
  codegen::DeployResult check(const std::string &text, Targets targets) {
    Deployed alone = deploy(text, scratch.file("host.bmodel"), targets.back());
    Deployed both = deploy(text, scratch.file("abacus.bmodel"), targets);
    if (!alone.path.empty() && !both.path.empty()) {
      std::string fault = compare(run(both.path), run(alone.path), text.find("device.exact") != std::string::npos);
      EXPECT_EQ(fault, "") << text;
    }
    return std::move(both.result);
  }

  std::unique_ptr<codegen::Target> chip = llvm::cantFail(abacus::kFamily.create({}));
  std::unique_ptr<codegen::Target> host =
      llvm::cantFail(codegen::createTarget({.name = "x86-v2", .description = "", .fields = {}}));
  const Specialist maps{"maps", "device.map"}, products{"products", "device.matmul"};
  Scratch scratch;
};

constexpr const char *kPerceptron = R"(
func.func @main(%x: tensor<3x5xf32> {top.name = "x"}) -> (tensor<3x2xf32> {top.name = "y"}) {
  %w = top.constant dense<"0x{0}"> : tensor<4x5xf32> : tensor<4x5xf32>
  %b = top.constant dense<[0.5, -1.0, 0.25, 2.0]> : tensor<4xf32> : tensor<4xf32>
  %h = top.matmul %x, %w, %b {relu = true, transB = true}
     : (tensor<3x5xf32>, tensor<4x5xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %v = top.constant dense<[[1.0, 2.0], [-3.0, 0.5], [0.1, 4.0], [-1.0, -0.2]]> : tensor<4x2xf32> : tensor<4x2xf32>
  %p = top.matmul %h, %v : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  {1}
})";

std::string perceptron(const char *end) {
  std::string weights;
  for (uint32_t i = 0; i < 20; ++i) {
    auto value = std::bit_cast<uint32_t>(float(i % 7) - 3.0f);
    for (uint32_t byte = 0; byte < 4; ++byte) {
      weights += llvm::formatv("{0:X-2}", (value >> (8 * byte)) & 0xff).str();
    }
  }
  std::string text = kPerceptron;
  text.replace(text.find("{0}"), 3, weights);
  return text.replace(text.find("{1}"), 3, end);
}

TEST_F(Abacus, RunsAWholeModel) {
  codegen::DeployResult result = check(perceptron("return %p : tensor<3x2xf32>"));
  EXPECT_EQ(subnetsOf(result), std::vector<std::string>{"abacus"});
}

TEST_F(Abacus, LeavesTheRestToTheHost) {
  codegen::DeployResult result = check(perceptron(
      "%s = top.softmax %p {axis = 1} : (tensor<3x2xf32>) -> tensor<3x2xf32>\n"
      "  %y = top.mul %s, %p : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>\n  return %y : tensor<3x2xf32>"));
  EXPECT_EQ(subnetsOf(result), (std::vector<std::string>{"abacus", "host", "abacus"}));
  ASSERT_EQ(result.movedOps.size(), 1u);
  EXPECT_TRUE(result.movedOps[0].isUnsupported);
  EXPECT_NE(result.movedOps[0].reason.find("neither a map nor a matmul"), std::string::npos);
}

TEST_F(Abacus, SaysWhatItCannotCompute) {
  codegen::DeployResult result =
      check(perceptron("%y = top.sigmoid %p : (tensor<3x2xf32>) -> tensor<3x2xf32>\n  return %y : tensor<3x2xf32>"));
  ASSERT_FALSE(result.movedOps.empty());
  EXPECT_NE(result.movedOps[0].reason.find("which an Abacus does not support"), std::string::npos)
      << result.movedOps[0].reason;
}

/// Returns results that are views of another result and of an argument.
TEST_F(Abacus, ReturnsViews) {
  codegen::DeployResult result = check(R"(
func.func @main(%x: tensor<3x4xf32> {top.name = "x"})
    -> (tensor<3x4xf32> {top.name = "y"}, tensor<2x6xf32> {top.name = "z"}, tensor<12xf32> {top.name = "v"}) {
  %y = top.neg %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %z = top.reshape %y {shape = array<i64: 2, 6>} : (tensor<3x4xf32>) -> tensor<2x6xf32>
  %v = top.reshape %x {shape = array<i64: 12>} : (tensor<3x4xf32>) -> tensor<12xf32>
  return %y, %z, %v : tensor<3x4xf32>, tensor<2x6xf32>, tensor<12xf32>
})");
  EXPECT_EQ(subnetsOf(result), std::vector<std::string>{"abacus"});
}

TEST_F(Abacus, RunsRandomGraphs) {
  const char *range = std::getenv("TESSERA_ABACUS_GRAPHS"); // FIRST:END
  unsigned first = 0, end = 60;
  if (range) {
    sscanf(range, "%u:%u", &first, &end);
  }
  size_t mixed = 0;
  for (unsigned seed = first; seed < end && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    mixed += check(abacus::randomGraph(seed)).subnets.size() > 2;
  }
  EXPECT_GT(mixed, (end - first) / 5) << "graphs that alternate between host and Abacus";
}

/// Values that one chip computes and another one reads pass through the host's memory.
TEST_F(Abacus, HandsOverToAnotherChip) {
  codegen::DeployResult result = check(R"(
func.func @main(%x: tensor<3x4xf32> {top.name = "x"}) -> (tensor<3x3xf32> {top.name = "y"}) {
  %a = top.abs %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %p = top.matmul %a, %x {transB = true} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
  %n = top.neg %p : (tensor<3x3xf32>) -> tensor<3x3xf32>
  %y = top.matmul %n, %p : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  return %y : tensor<3x3xf32>
})",
                                       {&maps, &products, host.get()});
  ASSERT_EQ(result.subnets.size(), 4u);
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(result.subnets[i].target, i % 2);
  }
}

TEST_F(Abacus, RunsRandomGraphsOnTwoChips) {
  size_t mixed = 0;
  for (unsigned seed = 1000; seed < 1030 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    codegen::DeployResult result = check(abacus::randomGraph(seed), {&maps, &products, host.get()});
    mixed += llvm::any_of(result.subnets, [](const codegen::SubnetResult &subnet) { return subnet.target == 0; }) &&
             llvm::any_of(result.subnets, [](const codegen::SubnetResult &subnet) { return subnet.target == 1; });
  }
  EXPECT_GT(mixed, 1u) << "graphs that run on both chips";
}

/// Checks the number of lines of code of the smallest family that docs/adding-a-target.md states. Memory.h, which makes
/// its memory inaccessible, does not count.
TEST(AbacusSources, AreFew) {
  size_t lines = 0;
  for (const char *file : {"codegen/test/Abacus/AbacusTarget.h", "codegen/test/Abacus/AbacusTarget.cpp",
                           "codegen/test/Abacus/Commands.h", "codegen/test/Abacus/Commands.cpp",
                           "bmruntime/cts/abacus/AbacusBackend.cpp", "bmruntime/cts/abacus/Program.cpp",
                           "bmruntime/cts/abacus/Program.h", "bmodel_format/include/bmodel/abacus/program.h"}) {
    std::ifstream source(std::string(SOURCE_ROOT) + "/" + file);
    ASSERT_TRUE(source) << file;
    for (std::string line; std::getline(source, line);) {
      size_t first = line.find_first_not_of(' ');
      lines += first != std::string::npos && line.compare(first, 2, "//") != 0;
    }
  }
  RecordProperty("lines", int(lines));
  EXPECT_LT(lines, 600u);
}

} // namespace

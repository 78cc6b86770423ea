//===- Abacus_test.cpp - Models on an Abacus beside a host ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The smallest family through every part that a family meets: partition, subnets, copies between its memory and the
// host's, a .bmodel, and the runtime with its back end. The host alone says what is right.
//===----------------------------------------------------------------------===//
#include "AbacusTarget.h"
#include "bmodel/reader.h"
#include "bmrt/bmrt.hpp"
#include "codegen/Pipelines/Deploy.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Quant/IR/Quant.h"
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

std::unique_ptr<MLIRContext> createContext() {
  DialectRegistry registry;
  codegen::registerFamilies(registry);
  registry.insert<arith::ArithDialect, math::MathDialect, func::FuncDialect, mlir::quant::QuantDialect>();
  auto context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

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

/// An Abacus of another name, with a memory of its own, that does one kind of op only.
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
  std::vector<codegen::Refusal> survey(func::FuncOp function) const override {
    std::vector<codegen::Refusal> refusals = abacus->survey(function);
    for (Operation &other : function.getBody().front()) {
      if (other.getName().getStringRef() != op) {
        refusals.push_back({&other, "is nothing for " + chip});
      }
    }
    return refusals;
  }
  double secondsOf(Operation *each) const override { return abacus->secondsOf(each); }
  double transferSeconds(int64_t bytes) const override { return abacus->transferSeconds(bytes); }
  double handOverSeconds() const override { return abacus->handOverSeconds(); }
  void buildPasses(OpPassManager &manager, const codegen::CompileOptions &options) const override {
    abacus->buildPasses(manager, options);
  }
  llvm::Expected<std::optional<codegen::Program>> compile(ArrayRef<codegen::Subnet> subnets,
                                                          const codegen::CompileOptions &options,
                                                          const codegen::PhaseObserver &observer,
                                                          std::vector<codegen::Refusal> &refusals) const override {
    return abacus->compile(subnets, options, observer, refusals);
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
  auto context = createContext();
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
  net.run(); // all is there again
  for (const bmrt_tensor_info_t &info : net.outputs()) {
    const float *data = net.output<float>(info.name);
    outputs[info.name].assign(data, data + info.bytes / sizeof(float));
  }
  return outputs;
}

/// "" where they agree: the host may fuse products and sums.
std::string compare(const Tensors &made, const Tensors &expected) {
  for (const auto &[name, wanted] : expected) {
    const std::vector<float> &found = made.at(name);
    float largest = 1e-3f;
    for (float each : wanted) {
      largest = std::max(largest, std::fabs(each));
    }
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (!(std::fabs(found[i] - wanted[i]) <= 1e-5f * largest)) {
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
  /// Both ways; what ran where.
  codegen::DeployResult check(const std::string &text) { return check(text, {chip.get(), host.get()}); }
  codegen::DeployResult check(const std::string &text, Targets targets) {
    Deployed alone = deploy(text, scratch.file("host.bmodel"), targets.back());
    Deployed both = deploy(text, scratch.file("abacus.bmodel"), targets);
    if (!alone.path.empty() && !both.path.empty()) {
      std::string fault = compare(run(both.path), run(alone.path));
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
  EXPECT_TRUE(result.movedOps[0].isRefused);
  EXPECT_NE(result.movedOps[0].reason.find("no map and no matrix product"), std::string::npos);
}

TEST_F(Abacus, SaysWhatItCannotCompute) {
  codegen::DeployResult result =
      check(perceptron("%y = top.sigmoid %p : (tensor<3x2xf32>) -> tensor<3x2xf32>\n  return %y : tensor<3x2xf32>"));
  ASSERT_FALSE(result.movedOps.empty());
  EXPECT_NE(result.movedOps[0].reason.find("which an Abacus has not"), std::string::npos) << result.movedOps[0].reason;
}

/// Results that are the same bytes under other dims: of another result, and of an argument.
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

/// A graph of |ops| ops, any of which may read any value so far, an input or a constant; several are results.
class RandomGraph {
public:
  explicit RandomGraph(unsigned seed) : generator(seed) {}

  std::string make() {
    rows = pick(1, 5), columns = pick(1, 6);
    std::string arguments;
    for (int i = pick(1, 3); i > 0; --i) {
      std::string name = "%x" + std::to_string(i);
      arguments += (arguments.empty() ? "" : ", ") + name + ": " + type() + " {top.name = \"" + name.substr(1) + "\"}";
      values.push_back(name);
    }
    for (int i = pick(2, 10); i > 0; --i) {
      addOp();
    }
    std::string names, types, results;
    for (int i = 0; i < pick(1, 3); ++i) {
      names += (names.empty() ? "" : ", ") + values[values.size() - 1 - size_t(i) % values.size()];
      types += (types.empty() ? "" : ", ") + type();
      results += (results.empty() ? "" : ", ") + type() + " {top.name = \"y" + std::to_string(i) + "\"}";
    }
    return "func.func @main(" + arguments + ") -> (" + results + ") {\n" + body + "  return " + names + " : " + types +
           "\n}\n";
  }

private:
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(generator); }
  std::string any() { return values[size_t(pick(0, int(values.size()) - 1))]; }
  std::string type() const { return tensor(rows, columns); }
  static std::string tensor(int rows, int columns) {
    return llvm::formatv("tensor<2x{0}x{1}xf32>", rows, columns).str();
  }
  /// Dense numbers as a new value.
  std::string constant(const std::string &ofType) {
    std::string name = next();
    body += llvm::formatv("  {0} = top.constant dense<{1}.5> : {2} : {2}\n", name, pick(-2, 2), ofType).str();
    return name;
  }
  std::string next() { return "%v" + std::to_string(number++); }

  void addOp() {
    static const char *const unary[] = {"relu", "neg", "abs", "sigmoid"};
    static const char *const binary[] = {"add", "sub", "mul", "max", "min"};
    std::string made, from = any();
    switch (pick(0, 4)) {
    case 0:
      made = next();
      body += llvm::formatv("  {0} = top.{1} {2} : ({3}) -> {3}\n", made, unary[pick(0, 3)], from, type()).str();
      break;
    case 1: { // with another value, a number, or a row
      std::string other = pick(0, 1) ? any() : "";
      std::string otherType = !other.empty() ? type()
                              : pick(0, 1)   ? "tensor<1xf32>"
                                             : tensor(1, columns).replace(7, 1, "1");
      other = other.empty() ? constant(otherType) : other;
      made = next();
      body += llvm::formatv("  {0} = top.{1} {2}, {3} : ({4}, {5}) -> {4}\n", made, binary[pick(0, 4)], from, other,
                            type(), otherType)
                  .str();
      break;
    }
    case 2: { // by constant weights, there and back
      bool turned = pick(0, 1);
      int inner = pick(1, 7);
      std::string weights =
          llvm::formatv("tensor<{0}x{1}xf32>", turned ? inner : columns, turned ? columns : inner).str();
      std::string w = constant(weights), h = next();
      body += llvm::formatv("  {0} = top.matmul {1}, {2} {{transB = {3}} : ({4}, {5}) -> {6}\n", h, from, w,
                            turned ? "true" : "false", type(), weights, tensor(rows, inner))
                  .str();
      std::string back = llvm::formatv("tensor<{0}x{1}xf32>", inner, columns).str(), v = constant(back);
      made = next();
      body += llvm::formatv("  {0} = top.matmul {1}, {2} : ({3}, {4}) -> {5}\n", made, h, v, tensor(rows, inner), back,
                            type())
                  .str();
      break;
    }
    case 3: { // of two values: scores, and what they weigh
      std::string scores = next(), other = any();
      body += llvm::formatv("  {0} = top.matmul {1}, {2} {{transB = true} : ({3}, {3}) -> {4}\n", scores, from, other,
                            type(), tensor(rows, rows))
                  .str();
      made = next();
      body += llvm::formatv("  {0} = top.matmul {1}, {2} : ({3}, {4}) -> {4}\n", made, scores, any(),
                            tensor(rows, rows), type())
                  .str();
      std::string norm = next(); // sums do not grow without bounds
      body += llvm::formatv("  {0} = top.softmax {1} {{axis = 2} : ({2}) -> {2}\n", norm, made, type()).str();
      made = norm;
      break;
    }
    default:
      made = next();
      body += llvm::formatv("  {0} = top.softmax {1} {{axis = 1} : ({2}) -> {2}\n", made, from, type()).str();
    }
    values.push_back(made);
  }

  std::mt19937 generator;
  int rows = 0, columns = 0, number = 0;
  std::string body;
  std::vector<std::string> values;
};

TEST_F(Abacus, RunsRandomGraphs) {
  const char *range = std::getenv("TESSERA_ABACUS_GRAPHS"); // FIRST:END
  unsigned first = 0, end = 60;
  if (range) {
    sscanf(range, "%u:%u", &first, &end);
  }
  size_t mixed = 0;
  for (unsigned seed = first; seed < end && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    mixed += check(RandomGraph(seed).make()).subnets.size() > 2;
  }
  EXPECT_GT(mixed, (end - first) / 5) << "graphs that go to and fro";
}

/// What one chip makes and another reads goes by way of the host's memory.
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
    codegen::DeployResult result = check(RandomGraph(seed).make(), {&maps, &products, host.get()});
    mixed += llvm::any_of(result.subnets, [](const codegen::SubnetResult &subnet) { return subnet.target == 0; }) &&
             llvm::any_of(result.subnets, [](const codegen::SubnetResult &subnet) { return subnet.target == 1; });
  }
  EXPECT_GT(mixed, 6u) << "graphs that run on both";
}

/// docs/adding-a-target.md says how little the smallest family is: lines of code, what makes its memory inaccessible
/// (Memory.h) left out.
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

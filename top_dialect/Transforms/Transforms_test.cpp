//===- Transforms_test.cpp - The passes keep results, in linear time ------===//
// SPDX-License-Identifier: Apache-2.0
//
// Runs every function of the lit tests of this folder through each pass and through the pipeline,
// and compares the reference evaluation before and after on random inputs.
//===----------------------------------------------------------------------===//
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Reference/Evaluator.h"
#include "top_dialect/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <ctime>
#include <gtest/gtest.h>
#include <random>

namespace tessera::top {
namespace {
using namespace mlir;

class TransformsTest : public testing::Test {
protected:
  TransformsTest() {
    context.loadDialect<TopDialect, func::FuncDialect>();
    static bool registered = (registerTopTransforms(), true);
    (void)registered;
  }

  /// Runs `pipeline`, in the syntax of the command line.
  LogicalResult run(ModuleOp module, StringRef pipeline) {
    PassManager pm(&context);
    return failed(parsePassPipeline(pipeline, pm)) ? failure() : pm.run(module);
  }

  MLIRContext context;
};

// --- Results -------------------------------------------------------------------------

constexpr const char *kPipelines[] = {
    "top-fold-constants",      "top-fold-batch-norm", "top-fold-pad",      "top-fuse-bias",
    "top-fuse-activation",     "top-recover-softmax", "top-recover-norms", "top-recover-rope",
    "top-recover-activations", "top-sink-transposes", "top-cse",           "top-dce",
    "top-recover-attention",   "top-pipeline",
};

/// Names the inputs and outputs, as the importer does.
void nameInterface(func::FuncOp function) {
  OpBuilder builder(function);
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    function.setArgAttr(i, TopDialect::kNameAttr, builder.getStringAttr("in" + std::to_string(i)));
  }
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    function.setResultAttr(i, TopDialect::kNameAttr, builder.getStringAttr("out" + std::to_string(i)));
  }
}

/// Returns random inputs, or nothing if an input has dynamic dims.
std::optional<TensorMap> randomInputs(func::FuncOp function) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2);
  TensorMap inputs;
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    if (!tensor.hasStaticShape()) {
      return std::nullopt;
    }
    HostTensor values(tensor);
    if (tensor.getElementType().isF32()) {
      for (float &value : values.data<float>()) {
        value = normal(random);
      }
    }
    inputs.emplace("in" + std::to_string(i), std::move(values));
  }
  return inputs;
}

void expectEqual(const HostTensor &before, const HostTensor &after, StringRef what) {
  ASSERT_EQ(before.getShape(), after.getShape()) << what.str();
  if (!before.getElementType().isF32()) {
    EXPECT_EQ(before.getBytes(), after.getBytes()) << what.str();
    return;
  }
  auto x = before.data<float>(), y = after.data<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    bool equal = std::isnan(x[i])   ? std::isnan(y[i])
                 : std::isinf(x[i]) ? x[i] == y[i]
                                    : std::abs(x[i] - y[i]) <= 1e-5 + 1e-4 * std::abs(x[i]);
    ASSERT_TRUE(equal) << what.str() << ", element " << i << ": " << x[i] << " before, " << y[i] << " after";
  }
}

SmallVector<std::string> splitModules(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, "\n// -----\n");
  SmallVector<std::string> modules;
  for (StringRef part : parts) {
    modules.push_back(part.str());
  }
  return modules;
}

std::vector<std::string> testFiles() {
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(TESSERA_TEST_DIR, error), end; !error && it != end; it.increment(error)) {
    if (StringRef(it->path()).ends_with(".mlir")) {
      files.push_back(it->path());
    }
  }
  llvm::sort(files);
  return files;
}

TEST_F(TransformsTest, KeepsResults) {
  int compared = 0;
  for (const std::string &path : testFiles()) {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(buffer)) << path;
    for (const std::string &text : splitModules((*buffer)->getBuffer())) {
      auto original = parseSourceString<ModuleOp>(text, &context);
      ASSERT_TRUE(original) << path;
      auto function = *original->getOps<func::FuncOp>().begin();
      nameInterface(function);
      std::optional<TensorMap> inputs = randomInputs(function);
      if (!inputs) {
        continue;
      }
      auto before = Evaluator().run(function, *inputs);
      ASSERT_TRUE(succeeded(before)) << path;
      for (StringRef pipeline : kPipelines) {
        OwningOpRef<ModuleOp> module = original->clone();
        std::string what = pipeline.str() + " on @" + function.getName().str() + " of " + path;
        ASSERT_TRUE(succeeded(run(*module, pipeline))) << what;
        auto after = Evaluator().run(*module->getOps<func::FuncOp>().begin(), *inputs);
        ASSERT_TRUE(succeeded(after)) << what;
        for (const auto &[name, tensor] : *before) {
          expectEqual(tensor, after->at(name), what + ", " + name);
        }
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 500); // A test that compares nothing must not pass.
}

// --- Cost ------------------------------------------------------------------------------

/// Returns a chain of `ops` ops with patterns for every pass.
std::string chain(int ops) {
  const char *t = "tensor<1x4x6xf32>", *u = "tensor<1x6x4xf32>";
  std::string text = "func.func @main(%v0: tensor<1x4x6xf32>) -> tensor<1x4x6xf32> {\n"
                     "%c = top.constant dense<0.5> : tensor<f32> : tensor<f32>\n"
                     "%w = top.constant dense<0.5> : tensor<4x4x1xf32> : tensor<4x4x1xf32>\n";
  llvm::raw_string_ostream out(text);
  int v = 0;
  auto unary = [&](const char *op, const char *attrs, int x, const char *from, const char *to) {
    out << "%v" << v + 1 << " = top." << op << " %v" << x << " " << attrs << " : (" << from << ") -> " << to << "\n";
    return ++v;
  };
  auto binary = [&](const char *op, const std::string &operands, const char *type) {
    out << "%v" << v + 1 << " = top." << op << " " << operands << " : (" << type << ") -> " << t << "\n";
    return ++v;
  };
  const char *both = "tensor<1x4x6xf32>, tensor<1x4x6xf32>", *scaled = "tensor<1x4x6xf32>, tensor<f32>";
  while (v < ops) {
    int x = v;
    int gate = unary("sigmoid", "", x, t, t);
    binary("mul", "%v" + std::to_string(x) + ", %v" + std::to_string(gate), both);
    unary("transpose", "{perm = array<i64: 0, 2, 1>}", v, t, u);
    unary("relu", "", v, u, u);
    int same = unary("transpose", "{perm = array<i64: 0, 2, 1>}", v, u, t);
    out << "%v" << v + 1 << " = top.conv %v" << same
        << ", %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (" << t
        << ", tensor<4x4x1xf32>) -> " << t << "\n";
    ++v;
    binary("mul", "%v" + std::to_string(v) + ", %c", scaled);
    binary("add", "%v" + std::to_string(v) + ", %c", scaled);
  }
  out << "return %v" << v << " : " << t << "\n}\n";
  return text;
}

/// Returns one transpose above `ops` elementwise ops, over all of which it moves.
std::string longWay(int ops) {
  std::string text = "func.func @main(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {\n"
                     "%v0 = top.transpose %x {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>\n";
  llvm::raw_string_ostream out(text);
  for (int v = 0; v < ops; ++v) {
    out << "%v" << v + 1 << " = top.tanh %v" << v << " : (tensor<3x2xf32>) -> tensor<3x2xf32>\n";
  }
  out << "return %v" << ops << " : tensor<3x2xf32>\n}\n";
  return text;
}

class Cost : public TransformsTest {
protected:
  /// Returns the processor seconds of the pipeline, the minimum of three runs.
  double seconds(const std::string &text) {
    double least = HUGE_VAL;
    auto original = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(original);
    for (int i = 0; original && i < 3; ++i) {
      OwningOpRef<ModuleOp> module = original->clone();
      std::clock_t begin = std::clock();
      EXPECT_TRUE(succeeded(run(*module, "top-pipeline")));
      least = std::min(least, double(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    return least;
  }

  /// Four times the ops must take about four times as long; a quadratic pass would take sixteen times as long.
  void expectLinear(std::string (*make)(int)) {
    context.disableMultithreading();
    double small = 0, large = HUGE_VAL;
    // On a busy machine a single measurement may be wrong; a quadratic pass fails every time.
    for (int attempt = 0; attempt < 3 && large >= 9 * small + 0.02; ++attempt) {
      small = seconds(make(5000));
      large = seconds(make(20000));
    }
    RecordProperty("seconds_of_20000_ops", std::to_string(large));
    EXPECT_LT(large, 9 * small + 0.02) << "5000 ops take " << small << " s, 20000 ops " << large << " s";
  }
};

TEST_F(Cost, IsLinearOnAChainOfPatterns) { expectLinear(chain); }
TEST_F(Cost, IsLinearInTheWayOfATranspose) { expectLinear(longWay); }

} // namespace
} // namespace tessera::top

//===- PanelTile_test.cpp - Contractions with panels against the reference ===//
// SPDX-License-Identifier: Apache-2.0
//
// Compiles the kernels for this machine with vectors of 128 bits, whatever it has. TESSERA_PANEL_CASES=0:500 checks
// other random cases.
//===----------------------------------------------------------------------===//
#include "codegen/Native/PanelTile.h"

#include "bmodel/cpu_features.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Native/KernelHarness.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/TargetSelect.h"

#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace tessera;
using llvm::formatv;
using native::tensorText;

namespace {

MLIRContext &testContext() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect>();
    kernels::registerKernels(registry);
    auto *created = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    created->loadAllAvailableDialects();
    return created;
  }();
  return *context;
}

FailureOr<kernels::Kernel> compileHere(Operation *op) {
  static const native::Machine machine = {
      .triple = "x86_64-unknown-linux-gnu", .cpu = "x86-64-v3", .key = "panels", .registerBackend = [] {
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
      }};
  return native::compileKernel(op, machine, "kernel", [](Operation *op, StringRef symbol, kernels::KernelFrame &frame) {
    return native::emitPanelKernel(op, {.bytes = 16, .fma = true}, symbol, frame);
  });
}

void check(const std::string &text) {
  native::CheckOptions options;
  options.allBytes = true;
  EXPECT_EQ(native::checkOp(testContext(), text,
                            [&](Operation *op) { return native::runOnRandom(op, compileHere, options); }),
            "")
      << text;
}

/// Draws the numbers of one case.
class Draw {
public:
  explicit Draw(int64_t seed) : generator(seed) {}
  int64_t operator()(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }

private:
  std::mt19937_64 generator;
};

/// Element types of two factors and of the result.
struct Types {
  const char *left, *right, *result;
};
constexpr Types kTypes[] = {
    {"f32", "f32", "f32"}, {"f16", "f16", "f32"}, {"bf16", "bf16", "f32"}, {"i8", "i8", "i32"}, {"ui8", "i8", "i32"}};

std::string matmulText(Draw &draw) {
  Types types = kTypes[draw(0, std::size(kTypes) - 1)];
  int64_t batch = draw(1, 3), rows = draw(1, 3) == 1 ? draw(100, 140) : draw(1, 20), depth = draw(1, 40),
          columns = draw(1, 2) == 1 ? 16 * draw(1, 3) : draw(1, 50);
  bool isTransposed = draw(0, 1), isShared = draw(0, 1);
  SmallVector<int64_t> b = isTransposed ? SmallVector<int64_t>{columns, depth} : SmallVector<int64_t>{depth, columns};
  if (!isShared) {
    b.insert(b.begin(), batch);
  }
  return formatv("(%a: {0}, %b: {1}, %c: {2}) -> {3} {{ %y = device.matmul %a, %b bias %c {{transB = {4}} : ({0}, {1}, "
                 "{2}) -> {3} return %y : {3} }",
                 tensorText({batch, rows, depth}, types.left), tensorText(b, types.right),
                 tensorText({columns}, types.result), tensorText({batch, rows, columns}, types.result),
                 isTransposed ? "true" : "false");
}

std::string convText(Draw &draw) {
  Types types = kTypes[draw(0, std::size(kTypes) - 1)];
  bool hasBytes = StringRef(types.result) == "i32";
  int64_t groups = draw(1, 3), inputs = draw(1, 5), outputs = draw(4, 9), images = draw(1, 2), kh = draw(1, 3),
          kw = draw(1, 3), stride = draw(1, 3), dilation = draw(1, 2), h = draw(kh * 2, 12), width = draw(kw * 2, 40);
  int64_t pads[4];
  for (int64_t &pad : pads) {
    pad = draw(0, 2);
  }
  int64_t oh = (h + pads[0] + pads[2] - (kh - 1) * dilation - 1) / stride + 1;
  int64_t ow = (width + pads[1] + pads[3] - (kw - 1) * dilation - 1) / stride + 1;
  int64_t padValue = !hasBytes ? 0 : StringRef(types.left) == "ui8" ? draw(0, 255) : draw(-128, 127);
  // The result overwrites nothing here, but a residual is added, as in a network.
  const char *sum = hasBytes ? "arith.addi" : "arith.addf";
  return formatv(
      "(%x: {0}, %w: {1}, %b: {2}, %r: {3}) -> {3} {{ %y = device.conv %x, %w bias %b extras(%r) epilogue "
      "{{ ^bb0(%s: {4}, %e: {4}): %m = {5} %s, %e : {4} device.yield %m : {4} } {{strides = array<i64: {6}, "
      "{6}>, pads = array<i64: {7}, {8}, {9}, {10}>, dilations = array<i64: {11}, {11}>, groups = {12}{13}} : "
      "({0}, {1}, {2}, {3}) -> {3} return %y : {3} }",
      tensorText({images, inputs * groups, h, width}, types.left),
      tensorText({outputs * groups, inputs, kh, kw}, types.right), tensorText({outputs * groups}, types.result),
      tensorText({images, outputs * groups, oh, ow}, types.result), types.result, sum, stride, pads[0], pads[1],
      pads[2], pads[3], dilation, groups, padValue ? formatv(", padValue = {0} : i64", padValue).str() : "");
}

/// Calls |body| with the seed of each random case.
template <typename Body>
void forCases(Body body) {
  if (!(bmodel::cpuFeatures() & bmodel::BM_CPU_FMA)) {
    GTEST_SKIP() << "the kernels need FMA";
  }
  int64_t first = 0, last = 25;
  if (const char *asked = getenv("TESSERA_PANEL_CASES")) {
    ASSERT_EQ(sscanf(asked, "%ld:%ld", &first, &last), 2);
  }
  for (int64_t seed = first; seed < last && !testing::Test::HasFailure(); ++seed) {
    Draw draw(seed);
    SCOPED_TRACE(seed);
    body(draw);
  }
}

TEST(Panels, MatMul) {
  forCases([](Draw &draw) { check(matmulText(draw)); });
}
TEST(Panels, Conv) {
  forCases([](Draw &draw) { check(convText(draw)); });
}

} // namespace

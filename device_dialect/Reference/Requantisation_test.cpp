//===- Requantisation_test.cpp - The IR against numerics.h ----------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Lowers matmuls in every mode and compares the results of the device ops with bmodel/numerics.h.
#include "bmodel/numerics.h"
#include "device_dialect/Conversion/TopToDevice/TopToDevice.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/Reference/Evaluator.h"
#include "top_dialect/Reference/Support.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir;
using namespace tessera;
using namespace bmodel::numerics;
using top::HostTensor;

namespace {

constexpr int64_t kRows = 400, kDepth = 3, kColumns = 24;

template <typename T>
std::string list(ArrayRef<T> values) {
  std::string text;
  for (auto [i, value] : llvm::enumerate(values)) {
    text += (i ? ", " : "") + llvm::formatv("{0}", value).str();
  }
  return text;
}

/// A matmul of i16 x by i8 weights, with one scale or one per column, quantised to |element| with zero point |zero|.
struct Product {
  Product(StringRef element, int64_t zero, bool perColumn, std::mt19937 &random) : element(element), zero(zero) {
    auto pick = [&](int64_t most) { return std::uniform_int_distribution<int64_t>(-most, most)(random); };
    for (int64_t i = 0; i < kRows * kDepth; ++i) {
      x.push_back(random() % 4 == 0 ? (random() % 2 ? 32767 : -32767) : pick(random() % 2 ? 32767 : 5));
    }
    for (int64_t i = 0; i < kDepth * kColumns; ++i) {
      weights.push_back(random() % 3 == 0 ? (random() % 2 ? 127 : -127) : pick(2));
    }
    for (int64_t c = 0; c < (perColumn ? kColumns : 1); ++c) {
      // Powers of two give sums of exactly one half; the range makes some results vanish and some saturate.
      double power = std::ldexp(1.0, int(random() % 40) - 34);
      scales.push_back(static_cast<float>(random() % 2 ? power : power * (1 + double(random() % 1000) / 1000)));
    }
  }

  int32_t sum(int64_t row, int64_t column) const {
    int32_t total = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      total += static_cast<int32_t>(x[row * kDepth + k] * weights[k * kColumns + column]);
    }
    return total;
  }

  std::string text() const {
    std::string scaleType = scales.size() == 1 ? "tensor<f32>" : llvm::formatv("tensor<{0}xf32>", scales.size()).str();
    std::string bits;
    for (auto [i, scale] : llvm::enumerate(scales)) {
      bits += (i ? ", " : "") + llvm::formatv("{0:x8}", llvm::bit_cast<uint32_t>(scale)).str();
    }
    bits = scales.size() == 1 ? bits : "[" + bits + "]";
    std::string weightText;
    for (int64_t k = 0; k < kDepth; ++k) {
      weightText += (k ? ", [" : "[") + list<int64_t>(ArrayRef(weights).slice(k * kColumns, kColumns)) + "]";
    }
    return llvm::formatv(R"(func.func @main(%x: tensor<{0}x{1}xi16>) -> tensor<{0}x{2}x{3}> {{
      %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
      %z16 = top.constant dense<0> : tensor<i16> : tensor<i16>
      %z8 = top.constant dense<0> : tensor<i8> : tensor<i8>
      %zy = top.constant dense<{4}> : tensor<{3}> : tensor<{3}>
      %s = top.constant dense<{5}> : {6} : {6}
      %w = top.constant dense<[{7}]> : tensor<{1}x{2}xi8> : tensor<{1}x{2}xi8>
      %xf = top.dequantize %x, %one, %z16 : (tensor<{0}x{1}xi16>, tensor<f32>, tensor<i16>) -> tensor<{0}x{1}xf32>
      %wf = top.dequantize %w, %s, %z8 : (tensor<{1}x{2}xi8>, {6}, tensor<i8>) -> tensor<{1}x{2}xf32>
      %y = top.matmul %xf, %wf : (tensor<{0}x{1}xf32>, tensor<{1}x{2}xf32>) -> tensor<{0}x{2}xf32>
      %q = top.quantize %y, %one, %zy : (tensor<{0}x{2}xf32>, tensor<f32>, tensor<{3}>) -> tensor<{0}x{2}x{3}>
      return %q : tensor<{0}x{2}x{3}> })",
                         kRows, kDepth, kColumns, element, zero, bits, scaleType, weightText)
        .str();
  }

  int32_t expected(Requantisation mode, int64_t row, int64_t column) const {
    double factor = scales[scales.size() == 1 ? 0 : column];
    int bits = element.ends_with("16") ? 16 : 8;
    int32_t low = element.starts_with("u") ? 0 : -(1 << (bits - 1)), high = low + (1 << bits) - 1;
    auto z = static_cast<int32_t>(zero);
    switch (mode) {
    case Requantisation::Float:
      return requantiseFloat(sum(row, column), static_cast<float>(factor), z, low, high);
    case Requantisation::Fixed:
      return requantiseFixed(sum(row, column), toFixed(factor), z, low, high);
    case Requantisation::Tflite:
      return requantiseTflite(sum(row, column), toFixed(factor), z, low, high);
    }
    return 0;
  }

  StringRef element;
  int64_t zero;
  std::vector<int64_t> x, weights;
  SmallVector<float> scales;
};

class Modes : public testing::TestWithParam<const char *> {
protected:
  Modes() { context.loadDialect<func::FuncDialect, top::TopDialect, device::DeviceDialect>(); }

  /// Checks all elements; returns the number of those that are neither zero point nor bound.
  int64_t check(const Product &product, StringRef mode) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(product.text(), &context);
    EXPECT_TRUE(module) << product.text();
    PassManager passes(&context);
    passes.nest<func::FuncOp>().addPass(device::createConvertTopToDevicePass({.requantisation = mode.str()}));
    EXPECT_TRUE(module && succeeded(passes.run(*module)));
    HostTensor x(IntegerType::get(&context, 16), {kRows, kDepth});
    top::reference::write(product.x, x);
    top::TensorMap inputs;
    inputs.try_emplace("arg0", std::move(x));
    FailureOr<top::TensorMap> results = top::Evaluator().run(*module->getOps<func::FuncOp>().begin(), inputs);
    EXPECT_TRUE(succeeded(results));
    std::vector<int64_t> got = top::reference::read<int64_t>(results->begin()->second);
    int64_t telling = 0;
    for (int64_t i = 0; i < kRows * kColumns; ++i) {
      int32_t want = product.expected(*parseRequantisation(mode.str()), i / kColumns, i % kColumns);
      EXPECT_EQ(got[i], want) << product.sum(i / kColumns, i % kColumns);
      telling += want != product.zero && want != -128 && want != 127;
    }
    return telling;
  }

  MLIRContext context;
};

TEST_P(Modes, IrSaysWhatNumericsSays) {
  std::mt19937 random(5);
  int64_t telling = 0;
  for (auto [element, zero] : {std::pair("i8", -9), {"ui8", 7}, {"i16", 0}, {"i8", 0}}) {
    for (bool perColumn : {true, false, true}) {
      telling += check(Product(element, zero, perColumn, random), GetParam());
    }
  }
  EXPECT_GT(telling, 5000);
}

INSTANTIATE_TEST_SUITE_P(Requantisation, Modes, testing::Values("float", "fixed", "tflite"));

} // namespace

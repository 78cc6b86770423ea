//===- ConvolutionText.h - Random convolutions as text ----------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_NPU_CONVOLUTIONTEXT_H
#define TESSERA_REGRESSION_NPU_CONVOLUTIONTEXT_H

#include "regression/npu/EmissionFixture.h"

#include "llvm/Support/FormatVariadic.h"

namespace tessera::npu {

using llvm::formatv;

inline std::string weightsText(const Dims &dims, int most = 127) {
  return constantText<int8_t>(dims, "i8", [=] { return int8_t(between(-most, most)); });
}
/// Returns a constant of whole numbers in the given float type.
inline std::string wholeText(const Dims &dims, const std::string &element, int most = 9) {
  mlir::Builder builder(&testContext());
  mlir::Type type = element == "bf16"  ? mlir::Type(builder.getBF16Type())
                    : element == "f16" ? mlir::Type(builder.getF16Type())
                                       : mlir::Type(builder.getF32Type());
  top::HostTensor tensor(type, dims);
  std::vector<double> values(tensor.getNumElements());
  std::generate(values.begin(), values.end(), [=] { return double(between(-most, most)); });
  top::reference::write(values, tensor);
  top::WeightStore &store = testContext().getLoadedDialect<top::TopDialect>()->getWeightStore();
  std::vector<char> bytes(tensor.getBytes().begin(), tensor.getBytes().end());
  return "top.weight \"" + store.add("c", type, dims, std::move(bytes)) + "\" : " + typeText(dims, element);
}
inline std::string biasText(int64_t channels) {
  return constantText<int32_t>({channels}, "i32", [] { return int32_t(between(-20000, 20000)); });
}
inline std::string factorText(const Dims &dims) {
  return constantText<float>(dims, "f32", [] { return float(between(1, 1000)) * 1e-5f; });
}

/// Returns rne(%v) + zero, clamped, as in quantised models; the default bounds are those of i8.
inline std::string requantise(const std::string &value, int64_t zero, int64_t low = -128, int64_t high = 127,
                              const char *element = "i8") {
  return formatv(R"(
    %q0 = math.roundeven {0} : f32
    %z = arith.constant {1}.0 : f32
    %q1 = arith.addf %q0, %z : f32
    %lo = arith.constant {2}.0 : f32
    %q2 = arith.maximumf %q1, %lo : f32
    %hi = arith.constant {3}.0 : f32
    %q3 = arith.minimumf %q2, %hi : f32
    %q4 = arith.fptosi %q3 : f32 to i32
    %q = arith.trunci %q4 : i32 to {4}
    device.yield %q : {4})",
                 value, zero, low, high, element);
}
inline std::string requantise16(const std::string &value) { return requantise(value, 0, -32768, 32767, "i16"); }

/// Returns the requantisation of the i32 %a with mantissa %m and shift %t, clamped, in the form that the lowering
/// produces.
inline std::string requantiseFixed(int64_t zero, int64_t low, int64_t high, const char *element) {
  return formatv(R"(
    %c1 = arith.constant 1 : i64
    %w0 = arith.extsi %a : i32 to i64
    %w1 = arith.extsi %m : i32 to i64
    %w2 = arith.extsi %t : i32 to i64
    %p0 = arith.muli %w0, %w1 : i64
    %p1 = arith.subi %w2, %c1 : i64
    %p2 = arith.shli %c1, %p1 : i64
    %p3 = arith.addi %p0, %p2 : i64
    %r = arith.shrsi %p3, %w2 : i64
    %z = arith.constant {0} : i64
    %q1 = arith.addi %r, %z : i64
    %lo = arith.constant {1} : i64
    %q2 = arith.maxsi %q1, %lo : i64
    %hi = arith.constant {2} : i64
    %q3 = arith.minsi %q2, %hi : i64
    %q = arith.trunci %q3 : i64 to {3}
    device.yield %q : {3})",
                 zero, low, high, element);
}

/// A random convolution: depthwise, grouped or dense.
struct Convolution {
  Dims x, w, y;
  int64_t groups = 1, stride, dilation, padding, padValue = between(-128, 127);
  std::string xElement = "i8", wElement = "i8";

  explicit Convolution(int64_t mostChannels) {
    int64_t kernel = between(1, 3);
    stride = between(1, 2), dilation = between(1, 2), padding = between(0, kernel - 1);
    int64_t kind = between(0, 3), channels = between(1, mostChannels);
    groups = kind == 0 ? channels : kind == 1 ? 2 : 1; // depthwise, grouped, dense
    channels = kind == 1 ? 2 * channels : channels;
    int64_t outputs = kind == 0 ? channels : groups * between(1, mostChannels / groups);
    x = {between(1, 2), channels, between(7, 20), between(7, 20)};
    w = {outputs, channels / groups, kernel, kernel};
    y = {x[0], outputs, outputDim(x[2], kernel), outputDim(x[3], kernel)};
  }

  /// Changes x to 16 bits as in quantised models: symmetric, so that no sum overflows.
  Convolution &&wide() && {
    xElement = "i16", padValue = 0;
    return std::move(*this);
  }

  /// Returns the convolution of floats, whose sum is %v. |extraType| is the type of a second operand %e of the
  /// epilogue, if any.
  std::string floatText(const std::string &element, const std::string &extraType, const std::string &epilogue) const {
    std::string xType = typeText(x, xElement), wType = typeText(w, wElement), yType = typeText(y, element);
    std::string rType = typeText(y, extraType), bType = typeText({w[0]}, "f32");
    bool residual = !extraType.empty();
    return formatv("func.func @main(%x: {0} {{top.name = \"x\"}{1}) -> ({2} {{top.name = \"y\"}) attributes "
                   "{{device.exact} {{\n  %w = {3}\n  %b = {4}\n",
                   xType, residual ? ", %r: " + rType + " {top.name = \"r\"}" : "", yType,
                   wElement == "i8" ? weightsText(w, 9) : wholeText(w, wElement), wholeText({w[0]}, "f32", 1000))
               .str() +
           formatv("  %y = device.conv %x, %w bias %b {0} epilogue {{\n  ^bb0(%v: f32{1}):\n{2}\n  } {{strides = "
                   "array<i64: {3}, {3}>, dilations = array<i64: {4}, {4}>, pads = array<i64: {5}, {5}, {5}, {5}>, "
                   "groups = {6} : i64} : ({7}, {8}, {9}{10}) -> {11}\n  return %y : {11}\n}\n",
                   residual ? "extras(%r)" : "", residual ? ", %e: " + extraType : "", epilogue, stride, dilation,
                   padding, groups, xType, wType, bType, residual ? ", " + rType : "", yType)
               .str();
  }

  /// Returns the convolution with requantiseFixed().
  std::string fixedText(const std::string &element, const std::string &epilogue) const {
    std::string xType = typeText(x, xElement), wType = typeText(w, "i8"), yType = typeText(y, element);
    Dims channels = {w[0], 1, 1};
    std::string cType = typeText(channels, "i32"), bType = typeText({w[0]}, "i32");
    auto numbers = [&](int64_t low, int64_t high) {
      return constantText<int32_t>(channels, "i32", [=] { return int32_t(between(low, high)); });
    };
    bool isWide = xElement == "i16";
    return formatv(
               "func.func @main(%x: {0} {{top.name = \"x\"}) -> ({1} {{top.name = \"y\"}) attributes {{device.exact} "
               "{{\n  %w = {2}\n  %b = {3}\n  %mantissas = {4}\n  %shifts = {5}\n",
               xType, yType, weightsText(w, isWide ? 50 : 127), biasText(w[0]), numbers(int64_t(1) << 30, INT32_MAX),
               numbers(isWide ? 42 : 36, 46))
               .str() +
           formatv(
               "  %y = device.conv %x, %w bias %b extras(%mantissas, %shifts) epilogue {{\n  ^bb0(%a: i32, %m: i32, "
               "%t: i32):{0}\n  } {{strides = array<i64: {1}, {1}>, dilations = array<i64: {2}, {2}>, pads = "
               "array<i64: {3}, {3}, {3}, {3}>, groups = {4} : i64, padValue = {5} : i64{6}} : ({7}, {8}, {9}, {10}, "
               "{10}) -> {11}\n  return %y : {11}\n}\n",
               epilogue, stride, dilation, padding, groups, padValue, isWide ? ", sumBound = 2147000000 : i64" : "",
               xType, wType, bType, cType, yType)
               .str();
  }

  std::string text(const std::string &element, const std::string &extraTypes, const std::string &epilogue) const {
    bool residual = !extraTypes.empty(), isWide = xElement == "i16";
    std::string xType = typeText(x, xElement), yType = typeText(y, element), rType = typeText(y, extraTypes);
    std::string fType = typeText({w[0], 1, 1}, "f32");
    return formatv("func.func @main(%x: {0} {{top.name = \"x\"}{1}) -> ({2} {{top.name = \"y\"}) attributes "
                   "{{device.exact} {{\n  %w = {3}\n  %b = {4}\n  %f = {5}\n",
                   xType, residual ? ", %r: " + rType + " {top.name = \"r\"}" : "", yType,
                   weightsText(w, isWide ? 50 : 127), biasText(w[0]), factorText({w[0], 1, 1}))
               .str() +
           formatv(
               "  %y = device.conv %x, %w bias %b extras(%f{0}) epilogue {{\n  ^bb0(%a: i32, %s: f32{1}):\n    %v0 = "
               "arith.sitofp %a : i32 to f32\n    %v = arith.mulf %v0, %s : f32{2}\n  } {{strides = array<i64: {3}, "
               "{3}>, dilations = array<i64: {4}, {4}>, pads = array<i64: {5}, {5}, {5}, {5}>, groups = {6} : i64, "
               "padValue = {7} : i64{14}} : ({8}, {9}, {10}, {11}{12}) -> {13}\n  return %y : {13}\n}\n",
               residual ? ", %r" : "", residual ? ", %e: " + extraTypes : "", epilogue, stride, dilation, padding,
               groups, padValue, xType, typeText(w, "i8"), typeText({w[0]}, "i32"), fType, residual ? ", " + rType : "",
               yType, isWide ? ", sumBound = 2147000000 : i64" : "")
               .str();
  }

private:
  int64_t outputDim(int64_t size, int64_t kernel) const {
    return (size + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
  }
};

} // namespace tessera::npu

#endif // TESSERA_REGRESSION_NPU_CONVOLUTIONTEXT_H

//===- KernelHarness.cpp - Compares kernels of single ops with the reference --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/KernelHarness.h"

#include "bmodel/dim_terms.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Native/Contract.h"
#include "codegen/Native/Linker.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"

#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;

namespace tessera::native {
namespace {

float halfToFloat(uint16_t bits, bool isBf16) {
  llvm::APFloat value(isBf16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf(), llvm::APInt(16, bits));
  bool inexact;
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToFloat();
}

uint16_t floatToHalf(float number, bool isBf16) {
  llvm::APFloat value(number);
  bool inexact;
  value.convert(isBf16 ? llvm::APFloat::BFloat() : llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven,
                &inexact);
  return value.bitcastToAPInt().getZExtValue();
}

} // namespace

double readNumber(Type type, const char *data, int64_t index) {
  auto at = [&](auto zero) {
    memcpy(&zero, data + index * sizeof(zero), sizeof(zero));
    return zero;
  };
  if (type.isF32()) {
    return at(float());
  }
  if (type.isF64()) {
    return at(double());
  }
  if (type.isF16() || type.isBF16()) {
    return halfToFloat(at(uint16_t()), type.isBF16());
  }
  bool isUnsigned = type.isUnsignedInteger();
  switch (device::elementBytes(type)) {
  case 1:
    return isUnsigned ? at(uint8_t()) : at(int8_t());
  case 2:
    return isUnsigned ? at(uint16_t()) : at(int16_t());
  case 4:
    return isUnsigned ? at(uint32_t()) : at(int32_t());
  default:
    return at(int64_t());
  }
}

namespace {

void writeNumber(Type type, char *data, int64_t index, double number) {
  auto put = [&](auto value) { memcpy(data + index * sizeof(value), &value, sizeof(value)); };
  if (type.isF32()) {
    return put(float(number));
  }
  if (type.isF64()) {
    return put(number);
  }
  if (type.isF16() || type.isBF16()) {
    return put(floatToHalf(float(number), type.isBF16()));
  }
  switch (device::elementBytes(type)) {
  case 1:
    return put(uint8_t(int64_t(number)));
  case 2:
    return put(uint16_t(int64_t(number)));
  case 4:
    return put(uint32_t(int64_t(number)));
  default:
    return put(int64_t(number));
  }
}

void fillRandom(top::HostTensor &tensor, std::mt19937 &random, const CheckOptions &options) {
  Type type = tensor.getElementType();
  for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
    double number = std::uniform_real_distribution<double>(options.low, options.high)(random);
    if (options.signedZeros && isa<FloatType>(type)) {
      constexpr double kNumbers[] = {-1, -0.0, -0.0, 0, 0, 1};
      number = kNumbers[random() % std::size(kNumbers)];
    } else if (options.allBytes && type.isInteger(8)) {
      uint32_t bits = random();
      int64_t byte = bits >> 8 & 0xff;
      byte = bits % 8 == 0 ? 255 : bits % 8 == 1 ? 0 : bits % 8 == 2 ? 128 : byte; // extremes of both kinds
      number = type.isUnsignedInteger() ? byte : byte - 128;
    } else if (options.allBytes && type.isSignlessInteger(16) && options.largest16) {
      uint32_t bits = random();
      int64_t most = options.largest16, any = bits / 8 % (2 * most + 1) - most;
      number = static_cast<double>(bits % 8 == 0 ? most : bits % 8 == 1 ? -most : bits % 8 == 2 ? 0 : any);
    } else if (type.isInteger(1)) {
      number = number > 0;
    } else if (type.isInteger(32) || type.isInteger(64)) {
      number = std::floor(std::uniform_real_distribution<double>(options.negativeIndices ? -options.indexRange : 0,
                                                                 options.indexRange)(random));
    } else if (type.isUnsignedInteger()) {
      number = std::fabs(std::floor(number));
    } else if (isa<IntegerType>(type)) {
      number = std::floor(number);
    }
    writeNumber(type, tensor.getBytes().data(), i, number);
  }
}

/// Calls |visit|(row-major index, physical index) for every logical element of a tensor of |type|.
void forElements(RankedTensorType type, llvm::function_ref<void(int64_t, int64_t)> visit) {
  device::BlockedAttr layout = device::getBlockedLayout(type);
  int64_t block = layout ? layout.getBlock() : 1, count = type.getNumElements();
  if (!layout) {
    for (int64_t i = 0; i < count; ++i) {
      visit(i, i);
    }
    return;
  }
  int64_t channels = type.getDimSize(1), inner = 1;
  for (int64_t size : type.getShape().drop_front(2)) {
    inner *= size;
  }
  int64_t blocks = llvm::divideCeil(channels, block);
  for (int64_t i = 0; i < count; ++i) {
    int64_t d = i % inner, c = i / inner % channels, n = i / inner / channels;
    visit(i, ((n * blocks + c / block) * inner + d) * block + c % block);
  }
}

} // namespace

GuardedBuffer toMemory(RankedTensorType type, const top::HostTensor &tensor, int64_t alignment) {
  int64_t bytes = device::elementBytes(type.getElementType());
  GuardedBuffer buffer(device::physicalBytes(type), alignment);
  memset(buffer.data(), 0, buffer.size());
  forElements(type, [&](int64_t from, int64_t to) {
    memcpy(buffer.data() + to * bytes, tensor.getBytes().data() + from * bytes, bytes);
  });
  return buffer;
}

namespace {

double tolerance(Type type, const CheckOptions &options) {
  double least = type.isBF16() ? 2e-2 : type.isF16() ? 4e-3 : 0;
  return isa<FloatType>(type) ? std::max(least, options.relative) : 0;
}

std::string compare(RankedTensorType type, const char *actual, const top::HostTensor &expected,
                    const CheckOptions &options) {
  Type element = type.getElementType();
  std::string message;
  forElements(type, [&](int64_t logical, int64_t physical) {
    double want = readNumber(element, expected.getBytes().data(), logical),
           have = readNumber(element, actual, physical);
    bool same = want == have || (std::isnan(want) && std::isnan(have)) ||
                std::fabs(want - have) <= tolerance(element, options) * std::max(1.0, std::fabs(want));
    same &= !options.signedZeros || std::signbit(want) == std::signbit(have);
    if (!same && message.empty()) {
      message = llvm::formatv("element {0} of {1} is {2}, expected {3}", logical, type, have, want);
    }
  });
  if (!message.empty() || !device::isBlocked(type)) {
    return message;
  }
  int64_t bytes = device::elementBytes(element), zeros = 0;
  std::vector<bool> covered(kernels::physicalElements(type).value());
  forElements(type, [&](int64_t, int64_t physical) { covered[physical] = true; });
  for (size_t i = 0; i < covered.size(); ++i) {
    for (int64_t b = 0; !covered[i] && b < bytes; ++b) {
      zeros += actual[i * bytes + b] != 0;
    }
  }
  return zeros ? "padding lanes are not zero" : "";
}

/// Runs |kernel| of |op| once for each operand that its result may overwrite, with the result at that operand's
/// address. |wanted| holds the expected bytes of the result; |buffers| are the operands and the result.
std::string runInPlace(Operation *op, const LoadedKernel &kernel, std::vector<GuardedBuffer> &buffers,
                       GuardedBuffer &scratch, const std::string &wanted) {
  for (unsigned i = 0; op->getNumResults() == 1 && i < op->getNumOperands(); ++i) {
    if (!device::canWriteOver(op, i)) {
      continue;
    }
    std::string operand(buffers[i].data(), buffers[i].size());
    SmallVector<void *> arguments = kernel.argumentsFor(buffers);
    arguments[buffers.size() - 1] = arguments[i];
    kernel.run(arguments, 0, kernel.tiles(), scratch);
    bool isEqual = wanted == std::string(buffers[i].data(), buffers[i].size());
    llvm::copy(operand, buffers[i].data());
    if (!isEqual) {
      return "the result differs if it is written over operand " + std::to_string(i);
    }
  }
  return "";
}

} // namespace

LoadedKernel::LoadedKernel(Operation *op, KernelSource compile) {
  FailureOr<kernels::Kernel> kernel = compile(op);
  if (failed(kernel)) {
    message = "no kernel";
    return;
  }
  frame = kernel->frame;
  for (unsigned i = 0, e = op->getNumOperands() + op->getNumResults(); i < e; ++i) {
    alignments.push_back(argumentAlignment(op, i));
  }
  llvm::Expected<std::vector<char>> image = linkSharedObject({llvm::ArrayRef<char>(kernel->code)});
  if (!image) {
    message = llvm::toString(image.takeError());
    return;
  }
  int descriptor = memfd_create("kernel", MFD_CLOEXEC);
  if (write(descriptor, image->data(), image->size()) == ssize_t(image->size())) {
    handle = dlopen(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  close(descriptor);
  function = handle ? reinterpret_cast<bm_kernel_fn>(dlsym(handle, "kernel")) : nullptr;
  message = function ? "" : std::string("cannot load: ") + dlerror();
}

LoadedKernel::~LoadedKernel() {
  if (handle) {
    dlclose(handle);
  }
}

void LoadedKernel::setDims(ArrayRef<int64_t> values) {
  dims.emplace(values.size() * sizeof(int64_t), alignof(int64_t));
  memcpy(dims->data(), values.data(), values.size() * sizeof(int64_t));
  std::vector<bmodel::DimTerm> terms;
  for (const bm_dim_term &term : frame.tileTerms) {
    terms.emplace_back(term.value, bmodel::DimOp(term.op));
  }
  bmodel::DimExpression expression(terms.data(), uint32_t(terms.size()));
  if (!terms.empty() && !bmodel::evaluate(expression, values.data(), frame.tiles)) {
    message = "the tile count overflows";
  }
}

SmallVector<void *> LoadedKernel::argumentsFor(std::vector<GuardedBuffer> &buffers) const {
  auto arguments = llvm::map_to_vector(buffers, [](GuardedBuffer &b) { return (void *)b.data(); });
  if (dims) {
    arguments.push_back(const_cast<GuardedBuffer &>(*dims).data());
  }
  return arguments;
}

std::string runKernel(Operation *op, KernelSource compile, const CheckOptions &options,
                      std::vector<GuardedBuffer> buffers, ArrayRef<top::HostTensor> expected) {
  LoadedKernel kernel(op, compile);
  return kernel.message.empty() ? runKernel(op, kernel, options, std::move(buffers), expected) : kernel.message;
}

std::string runKernel(Operation *op, const LoadedKernel &kernel, const CheckOptions &options,
                      std::vector<GuardedBuffer> buffers, ArrayRef<top::HostTensor> expected) {
  for (Value result : op->getResults()) {
    buffers.emplace_back(device::physicalBytes(cast<RankedTensorType>(result.getType())),
                         kernel.alignments[buffers.size()]);
  }
  GuardedBuffer scratch(kernel.frame.scratchBytes);
  kernel.run(kernel.argumentsFor(buffers), 0, kernel.tiles(), scratch);
  std::vector<std::string> first;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    GuardedBuffer &buffer = buffers[op->getNumOperands() + i];
    if (std::string message = compare(cast<RankedTensorType>(result.getType()), buffer.data(), expected[i], options);
        !message.empty()) {
      return message;
    }
    first.emplace_back(buffer.data(), buffer.size());
    buffer.refill();
  }
  // Run again tile by tile, last tile first, at other addresses, and on NaN-filled scratch that each tile leaves to the
  // next one. The results must be the same bits.
  for (GuardedBuffer &buffer : buffers) {
    buffer.moveToFront();
  }
  SmallVector<void *> arguments = kernel.argumentsFor(buffers);
  scratch.fillWithNaN();
  for (int64_t tile = kernel.tiles(); tile-- > 0;) {
    kernel.run(arguments, tile, tile + 1, scratch);
  }
  for (auto [i, text] : llvm::enumerate(first)) {
    GuardedBuffer &buffer = buffers[op->getNumOperands() + i];
    if (text != std::string(buffer.data(), buffer.size())) {
      return "the result depends on the split into tiles";
    }
  }
  if (std::string message = runInPlace(op, kernel, buffers, scratch, first.front()); !message.empty()) {
    return message;
  }
  return llvm::all_of(buffers, [](const GuardedBuffer &buffer) { return buffer.slackIntact(); })
             ? ""
             : "the kernel writes beyond the end of a tensor";
}

void drawInputs(Operation *op, const CheckOptions &options, Case &data) {
  std::mt19937 random(1);
  for (Value operand : op->getOperands()) {
    data.inputs.emplace_back(device::getRowMajorType(cast<RankedTensorType>(operand.getType())));
    if (std::optional<top::TensorData> constant = top::getConstantData(operand)) {
      llvm::copy(constant->bytes, data.inputs.back().getBytes().begin());
    } else {
      fillRandom(data.inputs.back(), random, options);
    }
  }
  if (options.overwrite) {
    options.overwrite(data.inputs);
  }
}

std::string evaluate(Operation *op, const CheckOptions &options, Case &data) {
  drawInputs(op, options, data);
  return evaluateInputs(op, data);
}

std::string evaluateInputs(Operation *op, Case &data) {
  std::vector<const top::HostTensor *> pointers;
  for (const top::HostTensor &input : data.inputs) {
    pointers.push_back(&input);
  }
  for (Value result : op->getResults()) {
    data.expected.emplace_back(device::getRowMajorType(cast<RankedTensorType>(result.getType())));
  }
  return failed(cast<top::ReferenceInterface>(op).evaluate(pointers, data.expected)) ? "the reference failed" : "";
}

std::string runOnRandom(Operation *op, KernelSource compile, const CheckOptions &options) {
  if (options.signedZeros) {
    device::setExact(op->getParentOp());
  }
  LoadedKernel kernel(op, compile);
  return kernel.message.empty() ? runOnRandom(op, kernel, options) : kernel.message;
}

std::string runOnRandom(Operation *op, const LoadedKernel &kernel, const CheckOptions &options) {
  Case data;
  if (options.signedZeros) {
    device::setExact(op->getParentOp());
  }
  if (std::string message = evaluate(op, options, data); !message.empty()) {
    return message;
  }
  std::vector<GuardedBuffer> buffers;
  for (auto [operand, input] : llvm::zip_equal(op->getOperands(), data.inputs)) {
    buffers.push_back(toMemory(cast<RankedTensorType>(operand.getType()), input, kernel.alignments[buffers.size()]));
  }
  return runKernel(op, kernel, options, std::move(buffers), data.expected);
}

double timeKernel(Operation *op, KernelSource compile, std::vector<GuardedBuffer> buffers) {
  LoadedKernel kernel(op, compile);
  buffers.emplace_back(device::physicalBytes(cast<RankedTensorType>(op->getResult(0).getType())));
  GuardedBuffer scratch(kernel.frame.scratchBytes);
  SmallVector<void *> arguments = kernel.argumentsFor(buffers);
  double best = 1e9;
  auto now = [] { return std::chrono::steady_clock::now(); };
  for (auto begin = now(); now() - begin < std::chrono::milliseconds(60);) {
    auto start = now();
    kernel.run(arguments, 0, kernel.tiles(), scratch);
    best = std::min(best, std::chrono::duration<double>(now() - start).count());
  }
  return best;
}

OwningOpRef<ModuleOp> parseCase(MLIRContext &context, const std::string &text) {
  return parseSourceString<ModuleOp>("func.func private @main" + text, &context);
}

Operation *kernelOpOf(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) {
    if (isa<kernels::KernelInterface>(op)) {
      ops.push_back(op);
    }
  });
  return ops.size() == 1 ? ops.front() : nullptr;
}

std::string checkOp(MLIRContext &context, const std::string &text, llvm::function_ref<std::string(Operation *)> check) {
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { diagnostics += diagnostic.str() + "; "; });
  OwningOpRef<ModuleOp> module = parseCase(context, text);
  if (!module) {
    return "cannot parse: " + diagnostics;
  }
  Operation *op = kernelOpOf(*module);
  std::string message = op ? check(op) : "not one device op";
  return message.empty() ? message : message + (diagnostics.empty() ? "" : " (" + diagnostics + ")");
}

int64_t casesBefore() {
  static const testing::TestInfo *test = nullptr;
  static int64_t cases = 0;
  const testing::TestInfo *running = testing::UnitTest::GetInstance()->current_test_info();
  cases = running == test ? cases + 1 : 0;
  test = running;
  return cases;
}

std::string tensorText(ArrayRef<int64_t> shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape) {
    text += std::to_string(size) + "x";
  }
  return text + element + ">";
}

} // namespace tessera::native

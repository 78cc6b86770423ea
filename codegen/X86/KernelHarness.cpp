//===- KernelHarness.cpp - Compares kernels of single ops with the reference --===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelHarness.h"

#include "bmodel/kernel_abi.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/X86/Contract.h"
#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/KernelCompiler.h"
#include "codegen/X86/Linker.h"
#include "codegen/X86/Transforms/Pipeline.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopInterfaces.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/xxhash.h"
#include <chrono>
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Memory that ends (up to |alignment|) before an inaccessible page. The memory and its slack are filled with noise of
/// unequal bytes, because equal garbage added to all elements would cancel out, e.g. in a softmax.
class GuardedBuffer {
public:
  explicit GuardedBuffer(int64_t bytes, int64_t alignment = BM_ALIGNMENT) : bytes(bytes) {
    int64_t page = sysconf(_SC_PAGESIZE);
    padded = llvm::alignTo(std::max<int64_t>(bytes, 1), alignment);
    mapped = llvm::alignTo(padded, page) + 2 * page;
    base = static_cast<char *>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base, page, PROT_NONE);
    mprotect(base + mapped - page, page, PROT_NONE);
    start = base + mapped - page - padded;
    refill();
  }
  GuardedBuffer(GuardedBuffer &&other)
      : bytes(other.bytes), padded(other.padded), mapped(other.mapped), base(other.base), start(other.start) {
    other.base = nullptr;
  }
  ~GuardedBuffer() {
    if (base) {
      munmap(base, mapped);
    }
  }
  char *data() { return start; }
  void refill() {
    for (int64_t i = 0; i < padded; ++i) {
      start[i] = noise(i);
    }
  }
  /// Fills the buffer with ones, so that every float is NaN. NaN times zero is not zero, which reveals unwanted reads.
  void fillWithNaN() { memset(start, 0xff, padded); }
  /// Moves the contents to the front of the buffer, directly behind an inaccessible page.
  void moveToFront() {
    char *front = base + sysconf(_SC_PAGESIZE);
    memmove(front, start, padded);
    start = front;
  }
  bool slackIntact() const {
    for (int64_t i = bytes; i < padded; ++i) {
      if (start[i] != noise(i)) {
        return false;
      }
    }
    return true;
  }
  int64_t size() const { return bytes; }

private:
  static char noise(int64_t at) { return static_cast<char>((static_cast<uint32_t>(at) + 1) * 2654435761u >> 23); }

  int64_t bytes, padded, mapped;
  char *base, *start;
};

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

/// Returns element |index| of an array of |type| as a double.
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

GuardedBuffer toMemory(RankedTensorType type, const top::HostTensor &tensor, int64_t alignment) {
  int64_t bytes = device::elementBytes(type.getElementType());
  GuardedBuffer buffer(device::physicalBytes(type), alignment);
  memset(buffer.data(), 0, buffer.size());
  forElements(type, [&](int64_t from, int64_t to) {
    memcpy(buffer.data() + to * bytes, tensor.getBytes().data() + from * bytes, bytes);
  });
  return buffer;
}

/// A kernel in a shared object that is loaded into this process.
class LoadedKernel {
public:
  LoadedKernel(llvm::ArrayRef<char> image, const std::string &symbol) {
    int descriptor = memfd_create("kernel", MFD_CLOEXEC);
    if (write(descriptor, image.data(), image.size()) == ssize_t(image.size())) {
      handle = dlopen(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    close(descriptor);
    function = handle ? reinterpret_cast<bm_kernel_fn>(dlsym(handle, symbol.c_str())) : nullptr;
  }
  ~LoadedKernel() {
    if (handle) {
      dlclose(handle);
    }
  }
  bm_kernel_fn function = nullptr;

private:
  void *handle = nullptr;
};

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
  std::vector<bool> covered(physicalElements(type));
  forElements(type, [&](int64_t, int64_t physical) { covered[physical] = true; });
  for (size_t i = 0; i < covered.size(); ++i) {
    for (int64_t b = 0; !covered[i] && b < bytes; ++b) {
      zeros += actual[i * bytes + b] != 0;
    }
  }
  return zeros ? "padding lanes are not zero" : "";
}

MLIRContext &testContext() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registry.insert<device::DeviceDialect, top::TopDialect, func::FuncDialect>();
    registerX86Kernels(registry);
    auto *created = new MLIRContext(registry, MLIRContext::Threading::DISABLED);
    created->loadAllAvailableDialects();
    return created;
  }();
  return *context;
}

/// Runs |kernel| of |op| once for each operand that its result may overwrite, with the result at that operand's
/// address. |wanted| holds the expected bytes of the result; |buffers| are the operands and the result.
std::string runInPlace(Operation *op, const Kernel &kernel, bm_kernel_fn function, std::vector<GuardedBuffer> &buffers,
                       GuardedBuffer &scratch, const std::string &wanted) {
  for (unsigned i = 0; op->getNumResults() == 1 && i < op->getNumOperands(); ++i) {
    if (!device::canWriteOver(op, i)) {
      continue;
    }
    std::string operand(buffers[i].data(), buffers[i].size());
    auto arguments = llvm::map_to_vector(buffers, [](GuardedBuffer &b) { return (void *)b.data(); });
    arguments.back() = arguments[i];
    function(arguments.data(), 0, kernel.frame.tiles, scratch.data());
    bool isEqual = wanted == std::string(buffers[i].data(), buffers[i].size());
    llvm::copy(operand, buffers[i].data());
    if (!isEqual) {
      return "the result differs if it is written over operand " + std::to_string(i);
    }
  }
  return "";
}

/// Runs the kernel of |op| on |buffers| (the operands as in memory) and compares its results with |expected|
/// (row-major).
std::string runKernel(Operation *op, const X86Target &target, const CheckOptions &options,
                      std::vector<GuardedBuffer> buffers, llvm::ArrayRef<top::HostTensor> expected) {
  FailureOr<Kernel> kernel = compileKernel(op, target, "kernel");
  if (failed(kernel)) {
    return "no kernel";
  }
  llvm::Expected<std::vector<char>> image = linkSharedObject({llvm::ArrayRef<char>(kernel->code)});
  if (!image) {
    return llvm::toString(image.takeError());
  }
  LoadedKernel loaded(*image, "kernel");
  if (!loaded.function) {
    return std::string("cannot load: ") + dlerror();
  }
  for (Value result : op->getResults()) {
    buffers.emplace_back(device::physicalBytes(cast<RankedTensorType>(result.getType())),
                         argumentAlignment(op, buffers.size()));
  }
  auto addresses = [&] { return llvm::map_to_vector(buffers, [](GuardedBuffer &b) { return (void *)b.data(); }); };
  SmallVector<void *> arguments = addresses();
  GuardedBuffer scratch(kernel->frame.scratchBytes);
  loaded.function(arguments.data(), 0, kernel->frame.tiles, scratch.data());
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
  arguments = addresses();
  scratch.fillWithNaN();
  for (int64_t tile = kernel->frame.tiles; tile-- > 0;) {
    loaded.function(arguments.data(), tile, tile + 1, scratch.data());
  }
  for (auto [i, text] : llvm::enumerate(first)) {
    GuardedBuffer &buffer = buffers[op->getNumOperands() + i];
    if (text != std::string(buffer.data(), buffer.size())) {
      return "the result depends on the split into tiles";
    }
  }
  if (std::string message = runInPlace(op, *kernel, loaded.function, buffers, scratch, first.front());
      !message.empty()) {
    return message;
  }
  return llvm::all_of(buffers, [](const GuardedBuffer &buffer) { return buffer.slackIntact(); })
             ? ""
             : "the kernel writes beyond the end of a tensor";
}

/// The operands of an op (random unless constant) and the results of the reference, all row-major.
struct Case {
  std::vector<top::HostTensor> inputs, expected;
};

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
}

std::string evaluate(Operation *op, const CheckOptions &options, Case &data) {
  drawInputs(op, options, data);
  std::vector<const top::HostTensor *> pointers;
  for (const top::HostTensor &input : data.inputs) {
    pointers.push_back(&input);
  }
  for (Value result : op->getResults()) {
    data.expected.emplace_back(device::getRowMajorType(cast<RankedTensorType>(result.getType())));
  }
  return failed(cast<top::ReferenceInterface>(op).evaluate(pointers, data.expected)) ? "the reference failed" : "";
}

std::string runAndCompare(Operation *op, const X86Target &target, const CheckOptions &options) {
  Case data;
  if (options.signedZeros) {
    device::setExact(op->getParentOp());
  }
  if (std::string message = evaluate(op, options, data); !message.empty()) {
    return message;
  }
  std::vector<GuardedBuffer> buffers;
  for (auto [operand, input] : llvm::zip_equal(op->getOperands(), data.inputs)) {
    buffers.push_back(
        toMemory(cast<RankedTensorType>(operand.getType()), input, argumentAlignment(op, buffers.size())));
  }
  return runKernel(op, target, options, std::move(buffers), data.expected);
}

/// Runs the passes that choose layouts and pack weights on the module of |op|.
LogicalResult chooseLayouts(Operation *op, const X86Target &target) {
  PassManager manager(op->getContext());
  buildPackingPipeline(manager, target);
  return manager.run(op->getParentOfType<ModuleOp>());
}

/// Returns the bytes of operand |index|, which is a constant or a (re-laid) copy of a function argument, else nullopt.
std::optional<GuardedBuffer> bytesOf(Operation *op, unsigned index, const Case &data) {
  Value operand = op->getOperand(index);
  auto type = cast<RankedTensorType>(operand.getType());
  if (std::optional<top::TensorData> constant = top::getConstantData(operand)) {
    GuardedBuffer buffer(constant->bytes.size());
    llvm::copy(constant->bytes, buffer.data());
    return buffer;
  }
  while (Operation *copy = operand.getDefiningOp()) {
    if (!isa<device::CopyOp, device::ReshapeOp>(copy)) {
      return std::nullopt;
    }
    operand = copy->getOperand(0);
  }
  return toMemory(type, data.inputs[cast<BlockArgument>(operand).getArgNumber()], argumentAlignment(op, index));
}

/// Replaces the weights and the bias of |op| by constants with the values of |data|, runs the passes, and appends the
/// packed op's operands to |buffers|.
std::string pack(Operation *op, const X86Target &target, const Case &data, std::vector<GuardedBuffer> &buffers) {
  auto conv = dyn_cast<device::ConvOp>(op);
  auto matmul = dyn_cast<device::MatMulOp>(op);
  Value bias = conv ? conv.getBias() : matmul ? matmul.getBias() : Value();
  OpBuilder builder(op);
  for (Value weight : {op->getOperand(1), bias}) {
    if (weight) {
      auto argument = cast<BlockArgument>(weight);
      Value constant = top::createConstant(builder, op->getLoc(), cast<RankedTensorType>(weight.getType()),
                                           data.inputs[argument.getArgNumber()].getBytes(), "w");
      argument.replaceAllUsesWith(constant);
    }
  }
  if (failed(chooseLayouts(op, target))) {
    return "the passes failed";
  }
  if (!packingOf(op)) {
    return "the weights are not packed";
  }
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    std::optional<GuardedBuffer> buffer = bytesOf(op, i, data);
    if (!buffer) {
      return "an operand is neither constant nor argument";
    }
    buffers.push_back(std::move(*buffer));
  }
  return "";
}

/// Returns |value|, or a zero of the same sign if it is subnormal, as the bf16 dot-product instructions do.
float flush(float value) { return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value; }

/// The sum of products of bf16 pairs as docs/numerics.md defines it. Vector instructions add the second product of a
/// pair first; AMX tiles sum the first and the second products of each chunk separately.
class PairSum {
public:
  PairSum(PackingAttr packing, float bias) : pairsOfChunk(packing.getChunk() / 4), sum(bias) {}

  void add(const float *x, const float *w) {
    if (pairsOfChunk == 0) {
      multiply(sum, x[1], w[1]);
      multiply(sum, x[0], w[0]);
      return;
    }
    multiply(even, x[0], w[0]);
    multiply(odd, x[1], w[1]);
    if (++pairs == pairsOfChunk) {
      sum = flush(flush(sum) + flush(even + odd));
      pairs = 0, even = odd = 0;
    }
  }
  /// Returns the sum after all of K was added; completes the last chunk with zeros.
  float value() {
    for (const float zeros[2] = {}; pairs != 0;) {
      add(zeros, zeros);
    }
    return sum;
  }

private:
  static void multiply(float &sum, float x, float w) { sum = flush(std::fma(flush(x), flush(w), flush(sum))); }

  int64_t pairsOfChunk, pairs = 0;
  float sum, even = 0, odd = 0;
};

/// Returns the elements of |tensor| as floats.
std::vector<float> numbersOf(const top::HostTensor &tensor) {
  std::vector<float> numbers(tensor.getNumElements());
  for (auto [i, number] : llvm::enumerate(numbers)) {
    number = float(readNumber(tensor.getElementType(), tensor.getBytes().data(), i));
  }
  return numbers;
}

/// Returns the sums of bf16 pairs of a convolution without an epilogue, added in the order of K of its packing.
std::vector<float> sumPairs(device::ConvOp conv, const Case &data) {
  std::vector<float> x = numbersOf(data.inputs[0]), w = numbersOf(data.inputs[1]), b = numbersOf(data.inputs[2]), sums;
  ArrayRef<int64_t> in = data.inputs[0].getType().getShape(), out = data.expected[0].getType().getShape(),
                    k = conv.getWeightShape();
  int64_t perGroup = out[1] / int64_t(conv.getGroups());
  PackedOrder order = packingOf(conv).getOrder();
  auto pixel = [&](int64_t n, int64_t c, int64_t h, int64_t w) {
    return c < in[1] && h >= 0 && h < in[2] && w >= 0 && w < in[3] ? x[((n * in[1] + c) * in[2] + h) * in[3] + w] : 0;
  };
  auto weight = [&](int64_t oc, int64_t c, int64_t h, int64_t v) {
    return c < k[1] && v < k[3] ? w[((oc * k[1] + c) * k[2] + h) * k[3] + v] : 0;
  };
  for (int64_t i = 0; i < data.expected[0].getNumElements(); ++i) {
    int64_t ow = i % out[3], oh = i / out[3] % out[2], oc = i / out[3] / out[2] % out[1],
            n = i / out[3] / out[2] / out[1];
    int64_t first = oc / perGroup * k[1];
    PairSum sum(packingOf(conv), b[oc]);
    auto add = [&](int64_t c, int64_t kh, int64_t kw, int64_t nextC, int64_t nextW) {
      int64_t h = oh * conv.getStrides()[0] - conv.getPads()[0] + kh * conv.getDilations()[0];
      auto column = [&](int64_t v) {
        return ow * conv.getStrides()[1] - conv.getPads()[1] + v * conv.getDilations()[1];
      };
      auto input = [&](int64_t c, int64_t kw) {
        return c < k[1] && kw < k[3] ? pixel(n, first + c, h, column(kw)) : 0;
      };
      float xs[] = {input(c, kw), input(c + nextC, kw + nextW)};
      float ws[] = {weight(oc, c, kh, kw), weight(oc, c + nextC, kh, kw + nextW)};
      sum.add(xs, ws);
    };
    auto addChannels = [&](int64_t tap, int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; c += 2) {
        add(c, tap / k[3], tap % k[3], 1, 0);
      }
    };
    for (int64_t block = 0; order == PackedOrder::blocks && block < k[1]; block += kBlock) {
      for (int64_t tap = 0; tap < k[2] * k[3]; ++tap) {
        addChannels(tap, block, std::min(block + kBlock, k[1]));
      }
    }
    for (int64_t tap = 0; hasChannelsLast(order) && tap < k[2] * k[3]; ++tap) {
      addChannels(tap, 0, paddedDepth(order, k[1], 2, k[3], packingOf(conv).getChunk()) / 2);
    }
    for (int64_t row = 0; order == PackedOrder::taps && row < k[1] * k[2]; ++row) {
      for (int64_t kw = 0; kw < k[3]; kw += 2) {
        add(row / k[2], row % k[2], kw, 0, 1);
      }
    }
    sums.push_back(sum.value());
  }
  return sums;
}

/// Returns the sums of bf16 pairs of a matmul of two matrices.
std::vector<float> sumPairs(device::MatMulOp matmul, const Case &data) {
  std::vector<float> a = numbersOf(data.inputs[0]), w = numbersOf(data.inputs[1]), b = numbersOf(data.inputs[2]), sums;
  int64_t k = data.inputs[0].getType().getShape().back(), n = data.expected[0].getType().getShape().back();
  for (int64_t i = 0; i < data.expected[0].getNumElements(); ++i) {
    PairSum sum(packingOf(matmul), b[i % n]);
    for (int64_t j = 0; j < k; j += 2) {
      float xs[2] = {}, ws[2] = {};
      for (int64_t lane = 0; lane < std::min<int64_t>(2, k - j); ++lane) {
        xs[lane] = a[i / n * k + j + lane];
        ws[lane] = matmul.getTransB() ? w[i % n * k + j + lane] : w[(j + lane) * n + i % n];
      }
      sum.add(xs, ws);
    }
    sums.push_back(sum.value());
  }
  return sums;
}

/// Replaces the expected sums of a packed |op| of bf16 pairs by those of the pair arithmetic.
std::string expectPairs(Operation *op, Case &data) {
  if (packingOf(op).getStep() != PackedStep::bf16x2) {
    return "bf16 is not multiplied in pairs";
  }
  auto conv = dyn_cast<device::ConvOp>(op);
  std::vector<float> sums = conv ? sumPairs(conv, data) : sumPairs(cast<device::MatMulOp>(op), data);
  memcpy(data.expected[0].getBytes().data(), sums.data(), sums.size() * sizeof(float));
  return "";
}

std::string packAndCompare(Operation *op, const X86Target &target, const CheckOptions &options) {
  Case data;
  std::vector<GuardedBuffer> buffers;
  std::string message = evaluate(op, options, data);
  if (message.empty()) {
    message = pack(op, target, data, buffers);
  }
  if (message.empty() && options.exactPairs) {
    message = expectPairs(op, data);
  }
  return message.empty() ? runKernel(op, target, options, std::move(buffers), data.expected) : message;
}

double packAndTime(Operation *op, const X86Target &target) {
  Case data;
  drawInputs(op, {}, data);
  std::vector<GuardedBuffer> buffers;
  if (!pack(op, target, data, buffers).empty()) {
    return -1;
  }
  FailureOr<Kernel> kernel = compileKernel(op, target, "kernel");
  llvm::Expected<std::vector<char>> image = linkSharedObject({llvm::ArrayRef<char>(kernel->code)});
  LoadedKernel loaded(*image, "kernel");
  buffers.emplace_back(device::physicalBytes(cast<RankedTensorType>(op->getResult(0).getType())));
  buffers.emplace_back(kernel->frame.scratchBytes);
  std::vector<void *> arguments;
  for (GuardedBuffer &buffer : buffers) {
    arguments.push_back(buffer.data());
  }
  double best = 1e9;
  auto now = [] { return std::chrono::steady_clock::now(); };
  for (auto begin = now(); now() - begin < std::chrono::milliseconds(60);) {
    auto start = now();
    loaded.function(arguments.data(), 0, kernel->frame.tiles, buffers.back().data());
    best = std::min(best, std::chrono::duration<double>(now() - start).count());
  }
  return best;
}

/// Parses |text| and runs |check| on its device op.
std::string checkOp(const std::string &text, llvm::function_ref<std::string(Operation *)> check) {
  MLIRContext &context = testContext();
  std::string diagnostics;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { diagnostics += diagnostic.str() + "; "; });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>("func.func private @main" + text, &context);
  if (!module) {
    return "cannot parse: " + diagnostics;
  }
  SmallVector<Operation *> ops;
  module->walk([&](Operation *op) {
    if (isa<KernelInterface>(op)) {
      ops.push_back(op);
    }
  });
  std::string message = ops.size() != 1 ? std::to_string(ops.size()) + " device ops" : check(ops.front());
  return message.empty() ? message : message + (diagnostics.empty() ? "" : " (" + diagnostics + ")");
}

} // namespace

/// Returns the variants that this machine can run, narrow ones first.
static llvm::ArrayRef<X86Target> runnableTargets() {
  static const std::vector<X86Target> targets = [] {
    std::vector<X86Target> found;
    for (Isa isa : {Isa::V2, Isa::Avx2, Isa::Avx512}) {
      if (isa <= X86Target::native().isa) {
        found.push_back({isa});
      }
    }
    const X86Target native = X86Target::native();
    if (native.vnni) {
      found.push_back({Isa::Avx512, /*vnni=*/true});
    }
    for (X86Target target : {X86Target{Isa::Avx512, /*vnni=*/true, /*bf16=*/true},
                             X86Target{Isa::Avx512, /*vnni=*/true, /*bf16=*/true, /*amx=*/true},
                             X86Target{Isa::Avx512, /*vnni=*/true, /*bf16=*/false, /*amx=*/false,
                                       /*bf16Conversion=*/true}}) {
      if (target.runsHere()) {
        found.push_back(target);
      }
    }
    return found;
  }();
  return targets;
}

/// Returns the number of cases that the running test has checked before this one.
static int64_t casesBefore() {
  static const testing::TestInfo *test = nullptr;
  static int64_t cases = 0;
  const testing::TestInfo *running = testing::UnitTest::GetInstance()->current_test_info();
  cases = running == test ? cases + 1 : 0;
  test = running;
  return cases;
}

bool takesAllVariants() {
  const char *asked = getenv("TESSERA_KERNELS");
  return asked && StringRef(asked) == "all";
}

llvm::SmallVector<X86Target> targetsFor(StringRef text) {
  constexpr int64_t kOnAll = 4;
  ArrayRef<X86Target> all = runnableTargets();
  if (casesBefore() < kOnAll || takesAllVariants()) {
    return llvm::to_vector(all);
  }
  size_t narrow = llvm::count_if(all, [](const X86Target &target) { return target.isa < Isa::Avx512; });
  uint64_t turn = llvm::xxh3_64bits(text);
  llvm::SmallVector<X86Target> targets{all[turn % narrow]};
  if (ArrayRef<X86Target> wide = all.drop_front(narrow); !wide.empty()) {
    targets.push_back(wide[(turn >> 1) % wide.size()]);
  }
  return targets;
}

std::string tensorText(ArrayRef<int64_t> shape, const std::string &element) {
  std::string text = "tensor<";
  for (int64_t size : shape) {
    text += std::to_string(size) + "x";
  }
  return text + element + ">";
}

std::string checkKernel(const std::string &text, const X86Target &target, const CheckOptions &options) {
  return checkOp(text, [&](Operation *op) { return runAndCompare(op, target, options); });
}

std::string checkPackedKernel(const std::string &text, const X86Target &target, const CheckOptions &options) {
  return checkOp(text, [&](Operation *op) { return packAndCompare(op, target, options); });
}

double timePackedKernel(const std::string &text, const X86Target &target) {
  double seconds = -1;
  checkOp(text, [&](Operation *op) {
    seconds = packAndTime(op, target);
    return std::string();
  });
  return seconds;
}

} // namespace tessera::x86

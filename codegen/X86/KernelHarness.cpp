//===- KernelHarness.cpp - Checks kernels of every x86 variant ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelHarness.h"

#include "codegen/Native/Contract.h"
#include "codegen/Native/OpenSizes.h"
#include "codegen/X86/EmulatedAvx512.h"
#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/KernelCompiler.h"
#include "codegen/X86/Transforms/Pipeline.h"
#include "device_dialect/IR/DeviceBlockOps.h"
#include "device_dialect/IR/DeviceDialect.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <cmath>
#include <cstring>

using namespace mlir;

namespace tessera::x86 {

using native::Case;
using native::GuardedBuffer;

namespace {

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

/// Set by kernelFor() if a kernel can neither run nor be emulated on this machine.
thread_local bool cannotEmulate = false;

/// Returns a native::KernelSource for |target|, emulated if this machine lacks its instructions.
auto kernelFor(const X86Target &target) {
  return [target](Operation *op) -> FailureOr<Kernel> {
    if (target.runsHere()) {
      return compileKernel(op, target, "kernel");
    }
    FailureOr<Kernel> kernel = native::compileKernel(op, emulatedMachineOf(target), "kernel",
                                                     [&](Operation *op, StringRef symbol, KernelFrame &frame) {
                                                       return emitKernelModule(op, target, symbol, frame);
                                                     });
    cannotEmulate = failed(kernel);
    return kernel;
  };
}

/// Returns the message of |check|, or "" if it needs a kernel that cannot be emulated.
template <typename Check>
std::string unlessEmulationLacks(Check check) {
  cannotEmulate = false;
  std::string message = check();
  return cannotEmulate ? "" : message;
}

/// Runs the passes that choose layouts and pack weights on the module of |op|.
LogicalResult chooseLayouts(Operation *op, const X86Target &target) {
  PassManager manager(op->getContext());
  buildPackingPipeline(manager, target);
  return manager.run(op->getParentOfType<ModuleOp>());
}

/// Returns the bytes of operand |index|, which is a constant or a (re-laid) copy of a function argument, else nullopt.
std::optional<GuardedBuffer> bytesOf(Operation *op, unsigned index, const Case &data, int64_t alignment) {
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
  return native::toMemory(type, data.inputs[cast<BlockArgument>(operand).getArgNumber()], alignment);
}

/// Returns the bias of a convolution or matmul; null without one.
Value biasOf(Operation *op) {
  auto conv = dyn_cast<device::ConvOp>(op);
  auto matmul = dyn_cast<device::MatMulOp>(op);
  return conv ? conv.getBias() : matmul ? matmul.getBias() : Value();
}

/// Returns the operands of |op| that packing requires to be constants.
SmallVector<Value> weightsOf(Operation *op) {
  auto blocks = dyn_cast<device::BlockMatMulOp>(op);
  auto matmul = dyn_cast<device::MatMulOp>(op);
  SmallVector<Value> all =
      blocks ? SmallVector<Value>{blocks.getW(), blocks.getScales(), blocks.getMins()}
             : SmallVector<Value>{op->getOperand(1), biasOf(op), matmul ? matmul.getScales() : Value()};
  llvm::erase(all, Value());
  return all;
}

/// Replaces the weights and the bias of |op| by constants with the values of |data| and runs the passes.
std::string pack(Operation *op, const X86Target &target, const Case &data) {
  OpBuilder builder(op);
  for (Value weight : weightsOf(op)) {
    auto argument = cast<BlockArgument>(weight);
    Value constant = top::createConstant(builder, op->getLoc(), cast<RankedTensorType>(weight.getType()),
                                         data.inputs[argument.getArgNumber()].getBytes(), "w");
    argument.replaceAllUsesWith(constant);
  }
  if (failed(chooseLayouts(op, target))) {
    return "the passes failed";
  }
  return op->getAttrOfType<device::PackingInterface>("packing") ? "" : "the weights are not packed";
}

/// Appends the operands of the packed |op| to |buffers|.
std::string placeOperands(Operation *op, const Case &data, ArrayRef<uint32_t> alignments,
                          std::vector<GuardedBuffer> &buffers) {
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    std::optional<GuardedBuffer> buffer = bytesOf(op, i, data, alignments[i]);
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
    number = float(native::readNumber(tensor.getElementType(), tensor.getBytes().data(), i));
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
    message = pack(op, target, data);
  }
  if (message.empty() && options.exactPairs) {
    message = expectPairs(op, data);
  }
  if (!message.empty()) {
    return message;
  }
  native::LoadedKernel kernel(op, kernelFor(target));
  message = kernel.message.empty() ? placeOperands(op, data, kernel.alignments, buffers) : kernel.message;
  return message.empty() ? runKernel(op, kernel, options, std::move(buffers), data.expected) : message;
}

/// Draws the operands of |op| and evaluates the reference; the weights and the bias are those of |weights|.
std::string evaluateWith(const Case &weights, Operation *op, const CheckOptions &options, Case &data) {
  drawInputs(op, options, data);
  for (Value fixed : weightsOf(op)) {
    unsigned index = cast<BlockArgument>(fixed).getArgNumber();
    llvm::copy(weights.inputs[index].getBytes(), data.inputs[index].getBytes().begin());
  }
  return evaluateInputs(op, data);
}

/// Returns true if only the number of images of |op| is opened: only then AMX tiles are chosen for convolutions, and
/// windows for dilated depthwise ones.
bool opensImagesOnly(Operation *op, uint64_t seed) { return isa<device::ConvOp>(op) && seed % 4 == 0; }

/// Packs the convolution or matmul of |text| with symbolic sizes and runs its kernel at several sizes.
std::string packAndCompareOpen(Operation *packed, const std::string &text, const X86Target &target,
                               const CheckOptions &options) {
  auto seed = std::mt19937::result_type(llvm::xxh3_64bits(text));
  std::mt19937 random(seed), again(seed);
  native::OpenedSizes opened = options.fewLikelyRows           ? native::OpenedSizes::FewLikelyRows
                               : opensImagesOnly(packed, seed) ? native::OpenedSizes::Images
                                                               : native::OpenedSizes::NotOfWeights;
  OwningOpRef<ModuleOp> fixed = native::parseCase(testContext(), text), open = native::parseCase(testContext(), text);
  Operation *plain = native::kernelOpOf(*open);
  if (!isa<device::ConvOp, device::MatMulOp, device::BlockMatMulOp>(plain) ||
      !native::openRandomSizes(plain, random, opened)) {
    return "";
  }
  native::openRandomSizes(packed, again, opened);
  Case weights;
  drawInputs(native::kernelOpOf(*fixed), options, weights);
  if (std::string message = pack(packed, target, weights); !message.empty()) {
    return message;
  }
  native::LoadedKernel kernel(packed, kernelFor(target));
  const kernels::SizeSymbols symbols = kernels::symbolsOf(packed);
  OwningOpRef<ModuleOp> types = cast<ModuleOp>(packed->getParentOfType<ModuleOp>()->clone());
  Operation *openPacked = nullptr;
  types->walk([&](Operation *op) { openPacked = op->getName() == packed->getName() ? op : openPacked; });
  for (const std::vector<int64_t> &values : native::drawDims(symbols, random)) {
    auto valueOf = [&](top::SizeSymbolAttr symbol) {
      return values[size_t(llvm::find(symbols, symbol) - symbols.begin())];
    };
    OwningOpRef<ModuleOp> module = native::parseCase(testContext(), text);
    Operation *op = native::kernelOpOf(*module);
    native::bindSizes(op, plain, valueOf);
    Case data;
    std::vector<GuardedBuffer> buffers;
    std::string message = kernel.message.empty() ? evaluateWith(weights, op, options, data) : kernel.message;
    if (message.empty()) {
      native::bindSizes(packed, openPacked, valueOf);
      message = placeOperands(packed, data, kernel.alignments, buffers);
    }
    if (message.empty()) {
      kernel.setDims(values);
      message = runKernel(packed, kernel, options, std::move(buffers), data.expected);
    }
    if (!message.empty()) {
      std::string where;
      llvm::raw_string_ostream(where) << openPacked->getOperand(0).getType() << " " << packingOf(openPacked);
      return message + llvm::formatv(" at {0} of ", llvm::make_range(values.begin(), values.end())).str() + where;
    }
  }
  return "";
}

double packAndTime(Operation *op, const X86Target &target) {
  Case data;
  drawInputs(op, {}, data);
  std::vector<GuardedBuffer> buffers;
  bool isPacked = pack(op, target, data).empty();
  auto alignments = llvm::map_to_vector(llvm::seq<unsigned>(0, op->getNumOperands()),
                                        [&](unsigned i) { return native::argumentAlignment(op, i); });
  isPacked = isPacked && placeOperands(op, data, alignments, buffers).empty();
  return isPacked ? timeKernel(op, kernelFor(target), std::move(buffers)) : -1;
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

/// Returns the variants that this machine lacks but can emulate.
static ArrayRef<X86Target> emulatedTargets() {
  static const std::vector<X86Target> targets = [] {
    std::vector<X86Target> found;
    for (X86Target target : {X86Target{Isa::Avx512}, X86Target{Isa::Avx512, /*vnni=*/true}}) {
      if (!target.runsHere() && X86Target{Isa::Avx2}.runsHere()) {
        found.push_back(target);
      }
    }
    return found;
  }();
  return targets;
}

bool takesAllVariants() {
  const char *asked = getenv("TESSERA_KERNELS");
  return asked && StringRef(asked) == "all";
}

llvm::SmallVector<X86Target> targetsFor(StringRef text) {
  constexpr int64_t kOnAll = 4, kOnAllEmulated = 2;
  constexpr uint64_t kOneIn = 8;
  ArrayRef<X86Target> all = runnableTargets(), emulated = emulatedTargets();
  const int64_t before = native::casesBefore();
  const uint64_t turn = llvm::xxh3_64bits(text);
  llvm::SmallVector<X86Target> targets;
  if (before < kOnAll || takesAllVariants()) {
    targets.append(all.begin(), all.end());
  } else {
    targets.push_back(all[turn % all.size()]);
  }
  if (before < kOnAllEmulated || takesAllVariants()) {
    targets.append(emulated.begin(), emulated.end());
  } else if (!emulated.empty() && (turn >> 16) % kOneIn == 0) {
    targets.push_back(emulated[(turn >> 24) % emulated.size()]);
  }
  return targets;
}

ArrayRef<X86Target> openTargetsOf(ArrayRef<X86Target> targets, StringRef text) {
  constexpr uint64_t kOneIn = 8;
  if (takesAllVariants()) {
    return targets;
  }
  uint64_t turn = llvm::xxh3_64bits(text);
  return turn % kOneIn == 0 ? targets.slice((turn >> 2) % targets.size(), 1) : ArrayRef<X86Target>();
}

std::string checkKernel(const std::string &text, const X86Target &target, const CheckOptions &options) {
  return unlessEmulationLacks([&] {
    return native::checkOp(testContext(), text,
                           [&](Operation *op) { return native::runOnRandom(op, kernelFor(target), options); });
  });
}

std::string checkOpenKernel(const std::string &text, const X86Target &target, const CheckOptions &options) {
  uint64_t seed = llvm::xxh3_64bits(text + target.name().str());
  return unlessEmulationLacks(
      [&] { return native::checkOpenSizes(testContext(), text, kernelFor(target), options, seed); });
}

std::string checkPackedKernel(const std::string &text, const X86Target &target, const CheckOptions &options) {
  return unlessEmulationLacks([&] {
    return native::checkOp(testContext(), text, [&](Operation *op) { return packAndCompare(op, target, options); });
  });
}

std::string checkOpenPackedKernel(const std::string &text, const X86Target &target, const CheckOptions &options) {
  return unlessEmulationLacks([&] {
    return native::checkOp(testContext(), text,
                           [&](Operation *op) { return packAndCompareOpen(op, text, target, options); });
  });
}

double timePackedKernel(const std::string &text, const X86Target &target) {
  double seconds = -1;
  native::checkOp(testContext(), text, [&](Operation *op) {
    seconds = packAndTime(op, target);
    return std::string();
  });
  return seconds;
}

} // namespace tessera::x86

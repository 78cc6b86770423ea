//===- PackWeights.cpp - Weights into the order their kernels read --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "codegen/X86/Transforms/Passes.h"
#include "codegen/X86/Transforms/RegisterTiles.h"
#include "codegen/X86/Transforms/ScaledWeights.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Exact.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/NarrowFloats.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"

#include <cmath>

namespace tessera::x86 {
#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
namespace {

constexpr int64_t kBytesWithoutFma = 16; ///< of a vector where the chip does not fuse

/// One weight tensor on its way: decided in order, packed in parallel, put into the module in order.
struct Job {
  Operation *op = nullptr;
  OpOperand *weight = nullptr;
  top::TensorData data;
  int64_t panelBlocks = 1;
  int64_t elements = 0;
  Type element; ///< of the packed weights
  std::function<void(const char *from, char *to)> pack;
  bool narrowsPacked = false; ///< f32 weights of Winograd are stored as f16 where that is exact enough
  bool lowersBias = false;    ///< by 128 * sum(w), see PackedForm::Quads
  std::vector<char> packed;

  /// Sets |pack| to |function| on buffers of f32, or of the bits of f16 or bf16.
  template <typename Function>
  void packFloats(Function function) {
    if (device::isNarrowFloat(element)) {
      pack = [=](const char *from, char *to) {
        function(reinterpret_cast<const uint16_t *>(from), reinterpret_cast<uint16_t *>(to));
      };
      return;
    }
    pack = [=](const char *from, char *to) {
      function(reinterpret_cast<const float *>(from), reinterpret_cast<float *>(to));
    };
  }
};

/// Subnormal weights become zero. No result can show them, but a multiply-add that meets one takes a hundred times as
/// long, and folded batch norms of dead channels are full of them. Returns whether there was one.
bool flushSubnormals(MutableArrayRef<float> values) {
  bool any = false;
  for (float &value : values) {
    bool subnormal = std::fpclassify(value) == FP_SUBNORMAL;
    any |= subnormal;
    value = subnormal ? 0.0f : value;
  }
  return any;
}

/// The same for bf16, whose exponents are those of f32. Subnormals of f16 are normal numbers once widened.
void flushSubnormalsBf16(MutableArrayRef<uint16_t> values) {
  for (uint16_t &bits : values) {
    bits = bits & 0x7f80 ? bits : bits & 0x8000;
  }
}

/// |data| of f16 or bf16 as f32.
top::TensorData widened(const top::TensorData &data) {
  bool isBf16 = data.type.getElementType().isBF16();
  auto bytes = std::make_shared<std::vector<char>>(data.bytes.size() * 2);
  auto *to = reinterpret_cast<float *>(bytes->data());
  for (uint16_t bits : data.data<uint16_t>()) {
    *to++ = isBf16 ? top::widenBf16(bits) : top::widenF16(bits);
  }
  auto type = RankedTensorType::get(data.type.getShape(), Float32Type::get(data.type.getContext()));
  return {type, *bytes, bytes};
}

/// Makes packed f32 weights f16 where all of them together lose no more than the rounding of single ones would: in the
/// range of f16's normal numbers. Transformed weights of bf16 keep more of their accuracy so than as bf16.
void narrowPacked(Job &job) {
  constexpr double kMostError = 0x1p-11;
  ArrayRef<float> values(reinterpret_cast<const float *>(job.packed.data()), job.elements);
  std::vector<char> narrow(job.elements * sizeof(uint16_t));
  auto *to = reinterpret_cast<uint16_t *>(narrow.data());
  double error = 0, size = 0;
  for (float value : values) {
    uint16_t bits = top::roundToF16(value);
    double difference = double(top::widenF16(bits)) - value;
    error += difference * difference, size += double(value) * value;
    *to++ = bits;
  }
  if (error <= kMostError * kMostError * size) { // false for infinities
    job.packed = std::move(narrow);
    job.element = Float16Type::get(job.element.getContext());
  }
}

class PackWeights : public impl::PackWeightsPassBase<PackWeights> {
public:
  using PackWeightsPassBase::PackWeightsPassBase;

  void runOnOperation() override {
    SmallVector<Operation *> scaled;
    getOperation().walk([&](Operation *op) {
      if (scalesOf(op)) {
        scaled.push_back(op);
      }
    });
    llvm::for_each(scaled, [&](Operation *op) { planScales(op); });
    SmallVector<Job> jobs;
    getOperation().walk([&](Operation *op) {
      std::optional<Job> job;
      if (auto conv = dyn_cast<device::ConvOp>(op)) {
        job = planConv(conv);
      } else if (auto matmul = dyn_cast<device::MatMulOp>(op)) {
        job = planMatMul(matmul);
      }
      if (job) {
        jobs.push_back(std::move(*job));
      }
    });
    // A few at a time: each needs its own copy of the weights until it stands in the store.
    size_t atOnce = std::max<size_t>(2, getContext().getNumThreads());
    for (size_t begin = 0; begin < jobs.size(); begin += atOnce) {
      MutableArrayRef<Job> batch = MutableArrayRef(jobs).slice(begin, std::min(atOnce, jobs.size() - begin));
      parallelForEach(&getContext(), batch, [](Job &job) {
        job.packed.resize(job.elements * device::elementBytes(job.element));
        job.pack(job.data.data<char>().data(), job.packed.data());
        size_t count = job.elements;
        if (device::isOrderedProduct(job.op)) {
          // These sums have all of their bits.
        } else if (job.element.isF32()) {
          flushSubnormals({reinterpret_cast<float *>(job.packed.data()), count});
        } else if (job.element.isBF16()) {
          flushSubnormalsBf16({reinterpret_cast<uint16_t *>(job.packed.data()), count});
        }
        if (job.narrowsPacked) {
          narrowPacked(job);
        }
      });
      for (Job &job : batch) {
        install(job);
      }
      top::dropUnheldWeights(getOperation());
    }
  }

private:
  std::optional<Job> planConv(device::ConvOp conv) {
    device::ConvAlgorithm algorithm = conv.getAlgorithm();
    if (algorithm == device::ConvAlgorithm::generic || conv.getPacked()) {
      return std::nullopt;
    }
    std::optional<top::TensorData> data = top::getConstantData(conv.getW());
    if (!data) {
      conv.setAlgorithm(device::ConvAlgorithm::generic);
      return std::nullopt;
    }
    Job job;
    job.op = conv, job.weight = &conv.getWMutable(), job.data = *data;
    ConvWeightDims dims = weightDims(conv);
    // The tile of Winograd is decided again here: the decision depends on nothing that changed since.
    ConvChoice choice{algorithm, algorithm == device::ConvAlgorithm::winograd
                                     ? chooseConvAlgorithm(conv, vectorBytes, true).winogradTile
                                     : 0};
    if (algorithm == device::ConvAlgorithm::winograd && choice.winogradTile == 0) {
      choice.winogradTile = 2;
    }
    job.panelBlocks = choosePanelBlocks(conv, choice, vectorBytes);
    job.element = data->type.getElementType();
    int64_t panels = job.panelBlocks, tile = choice.winogradTile;
    bool blockedInput = device::isBlocked(conv.getX().getType());
    if (hasIntegerWeights(conv)) {
      return planIntegers(job, conv, dims, blockedInput);
    }
    if (isByte(job.element)) {
      if (!planBytes(job, conv.getX(), conv.getBias())) {
        conv.emitError("internal error: the bias of a convolution of 8-bit integers is no constant");
        signalPassFailure();
        return std::nullopt;
      }
      bool dilated = hasDilatedRows(conv);
      PackedForm form = formOf(conv.getX());
      if (algorithm == device::ConvAlgorithm::depthwise) {
        int64_t stride = conv.getStrides().back();
        bool windows = depthwiseInWindows(form, stride, conv.getDilations().back());
        job.lowersBias &= windows;
        job.elements = packedDepthwiseBytes8(dims, stride, windows);
        job.pack = [=](const char *from, char *to) {
          packDepthwise8(dims, stride, form, windows, reinterpret_cast<const int8_t *>(from), to);
        };
        return job;
      }
      job.elements = packedConvBytes8(dims, form, blockedInput, dilated);
      job.pack = [=](const char *from, char *to) {
        packConv8(dims, panels, blockedInput, dilated, form, reinterpret_cast<const int8_t *>(from), to);
      };
      return job;
    }
    switch (algorithm) {
    case device::ConvAlgorithm::direct:
      job.elements = packedConvElements(dims);
      job.packFloats([=](auto *from, auto *to) { packConv(dims, panels, blockedInput, from, to); });
      break;
    case device::ConvAlgorithm::winograd:
      job.elements = packedWinogradElements(dims, tile);
      job.narrowsPacked = device::isNarrowFloat(job.element);
      if (job.narrowsPacked) {
        job.data = widened(job.data);
        job.element = Float32Type::get(&getContext());
      }
      job.pack = [=](const char *from, char *to) {
        packWinograd(dims, panels, tile, reinterpret_cast<const float *>(from), reinterpret_cast<float *>(to));
      };
      break;
    case device::ConvAlgorithm::depthwise:
      job.elements = packedDepthwiseElements(dims);
      job.packFloats([=](auto *from, auto *to) { packDepthwise(dims, from, to); });
      break;
    case device::ConvAlgorithm::generic:
      break;
    }
    return job;
  }

  std::optional<Job> planMatMul(device::MatMulOp matmul) {
    auto a = cast<RankedTensorType>(matmul.getA().getType()), b = cast<RankedTensorType>(matmul.getB().getType());
    auto y = cast<RankedTensorType>(matmul.getY().getType());
    bool integers = isIntegerOperand(a.getElementType());
    bool scaled = hasIntegerWeights(matmul);
    if (device::isOrderedProduct(matmul) && vectorBytes == kBytesWithoutFma) {
      return std::nullopt; // the register tile would not fuse
    }
    bool types = hasTileTypes(matmul.getA(), scaled ? Float32Type::get(&getContext()) : b.getElementType(),
                              matmul.getBias(), matmul.getY());
    bool oneMatrix = llvm::all_of(b.getShape().drop_back(2), [](int64_t dim) { return dim == 1; });
    if (matmul.getPacked() || !types ||
        ((integers || device::isNarrowFloat(a.getElementType())) && matmul.getTransA()) || !oneMatrix ||
        !y.hasStaticShape() || !a.hasStaticShape()) {
      return std::nullopt;
    }
    bool simple = llvm::all_of(matmul.getExtras(), [&](Value extra) { return matmul.canReadExtra(extra); });
    std::optional<top::TensorData> data = simple ? top::getConstantData(matmul.getB()) : std::nullopt;
    if (!data) {
      return std::nullopt;
    }
    Job job;
    job.op = matmul, job.weight = &matmul.getBMutable(), job.data = *data;
    bool transposed = matmul.getTransB();
    int64_t k = b.getDimSize(b.getRank() - (transposed ? 1 : 2)), n = y.getDimSize(y.getRank() - 1);
    int64_t m = n ? y.getNumElements() / n : 0;
    if (m == 0 || k == 0 || n == 0) {
      return std::nullopt;
    }
    int64_t steps = llvm::divideCeil(k, elementsPerStep(a.getElementType()));
    job.panelBlocks = choosePanelBlocks(
        vectorBytes, TiledProduct{1, matmul.getTransA() ? y.getDimSize(y.getRank() - 2) : m, steps, n});
    job.element = b.getElementType();
    int64_t panels = job.panelBlocks;
    if (scaled) {
      return planIntegers(job, matmul, k);
    }
    if (!integers) {
      job.elements = packedMatMulElements(k, n);
      job.packFloats([=](auto *from, auto *to) { packMatMul(k, n, transposed, panels, from, to); });
      return job;
    }
    if (!planBytes(job, matmul.getA(), matmul.getBias())) {
      return std::nullopt;
    }
    PackedForm form = formOf(matmul.getA());
    job.elements = packedMatMulBytes8(k, n, form);
    job.pack = [=](const char *from, char *to) {
      packMatMul8(k, n, transposed, panels, form, reinterpret_cast<const int8_t *>(from), to);
    };
    return job;
  }

  /// Where the scales of integer weights go: each into the epilogue, or rows of them into the panels. Products that get
  /// no packed weights get weights of f32.
  void planScales(Operation *op) {
    auto conv = dyn_cast<device::ConvOp>(op);
    bool packed = conv ? planConv(conv).has_value() : planMatMul(cast<device::MatMulOp>(op)).has_value();
    int64_t group = conv ? conv.getWeightGroup() : cast<device::MatMulOp>(op).getWeightGroup();
    bool one = cast<RankedTensorType>(scalesOf(op).getType()).getDimSize(0) == 1;
    bool inBlocks = group % kChannelBlock == 0 && (!conv || device::isBlocked(conv.getX().getType()));
    if (!packed || (!one && !inBlocks)) {
      dequantiseWeights(op);
    } else if (one) {
      scaleInEpilogue(op);
    }
  }

  static int64_t bitsOf(const top::TensorData &weights) {
    return llvm::all_of(weights.data<int8_t>(), [](int8_t w) { return w >= -8 && w <= 7; }) ? 4 : 8;
  }

  /// Weights of a float x that are integers; what is left of their scales is in rows.
  static std::optional<Job> planIntegers(Job job, device::ConvOp conv, const ConvWeightDims &dims, bool blockedInput) {
    if (conv.getAlgorithm() == device::ConvAlgorithm::depthwise) {
      job.elements = packedDepthwiseElements(dims);
      job.pack = [=](const char *from, char *to) {
        packDepthwise(dims, reinterpret_cast<const int8_t *>(from), reinterpret_cast<int8_t *>(to));
      };
      return job;
    }
    int64_t bits = bitsOf(job.data);
    conv.setWeightBits(bits == 4 ? 4 : 0);
    IntegerPanels panels =
        integerPanelsOfConv(dims, job.panelBlocks, blockedInput, hasDilatedRows(conv), bits, conv.getWeightGroup());
    job.elements = panels.bytes();
    job.pack = [=, scales = scaleData(conv)](const char *from, char *to) {
      packIntegerConv(panels, dims, blockedInput, reinterpret_cast<const int8_t *>(from), scales.data(), to);
    };
    return job;
  }

  static std::optional<Job> planIntegers(Job job, device::MatMulOp matmul, int64_t k) {
    int64_t bits = bitsOf(job.data), n = cast<RankedTensorType>(matmul.getY().getType()).getShape().back();
    matmul.setWeightBits(bits == 4 ? 4 : 0);
    IntegerPanels panels = integerPanelsOfMatMul(k, n, job.panelBlocks, bits, matmul.getWeightGroup());
    job.elements = panels.bytes();
    job.pack = [=, scales = scaleData(matmul), transposed = matmul.getTransB()](const char *from, char *to) {
      packIntegerMatMul(panels, k, transposed, reinterpret_cast<const int8_t *>(from), scales.data(), to);
    };
    return job;
  }

  static std::vector<float> scaleData(Operation *op) {
    std::optional<top::TensorData> data = scalesOf(op) ? top::getConstantData(scalesOf(op)) : std::nullopt;
    ArrayRef<float> scales = data ? data->data<float>() : ArrayRef<float>();
    return {scales.begin(), scales.end()};
  }

  /// Of 8-bit weights multiplied with |x|.
  PackedForm formOf(Value x) const {
    bool bytes = isByte(cast<RankedTensorType>(x.getType()).getElementType());
    return !bytes ? PackedForm::Words : byteDots ? PackedForm::Quads : PackedForm::Pairs;
  }

  /// What is common to 8-bit weights multiplied with |x|; false when |bias| cannot be lowered.
  bool planBytes(Job &job, Value x, Value bias) {
    bool isSigned = !cast<RankedTensorType>(x.getType()).getElementType().isUnsignedInteger();
    job.lowersBias = formOf(x) == PackedForm::Quads && isSigned;
    return !job.lowersBias || !bias || top::isConstant(bias);
  }

  /// Lowers the bias of |op| by 128 * sum(w) per column; |weights| are the logical ones.
  void lowerBias(Operation *op, const top::TensorData &weights) {
    auto conv = dyn_cast<device::ConvOp>(op);
    auto matmul = dyn_cast<device::MatMulOp>(op);
    ArrayRef<int64_t> dims = weights.type.getShape();
    bool columnsFirst = conv || matmul.getTransB();
    int64_t columns = columnsFirst ? (conv ? dims.front() : dims[dims.size() - 2]) : dims.back();
    // Sums wrap like the kernel's accumulators.
    std::vector<uint32_t> values(columns, 0);
    Value bias = conv ? conv.getBias() : matmul.getBias();
    if (std::optional<top::TensorData> data = bias ? top::getConstantData(bias) : std::nullopt) {
      llvm::copy(data->data<int32_t>(), values.begin());
    }
    ArrayRef<int8_t> from = weights.data<int8_t>();
    int64_t perColumn = columns ? from.size() / columns : 0;
    for (auto [i, weight] : llvm::enumerate(from)) {
      values[columnsFirst ? i / perColumn : i % columns] -= 128 * static_cast<int32_t>(weight);
    }
    OpBuilder builder(op);
    ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(uint32_t));
    auto type = RankedTensorType::get({columns}, builder.getI32Type());
    Value lowered = top::createConstant(builder, op->getLoc(), type, bytes, "bias");
    conv ? conv.getBiasMutable().assign(lowered) : matmul.getBiasMutable().assign(lowered);
    if (bias && bias.use_empty()) {
      bias.getDefiningOp()->erase();
    }
  }

  void install(Job &job) {
    OpBuilder builder(job.op);
    Value old = job.weight->get();
    auto oldType = cast<RankedTensorType>(old.getType());
    auto type = RankedTensorType::get({job.elements}, job.element);
    std::string hint = "packed";
    if (auto key = old.getDefiningOp()->getAttrOfType<StringAttr>("key")) {
      hint = key.str() + ".packed";
    }
    Value packed = top::createConstant(builder, old.getLoc(), type, std::move(job.packed), hint);
    job.weight->set(packed);
    if (Value scales = scalesOf(job.op)) {
      auto conv = dyn_cast<device::ConvOp>(job.op);
      (conv ? conv.getScalesMutable() : cast<device::MatMulOp>(job.op).getScalesMutable()).clear();
      if (scales.use_empty()) {
        scales.getDefiningOp()->erase();
      }
    }
    if (job.lowersBias) {
      lowerBias(job.op, job.data); // may add an operand, which moves the others
    }
    flushBias(job.op);
    if (auto conv = dyn_cast<device::ConvOp>(job.op)) {
      conv.setPacked(true), conv.setWeightShape(oldType.getShape()), conv.setPanelBlocks(job.panelBlocks);
    } else {
      auto matmul = cast<device::MatMulOp>(job.op);
      matmul.setPacked(true), matmul.setWeightShape(oldType.getShape()), matmul.setPanelBlocks(job.panelBlocks);
    }
    job.data = {};
    top::releaseWeight(old);
    if (old.use_empty()) {
      old.getDefiningOp()->erase();
    }
    ++numPacked;
  }

  /// Accumulators start from the bias.
  void flushBias(Operation *op) {
    auto conv = dyn_cast<device::ConvOp>(op);
    Value bias = conv ? conv.getBias() : cast<device::MatMulOp>(op).getBias();
    std::optional<top::TensorData> data = bias ? top::getConstantData(bias) : std::nullopt;
    if (!data || !data->type.getElementType().isF32()) {
      return;
    }
    auto values = llvm::to_vector(data->data<float>());
    if (!flushSubnormals(values)) {
      return;
    }
    OpBuilder builder(op);
    ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float));
    Value flushed = top::createConstant(builder, bias.getLoc(), data->type, bytes, "bias");
    conv ? conv.getBiasMutable().assign(flushed) : cast<device::MatMulOp>(op).getBiasMutable().assign(flushed);
    if (bias.use_empty()) {
      bias.getDefiningOp()->erase();
    }
  }
};

} // namespace
} // namespace tessera::x86

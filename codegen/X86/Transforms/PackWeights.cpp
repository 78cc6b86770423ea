//===- PackWeights.cpp - Weights into the order their kernels read --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/ChoosePacking.h"
#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "codegen/X86/Transforms/Passes.h"
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

/// One weight tensor on its way: decided in order, packed in parallel, put into the module in order.
struct Job {
  Operation *op = nullptr;
  top::TensorData data; ///< logical
  PackingAttr packing;
  RankedTensorType type; ///< of the packed weights
  Packer pack;
  bool narrows = false; ///< f32 weights of Winograd are stored as f16 where that is exact enough
  std::vector<char> packed;

  /// Whether the bias is lowered by 128 * sum(w): signed bytes are multiplied as x + 128.
  bool lowersBias() const { return flipsBytes(packing) && !isUnsignedInput(op); }
  static bool isUnsignedInput(Operation *op) {
    return cast<RankedTensorType>(op->getOperand(0).getType()).getElementType().isUnsignedInteger();
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

PackingAttr withStep(PackingAttr p, PackedStep step) {
  return PackingAttr::get(p.getContext(), p.getOrder(), step, p.getShape(), p.getRows(), p.getColumns(),
                          p.getOutputTile(), p.getScaleGroup(), p.getChunk());
}

/// Makes packed f32 weights f16 where all of them together lose no more than the rounding of single ones would: in the
/// range of f16's normal numbers. Transformed weights of bf16 keep more of their accuracy so than as bf16.
void narrowPacked(Job &job) {
  constexpr double kMostError = 0x1p-11;
  ArrayRef<float> values(reinterpret_cast<const float *>(job.packed.data()), job.type.getNumElements());
  std::vector<char> narrow(values.size() * sizeof(uint16_t));
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
    job.packing = withStep(job.packing, PackedStep::f16);
    job.type = packedType(job.op, job.packing);
  }
}

/// Packs what |job| says.
void runJob(Job &job) {
  Type element = job.type.getElementType();
  auto count = static_cast<size_t>(job.type.getNumElements());
  job.packed.resize(count * device::elementBytes(element));
  job.pack(job.data.data<char>().data(), job.packed.data());
  if (device::isOrderedProduct(job.op)) {
    // These sums have all of their bits.
  } else if (element.isF32()) {
    flushSubnormals({reinterpret_cast<float *>(job.packed.data()), count});
  } else if (element.isBF16()) {
    flushSubnormalsBf16({reinterpret_cast<uint16_t *>(job.packed.data()), count});
  }
  if (job.narrows) {
    narrowPacked(job);
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
      } else if (auto recurrent = dyn_cast<device::RecurrentOp>(op)) {
        job = planRecurrent(recurrent);
      }
      if (job) {
        jobs.push_back(std::move(*job));
      }
    });
    // A few at a time: each needs its own copy of the weights until it stands in the store.
    size_t atOnce = std::max<size_t>(2, getContext().getNumThreads());
    for (size_t begin = 0; begin < jobs.size(); begin += atOnce) {
      MutableArrayRef<Job> batch = MutableArrayRef(jobs).slice(begin, std::min(atOnce, jobs.size() - begin));
      parallelForEach(&getContext(), batch, runJob);
      for (Job &job : batch) {
        install(job);
      }
      top::dropUnheldWeights(getOperation());
    }
  }

private:
  PackingTarget target() const { return {vectorBytes, byteDots, bf16Dots, amx}; }

  /// Whether the weights of |op| will be packed, before its scales have found their place.
  bool canPack(Operation *op) {
    if (auto conv = dyn_cast<device::ConvOp>(op)) {
      return algorithmOf(conv) && top::isConstant(conv.getW());
    }
    auto matmul = cast<device::MatMulOp>(op);
    return !matmul.getPacking() && hasRegisterTile(matmul, target()) && top::isConstant(matmul.getB());
  }

  std::optional<Job> planConv(device::ConvOp conv) {
    AlgorithmAttr algorithm = algorithmOf(conv);
    if (!algorithm) {
      return std::nullopt;
    }
    std::optional<top::TensorData> data = top::getConstantData(conv.getW());
    if (!data) {
      conv->removeAttr(X86Dialect::kAlgorithmAttr);
      return std::nullopt;
    }
    Job job{conv, *data, choosePacking(conv, *data, target())};
    if (job.lowersBias() && conv.getBias() && !top::isConstant(conv.getBias())) {
      conv.emitError("internal error: the bias of a convolution of 8-bit integers is no constant");
      signalPassFailure();
      return std::nullopt;
    }
    job.type = packedType(conv, job.packing);
    job.pack = packerOf(conv, job.packing);
    if (algorithm.getValue() == ConvAlgorithm::winograd && device::isNarrowFloat(data->type.getElementType())) {
      job.narrows = true;
      job.data = widened(job.data);
    }
    return job;
  }

  std::optional<Job> planMatMul(device::MatMulOp matmul) {
    std::optional<top::TensorData> data;
    if (canPack(matmul)) {
      data = top::getConstantData(matmul.getB());
    }
    if (!data) {
      return std::nullopt;
    }
    Job job{matmul, *data, choosePacking(matmul, *data, target())};
    if (job.lowersBias() && matmul.getBias() && !top::isConstant(matmul.getBias())) {
      return std::nullopt;
    }
    job.type = packedType(matmul, job.packing);
    job.pack = packerOf(matmul, job.packing);
    return job;
  }

  std::optional<Job> planRecurrent(device::RecurrentOp op) {
    if (op.getW() || op.getPacking() || !hasRegisterTile(op, target())) {
      return std::nullopt;
    }
    top::TensorData data = *top::getConstantData(op.getR());
    Job job{op, data, choosePacking(op, data, target())};
    job.type = packedType(op, job.packing);
    job.pack = packerOf(op, job.packing);
    return job;
  }

  /// Where the scales of integer weights go: each into the epilogue, or rows of them into the panels. Products that get
  /// no packed weights get weights of f32.
  void planScales(Operation *op) {
    auto conv = dyn_cast<device::ConvOp>(op);
    int64_t group = conv ? conv.getWeightGroup() : cast<device::MatMulOp>(op).getWeightGroup();
    bool one = cast<RankedTensorType>(scalesOf(op).getType()).getDimSize(0) == 1;
    bool inBlocks = group % kBlock == 0 && (!conv || device::isBlocked(conv.getX().getType()));
    if (!canPack(op) || (!one && !inBlocks)) {
      dequantiseWeights(op);
    } else if (one) {
      scaleInEpilogue(op);
    }
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
    Value old = job.op->getOperand(1);
    std::string hint = "packed";
    if (auto key = old.getDefiningOp()->getAttrOfType<StringAttr>("key")) {
      hint = key.str() + ".packed";
    }
    job.op->setOperand(1, top::createConstant(builder, old.getLoc(), job.type, std::move(job.packed), hint));
    if (scalesOf(job.op)) {
      dropScales(job.op);
    }
    if (job.lowersBias()) {
      lowerBias(job.op, job.data); // may add an operand, which moves the others
    }
    flushBias(job.op);
    if (auto conv = dyn_cast<device::ConvOp>(job.op)) {
      conv.setPackingAttr(job.packing);
      conv->removeAttr(X86Dialect::kAlgorithmAttr);
    } else if (auto recurrent = dyn_cast<device::RecurrentOp>(job.op)) {
      recurrent.setPackingAttr(job.packing);
    } else {
      cast<device::MatMulOp>(job.op).setPackingAttr(job.packing);
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
    if (isa<device::RecurrentOp>(op)) {
      return; // added behind the sums
    }
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

//===- PackWeights.cpp - Packs weights in the order kernels read them -----===//
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

/// One weight tensor to pack: planned in program order, packed in parallel, and installed in the module in program
/// order.
struct Job {
  Operation *op = nullptr;
  top::TensorData data; ///< logical weights
  PackingAttr packing;
  RankedTensorType type = {}; ///< type of the packed weights
  Packer pack = {};
  bool narrows = false; ///< store the f32 weights of Winograd as f16 if that is accurate enough
  std::vector<char> packed = {};

  /// Returns true if the bias must be lowered by 128 * sum(w), because signed bytes are multiplied as x + 128.
  bool lowersBias() const { return flipsBytes(packing) && !isUnsignedInput(op); }
  static bool isUnsignedInput(Operation *op) {
    return cast<RankedTensorType>(op->getOperand(0).getType()).getElementType().isUnsignedInteger();
  }
};

/// Replaces subnormal weights by zero. Their contribution to a sum is too small to matter, but a multiply-add with a
/// subnormal operand takes a hundred times as long. Folded batch norms of dead channels contain many of them. Returns
/// true if any weight was subnormal.
bool flushSubnormals(MutableArrayRef<float> values) {
  bool any = false;
  for (float &value : values) {
    bool subnormal = std::fpclassify(value) == FP_SUBNORMAL;
    any |= subnormal;
    value = subnormal ? 0.0f : value;
  }
  return any;
}

/// Replaces subnormal bf16 by zero; bf16 has the exponents of f32. Subnormal f16 are normal numbers once widened.
void flushSubnormalsBf16(MutableArrayRef<uint16_t> values) {
  for (uint16_t &bits : values) {
    bits = bits & 0x7f80 ? bits : bits & 0x8000;
  }
}

/// Returns |data|, of f16 or bf16, as f32.
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

/// Converts the packed f32 weights of |job| to f16 if their total relative error is no larger than that of rounding a
/// normal f16. This keeps more of the accuracy of transformed bf16 weights than storing them as bf16.
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
  if (error <= kMostError * kMostError * size) { // false if there are infinities
    job.packed = std::move(narrow);
    job.packing = withStep(job.packing, PackedStep::f16);
    job.type = packedType(job.op, job.packing);
  }
}

/// Packs the weights of |job|.
void runJob(Job &job) {
  Type element = job.type.getElementType();
  auto count = static_cast<size_t>(job.type.getNumElements());
  job.packed.resize(count * device::elementBytes(element));
  job.pack(job.data.data<char>().data(), job.packed.data());
  if (device::isOrderedContraction(job.op)) {
    // Ordered sums keep subnormal weights, because every bit of them is specified.
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
    // Pack a few at a time, because each needs its own copy of the weights until the store holds the packed ones.
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

  /// Returns true if the weights of |op| will be packed; asked before its scales are placed.
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
      conv.emitError("internal error: the bias of a convolution of 8-bit integers is not a constant");
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

  /// Places the scales of integer weights: a scale per channel goes into the epilogue, rows of scales into the panels.
  /// Ops whose weights will not be packed get f32 weights instead.
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

  /// Lowers the bias of |op| by 128 * sum(w) per column; |weights| are the logical weights.
  void lowerBias(Operation *op, const top::TensorData &weights) {
    auto conv = dyn_cast<device::ConvOp>(op);
    auto matmul = dyn_cast<device::MatMulOp>(op);
    ArrayRef<int64_t> dims = weights.type.getShape();
    bool columnsFirst = conv || matmul.getTransB();
    int64_t columns = columnsFirst ? (conv ? dims.front() : dims[dims.size() - 2]) : dims.back();
    // The sums wrap, as the accumulators of the kernel do.
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
      lowerBias(job.op, job.data); // may add an operand, which shifts the others
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

  /// Flushes subnormals in a constant f32 bias, which is the initial value of the accumulators.
  void flushBias(Operation *op) {
    auto conv = dyn_cast<device::ConvOp>(op);
    if (isa<device::RecurrentOp>(op)) {
      return; // its bias is added after the sums
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

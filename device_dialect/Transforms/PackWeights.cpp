//===- PackWeights.cpp - Weights into the order their kernels read --------===//
// SPDX-License-Identifier: Apache-2.0
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/ConvAlgorithm.h"
#include "device_dialect/Transforms/Passes.h"
#include "device_dialect/Transforms/RegisterTiles.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Threading.h"

#include <cmath>

namespace tessera::device {
#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "device_dialect/Transforms/Passes.h.inc"
} // namespace tessera::device

using namespace mlir;

namespace tessera::device {
namespace {

/// One weight tensor on its way: decided in order, packed in parallel, put into the module in order.
struct Job {
  Operation *op = nullptr;
  OpOperand *weight = nullptr;
  top::TensorData data;
  int64_t panelBlocks = 1;
  int64_t elements = 0;
  Type element; ///< of the packed weights
  std::function<void(const char *from, char *to)> pack;
  bool lowersBias = false; ///< by 128 * sum(w), see PackedForm::Quads
  std::vector<char> packed;

  /// Sets |pack| to |function| on f32 buffers.
  template <typename Function>
  void packFloats(Function function) {
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

class PackWeights : public impl::PackWeightsPassBase<PackWeights> {
public:
  using PackWeightsPassBase::PackWeightsPassBase;

  void runOnOperation() override {
    SmallVector<Job> jobs;
    getOperation().walk([&](Operation *op) {
      std::optional<Job> job;
      if (auto conv = dyn_cast<ConvOp>(op)) {
        job = planConv(conv);
      } else if (auto matmul = dyn_cast<MatMulOp>(op)) {
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
        job.packed.resize(job.elements * elementBytes(job.element));
        job.pack(job.data.data<char>().data(), job.packed.data());
        if (job.element.isF32()) {
          flushSubnormals({reinterpret_cast<float *>(job.packed.data()), static_cast<size_t>(job.elements)});
        }
      });
      for (Job &job : batch) {
        install(job);
      }
    }
  }

private:
  std::optional<Job> planConv(ConvOp conv) {
    ConvAlgorithm algorithm = conv.getAlgorithm();
    if (algorithm == ConvAlgorithm::generic || conv.getPacked()) {
      return std::nullopt;
    }
    std::optional<top::TensorData> data = top::getConstantData(conv.getW());
    if (!data) {
      conv.setAlgorithm(ConvAlgorithm::generic);
      return std::nullopt;
    }
    Job job;
    job.op = conv, job.weight = &conv.getWMutable(), job.data = *data;
    ConvWeightDims dims = weightDims(conv);
    // The tile of Winograd is decided again here: the decision depends on nothing that changed since.
    ConvChoice choice{algorithm, algorithm == ConvAlgorithm::winograd
                                     ? chooseConvAlgorithm(conv, vectorBytes, true).winogradTile
                                     : 0};
    if (algorithm == ConvAlgorithm::winograd && choice.winogradTile == 0) {
      choice.winogradTile = 2;
    }
    job.panelBlocks = choosePanelBlocks(conv, choice, vectorBytes);
    job.element = data->type.getElementType();
    int64_t panels = job.panelBlocks, tile = choice.winogradTile;
    bool blockedInput = isBlocked(conv.getX().getType());
    if (isByte(job.element)) {
      if (!planBytes(job, conv.getX(), conv.getBias())) {
        conv.emitError("internal error: the bias of a convolution of 8-bit integers is no constant");
        signalPassFailure();
        return std::nullopt;
      }
      bool dilated = hasDilatedRows(conv);
      PackedForm form = formOf(conv.getX());
      if (algorithm == ConvAlgorithm::depthwise) {
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
    case ConvAlgorithm::direct:
      job.elements = packedConvElements(dims);
      job.packFloats([=](const float *from, float *to) { packConv(dims, panels, blockedInput, from, to); });
      break;
    case ConvAlgorithm::winograd:
      job.elements = packedWinogradElements(dims, tile);
      job.packFloats([=](const float *from, float *to) { packWinograd(dims, panels, tile, from, to); });
      break;
    case ConvAlgorithm::depthwise:
      job.elements = packedDepthwiseElements(dims);
      job.packFloats([=](const float *from, float *to) { packDepthwise(dims, from, to); });
      break;
    case ConvAlgorithm::generic:
      break;
    }
    return job;
  }

  std::optional<Job> planMatMul(MatMulOp matmul) {
    auto a = cast<RankedTensorType>(matmul.getA().getType()), b = cast<RankedTensorType>(matmul.getB().getType());
    auto y = cast<RankedTensorType>(matmul.getY().getType());
    bool integers = isIntegerOperand(a.getElementType());
    bool types = hasTileTypes(matmul.getA(), b.getElementType(), matmul.getBias(), matmul.getY());
    bool oneMatrix = llvm::all_of(b.getShape().drop_back(2), [](int64_t dim) { return dim == 1; });
    if (matmul.getPacked() || !types || (integers && matmul.getTransA()) || !oneMatrix || !y.hasStaticShape() ||
        !a.hasStaticShape()) {
      return std::nullopt;
    }
    bool simple = llvm::all_of(matmul.getExtras(), [&](Value extra) {
      return isSimpleMatrixExtra(cast<RankedTensorType>(extra.getType()), y);
    });
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
    if (!integers) {
      job.elements = packedMatMulElements(k, n);
      job.packFloats([=](const float *from, float *to) { packMatMul(k, n, transposed, panels, from, to); });
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
    auto conv = dyn_cast<ConvOp>(op);
    auto matmul = dyn_cast<MatMulOp>(op);
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
    if (job.lowersBias) {
      lowerBias(job.op, job.data); // may add an operand, which moves the others
    }
    flushBias(job.op);
    if (auto conv = dyn_cast<ConvOp>(job.op)) {
      conv.setPacked(true), conv.setWeightShape(oldType.getShape()), conv.setPanelBlocks(job.panelBlocks);
    } else {
      auto matmul = cast<MatMulOp>(job.op);
      matmul.setPacked(true), matmul.setWeightShape(oldType.getShape()), matmul.setPanelBlocks(job.panelBlocks);
    }
    job.data = {};
    if (old.use_empty()) {
      old.getDefiningOp()->erase();
    }
    ++numPacked;
  }

  /// Accumulators start from the bias.
  void flushBias(Operation *op) {
    auto conv = dyn_cast<ConvOp>(op);
    Value bias = conv ? conv.getBias() : cast<MatMulOp>(op).getBias();
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
    conv ? conv.getBiasMutable().assign(flushed) : cast<MatMulOp>(op).getBiasMutable().assign(flushed);
    if (bias.use_empty()) {
      bias.getDefiningOp()->erase();
    }
  }
};

} // namespace
} // namespace tessera::device

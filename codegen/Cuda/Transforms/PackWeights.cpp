//===- PackWeights.cpp - Packs weights in the order kernels read them -----===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/IR/GemvRows.h"
#include "codegen/Cuda/Kernels/Depthwise.h"
#include "codegen/Cuda/Transforms/Passes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TensorTypes.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "mlir/IR/Threading.h"

namespace tessera::cuda {
#define GEN_PASS_DEF_PACKWEIGHTSPASS
#include "codegen/Cuda/Transforms/Passes.h.inc"
} // namespace tessera::cuda

using namespace mlir;

namespace tessera::cuda {
namespace {

/// Logical and packed strides of weight [n, c, tap] of a convolution, or [n, c] of a matrix.
struct Order {
  int64_t columns, channels, taps;
  int64_t fromColumn, fromChannel, fromTap; ///< strides in elements
  int64_t toColumn, toChannel, toTap;
};

Order orderOf(Operation *op, PackingAttr packing, RankedTensorType packed) {
  ArrayRef<int64_t> shape = packing.getShape();
  if (auto matmul = dyn_cast<device::MatMulOp>(op)) {
    int64_t rank = shape.size(), last = shape[rank - 1], before = shape[rank - 2];
    return matmul.getTransB() ? Order{before, last, 1, last, 1, 0, packed.getDimSize(1), 1, 0}
                              : Order{last, before, 1, 1, last, 0, packed.getDimSize(1), 1, 0};
  }
  int64_t taps = 1;
  for (int64_t dim : shape.drop_front(2)) {
    taps *= dim;
  }
  Order order{shape[0],
              shape[1],
              taps,
              shape[1] * taps,
              taps,
              1,
              packed.getDimSize(1),
              1,
              channelRun(cast<device::ConvOp>(op))};
  if (packing.getOrder() == PackedOrder::rows) {
    order.toChannel = taps, order.toTap = 1;
  } else if (packing.getOrder() == PackedOrder::depthwise) {
    order.toColumn = 1, order.toChannel = 0, order.toTap = packed.getDimSize(1);
  }
  return order;
}

template <typename Element>
void move(const Order &order, const char *from, char *to) {
  const auto *source = reinterpret_cast<const Element *>(from);
  auto *target = reinterpret_cast<Element *>(to);
  for (int64_t n = 0; n < order.columns; ++n) {
    for (int64_t c = 0; c < order.channels; ++c) {
      for (int64_t tap = 0; tap < order.taps; ++tap) {
        target[n * order.toColumn + c * order.toChannel + tap * order.toTap] =
            source[n * order.fromColumn + c * order.fromChannel + tap * order.fromTap];
      }
    }
  }
}

/// One weight tensor to pack: packed in parallel, installed in the module in program order.
struct Job {
  Operation *op;
  top::TensorData data; ///< logical weights
  PackingAttr packing;
  RankedTensorType type; ///< type of the packed weights
  std::optional<top::TensorData> scales;
  std::vector<char> packed;

  void run() {
    int64_t bytes = device::elementBytes(type.getElementType());
    packed.assign(size_t(type.getNumElements() * bytes), 0);
    if (packing.getOrder() == PackedOrder::bytes || packing.getOrder() == PackedOrder::nibbles) {
      return moveRows();
    }
    Order order = orderOf(op, packing, type);
    bytes == 1   ? move<uint8_t>(order, data.bytes.data(), packed.data())
    : bytes == 2 ? move<uint16_t>(order, data.bytes.data(), packed.data())
                 : move<uint32_t>(order, data.bytes.data(), packed.data());
  }

private:
  /// Packs in the order that cuda.gemv reads.
  void moveRows() {
    auto matmul = cast<device::MatMulOp>(op);
    ArrayRef<int64_t> shape = packing.getShape();
    int64_t last = shape.back(), before = shape[shape.size() - 2];
    int64_t columns = matmul.getTransB() ? before : last, depth = matmul.getTransB() ? last : before;
    bool isNibbles = packing.getOrder() == PackedOrder::nibbles;
    GemvRows rows{depth, isNibbles ? 4 : 8, packing.getGroup()};
    const auto *from = reinterpret_cast<const uint8_t *>(data.bytes.data());
    for (int64_t n = 0; n < columns; ++n) {
      char *row = packed.data() + n * rows.rowBytes();
      for (int64_t i = 0; i < depth; ++i) {
        int64_t chunk = i / rows.chunkElements(), element = i % rows.chunkElements(), k = rows.depthOf(chunk, element);
        uint8_t weight = from[matmul.getTransB() ? n * depth + k : k * columns + n];
        // Even runs of four are the lower halves of a word's bytes, odd runs the upper halves.
        int64_t word = element / 8, half = element / 4 % 2;
        char *to = row + chunk * GemvRows::kChunkBytes + (isNibbles ? word * 4 + element % 4 : element);
        *to = isNibbles ? char(uint8_t(*to) | (weight & 15) << (4 * half)) : char(weight);
      }
      for (int64_t g = 0; g < rows.groups(); ++g) {
        memcpy(row + rows.weightBytes() + g * 4, scales->bytes.data() + (g * columns + n) * 4, 4);
      }
    }
  }
};

class PackWeights : public impl::PackWeightsPassBase<PackWeights> {
public:
  using PackWeightsPassBase::PackWeightsPassBase;

  void runOnOperation() override {
    SmallVector<Job> jobs;
    getOperation().walk([&](Operation *op) {
      if (std::optional<Job> job = plan(op)) {
        jobs.push_back(std::move(*job));
      }
    });
    // Pack a few at a time, because each needs its own copy of the weights until the store holds the packed ones.
    size_t atOnce = std::max<size_t>(2, getContext().getNumThreads());
    for (size_t begin = 0; begin < jobs.size(); begin += atOnce) {
      MutableArrayRef<Job> batch = MutableArrayRef(jobs).slice(begin, std::min(atOnce, jobs.size() - begin));
      parallelForEach(&getContext(), batch, [](Job &job) { job.run(); });
      llvm::for_each(batch, [&](Job &job) { install(job); });
      top::dropUnheldWeights(getOperation());
    }
  }

private:
  /// Returns the order in which the kernel of |op| reads its weights, or nullopt if they are not packed.
  static std::optional<PackedOrder> orderFor(Operation *op) {
    if (auto conv = dyn_cast<device::ConvOp>(op); conv && !conv.getPacking()) {
      bool blocked = device::isBlocked(conv.getX().getType());
      return tileOf(op)                   ? std::optional(blocked ? PackedOrder::taps : PackedOrder::rows)
             : blocked && isDepthwise(op) ? std::optional(PackedOrder::depthwise)
                                          : std::nullopt;
    }
    auto matmul = dyn_cast<device::MatMulOp>(op);
    if (!matmul || matmul.getPacking() || !tileOf(op)) {
      return std::nullopt;
    }
    auto batch = typeOf(matmul.getB()).getShape().drop_back(2); // only one matrix for the whole batch is packed
    bool isOne = llvm::all_of(batch, [](int64_t dim) { return dim == 1; });
    return isOne ? std::optional(PackedOrder::rows) : std::nullopt;
  }

  /// Plans the packing of an op with cuda.gemv: in 4 bits if all weights fit.
  std::optional<Job> planRows(device::MatMulOp op) {
    std::optional<top::TensorData> data = top::getConstantData(op.getB());
    std::optional<top::TensorData> scales = op.getScales() ? top::getConstantData(op.getScales()) : std::nullopt;
    if (!data || op.getPacking() || bool(scales) != bool(op.getScales())) {
      return std::nullopt;
    }
    int64_t depth = typeOf(op.getA()).getShape().back(), group = scales ? int64_t(op.getWeightGroup()) : 0;
    bool isNarrow = GemvRows{depth, 4, group}.lanes() > 0 && llvm::all_of(data->bytes, [](char byte) {
                      auto weight = static_cast<signed char>(byte);
                      return weight >= -8 && weight < 8;
                    });
    auto packing = PackingAttr::get(&getContext(), isNarrow ? PackedOrder::nibbles : PackedOrder::bytes,
                                    data->type.getShape(), group);
    return Job{op, *data, packing, packedType(packing, op, data->type.getElementType()), scales, {}};
  }

  std::optional<Job> plan(Operation *op) {
    if (gemvOf(op)) {
      return planRows(cast<device::MatMulOp>(op));
    }
    std::optional<PackedOrder> order = orderFor(op);
    std::optional<top::TensorData> data = order ? top::getConstantData(op->getOperand(1)) : std::nullopt;
    if (!data) {
      return std::nullopt;
    }
    auto packing = PackingAttr::get(&getContext(), *order, data->type.getShape(), 0);
    return Job{op, *data, packing, packedType(packing, op, data->type.getElementType()), std::nullopt, {}};
  }

  /// Removes the scales of |op|, which the packed rows contain now.
  static void dropScales(device::MatMulOp op) {
    Value scales = op.getScales();
    op.getScalesMutable().clear();
    op.setWeightGroup(0);
    top::releaseWeight(scales);
    if (scales.use_empty()) {
      scales.getDefiningOp()->erase();
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
    job.op->setAttr("packing", job.packing);
    if (job.scales) {
      dropScales(cast<device::MatMulOp>(job.op));
    }
    job.data = {};
    top::releaseWeight(old);
    if (old.use_empty()) {
      old.getDefiningOp()->erase();
    }
    ++numPacked;
  }
};

} // namespace
} // namespace tessera::cuda

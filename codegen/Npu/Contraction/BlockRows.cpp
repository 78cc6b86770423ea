//===- BlockRows.cpp - Blocks of rows as output channels ------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// A lane computes one output channel, so a convolution to six channels leaves most lanes idle. If a lane computes one
// row of each block of B rows instead, B times as many lanes are busy: channel o * B + j holds the rows rb * B + j of
// channel o. This is again a convolution, whose input channels are blocks of rows or plain channels. Its kernel covers
// all rows that a block of the result sees, with zero weights for rows that one of its rows does not see. Sums of
// integers are bit-identical.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Contraction/Contraction.h"
#include "codegen/Npu/ElementTypes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/IR/Pieces.h"
#include "device_dialect/Transforms/Addresses.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TensorTypes.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>

namespace tessera::npu {
#define GEN_PASS_DEF_BLOCKROWSPASS
#include "codegen/Npu/Passes.h.inc"

using namespace mlir;
namespace hw = bmodel::npu;

namespace {

/// Block sizes to try.
constexpr int64_t kBlocks[] = {1, 2, 4, 8, 16, 32, 64};
/// Least speed-up of a chain: the estimates ignore that copies and matrix operations overlap.
constexpr double kLeastGain = 1.25;
/// Largest value of a field of a command.
constexpr int64_t kLargestField = 255;

/// Returns true if |extra| is a constant with one number per channel of y, or any value with a single number.
bool isPerChannel(Value extra, int64_t channels) {
  ArrayRef<int64_t> dims = typeOf(extra).getShape();
  bool isColumn = dims.size() >= 3 && dims[dims.size() - 3] == channels && typeOf(extra).getNumElements() == channels;
  return typeOf(extra).getNumElements() == 1 || (isColumn && device::getConstantRoot(extra));
}

/// Returns true for integer convolutions by constant 8-bit weights with an epilogue that is the same for all rows.
bool canBlock(device::ConvOp conv) {
  RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY()), w = typeOf(conv.getW());
  bool isPlain = x.getRank() == 4 && x.hasStaticShape() && y.hasStaticShape() && !device::isBlocked(x) &&
                 !device::isBlocked(y) && conv.getGroups() == 1 && !conv.getScales() && !conv.getPacking() &&
                 conv.getDilations()[0] == 1 && std::min(conv.getPads()[0], conv.getPads()[2]) >= 0;
  bool isConstant =
      device::getConstantRoot(conv.getW()) && (!conv.getBias() || device::getConstantRoot(conv.getBias()));
  return isPlain && isConstant && x.getElementType().isInteger() && w.getElementType().isInteger(8) &&
         npu::typeOf(x.getElementType()) && npu::typeOf(y.getElementType()) &&
         llvm::all_of(conv.getExtras(), [&](Value extra) { return isPerChannel(extra, y.getDimSize(1)); });
}

/// Row geometry of a convolution from blocks of |in| rows to blocks of |out| rows.
struct BlockedRows {
  int64_t in, out;
  int64_t kernel, stride, pads[2]; ///< in blocks of the operand
};

/// Returns nothing if blocks of the result do not begin at blocks of the operand, or a command cannot hold the window.
std::optional<BlockedRows> blockedRowsOf(device::ConvOp conv, int64_t in, int64_t out) {
  int64_t height = typeOf(conv.getX()).getDimSize(2), rows = typeOf(conv.getY()).getDimSize(2);
  int64_t kernel = typeOf(conv.getW()).getDimSize(2), stride = conv.getStrides()[0], pad = conv.getPads()[0];
  if (height % in || rows % out || stride * out % in) {
    return std::nullopt;
  }
  int64_t before = llvm::divideCeil(pad, in), last = (stride * (out - 1) - pad + kernel - 1);
  BlockedRows result{in, out, before + llvm::divideFloorSigned(last, in) + 1, stride * out / in, {before, 0}};
  int64_t beyond = (rows / out - 1) * result.stride + result.kernel - height / in - before; // rows behind the operand
  result.pads[1] = std::max<int64_t>(beyond, 0);
  bool fits = std::max(result.kernel, result.stride) <= kLargestField && beyond > -result.stride;
  return fits ? std::optional(result) : std::nullopt;
}

/// A chain of convolutions, each of which is the only reader of the one before.
struct Chain {
  SmallVector<device::ConvOp> convs;
  bool endsInResult = false; ///< the last result is a result of the function: a copy restores the order of its rows
};

/// Returns the cycles of a convolution in this form. |isOutside|: the operand is in off-chip memory.
double cyclesOf(device::ConvOp conv, const BlockedRows &form, bool isOutside, const hw::Chip &chip) {
  RankedTensorType x = typeOf(conv.getX()), y = typeOf(conv.getY()), w = typeOf(conv.getW());
  Contraction contraction;
  hw::Type type = *npu::typeOf(x.getElementType());
  auto size = int64_t(hw::sizeOf(type));
  int64_t rows = x.getDimSize(2) / form.in, columns = x.getDimSize(3), channels = x.getDimSize(1) * form.in;
  contraction.x.shape = {{uint32_t(x.getDimSize(0)), uint32_t(channels), uint32_t(rows), uint32_t(columns)}};
  contraction.x.tensor = {.strides = {int32_t(channels * rows * columns * size), int32_t(rows * columns * size),
                                      int32_t(columns * size), int32_t(size)},
                          .region = isOutside ? hw::Region::workspace : hw::Region::local,
                          .type = type};
  contraction.y.shape = {{uint32_t(y.getDimSize(0)), uint32_t(y.getDimSize(1) * form.out),
                          uint32_t(y.getDimSize(2) / form.out), uint32_t(y.getDimSize(3))}};
  contraction.window.kernel[0] = uint8_t(form.kernel), contraction.window.kernel[1] = uint8_t(w.getDimSize(3));
  contraction.window.step[0] = uint8_t(form.stride), contraction.window.step[1] = uint8_t(conv.getStrides()[1]);
  contraction.window.dilation[1] = uint8_t(conv.getDilations()[1]);
  contraction.window.padding[0] = int16_t(form.pads[0]), contraction.window.padding[1] = int16_t(conv.getPads()[1]);
  // All weights are loaded from off-chip memory, including zeros.
  double weights = double(y.getDimSize(1) * form.out * channels * form.kernel * w.getDimSize(3));
  return planIm2col(contraction, chip).cycles + chip.matrixFill + chip.issueCycles + weights / chip.ddrBytesPerCycle();
}

/// Finds the fastest block sizes for the results of a chain, by dynamic programming over its convolutions.
class Blocks {
public:
  Blocks(const Chain &chain, const hw::Chip &chip) : chain(chain), chip(chip) {}

  /// Returns the form of each convolution, or nothing if plain rows are about as fast.
  std::optional<SmallVector<BlockedRows>> choose() {
    SmallVector<Best> best = {{0, {}}}; // by the operand's block size, in the order of kBlocks
    best.resize(std::size(kBlocks), {kNever, {}});
    double plain = 0;
    for (auto [index, conv] : llvm::enumerate(chain.convs)) {
      plain += cyclesOf(conv, *blockedRowsOf(conv, 1, 1), index == 0, chip);
      best = behind(best, conv, index == 0);
    }
    for (size_t k = 1; k < best.size(); ++k) {
      best[k].cycles = chain.endsInResult ? best[k].cycles + storeCycles() : kNever;
    }
    auto found = std::min_element(best.begin(), best.end(), [](auto &a, auto &b) { return a.cycles < b.cycles; });
    return found->cycles * kLeastGain < plain ? std::optional(found->forms) : std::nullopt;
  }

private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Best {
    double cycles;
    SmallVector<BlockedRows> forms;
  };

  /// Extends the best chains ending at each block size by one convolution.
  SmallVector<Best> behind(ArrayRef<Best> before, device::ConvOp conv, bool isFirst) const {
    int64_t channels = typeOf(conv.getY()).getDimSize(1);
    SmallVector<Best> result(std::size(kBlocks), {kNever, {}});
    for (auto [to, out] : llvm::enumerate(kBlocks)) {
      for (auto [from, in] : llvm::enumerate(kBlocks)) {
        bool isUseful = before[from].cycles < result[to].cycles && (out == 1 || channels * out <= int64_t(chip.lanes));
        std::optional<BlockedRows> form = isUseful ? blockedRowsOf(conv, in, out) : std::nullopt;
        double cycles = form ? before[from].cycles + cyclesOf(conv, *form, isFirst, chip) : kNever;
        if (cycles < result[to].cycles) {
          result[to] = {cycles, before[from].forms};
          result[to].forms.push_back(*form);
        }
      }
    }
    return result;
  }

  /// Returns the extra cycles of storing a result in short runs instead of whole planes.
  double storeCycles() const {
    RankedTensorType y = typeOf(chain.convs.back()->getResult(0));
    int64_t size = y.getElementTypeBitWidth() / 8, row = y.getDimSize(3) * size, rows = y.getNumElements() * size / row;
    return double(rows) * double(llvm::alignTo(row, chip.burstBytes) - row) / chip.ddrBytesPerCycle();
  }

  const Chain &chain;
  const hw::Chip &chip;
};

/// Rewrites a convolution to blocks of rows.
class Rewriter {
public:
  Rewriter(device::ConvOp conv, const BlockedRows &form, OpBuilder &builder)
      : conv(conv), form(form), builder(builder) {}

  /// Returns the new convolution. |x|: the operand in blocks.
  device::ConvOp run(Value x) {
    builder.setInsertionPoint(conv);
    Value w = weights(), bias = conv.getBias() ? repeat(conv.getBias(), 0) : Value();
    SmallVector<Value> extras;
    for (Value extra : conv.getExtras()) {
      bool isOne = typeOf(extra).getNumElements() == 1;
      extras.push_back(isOne ? extra : repeat(extra, size_t(typeOf(extra).getRank()) - 3));
    }
    auto result = cast<device::ConvOp>(builder.clone(*conv));
    result.getXMutable().assign(x), result.getWMutable().assign(w), result.getExtrasMutable().assign(extras);
    if (bias) {
      result.getBiasMutable().assign(bias);
    }
    result.setStrides({form.stride, conv.getStrides()[1]});
    result.setPads({form.pads[0], conv.getPads()[1], form.pads[1], conv.getPads()[3]});
    result.setSumBound(sumBound());
    RankedTensorType y = typeOf(conv.getY());
    int64_t dims[] = {y.getDimSize(0), y.getDimSize(1) * form.out, y.getDimSize(2) / form.out, y.getDimSize(3)};
    result.getY().setType(RankedTensorType::get(dims, y.getElementType()));
    if (form.out > 1) {
      result->removeAttr("top.outputs"); // the order of outputs changes
    }
    return result;
  }

private:
  /// Builds the weights. Row t of the kernel that row j of a block sees is row i of block d behind the block.
  Value weights() {
    top::TensorData data = *top::getConstantData(device::getConstantRoot(conv.getW()));
    RankedTensorType type = typeOf(conv.getW());
    int64_t outputs = type.getDimSize(0), channels = type.getDimSize(1), rows = type.getDimSize(2);
    int64_t columns = type.getDimSize(3);
    const int64_t dims[] = {outputs * form.out, channels * form.in, form.kernel, columns};
    std::vector<char> bytes(size_t(dims[0] * dims[1] * dims[2] * dims[3]), 0);
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t j = 0; j < form.out; ++j) {
          for (int64_t t = 0; t < rows; ++t) {
            int64_t row = form.pads[0] * form.in + conv.getStrides()[0] * j - conv.getPads()[0] + t; // in the kernel
            int64_t to = ((o * form.out + j) * dims[1] + c * form.in + row % form.in) * dims[2] + row / form.in;
            std::memcpy(&bytes[size_t(to * columns)], &data.bytes[size_t(((o * channels + c) * rows + t) * columns)],
                        size_t(columns));
          }
        }
      }
    }
    auto blocked = RankedTensorType::get(dims, type.getElementType());
    return top::createConstant(builder, conv.getLoc(), blocked, std::move(bytes), "blocks");
  }

  /// Returns a constant with each entry of |dim| repeated for every row of a block.
  Value repeat(Value value, size_t dim) {
    top::TensorData data = *top::getConstantData(device::getConstantRoot(value));
    RankedTensorType type = typeOf(value);
    size_t element = type.getElementTypeBitWidth() / 8;
    std::vector<char> bytes;
    for (size_t at = 0; at < data.bytes.size(); at += element) {
      for (int64_t j = 0; j < form.out; ++j) {
        bytes.insert(bytes.end(), data.bytes.begin() + at, data.bytes.begin() + at + element);
      }
    }
    SmallVector<int64_t> dims(type.getShape());
    dims[dim] *= form.out;
    return top::createConstant(builder, conv.getLoc(), RankedTensorType::get(dims, type.getElementType()),
                               std::move(bytes), "blocks");
  }

  /// Returns the bound of the sums of the old kernel, which also holds for the new one, because the added weights are
  /// zero.
  int64_t sumBound() {
    if (std::optional<int64_t> bound = conv.getSumBound()) {
      return *bound;
    }
    RankedTensorType w = typeOf(conv.getW());
    unsigned bits = typeOf(conv.getX()).getElementTypeBitWidth();
    int64_t largest =
        typeOf(conv.getX()).getElementType().isUnsignedInteger() ? (int64_t(1) << bits) - 1 : int64_t(1) << (bits - 1);
    return w.getNumElements() / w.getDimSize(0) * largest * 128; // same formula as the verifier's
  }

  device::ConvOp conv;
  const BlockedRows &form;
  OpBuilder &builder;
};

/// Restores the order of rows.
Value plainRows(Value blocked, device::ConvOp conv, int64_t block, OpBuilder &builder) {
  RankedTensorType y = typeOf(conv.getY());
  int64_t n = y.getDimSize(0), c = y.getDimSize(1), rows = y.getDimSize(2) / block, columns = y.getDimSize(3);
  auto as = [&](ArrayRef<int64_t> dims) { return RankedTensorType::get(dims, y.getElementType()); };
  Value apart = device::ReshapeOp::create(builder, conv.getLoc(), as({n, c, block, rows, columns}), blocked);
  auto piece = device::PieceAttr::get(builder.getContext(), 0, {n, c, rows, block, columns}, {0, 0, 0, 0, 0},
                                      {1, 1, 1, 1, 1}, {0, 1, 3, 2, 4}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1});
  auto copy = device::CopyOp::create(builder, conv.getLoc(), as({n, c, rows, block, columns}), ValueRange{apart},
                                     builder.getArrayAttr({piece}), FloatAttr());
  return device::ReshapeOp::create(builder, conv.getLoc(), y, copy.getY());
}

struct BlockRows : ChipPass<impl::BlockRowsPassBase<BlockRows>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    for (const Chain &chain : findChains()) {
      if (std::optional<SmallVector<BlockedRows>> forms = Blocks(chain, chip()).choose()) {
        rewrite(chain, *forms);
      }
    }
  }

private:
  SmallVector<Chain> findChains() {
    SmallVector<Chain> chains;
    DenseSet<Operation *> known;
    for (auto conv : getOperation().getBody().getOps<device::ConvOp>()) {
      Chain chain;
      while (conv && canBlock(conv) && known.insert(conv).second) {
        chain.convs.push_back(conv);
        Operation *reader = conv.getY().hasOneUse() ? *conv.getY().user_begin() : nullptr;
        chain.endsInResult = isa_and_nonnull<func::ReturnOp>(reader);
        auto next = dyn_cast_or_null<device::ConvOp>(reader);
        conv = next && next.getX() == conv.getY() ? next : device::ConvOp();
      }
      if (!chain.convs.empty()) {
        chains.push_back(std::move(chain));
      }
    }
    return chains;
  }

  void rewrite(const Chain &chain, ArrayRef<BlockedRows> forms) {
    OpBuilder builder(&getContext());
    device::ConvOp first = chain.convs.front(), last = chain.convs.back();
    Value x = first.getX();
    for (auto [conv, form] : llvm::zip_equal(chain.convs, forms)) {
      x = Rewriter(conv, form, builder).run(x).getY();
      numBlocked += form.out > 1;
    }
    if (forms.back().out > 1) {
      x = plainRows(x, last, forms.back().out, builder);
      top::copyNames(last, x.getDefiningOp());
    }
    last.getY().replaceAllUsesWith(x);
    for (device::ConvOp conv : llvm::reverse(chain.convs)) {
      conv.erase();
    }
  }
};

} // namespace

std::unique_ptr<Pass> createBlockRowsPass(const Chip &chip) { return std::make_unique<BlockRows>(chip); }

} // namespace tessera::npu

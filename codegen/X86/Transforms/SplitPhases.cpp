//===- SplitPhases.cpp - Splits transposed convolutions by phase ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/IR/PackedWeights.h"
#include "codegen/X86/Transforms/MoveBuilder.h"
#include "codegen/X86/Transforms/Passes.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/WeightLifetime.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_SPLITPHASESPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;
using tessera::device::Piece;
using tessera::device::PieceAttr;
using tessera::device::Range;

namespace tessera::x86 {
namespace {

using Dims = SmallVector<int64_t>;

int64_t lengthOf(Range range) { return range.last - range.first + 1; }

/// A range of a convolution's channels, the taps that are not zero for all of them, and the positions that are read.
/// Ranges have one entry per spatial dim.
struct Part {
  Range channels;
  SmallVector<Range> taps, positions;
  Dims before, behind; ///< padding

  int64_t cost() const {
    int64_t steps = llvm::divideCeil(lengthOf(channels), kBlock);
    for (auto [tap, position] : llvm::zip_equal(taps, positions)) {
      steps *= lengthOf(tap) * lengthOf(position);
    }
    return steps;
  }
};

class PhasedConv {
public:
  explicit PhasedConv(device::ConvOp conv)
      : conv(conv), build(conv), x(typeOf(conv.getX()).getShape()), w(typeOf(conv.getW()).getShape()),
        y(typeOf(conv.getY()).getShape()), spatial(x.size() - 2) {}

  /// Returns true if the convolution's only user is a copy, and the parts that it reads are less work than the whole.
  bool canReplace() {
    auto isOne = [](int64_t value) { return value == 1; };
    bool plain = conv.getGroups() == 1 && !conv.getPacking() && !conv.getScales() && top::isConstant(conv.getW()) &&
                 llvm::all_of(conv.getStrides(), isOne) && llvm::all_of(conv.getDilations(), isOne) &&
                 (!conv.getBias() || top::isConstant(conv.getBias())) &&
                 llvm::all_of(conv.getExtras(), [&](Value extra) { return isOneValue(extra) || isByChannel(extra); });
    if (!plain || !conv.getY().hasOneUse()) {
      return false;
    }
    copy = dyn_cast<device::CopyOp>(*conv.getY().user_begin());
    if (!copy || !findChannels()) {
      return false;
    }
    Part whole{{0, y[1] - 1}, {}, {}, {}, {}};
    for (size_t d = 0; d < spatial; ++d) {
      whole.taps.push_back({0, w[d + 2] - 1}), whole.positions.push_back({0, y[d + 2] - 1});
    }
    int64_t cost = 0;
    for (Part &part : parts) {
      findTaps(part);
      for (size_t d = 0; d < spatial; ++d) {
        placeWindow(part, d);
      }
      cost += part.cost();
    }
    constexpr double kMostOfWhole = 0.8; // the gain has to outweigh several launches and shorter sums
    return double(cost) <= kMostOfWhole * double(whole.cost());
  }

  void replace() {
    SmallVector<Value> sources(copy.getSources());
    size_t own = llvm::find(sources, conv.getY()) - sources.begin();
    SmallVector<int64_t> sourceOf; // index of the source for each part
    for (size_t i = 0; i < parts.size(); ++i) {
      Value result = buildPart(parts[i]);
      sourceOf.push_back(i == 0 ? int64_t(own) : int64_t(sources.size()));
      i == 0 ? void(sources[own] = result) : sources.push_back(result);
    }
    SmallVector<Attribute> pieces;
    for (auto attr : copy.getPieces().getAsRange<PieceAttr>()) {
      Piece piece(attr);
      if (attr.getSource() == int64_t(own)) {
        size_t index = partOf(device::sourceRanges(attr, y.size())[1]) - parts.begin();
        const Part &part = parts[index];
        piece.source = sourceOf[index];
        piece.srcOffsets[1] -= part.channels.first;
        for (size_t d = 0; d < spatial; ++d) {
          piece.srcOffsets[d + 2] -= part.positions[d].first;
        }
      }
      pieces.push_back(piece.get(copy.getContext()));
    }
    copy.getSourcesMutable().assign(sources);
    copy.setPiecesAttr(build.builder.getArrayAttr(pieces));
    eraseConv();
  }

private:
  static bool isOneValue(Value value) { return typeOf(value).getNumElements() == 1; }
  /// Returns true if |extra| is a constant with one value per channel.
  bool isByChannel(Value extra) {
    ArrayRef<int64_t> dims = typeOf(extra).getShape();
    bool channels = dims.size() > spatial && dims[dims.size() - 1 - spatial] == y[1];
    return channels && typeOf(extra).getNumElements() == y[1] && top::isConstant(extra);
  }

  Part *partOf(Range channels) {
    return llvm::find_if(parts, [&](const Part &part) { return part.channels.first == channels.first; });
  }

  /// Adds a part for each range of channels that a piece reads. Returns false if there is a single one or they overlap.
  bool findChannels() {
    for (auto piece : copy.getPieces().getAsRange<PieceAttr>()) {
      if (copy.getSources()[piece.getSource()] != conv.getY()) {
        continue;
      }
      SmallVector<Range> read = device::sourceRanges(piece, y.size());
      Part *part = partOf(read[1]);
      if (part == parts.end()) {
        parts.push_back({read[1], {}, SmallVector<Range>(ArrayRef(read).drop_front(2)), {}, {}});
        continue;
      }
      if (part->channels.last != read[1].last) {
        return false;
      }
      for (size_t d = 0; d < spatial; ++d) {
        Range &range = part->positions[d], more = read[d + 2];
        range = {std::min(range.first, more.first), std::max(range.last, more.last)};
      }
    }
    llvm::sort(parts, [](const Part &a, const Part &b) { return a.channels.first < b.channels.first; });
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i].channels.first <= parts[i - 1].channels.last) {
        return false;
      }
    }
    return parts.size() > 1;
  }

  /// Sets the taps of |part| to the smallest box around those that are not zero; to a single tap if all are zero.
  void findTaps(Part &part) {
    top::TensorData data = *top::getConstantData(conv.getW());
    int64_t bytes = top::elementBytes(data.type.getElementType()), count = 1;
    for (int64_t dim : ArrayRef(w).drop_front(2)) {
      count *= dim;
    }
    for (size_t d = 0; d < spatial; ++d) {
      part.taps.push_back({w[d + 2] - 1, w[d + 2] - 1});
    }
    bool any = false;
    for (int64_t tap = 0; tap < count; ++tap) {
      if (isZero(data.bytes, bytes, part.channels, tap, count)) {
        continue;
      }
      int64_t rest = tap;
      for (size_t d = spatial; d-- > 0; rest /= w[d + 2]) {
        int64_t at = rest % w[d + 2];
        part.taps[d] = any ? Range{std::min(part.taps[d].first, at), std::max(part.taps[d].last, at)} : Range{at, at};
      }
      any = true;
    }
  }

  /// Returns true if a tap's weights of |channels| are all zero, of either sign.
  bool isZero(ArrayRef<char> weights, int64_t bytes, Range channels, int64_t tap, int64_t taps) {
    for (int64_t row = channels.first * w[1]; row < (channels.last + 1) * w[1]; ++row) {
      ArrayRef<char> element = weights.slice((row * taps + tap) * bytes, bytes);
      bool zero = llvm::all_of(element.drop_back(), [](char byte) { return byte == 0; });
      if (!zero || (bytes > 1 ? element.back() & 0x7f : element.back()) != 0) {
        return false;
      }
    }
    return true;
  }

  /// Sets the padding of dim |d|: position p reads the input from p + first tap - pad on. Where a padding would be
  /// negative, adds taps or positions instead.
  void placeWindow(Part &part, size_t d) {
    int64_t pad = conv.getPads()[d];
    Range &taps = part.taps[d], &positions = part.positions[d];
    positions.first = std::min(positions.first, pad);
    taps.first = std::min(taps.first, pad - positions.first);
    int64_t before = pad - taps.first - positions.first;
    int64_t behind = lengthOf(positions) - 1 + lengthOf(taps) - x[d + 2] - before;
    if (behind < 0) {
      positions.last -= behind, behind = 0;
    }
    part.before.push_back(before), part.behind.push_back(behind);
  }

  /// Returns the rows of |part| of |constant|, which has |rows| rows, with dims |dims|.
  Value sliceRows(Value constant, const Part &part, ArrayRef<int64_t> dims, int64_t rows) {
    top::TensorData data = *top::getConstantData(constant);
    int64_t bytes = int64_t(data.bytes.size()) / rows;
    return top::createConstant(build.builder, constant.getLoc(),
                               RankedTensorType::get(dims, data.type.getElementType()),
                               data.bytes.slice(part.channels.first * bytes, lengthOf(part.channels) * bytes), "phase");
  }

  Value weightsOf(const Part &part) {
    top::TensorData data = *top::getConstantData(conv.getW());
    Type element = data.type.getElementType();
    Dims dims{lengthOf(part.channels), w[1]};
    for (const Range &taps : part.taps) {
      dims.push_back(lengthOf(taps));
    }
    Piece piece = Piece::identity(0, dims);
    piece.srcOffsets[0] = part.channels.first;
    for (size_t d = 0; d < spatial; ++d) {
      piece.srcOffsets[d + 2] = part.taps[d].first;
    }
    auto type = RankedTensorType::get(dims, element);
    std::vector<char> bytes(type.getNumElements() * top::elementBytes(element));
    device::movePiece(piece.get(conv.getContext()), data.bytes.data(), w, bytes.data(), dims,
                      top::elementBytes(element));
    return top::createConstant(build.builder, conv.getW().getLoc(), type, std::move(bytes), "phase");
  }

  Value buildPart(const Part &part) {
    OpBuilder &b = build.builder;
    int64_t channels = lengthOf(part.channels);
    SmallVector<Value> extras;
    for (Value extra : conv.getExtras()) {
      Dims dims(typeOf(extra).getShape());
      if (!isOneValue(extra)) {
        dims[dims.size() - 1 - spatial] = channels;
      }
      extras.push_back(isOneValue(extra) ? extra : sliceRows(extra, part, dims, y[1]));
    }
    Value bias = conv.getBias() ? sliceRows(conv.getBias(), part, {channels}, y[1]) : Value();
    Dims dims{y[0], channels}, ones(spatial, 1), pads(part.before);
    for (const Range &positions : part.positions) {
      dims.push_back(lengthOf(positions));
    }
    llvm::append_range(pads, part.behind);
    bool padded = llvm::any_of(pads, [](int64_t pad) { return pad != 0; });
    auto own = device::ConvOp::create(
        b, conv.getLoc(), RankedTensorType::get(dims, typeOf(conv.getY()).getElementType()), conv.getX(),
        weightsOf(part), bias, extras, Value(), b.getDenseI64ArrayAttr(ones), b.getDenseI64ArrayAttr(pads),
        b.getDenseI64ArrayAttr(ones), 1, device::PackingInterface(), padded ? int64_t(conv.getPadValue()) : 0,
        conv.getSumBoundAttr(), 0);
    IRMapping mapping;
    conv.getEpilogue().cloneInto(&own.getEpilogue(), mapping);
    return own.getY();
  }

  void eraseConv() {
    SmallVector<Value> constants{conv.getW()};
    if (conv.getBias()) {
      constants.push_back(conv.getBias());
    }
    llvm::copy_if(conv.getExtras(), std::back_inserter(constants), [](Value extra) { return top::isConstant(extra); });
    conv.erase();
    for (Value constant : constants) {
      top::releaseWeight(constant);
    }
    llvm::SmallPtrSet<Operation *, 4> unread;
    for (Value constant : constants) {
      if (constant.use_empty()) {
        unread.insert(constant.getDefiningOp());
      }
    }
    llvm::for_each(unread, [](Operation *op) { op->erase(); });
  }

  device::ConvOp conv;
  device::CopyOp copy;
  MoveBuilder build;
  Dims x, w, y;
  size_t spatial;
  SmallVector<Part, 0> parts; ///< sorted by channels
};

class SplitPhases : public impl::SplitPhasesPassBase<SplitPhases> {
public:
  using SplitPhasesPassBase::SplitPhasesPassBase;

  void runOnOperation() override {
    SmallVector<device::ConvOp> convs;
    getOperation().walk([&](device::ConvOp conv) { convs.push_back(conv); });
    for (device::ConvOp conv : convs) {
      bool isStatic = llvm::all_of(conv->getOperands(), [](Value value) { return typeOf(value).hasStaticShape(); });
      if (!isStatic || typeOf(conv.getY()).getNumElements() == 0 || typeOf(conv.getX()).getNumElements() == 0) {
        continue;
      }
      PhasedConv phased(conv);
      if (phased.canReplace()) {
        phased.replace();
        ++numSplit;
      }
    }
  }
};

} // namespace
} // namespace tessera::x86

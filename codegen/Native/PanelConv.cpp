//===- PanelConv.cpp - Convolutions with panels of positions --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/Kernels/Window.h"
#include "codegen/Native/PanelTile.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::native {

using namespace kernels;

namespace {

/// Returns how many neighbours of a row of |columns| a panel holds together: a power of two for which the fewest lanes
/// are beyond the row's end.
int64_t runLength(int64_t columns) {
  int64_t best = PanelTile::kColumns;
  for (int64_t length : {8, 4}) {
    best = llvm::alignTo(columns, length) < llvm::alignTo(columns, best) ? length : best;
  }
  return best;
}

/// Emits the output in panels of kColumns positions, i.e. a few runs of neighbours in rows of the image. A launch tile
/// copies what the positions read, with padding, and multiplies it by the weights of all channels.
class PanelConv {
public:
  PanelConv(KernelBuilder &kb, device::ConvOp op)
      : kb(kb), op(op), x(kb.operandType(0)), w(kb.operandType(1)), y(kb.resultType()),
        kernel(Shape(w).dropFront(2).values()), taps(ShapedType::getNumElements(kernel)), inputs(Shape(w)[1].value()),
        channels(Shape(y)[1].value() / op.getGroups()), sum(registerType(op.getAccumulatorType())),
        epilogue(kb, cast<device::EpilogueInterface>(*op)),
        tile(kb, w.getElementType(), x.getElementType(), sum, inputs * taps),
        windows(windowDims(x, y, kernel, op.getStrides(), op.getPads(), op.getDilations())) {
    length = runLength(windows.back().output.value());
    for (const WindowDim &window : windows) {
      runs.push_back(window.output.value());
    }
    runs.back() = llvm::divideCeil(runs.back(), length);
  }

  void emit() {
    kb.setScratchBytes(tile.panelBytes());
    const int64_t panels = llvm::divideCeil(ShapedType::getNumElements(runs), runsOfPanel());
    SmallVector<int64_t> space = {Shape(y)[0].value(), int64_t(op.getGroups()), panels};
    forItems(kb, ShapedType::getNumElements(space), PanelTile::kColumns * inputs * taps * channels, 262144,
             [&](Value item) { emitPanel(delinearize(kb, item, space)); });
  }

private:
  /// Neighbours along the last dim, from |at| on; |at| is an output position without image and channel.
  struct Run {
    Value number; ///< beyond the last one: repeats it, and is not stored
    SmallVector<Value> at;
  };

  int64_t runsOfPanel() const { return PanelTile::kColumns / length; }

  void emitPanel(ArrayRef<Value> item) {
    Value image = item[0], firstChannel = kb.mul(item[1], channels);
    SmallVector<Run> own;
    for (int64_t i = 0; i < runsOfPanel(); ++i) {
      Value number = kb.add(kb.mul(item[2], runsOfPanel()), i);
      Value existing = kb.min(number, kb.constant(ShapedType::getNumElements(runs) - 1));
      own.push_back({number, delinearize(kb, existing, runs)});
      own.back().at.back() = kb.mul(own.back().at.back(), length);
    }
    for (auto [i, run] : llvm::enumerate(own)) {
      pack(image, kb.mul(item[1], inputs), run.at, i * length);
    }
    kb.forLoop(kb.constant(0), kb.constant(channels), std::min(channels, PanelTile::kRows),
               [&](Value channel) { emitChannels(image, firstChannel, channel, own); });
  }

  /// Copies what the run at output position |at| reads to the columns of the panel from |column| on.
  void pack(Value image, Value firstInput, ArrayRef<Value> at, int64_t column) {
    kb.forLoop(kb.constant(0), kb.constant(taps), 1, [&](Value tap) {
      SmallVector<Value> taken = delinearize(kb, tap, kernel), from = {image, firstInput};
      Value isRowInside;
      for (size_t d = 0; d < windows.size(); ++d) {
        from.push_back(windows[d].inputAt(kb, at[d], taken[d]));
        if (d + 1 < windows.size()) {
          isRowInside = both(isRowInside, isInside(from.back(), d));
        }
      }
      Value first = from.back();
      from.back() = kb.constant(0);
      Value offset = kb.add(Strides(x).offset(kb, from), first);
      Value last = kb.add(first, (length - 1) * windows.back().stride);
      Value isWhole = both(isRowInside, both(isInside(first, windows.size() - 1), isInside(last, windows.size() - 1)));
      kb.ifThen(isWhole, [&] { packVectors(tap, offset, column); });
      Value yes = arith::ConstantOp::create(kb.b, kb.b.getBoolAttr(true));
      kb.ifThen(arith::XOrIOp::create(kb.b, isWhole, yes),
                [&] { packElements(tap, offset, first, isRowInside, column); });
    });
  }

  void packVectors(Value tap, Value offset, int64_t column) {
    forInputs(tap, column, [&](Value input, Value to) {
      Value from = kb.add(offset, kb.mul(input, Strides(x).dims[1]));
      tile.pack(loadLanes(kb, x.getElementType(), kb.operand(0), windows.back().stride,
                          VectorStep{{}, Value(), unsigned(length)}, from),
                to);
    });
  }

  /// Copies a run that is partly outside the input, element by element.
  void packElements(Value tap, Value offset, Value first, Value isRowInside, int64_t column) {
    Type element = registerType(x.getElementType());
    Value padding = kb.zero(element);
    if (op.getPadValue()) {
      padding = arith::ConstantOp::create(kb.b, kb.b.getI8IntegerAttr(static_cast<int8_t>(op.getPadValue())));
    }
    kb.forLoop(kb.constant(0), kb.constant(length), 1, [&](Value lane) {
      Value behind = kb.mul(lane, windows.back().stride);
      Value inside = both(isRowInside, isInside(kb.add(first, behind), windows.size() - 1));
      forInputs(tap, column, [&](Value input, Value to) {
        Value from = kb.add(kb.add(offset, behind), kb.mul(input, Strides(x).dims[1]));
        auto load = [&] { return kb.loadElements(x.getElementType(), 0, kb.operand(0), from); };
        tile.pack(kb.ifElse(inside, load, padding), kb.add(to, lane));
      });
    });
  }

  /// Calls |body| for each input channel with its place in the panel.
  void forInputs(Value tap, int64_t column, function_ref<void(Value input, Value to)> body) {
    kb.forLoop(kb.constant(0), kb.constant(inputs), 1, [&](Value input) {
      Value term = kb.add(kb.mul(input, taps), tap);
      body(input, kb.add(kb.mul(term, PanelTile::kColumns), column));
    });
  }

  Value isInside(Value position, size_t dim) { // as unsigned numbers, negative positions are large
    return arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, position, kb.index(windows[dim].input));
  }
  Value both(Value x, Value y) { return x ? Value(arith::AndIOp::create(kb.b, x, y)) : y; }

  void emitChannels(Value image, Value firstChannel, Value channel, ArrayRef<Run> own) {
    const int64_t count = std::min(channels, PanelTile::kRows);
    SmallVector<Value> offsets, sums;
    for (int64_t r = 0; r < count; ++r) { // channels beyond the last one repeat it and are not stored
      Value each = kb.add(firstChannel, kb.min(kb.add(channel, r), kb.constant(channels - 1)));
      offsets.push_back(kb.mul(each, inputs * taps));
      sums.push_back(kb.splat(initial(each), PanelTile::kColumns));
    }
    sums = tile.multiply(kb.operand(1), offsets, kb.scratch(), PanelTile::kColumns, std::move(sums));
    for (auto [r, each] : llvm::enumerate(sums)) {
      Value inGroup = kb.add(channel, int64_t(r));
      auto store = [&, values = each] { storeRow(image, kb.add(firstChannel, inGroup), own, values); };
      channels % count ? kb.ifThen(kb.less(inGroup, kb.constant(channels)), store) : store();
    }
  }

  void storeRow(Value image, Value channel, ArrayRef<Run> own, Value values) {
    const int64_t columns = windows.back().output.value(), all = ShapedType::getNumElements(runs);
    for (auto [i, run] : llvm::enumerate(own)) {
      auto store = [&, at = ArrayRef(run.at)] {
        auto picks = llvm::to_vector(llvm::seq<int64_t>(int64_t(i) * length, int64_t(i + 1) * length));
        Value lanes = vector::ShuffleOp::create(kb.b, values, values, picks);
        SmallVector<Value> where = {image, channel};
        where.append(at.begin(), at.end());
        Value mask = columns % length ? kb.maskBelow(length, kb.sub(kb.constant(columns), at.back())) : Value();
        epilogue.store(lanes, where, y.getRank() - 1, mask);
      };
      all % runsOfPanel() ? kb.ifThen(kb.less(run.number, kb.constant(all)), store) : store();
    }
  }

  Value initial(Value channel) {
    if (!op.getBias()) {
      return kb.zero(sum);
    }
    Type type = kb.operandType(2).getElementType();
    return convertElement(kb, kb.loadElements(type, 0, kb.operand(2), channel), type, sum);
  }

  KernelBuilder &kb;
  device::ConvOp op;
  RankedTensorType x, w, y;
  ArrayRef<int64_t> kernel;
  int64_t taps, inputs, channels; ///< of a group
  Type sum;
  EpilogueStore epilogue;
  PanelTile tile;
  SmallVector<WindowDim> windows;
  int64_t length;
  SmallVector<int64_t> runs; ///< output dims, the last one in runs
};

} // namespace

bool emitPanelConv(KernelBuilder &kb, device::ConvOp op) {
  if (!PanelTile::supports(kb, op.getAccumulatorType()) || op.getScales()) {
    return false;
  }
  if (Shape(op.getY())[1].value() / int64_t(op.getGroups()) < PanelTile::kRows) {
    return false; // packing would take longer than multiplying
  }
  PanelConv(kb, op).emit();
  return true;
}

} // namespace tessera::native

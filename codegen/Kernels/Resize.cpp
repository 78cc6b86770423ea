//===- Resize.cpp - Kernels of separable interpolation --------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/LoopNest.h"
#include "codegen/Kernels/MathApprox.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Rows.h"

#include "device_dialect/IR/DeviceMoveOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {
namespace {

/// Emits a resize whose lanes are channels of a block or else columns, with the taps of all axes unrolled per result
/// vector.
class ResizeEmitter {
public:
  static constexpr int64_t kMostScratch = 1 << 20;

  ResizeEmitter(KernelBuilder &kb, device::ResizeOp op)
      : kb(kb), op(op), x(kb.operandType(0)), y(kb.resultType()), element(x.getElementType()),
        type(registerType(element)) {
    byChannel = device::isBlocked(x);
    laneDim = byChannel ? 1 : y.getRank() - 1;
    lanes = byChannel ? Strides(x).block : kb.target.lanes(32);
    for (auto [i, axis] : llvm::enumerate(op.getAxes())) {
      axes[axis] = i;
    }
  }

  void emit() { isSeparable() ? emitPlanes() : emitItems(); }

private:
  // Row-major weighted images: each plane is resized along one axis into scratch, then along the other

  /// The elements of a plane in memory.
  struct Plane {
    Type element;
    Value base, offset; ///< of element (0, 0)
    int64_t width;
  };

  bool hasKnownPlanes() {
    return Shape(x).dropFront(x.getRank() - 2).isKnown() && Shape(y).dropFront(x.getRank() - 2).isKnown();
  }
  int64_t rowsIn() { return Shape(x)[x.getRank() - 2].value(); }
  int64_t rowsOut() { return Shape(y)[x.getRank() - 2].value(); }
  int64_t widthIn() { return Shape(x)[x.getRank() - 1].value(); }
  int64_t widthOut() { return Shape(y)[x.getRank() - 1].value(); }

  /// Columns are gathered, which is what costs: they are resized while there are fewer rows.
  bool stretchesFirst() { return rowsIn() <= rowsOut(); }
  int64_t planeScratch() { return 4 * (stretchesFirst() ? rowsIn() * widthOut() : rowsOut() * widthIn()); }

  bool isSeparable() {
    int64_t rank = x.getRank();
    return !kb.exact && !kb.target.tileIsThread && !byChannel && type.isF32() && !isNearest() && axes.size() == 2 &&
           rank >= 2 && axes.count(rank - 2) && axes.count(rank - 1) && hasKnownPlanes() &&
           planeScratch() <= kMostScratch; // stays in L2
  }

  void emitPlanes() {
    Dim planes = countElements(Shape(y).dropBack(2));
    // With few planes the result's rows are split too. If columns come first, each split resizes all rows again.
    int64_t most = stretchesFirst() ? rowsOut() / std::max<int64_t>(1, 4 * rowsIn()) : rowsOut() / 8;
    int64_t parts = std::clamp<int64_t>(8 / std::max<int64_t>(1, likelyOf(planes)), 1, std::max<int64_t>(1, most));
    parts = rowsOut() * widthOut() < 16384 ? 1 : parts;
    lanes = 2 * kb.target.lanes(32);
    kb.setScratchBytes(planeScratch());
    kb.forTiles(planes * parts, [&](Value tile) {
      Value plane = kb.div(tile, parts), part = kb.rem(tile, parts);
      Value first = kb.div(kb.mul(part, rowsOut()), parts), last = kb.div(kb.mul(kb.add(part, 1), rowsOut()), parts);
      Plane from{element, kb.operand(0), kb.mul(plane, rowsIn() * widthIn()), widthIn()};
      Plane to{y.getElementType(), kb.result(), kb.mul(plane, rowsOut() * widthOut()), widthOut()};
      Plane between{type, kb.scratch(), kb.constant(0), stretchesFirst() ? widthOut() : widthIn()};
      if (stretchesFirst()) {
        stretchRows(from, between, kb.constant(0), kb.constant(rowsIn()));
        mixRows(between, to, first, last);
      } else {
        mixRows(from, between, first, last);
        stretchRows(between, to, first, last);
      }
    });
  }

  /// Resizes rows [|first|, |last|) along columns.
  void stretchRows(Plane from, Plane to, Value first, Value last) {
    unsigned table = 1 + 2 * axes[x.getRank() - 1];
    int64_t count = taps(axes[x.getRank() - 1]);
    overRow(kb, to.width, lanes, [&](Value column, Value active) {
      VectorStep step{{}, active, lanes};
      SmallVector<Value> indices, factors;
      for (int64_t tap = 0; tap < count; ++tap) {
        Value entry = kb.add(kb.mul(column, count), tap);
        Value index = loadLanes(kb, kb.b.getI32Type(), kb.operand(table), count, step, entry);
        indices.push_back(toIndex(index, from.width));
        factors.push_back(loadLanes(kb, kb.b.getF32Type(), kb.operand(table + 1), count, step, entry));
      }
      kb.forLoop(first, last, 1, [&](Value row) {
        Value total, base = kb.add(from.offset, kb.mul(row, from.width));
        for (auto [index, factor] : llvm::zip_equal(indices, factors)) {
          total = plus(total, kb.gatherElements(from.element, lanes, from.base, base, index, active), factor);
        }
        kb.storeElements(to.element, total, to.base, kb.add(to.offset, kb.add(kb.mul(row, to.width), column)), active);
      });
    });
  }

  /// Computes rows [|first|, |last|) of |to|, each from some rows of |from|.
  void mixRows(Plane from, Plane to, Value first, Value last) {
    unsigned table = 1 + 2 * axes[x.getRank() - 2];
    int64_t count = taps(axes[x.getRank() - 2]);
    kb.forLoop(first, last, 1, [&](Value row) {
      SmallVector<Value> rows, factors;
      for (int64_t tap = 0; tap < count; ++tap) {
        Value entry = kb.add(kb.mul(row, count), tap);
        Value index = toIndex(kb.load(kb.b.getI32Type(), kb.operand(table), entry), rowsIn());
        rows.push_back(kb.add(from.offset, kb.mul(index, from.width)));
        factors.push_back(kb.splat(kb.load(kb.b.getF32Type(), kb.operand(table + 1), entry), lanes));
      }
      Value target = kb.add(to.offset, kb.mul(row, to.width));
      overRow(kb, to.width, lanes, [&](Value column, Value active) {
        Value total;
        for (auto [start, factor] : llvm::zip_equal(rows, factors)) {
          Value values = kb.loadElements(from.element, lanes, from.base, kb.add(start, column), active);
          total = plus(total, values, factor);
        }
        kb.storeElements(to.element, total, to.base, kb.add(target, column), active);
      });
    });
  }

  /// Converts entries of an index table (i32, scalar or lanes) to i64 and clamps them to [0, |size|). A table comes
  /// from the file like any tensor and must not lead outside x.
  Value toIndex(Value entries, Dim size) {
    Type wide = kb.b.getI64Type(), narrow = kb.b.getI32Type();
    Value last = size.isKnown()
                     ? Value(arith::ConstantOp::create(kb.b, kb.b.getI32IntegerAttr(int32_t(size.value() - 1))))
                     : arith::TruncIOp::create(kb.b, narrow, kb.index(size - 1));
    Value first = kb.zero(entries.getType());
    if (auto vector = dyn_cast<VectorType>(entries.getType())) {
      wide = VectorType::get(vector.getShape(), wide);
      last = kb.splat(last, vector.getNumElements());
    }
    entries = arith::MaxSIOp::create(kb.b, arith::MinSIOp::create(kb.b, entries, last), first);
    return arith::ExtSIOp::create(kb.b, wide, entries);
  }

  /// Returns total + value * factor; a null total counts as zero.
  Value plus(Value total, Value value, Value factor) {
    return total ? emitFma(kb, value, factor, total) : Value(arith::MulFOp::create(kb.b, value, factor));
  }

  // All other cases, vector by vector

  void emitItems() {
    SmallVector<Dim> sizes = Shape(y).dims();
    Dim extent = sizes[laneDim];
    sizes[laneDim] = ceilDiv(extent, lanes);
    bool isWhole = extent.isKnown() && extent.value() % lanes == 0;
    forItems(kb, multiply(sizes), lanes * allTaps(), 16384, [&](Value item) {
      SmallVector<Value> at = delinearize(kb, item, sizes);
      at[laneDim] = kb.mul(at[laneDim], lanes);
      mask = isWhole ? Value() : kb.maskBelow(lanes, kb.sub(kb.index(extent), at[laneDim]));
      sum = Value();
      overTaps(0, at, kb.constant(0), Value(), Value());
      // Padding lanes of a block are zero in x, and so is any combination of them.
      Value storeMask = byChannel ? Value() : mask;
      storeLanes(kb, y.getElementType(), sum, kb.result(), 1, VectorStep{{}, storeMask, lanes},
                 Strides(y).offset(kb, at));
    });
  }

  int64_t taps(unsigned axis) { return Shape(kb.operandType(1 + 2 * axis))[1].value(); }
  int64_t allTaps() {
    int64_t count = 1;
    for (unsigned a = 0; a < op.getAxes().size(); ++a) {
      count *= taps(a);
    }
    return count;
  }
  bool weighted() { return isa<FloatType>(type) && !isNearest(); }
  bool isNearest() { return allTaps() == 1; }

  /// Emits the taps of the axes from dim |d| on. |offset| covers the dims before |d|; |lanesOffset| holds offsets per
  /// lane if the columns are resized; |weight| is the product so far (scalar or vector), null for 1.
  void overTaps(int64_t d, ArrayRef<Value> at, Value offset, Value lanesOffset, Value weight) {
    if (d == x.getRank()) {
      return accumulate(offset, lanesOffset, weight);
    }
    Dim stride = Strides(x).dims[d];
    auto axis = axes.find(d);
    if (axis == axes.end()) {
      Value index = byChannel && d == 1 ? kb.div(at[d], lanes) : at[d];
      return overTaps(d + 1, at, kb.add(offset, kb.mul(index, stride)), lanesOffset, weight);
    }
    unsigned table = 1 + 2 * axis->second;
    int64_t count = taps(axis->second);
    for (int64_t tap = 0; tap < count; ++tap) {
      Value entry = kb.add(kb.mul(at[d], count), tap);
      if (d != laneDim) {
        Value index = toIndex(kb.load(kb.b.getI32Type(), kb.operand(table), entry), Shape(x)[d]);
        Value factor =
            weighted() ? kb.splat(toType(kb.load(kb.b.getF32Type(), kb.operand(table + 1), entry)), lanes) : Value();
        overTaps(d + 1, at, kb.add(offset, kb.mul(index, stride)), lanesOffset, times(weight, factor));
        continue;
      }
      VectorStep step{{}, mask, lanes};
      Value indices = toIndex(loadLanes(kb, kb.b.getI32Type(), kb.operand(table), count, step, entry), Shape(x)[d]);
      Value factor =
          weighted() ? toType(loadLanes(kb, kb.b.getF32Type(), kb.operand(table + 1), count, step, entry)) : Value();
      overTaps(d + 1, at, offset, indices, times(weight, factor));
    }
  }

  /// Converts a weight to the type of the computation.
  Value toType(Value weight) { return type.isF64() ? convertElement(kb, weight, kb.b.getF32Type(), type) : weight; }

  Value times(Value a, Value b) { return a && b ? Value(arith::MulFOp::create(kb.b, a, b)) : a ? a : b; }

  void accumulate(Value offset, Value lanesOffset, Value weight) {
    Value value = lanesOffset ? kb.gatherElements(element, lanes, kb.operand(0), offset, lanesOffset, mask)
                              : kb.loadElements(element, lanes, kb.operand(0), offset, byChannel ? Value() : mask);
    if (!weight) {
      sum = value;
    } else {
      sum = plus(sum, value, weight);
    }
  }

  KernelBuilder &kb;
  device::ResizeOp op;
  RankedTensorType x, y;
  Type element, type;
  bool byChannel;
  int64_t laneDim;
  unsigned lanes;
  std::map<int64_t, unsigned> axes;
  Value mask, sum;
};

struct ResizeModel : KernelInterface::ExternalModel<ResizeModel, device::ResizeOp> {
  /// All dims may have any size.
  bool acceptsOpenSizes(Operation *op) const {
    Shape x(op->getOperand(0)), y(op->getResult(0));
    ArrayRef<int64_t> axes = cast<device::ResizeOp>(op).getAxes();
    return llvm::all_of(llvm::seq<int64_t>(0, x.rank()),
                        [&](int64_t d) { return llvm::is_contained(axes, d) || sameSize(x[d], y[d]); });
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    auto resize = cast<device::ResizeOp>(op);
    bool blocked = device::isBlocked(kb.operandType(0));
    if (blocked != device::isBlocked(kb.resultType()) || (blocked && llvm::is_contained(resize.getAxes(), 1))) {
      return op->emitError("internal error: the resize kernel does not support these layouts");
    }
    ResizeEmitter(kb, resize).emit();
    return success();
  }
};

} // namespace

void attachResizeModels(MLIRContext *context) { device::ResizeOp::attachInterface<ResizeModel>(*context); }

} // namespace tessera::kernels

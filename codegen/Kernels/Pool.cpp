//===- Pool.cpp - Pooling kernels -----------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// On blocked tensors, the lanes are channels, and tap loops skip taps outside the input. On row-major tensors, the
// lanes are columns. A maximum, or a sum without a specified order, first combines each column of the windows into
// scratch and then combines along the row; other means mask taps outside the input.
//===----------------------------------------------------------------------===//
#include "codegen/Kernels/Epilogue.h"
#include "codegen/Kernels/KernelInterface.h"
#include "codegen/Kernels/Models.h"
#include "codegen/Kernels/Reduction.h"
#include "codegen/Kernels/Rows.h"
#include "codegen/Kernels/Window.h"

#include "device_dialect/IR/DeviceComputeOps.h"
#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace tessera::kernels {

namespace {

class PoolEmitter {
public:
  PoolEmitter(KernelBuilder &kb, device::PoolOp op)
      : kb(kb), op(op), x(kb.operandType(0)), y(kb.resultType()), epilogue(kb, cast<device::EpilogueInterface>(*op)),
        accumulator(registerType(op.getAccumulatorType())), isMax(op.getKind() == device::PoolKind::max) {
    windows = windowDims(x, y, op.getKernel(), op.getStrides(), op.getPads(), op.getDilations());
    blocked = device::isBlocked(x) && device::isBlocked(y);
    lanes = blocked ? channelLanes(kb, y) : kb.target.lanes(32);
  }

  void emit() {
    channels = Shape(y)[1].value();
    if (blocked && kb.target.tileIsThread) {
      return emitThreads();
    }
    SmallVector<Dim> rows = {Shape(y)[0], blocked ? int64_t(llvm::divideCeil(channels, lanes)) : channels};
    for (const WindowDim &window : ArrayRef(windows).drop_back()) {
      rows.push_back(window.output);
    }
    Dim count = multiply(rows), work = windows.back().output * (blocked ? lanes : 1);
    for (const WindowDim &window : windows) {
      work *= window.kernel;
    }
    if (!blocked && isSeparable()) {
      return emitSeparable(rows, count, work);
    }
    forItems(kb, count, work, 32768, [&](Value row) {
      SmallVector<Value> indices = delinearize(kb, row, rows);
      blocked ? blockedRow(indices) : plainRow(indices);
    });
  }

private:
  VectorType vectorOf(Type element) { return VectorType::get({int64_t(lanes)}, element); }

  Value initial() {
    Type type = vectorOf(accumulator);
    return isMax ? lowestValue(kb, x.getElementType(), type, false) : kb.zero(type);
  }

  Value combine(Value sum, Value value) {
    return isMax ? merge(sum, value) : merge(sum, convertElement(kb, value, x.getElementType(), accumulator));
  }

  /// Combines two partial results, each of several taps.
  Value merge(Value sum, Value value) {
    if (isMax) {
      return emitExtremum(kb, x.getElementType(), sum, value, false, kb.exact);
    }
    return isa<FloatType>(accumulator) ? Value(arith::AddFOp::create(kb.b, sum, value))
                                       : Value(arith::AddIOp::create(kb.b, sum, value));
  }

  // Lanes are channels

  /// Emits one thread per vector; the vectors of a block are consecutive threads, followed by the next position.
  void emitThreads() {
    int64_t block = Strides(y).block;
    SmallVector<Dim> sizes = {Shape(y)[0], floorDiv(paddedChannels(y), block)};
    for (const WindowDim &window : windows) {
      sizes.push_back(window.output);
    }
    sizes.push_back(block / lanes);
    bool interior = windows.back().isAllInterior();
    forItems(kb, multiply(sizes), 1, 1, [&](Value item) {
      SmallVector<Value> at = delinearize(kb, item, sizes);
      Value within = kb.mul(at.pop_back_val(), lanes);
      at[1] = kb.add(kb.mul(at[1], block), within);
      Value left = kb.sub(kb.constant(channels), at[1]);
      blockedElement(at, channels % block ? kb.maskBelow(lanes, left) : Value(), interior);
    });
  }

  void blockedRow(SmallVector<Value> indices) {
    Value block = indices[1];
    indices[1] = kb.mul(block, lanes);
    Value mask;
    if (channels % lanes) {
      mask = kb.maskBelow(lanes, kb.sub(kb.constant(channels), indices[1]));
    }
    const WindowDim &window = windows.back();
    auto [first, last] = window.interior();
    auto range = [&](Dim from, Dim to, bool interior) {
      kb.forLoop(from, to, 1, [&](Value column) {
        SmallVector<Value> at = indices;
        at.push_back(column);
        blockedElement(at, mask, interior);
      });
    };
    range(0, first, false);
    range(first, last, true);
    range(last, window.output, false);
  }

  void blockedElement(ArrayRef<Value> at, Value mask, bool interior) {
    SmallVector<Value> input = {at[0], at[1]};
    Value sum = blockedTaps(0, at, input, initial(), interior);
    if (!isMax) {
      sum = divide(sum, kb.splat(divisor(at), lanes));
    }
    epilogue.store(sum, at, 1, mask, /*padding=*/true);
  }

  Value blockedTaps(unsigned d, ArrayRef<Value> at, SmallVector<Value> input, Value sum, bool interior) {
    const WindowDim &window = windows[d];
    bool isColumn = d + 1 == windows.size();
    auto body = [&](Value tap, Value old) {
      SmallVector<Value> next = input;
      next.push_back(window.inputAt(kb, at[d + 2], tap));
      if (!isColumn) {
        return blockedTaps(d + 1, at, next, old, interior);
      }
      return combine(old, kb.loadElements(x.getElementType(), lanes, kb.operand(0), Strides(x).offset(kb, next)));
    };
    if (isColumn && interior) {
      return overTaps(window.kernel, sum, body);
    }
    auto [first, last] = window.validTaps(kb, at[d + 2]);
    return kb.forLoop(first, last, 1, sum,
                      [&](Value tap, ValueRange sums) { return SmallVector<Value>{body(tap, sums[0])}; })[0];
  }

  /// Returns the number (i64) of positions by which the mean at |at| is divided.
  Value divisor(ArrayRef<Value> at) {
    Value product = kb.constant(1);
    for (auto [d, window] : llvm::enumerate(windows)) {
      auto [first, last] = window.validTaps(kb, at[d + 2]);
      product = kb.mul(product, op.getCountIncludePad() ? window.paddedTaps(kb, at[d + 2]) : kb.sub(last, first));
    }
    return product;
  }

  Value divide(Value sum, Value count) {
    if (isa<FloatType>(accumulator)) {
      return arith::DivFOp::create(kb.b, sum, arith::SIToFPOp::create(kb.b, sum.getType(), count));
    }
    Value narrow = accumulator.isInteger(64) ? count : Value(arith::TruncIOp::create(kb.b, sum.getType(), count));
    return arith::DivSIOp::create(kb.b, sum, narrow);
  }

  // Lanes are columns of a maximum, or of a sum without a specified order

  bool isSeparable() const {
    bool ordered = !isMax && kb.exact && isa<FloatType>(accumulator);
    const WindowDim &window = windows.back();
    return !ordered && !device::isBlocked(x) && !kb.target.tileIsThread && window.input.isKnown() &&
           window.output.isKnown();
  }

  /// Processes several rows at a time: first the columns of all of them, then along each row. A load that overlaps two
  /// vectors just stored would have to wait for both stores.
  void emitSeparable(ArrayRef<Dim> rows, Dim count, Dim work) {
    constexpr int64_t kRows = 8;
    const WindowDim &window = windows.back();
    int64_t reach =
        (llvm::alignTo(window.output.value(), lanes) - 1) * window.stride + (window.kernel - 1) * window.dilation + 1;
    int64_t row = window.padBegin + llvm::alignTo(window.input.value(), lanes),
            length = llvm::alignTo(std::max(reach, row), lanes);
    int64_t together = std::clamp<int64_t>(maxOf(count), 1, kRows);
    kb.setScratchBytes(together * length * accumulator.getIntOrFloatBitWidth() / 8);
    forItems(kb, ceilDiv(count, together), work * together, 32768, [&](Value item) {
      Value first = kb.mul(item, together), last = kb.min(kb.add(first, together), kb.index(count));
      for (bool alongRows : {false, true}) {
        kb.forLoop(first, last, 1, [&](Value row) {
          Value place = kb.element(accumulator, kb.scratch(), kb.mul(kb.sub(row, first), length));
          SmallVector<Value> indices = delinearize(kb, row, rows);
          alongRows ? alongRow(indices, place) : columnsOfRow(indices, place, length);
        });
      }
    });
  }

  /// Combines each column's windows and stores the results at |place|.
  void columnsOfRow(ArrayRef<Value> indices, Value place, int64_t length) {
    // Several vectors at once, so that each row of taps is more than one load and one maximum.
    constexpr int64_t kTogether = 4;
    const int64_t width = windows.back().input.value();
    int64_t vectors = llvm::divideCeil(width, lanes), whole = width / lanes / kTogether * kTogether;
    kb.forLoop(0, length, lanes, [&](Value at) { kb.store(initial(), place, at); }); // also sets the border around the
                                                                                     // row
    kb.forLoop(0, whole * lanes, kTogether * lanes,
               [&](Value column) { columnsOf(indices, place, column, kTogether, false); });
    if (whole < vectors) {
      columnsOf(indices, place, kb.constant(whole * lanes), vectors - whole, width % lanes);
    }
  }

  void alongRow(ArrayRef<Value> indices, Value place) {
    const WindowDim &window = windows.back();
    kb.forLoop(0, ceilDiv(window.output, lanes) * lanes, lanes, [&](Value column) {
      SmallVector<Value> at(indices);
      at.push_back(column);
      auto body = [&](Value tap, Value old) {
        Value offset = kb.add(kb.mul(column, window.stride), kb.mul(tap, window.dilation));
        return merge(old, loadLanes(kb, accumulator, place, window.stride, VectorStep{{}, {}, lanes}, offset));
      };
      Value mask = kb.maskBelow(lanes, kb.sub(kb.index(window.output), column));
      Value all = overTaps(window.kernel, initial(), body);
      epilogue.store(isMax ? all : divide(all, rowDivisor(at)), at, at.size() - 1, mask);
    });
  }

  /// Returns the numbers of positions by which the means at the columns from |at| on are divided.
  Value rowDivisor(ArrayRef<Value> at) {
    const WindowDim &window = windows.back();
    bool padded = op.getCountIncludePad();
    Value rows = kb.constant(1);
    Value columns = overTaps(window.kernel, kb.zero(vectorOf(kb.b.getI64Type())), [&](Value tap, Value old) -> Value {
      Value counted = columnsInside(window.inputAt(kb, at.back(), tap), padded ? -window.padBegin : 0,
                                    window.input + (padded ? window.padEnd : 0));
      return arith::AddIOp::create(kb.b, old, arith::ExtUIOp::create(kb.b, old.getType(), counted));
    });
    for (auto [d, dim] : llvm::enumerate(ArrayRef(windows).drop_back())) {
      auto [first, last] = dim.validTaps(kb, at[d + 2]);
      rows = kb.mul(rows, padded ? dim.paddedTaps(kb, at[d + 2]) : kb.sub(last, first));
    }
    Value count = arith::MulIOp::create(kb.b, columns, kb.splat(rows, lanes));
    return padded ? Value(arith::MaxSIOp::create(kb.b, count, kb.splat(kb.constant(1), lanes))) : count;
  }

  /// Combines the rows and planes of the windows in |count| vectors of columns from |column| on and stores the results
  /// at |place|. |cut|: the last vector extends beyond the row.
  void columnsOf(ArrayRef<Value> indices, Value place, Value column, int64_t count, bool cut) {
    const WindowDim &window = windows.back();
    Value last = kb.add(column, (count - 1) * lanes);
    Value mask = cut ? kb.maskBelow(lanes, kb.sub(kb.index(window.input), last)) : Value();
    SmallVector<Value> best =
        columnMaxima(0, indices, {indices[0], indices[1]}, column, mask, SmallVector<Value>(size_t(count), initial()));
    best.back() = keepActive(kb, mask, best.back(), initial());
    for (auto [i, value] : llvm::enumerate(best)) {
      kb.store(value, place, kb.add(column, window.padBegin + int64_t(i * lanes)));
    }
  }

  /// Applies |body| to |sum| for each tap in turn; unrolls small kernels.
  Value overTaps(int64_t count, Value sum, llvm::function_ref<Value(Value, Value)> body) {
    constexpr int64_t kMostUnrolled = 8;
    if (count > kMostUnrolled) {
      return kb.forLoop(kb.constant(0), kb.constant(count), 1, sum,
                        [&](Value tap, ValueRange old) { return SmallVector<Value>{body(tap, old[0])}; })[0];
    }
    for (int64_t tap = 0; tap < count; ++tap) {
      sum = body(kb.constant(tap), sum);
    }
    return sum;
  }

  /// Combines the taps of dims |d| and up into |best|, one vector of columns each. |mask| applies to the last vector;
  /// may be null.
  SmallVector<Value> columnMaxima(unsigned d, ArrayRef<Value> at, SmallVector<Value> input, Value column, Value mask,
                                  SmallVector<Value> best) {
    if (d + 1 == windows.size()) {
      input.push_back(column);
      Value offset = Strides(x).offset(kb, input);
      for (auto [i, value] : llvm::enumerate(best)) {
        Value own = i + 1 == best.size() ? mask : Value();
        Value loaded = kb.loadElements(x.getElementType(), lanes, kb.operand(0), kb.add(offset, i * lanes), own);
        value = combine(value, loaded);
      }
      return best;
    }
    auto [first, last] = windows[d].validTaps(kb, at[d + 2]);
    return kb.forLoop(first, last, 1, best, [&](Value tap, ValueRange old) {
      SmallVector<Value> next = input;
      next.push_back(windows[d].inputAt(kb, at[d + 2], tap));
      return columnMaxima(d + 1, at, next, column, mask, llvm::to_vector(old));
    });
  }

  // Lanes are output columns of a mean

  void plainRow(SmallVector<Value> indices) {
    Dim width = windows.back().output;
    kb.forLoop(0, ceilDiv(width, lanes) * lanes, lanes, [&](Value column) {
      SmallVector<Value> at = indices;
      at.push_back(column);
      Value outputMask = kb.maskBelow(lanes, kb.sub(kb.index(width), column));
      SmallVector<Value> input = {at[0], at[1]};
      SmallVector<Value> sums = {initial(), kb.zero(vectorOf(kb.b.getI64Type()))};
      sums = plainTaps(0, at, input, sums);
      Value sum = isMax ? sums[0] : divide(sums[0], plainDivisor(at, sums[1]));
      epilogue.store(sum, at, at.size() - 1, outputMask);
    });
  }

  SmallVector<Value> plainTaps(unsigned d, ArrayRef<Value> at, SmallVector<Value> input, SmallVector<Value> sums) {
    const WindowDim &window = windows[d];
    bool isColumn = d + 1 == windows.size();
    Value first = kb.constant(0), last = kb.constant(window.kernel);
    if (!isColumn) {
      std::tie(first, last) = window.validTaps(kb, at[d + 2]);
    }
    return kb.forLoop(first, last, 1, sums, [&](Value tap, ValueRange old) {
      SmallVector<Value> next = input;
      next.push_back(window.inputAt(kb, at[d + 2], tap));
      return isColumn ? plainTap(next, old) : plainTaps(d + 1, at, next, llvm::to_vector(old));
    });
  }

  SmallVector<Value> plainTap(ArrayRef<Value> input, ValueRange old) {
    const WindowDim &window = windows.back();
    Value inside = columnsInside(input.back(), 0, window.input);
    Value counted =
        op.getCountIncludePad() ? columnsInside(input.back(), -window.padBegin, window.input + window.padEnd) : inside;
    SmallVector<Value> start(input);
    start.back() = kb.constant(0);
    Dim columnStride = laneStride(x, x.getRank() - 1);
    Value offset = kb.add(Strides(x).offset(kb, start), kb.mul(input.back(), columnStride));
    Value value = loadLanes(kb, x.getElementType(), kb.operand(0), columnStride * window.stride,
                            VectorStep{{}, inside, lanes}, offset);
    Value next = arith::SelectOp::create(kb.b, inside, combine(old[0], value), old[0]);
    Value one = arith::ExtUIOp::create(kb.b, old[1].getType(), counted);
    return {next, arith::AddIOp::create(kb.b, old[1], one)};
  }

  /// Returns the divisors of the means. |counted| is the number of counted columns times the number of valid rows; if
  /// padding counts, rows outside the input count too.
  Value plainDivisor(ArrayRef<Value> at, Value counted) {
    if (!op.getCountIncludePad()) {
      return counted;
    }
    // Divide by the valid rows and multiply by the rows that include padding.
    Value valid = kb.constant(1), padded = kb.constant(1);
    for (auto [d, window] : llvm::enumerate(ArrayRef(windows).drop_back())) {
      auto [first, last] = window.validTaps(kb, at[d + 2]);
      valid = kb.mul(valid, kb.sub(last, first));
      padded = kb.mul(padded, window.paddedTaps(kb, at[d + 2]));
    }
    // A window without a valid row sums to zero, so any divisor gives the right mean.
    valid = kb.max(valid, kb.constant(1));
    Value columns = arith::DivUIOp::create(kb.b, counted, kb.splat(valid, lanes));
    Value product = arith::MulIOp::create(kb.b, columns, kb.splat(padded, lanes));
    return arith::MaxSIOp::create(kb.b, product, kb.splat(kb.constant(1), lanes));
  }

  /// Returns the mask of the lanes l with low <= column + l * stride < high.
  Value columnsInside(Value column, int64_t low, Dim high) {
    auto type = vectorOf(kb.b.getI32Type());
    SmallVector<int32_t> steps;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      steps.push_back(lane * windows.back().stride);
    }
    Value iota = arith::ConstantOp::create(kb.b, DenseElementsAttr::get(type, ArrayRef<int32_t>(steps)));
    Value start = kb.splat(arith::TruncIOp::create(kb.b, kb.b.getI32Type(), kb.sub(column, kb.constant(low))), lanes);
    Value columns = arith::AddIOp::create(kb.b, start, iota);
    Value width = kb.splat(narrowIndex(kb, high - low), lanes);
    return arith::CmpIOp::create(kb.b, arith::CmpIPredicate::ult, columns, width); // negative numbers are large
  }

  KernelBuilder &kb;
  device::PoolOp op;
  RankedTensorType x, y;
  EpilogueStore epilogue;
  Type accumulator;
  bool isMax, blocked;
  unsigned lanes;
  int64_t channels = 0;
  SmallVector<WindowDim> windows;
};

struct PoolModel : KernelInterface::ExternalModel<PoolModel, device::PoolOp> {
  bool acceptsOpenSizes(Operation *op) const {
    Shape x(op->getOperand(0)), y(op->getResult(0));
    return y[1].isKnown() && sameSize(x[0], y[0]) && sameSize(x[1], y[1]) &&
           broadcastsProvably(cast<device::EpilogueInterface>(op));
  }
  LogicalResult emitKernel(Operation *op, KernelBuilder &kb) const {
    auto pool = cast<device::PoolOp>(op);
    if (device::isBlocked(pool.getX().getType()) != device::isBlocked(pool.getY().getType())) {
      return op->emitError("internal error: pool with operand and result in different layouts");
    }
    PoolEmitter(kb, pool).emit();
    return success();
  }
};

} // namespace

void attachPoolModels(MLIRContext *context) { device::PoolOp::attachInterface<PoolModel>(*context); }

} // namespace tessera::kernels

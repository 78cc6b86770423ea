//===- Reduce.cpp - Reductions over any run of dims -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emission/EmissionInterface.h"
#include "codegen/Npu/Emission/Models.h"
#include "codegen/Npu/Emission/Rows/RowReduction.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Output;
using bmodel::npu::Type;
namespace {

/// Whole numbers up to here are exact in f32.
constexpr double kExact = 1 << 24;

mlir::Type elementOf(Value value) { return npu::typeOf(value).getElementType(); }

/// Returns true if the region is empty or yields its argument, possibly widened.
bool isIdentity(mlir::Region &region) {
  if (region.empty()) {
    return true;
  }
  Value value = region.front().getTerminator()->getOperand(0);
  if (auto widen = value.getDefiningOp<arith::ExtSIOp>()) {
    value = widen.getIn();
  } else if (auto widen = value.getDefiningOp<arith::ExtUIOp>()) {
    value = widen.getIn();
  } else if (auto widen = value.getDefiningOp<arith::ExtFOp>()) {
    value = widen.getIn();
  }
  return value == region.front().getArgument(0);
}

/// Returns the product of the trailing dims that are reduced. Float sums have partial sums along these.
int64_t lastOf(ArrayRef<int64_t> dims, ArrayRef<int64_t> axes) {
  int64_t size = 1;
  for (int64_t dim = int64_t(dims.size()) - 1; dim >= 0 && llvm::is_contained(axes, dim); --dim) {
    size *= dims[dim];
  }
  return size;
}

/// Returns why the vector unit does not support the reduction, or null.
const char *faultOf(device::ReduceOp op, const ReducedExtent &extent, bool byRows, bool hasPrologue) {
  mlir::Type x = elementOf(op.getX());
  bool isExtreme = op.getKind() == device::ReduceKind::max || op.getKind() == device::ReduceKind::min;
  if (isa<FloatType>(x) && (isExtreme || op.getAccumulatorType().isF32())) {
    bool isProduct = op.getKind() == device::ReduceKind::prod,
         isOrdered = isProduct || op.getKind() == device::ReduceKind::sum;
    int64_t last = lastOf(npu::typeOf(op.getX()).getShape(), op.getAxes());
    return isProduct && !byRows ? "is a product over other than the last dims, which is not supported yet"
           : isOrdered && last != 1 && last != extent.size
               ? "sums over the last dims and over dims not adjacent to them, which is not supported yet"
               : nullptr;
  }
  Interval interval = intervalOf(x);
  bool isShort = isa<IntegerType>(x) && x.getIntOrFloatBitWidth() <= 16;
  if (!isShort || hasPrologue || op.getKind() == device::ReduceKind::prod) {
    return "sums in f16 or bf16, or reduces integers of more than 16 bits, or functions or products of integers, "
           "which is not supported yet";
  }
  double size = double(extent.size), most = std::max(-interval.low, interval.high);
  return op.getKind() == device::ReduceKind::sum && size * most > kExact
             ? "sums integers beyond 2^24, which the vector unit does not represent exactly"
             : nullptr;
}

/// Programs that the vector unit runs on each element before the reduction, and on the result.
struct ReducePrograms {
  Instructions prologue, epilogue;
};

llvm::Expected<ReducePrograms> programsOf(device::ReduceOp op, double size, bool hasPrologue) {
  mlir::Type element = elementOf(op.getX()), result = elementOf(op.getY());
  bool sums = op.getKind() == device::ReduceKind::sum, integers = isa<IntegerType>(element);
  Interval interval = intervalOf(element);
  SmallVector<Interval> intervals = {integers && sums ? Interval{interval.low * size, interval.high * size} : interval};
  for (Value extra : op.getExtras()) {
    intervals.push_back(intervalOf(elementOf(extra)));
  }
  ReducePrograms made;
  if (hasPrologue) {
    llvm::Expected<Instructions> prologue = programOf(op.getPrologue(), interval, op.getAccumulatorType());
    if (!prologue) {
      return prologue.takeError();
    }
    made.prologue = std::move(*prologue);
  }
  if (!op.getEpilogue().empty()) {
    llvm::Expected<Instructions> epilogue = programOf(op.getEpilogue(), intervals, result);
    if (!epilogue) {
      return epilogue.takeError();
    }
    made.epilogue = std::move(*epilogue);
  } else if (integers && sums) {
    made.epilogue = {{Op::maximum, 4, 0, 0, 0}}; // converts the sum to the integer
  }
  return made;
}

/// Places the operands of the epilogue in the view of the result: one number, or one per row.
llvm::Expected<SmallVector<TileView>> placeExtras(device::ReduceOp op, const RowsView &view, ArrayRef<int64_t> sizes,
                                                  OperandPlacer &operands) {
  SmallVector<TileView> extras;
  for (Value extra : op.getExtras()) {
    int64_t count = npu::typeOf(extra).getNumElements(), zeros[4] = {0, 0, 0, 0};
    if (count != 1 && count != npu::typeOf(op.getY()).getNumElements()) {
      return reject("has an epilogue that broadcasts to some of the dims, which is not supported yet");
    }
    llvm::Expected<TileView> placed =
        operands.place(extra, sizes, count == 1 ? zeros : view.y, count == 1 ? 0 : view.resultOffset);
    if (!placed) {
      return placed.takeError();
    }
    extras.push_back(*placed);
  }
  return extras;
}

/// Emits one view of a reduction on the vector unit.
llvm::Error emitView(device::ReduceOp op, const RowsView &view, bool byRows, const ReducePrograms &programs,
                     EmissionContext &context) {
  const Chip &chip = context.chip;
  llvm::Expected<TileView> x = context.operands.place(op.getX(), view.sizes, view.x, view.offset);
  int64_t sizes[] = {view.sizes[0], view.sizes[1], 1, byRows ? 1 : view.sizes[3]};
  llvm::Expected<TileView> y = context.operands.place(op.getY(), sizes, view.y, view.resultOffset);
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  llvm::Expected<SmallVector<TileView>> extras = placeExtras(op, view, sizes, context.operands);
  if (!extras) {
    return extras.takeError();
  }
  auto build = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    TileView from = slice(slice(*x, 0, begin.dims[0], part.dims[0], chip), 1, begin.dims[1], part.dims[1], chip);
    from = byRows ? from : slice(from, 3, begin.dims[3], part.dims[3], chip);
    TileView to = tileOf(*y, begin, part, chip);
    localBudget.lane = laneOf({to, from});
    from = load(from, localBudget, tile);
    TileView out = resultOf(to, localBudget),
             total = programs.epilogue.empty() ? out : localBudget.allocate(to.shape, Type::f32);
    if (!programs.prologue.empty()) {
      TileView result = localBudget.allocate(from.shape, Type::f32);
      compute(context.stream, programs.prologue, result, from, tile);
      from = result;
    }
    auto kind = Reduction(uint8_t(op.getKind()));
    byRows ? reduce(total, from, kind, tile) : reduceRows(total, from, kind, tile);
    SmallVector<TileView> operands = {total};
    for (const TileView &extra : *extras) {
      operands.push_back(load(tileOf(extra, begin, part, chip), localBudget, tile));
    }
    if (!programs.epilogue.empty()) {
      compute(context.stream, programs.epilogue, out, operands, tile);
    }
    store(out, to, tile);
  };
  return context.tiler.append(y->shape, Shape{{1, chip.lanes, 0, 1}}, build);
}

/// Emits a reduction on the vector unit.
llvm::Error emitByRows(device::ReduceOp op, bool hasPrologue, EmissionContext &context) {
  RankedTensorType xType = npu::typeOf(op.getX());
  std::optional<ReducedExtent> extent = reducedExtent(xType.getShape(), op.getAxes());
  if (!extent) {
    return reject("reduces dims that are not adjacent, which is not supported yet");
  }
  bool byRows = op.getAxes().empty() || (extent->inner == 1 && op.getAxes().back() == xType.getRank() - 1);
  if (const char *fault = faultOf(op, *extent, byRows, hasPrologue)) {
    return reject(fault);
  }
  if (op.getExtras().size() > 3) {
    return reject("has more than three epilogue operands, which is not supported yet");
  }
  llvm::Expected<ReducePrograms> programs = programsOf(op, double(extent->size), hasPrologue);
  if (!programs) {
    return programs.takeError();
  }
  for (const RowsView &view : rowsViews(*extent, byRows, context.chip.lanes)) {
    if (llvm::Error error = emitView(op, view, byRows, *programs, context)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// A row of |size| elements as a window of the matrix unit. A height of 256 means that no window fits.
struct SumWindow {
  int64_t rows, size, height, width;
};

SumWindow windowOf(device::ReduceOp op, int64_t first) {
  RankedTensorType xType = npu::typeOf(op.getX());
  SumWindow result{0, ShapedType::getNumElements(xType.getShape().drop_front(first)), 1, 0};
  result.rows = xType.getNumElements() / result.size;
  while (isa<IntegerType>(xType.getElementType()) &&
         (result.size / result.height > 255 || result.size % result.height)) {
    ++result.height;
  }
  result.width = result.size / result.height;
  return result;
}

/// Emits exact sums of integers over the trailing dims as windows of the size of a row.
llvm::Error emitByWindow(device::ReduceOp op, const SumWindow &window, EmissionContext &context) {
  const Chip &chip = context.chip;
  auto [rows, size, height, width] = window;
  llvm::Expected<TileView> x = context.operands.place(op.getX(), {1, rows, height, width}, {0, size, width, 1});
  llvm::Expected<TileView> y = context.operands.place(op.getY(), {1, rows, 1, 1}, {0, 1, 0, 0});
  if (!x || !y) {
    return llvm::joinErrors(x.takeError(), y.takeError());
  }
  Interval interval = intervalOf(elementOf(op.getX()));
  Interval sum = {interval.low * double(size), interval.high * double(size)};
  llvm::Expected<Instructions> program = programOf(op.getEpilogue(), sum, elementOf(op.getY()));
  if (!program) {
    return program.takeError();
  }
  auto build = [&](const Shape &begin, const Shape &part, LocalBudget &localBudget, Tile &tile) {
    TileView from = slice(*x, 1, begin.dims[1], part.dims[1], chip),
             to = slice(*y, 1, begin.dims[1], part.dims[1], chip);
    localBudget.lane = laneOf({to, from});
    TileView local = load(from, localBudget, tile), result = resultOf(to, localBudget);
    TileView total = program->empty() ? result : localBudget.allocate(to.shape, Type::i32);
    hw::pool_command pool;
    pool.y = total.tensor, pool.x = local.tensor, pool.shape = to.shape, pool.output.flags = Output::raw;
    pool.window.kernel[0] = uint8_t(window.height), pool.window.kernel[1] = uint8_t(window.width);
    pool.rows = uint16_t(window.height), pool.columns = uint16_t(window.width);
    tile.computes.push_back(hw::encode(pool));
    if (!program->empty()) {
      compute(context.stream, *program, result, total, tile);
    }
    store(result, to, tile);
  };
  return context.tiler.append(Shape{{1, uint32_t(rows), 1, 1}}, Shape{{0, chip.lanes, 0, 0}}, build);
}

/// Emits sums of integers over the trailing dims on the matrix unit, and all other reductions on the vector unit.
llvm::Error emitReduce(device::ReduceOp op, EmissionContext &context) {
  int64_t rank = npu::typeOf(op.getX()).getRank(), first = op.getAxes().empty() ? rank : op.getAxes().front();
  bool trailing = first + int64_t(op.getAxes().size()) == rank;
  bool integers = isa<IntegerType>(elementOf(op.getX())), sums = op.getKind() == device::ReduceKind::sum;
  if (integers && isa<IntegerType>(elementOf(op.getY())) && context.chip.requantise != "float") {
    return reject("requantises a sum, which on this chip only convolutions and matmuls do");
  }
  SumWindow window = windowOf(op, first);
  bool isWindow = trailing && integers && sums && window.height <= 255 && op.getExtras().empty();
  if (!isWindow || !isIdentity(op.getPrologue())) {
    return emitByRows(op, !isIdentity(op.getPrologue()), context);
  }
  return emitByWindow(op, window, context);
}

struct ReduceModel : EmissionInterface::ExternalModel<ReduceModel, device::ReduceOp> {
  llvm::Error emit(Operation *op, EmissionContext &context) const {
    return emitReduce(cast<device::ReduceOp>(op), context);
  }
};

} // namespace

void attachReduceModels(MLIRContext *context) { device::ReduceOp::attachInterface<ReduceModel>(*context); }

} // namespace tessera::npu

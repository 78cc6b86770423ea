//===- EmitReduce.cpp - Reductions over any run of dims on the NPU --------===//
// SPDX-License-Identifier: Apache-2.0
//
// Over the last dims a row is reduced inside its lane. Over other dims rows are taken one after another, which is also
// the order that sums of floats have there.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Emitter.h"

using namespace mlir;
namespace hw = bmodel::npu;

namespace tessera::npu {
using bmodel::npu::Op;
using bmodel::npu::Type;
namespace {

/// Whole numbers that f32 holds.
constexpr double kExact = 1 << 24;

mlir::Type elementOf(Value value) { return typeOf(value).getElementType(); }

/// Dims as three: before, of, and behind what is reduced.
struct Extent {
  int64_t outer = 1, size = 1, inner = 1;
};

/// Nothing where dims in between stay.
std::optional<Extent> extentOf(ArrayRef<int64_t> dims, ArrayRef<int64_t> axes) {
  Extent made;
  for (auto [dim, size] : llvm::enumerate(dims)) {
    bool isReduced = llvm::is_contained(axes, int64_t(dim));
    if (isReduced && made.inner != 1 && size != 1) {
      return std::nullopt;
    }
    (isReduced ? made.size : made.size == 1 ? made.outer : made.inner) *= size;
  }
  return made;
}

/// The product of the last dims, as far as they are reduced: sums of floats have partial sums along these.
int64_t lastOf(ArrayRef<int64_t> dims, ArrayRef<int64_t> axes) {
  int64_t size = 1;
  for (int64_t dim = int64_t(dims.size()) - 1; dim >= 0 && llvm::is_contained(axes, dim); --dim) {
    size *= dims[dim];
  }
  return size;
}

/// Where values lie: n, c and w stay, h is reduced; of the last dims w is.
struct RowsView {
  int64_t sizes[4], x[4], y[4], offset, resultOffset;
};

/// What lies behind the reduced dims is spread over lanes where that is more than before them. |byRows|: rows are
/// reduced inside.
SmallVector<RowsView> viewsOf(const Extent &extent, bool byRows, int64_t lanes) {
  auto [outer, size, inner] = extent;
  if (byRows) {
    return {{{1, outer, 1, size}, {0, size, 0, 1}, {0, 1, 0, 0}, 0, 0}};
  }
  if (outer >= lanes || outer >= inner) {
    return {{{1, outer, size, inner}, {0, size * inner, inner, 1}, {0, inner, 0, 1}, 0, 0}};
  }
  SmallVector<RowsView> views;
  int64_t columns = inner / lanes, rest = inner % lanes;
  if (columns) {
    views.push_back({{outer, lanes, size, columns}, {size * inner, columns, inner, 1}, {inner, columns, 0, 1}, 0, 0});
  }
  if (rest) {
    int64_t at = columns * lanes;
    views.push_back({{outer, rest, size, 1}, {size * inner, 1, inner, 1}, {inner, 1, 0, 1}, at, at});
  }
  return views;
}

/// Rows as columns.
Place turned(Place place) {
  std::swap(place.shape.dims[2], place.shape.dims[3]);
  std::swap(place.tensor.strides[2], place.tensor.strides[3]);
  return place;
}

/// y[n,c,0,w] = over h of x[n,c,h,w]. |y| is f32 where it is a sum.
void reduceRows(const Place &y, const Place &x, Reduction kind, Tile &tile) {
  if (kind != Reduction::sum) {
    Place to = turned(y);
    reduce(to, turned(x), kind, tile);
    return;
  }
  hw::dot_command command;
  command.y = y.tensor, command.b = x.tensor, command.shape = y.shape, command.steps = x.dim(2);
  tile.computes.push_back(hw::encode(command));
}

/// |place| with one row for all of them.
Place repeatedRow(Place place) {
  place.tensor.strides[2] = 0;
  return place;
}

/// Why the numbers are not reduced so, or null.
const char *faultOf(device::ReduceOp op, const Extent &extent, bool byRows, bool hasPrologue) {
  mlir::Type x = elementOf(op.getX());
  bool isExtreme = op.getKind() == device::ReduceKind::max || op.getKind() == device::ReduceKind::min;
  if (isa<FloatType>(x) && (isExtreme || op.getAccumulatorType().isF32())) {
    bool isProduct = op.getKind() == device::ReduceKind::prod,
         isOrdered = isProduct || op.getKind() == device::ReduceKind::sum;
    int64_t last = lastOf(typeOf(op.getX()).getShape(), op.getAxes());
    return isProduct && !byRows ? "is a product over other than the last dims, which is not emitted yet"
           : isOrdered && last != 1 && last != extent.size
               ? "sums over the last dims and others apart from them, which is not emitted yet"
               : nullptr;
  }
  Interval interval = intervalOf(x);
  bool isShort = isa<IntegerType>(x) && x.getIntOrFloatBitWidth() <= 16;
  if (!isShort || hasPrologue || op.getKind() == device::ReduceKind::prod) {
    return "sums in narrow floats, or reduces wide integers, or functions or products of integers, which is not "
           "emitted yet";
  }
  double size = double(extent.size), most = std::max(-interval.low, interval.high);
  return op.getKind() == device::ReduceKind::sum && size * most > kExact
             ? "sums integers beyond 2^24, which the vector unit does not hold"
             : nullptr;
}

} // namespace

/// Every reduction that is no window of the matrix unit.
llvm::Error Emitter::emitReduceRows(device::ReduceOp op, bool hasPrologue) {
  std::optional<Extent> extent = extentOf(typeOf(op.getX()).getShape(), op.getAxes());
  if (!extent) {
    return refuse("reduces dims with others between them, which is not emitted yet");
  }
  bool byRows = op.getAxes().empty() || (extent->inner == 1 && op.getAxes().back() == typeOf(op.getX()).getRank() - 1);
  if (const char *fault = faultOf(op, *extent, byRows, hasPrologue)) {
    return refuse(fault);
  }
  if (op.getExtras().size() > 3) {
    return refuse("has an epilogue of more than three operands, which is not emitted yet");
  }
  mlir::Type element = elementOf(op.getX()), result = elementOf(op.getY());
  bool sums = op.getKind() == device::ReduceKind::sum, integers = isa<IntegerType>(element);
  Interval interval = intervalOf(element);
  double size = double(extent->size);
  SmallVector<Interval> intervals = {integers && sums ? Interval{interval.low * size, interval.high * size} : interval};
  for (Value extra : op.getExtras()) {
    intervals.push_back(intervalOf(elementOf(extra)));
  }
  Instructions prologue, epilogue;
  if (hasPrologue) {
    llvm::Expected<Instructions> made = programOf(op.getPrologue(), interval, op.getAccumulatorType());
    if (!made) {
      return made.takeError();
    }
    prologue = std::move(*made);
  }
  if (!op.getEpilogue().empty()) {
    llvm::Expected<Instructions> made = programOf(op.getEpilogue(), intervals, result);
    if (!made) {
      return made.takeError();
    }
    epilogue = std::move(*made);
  } else if (integers && sums) {
    epilogue = {{Op::maximum, 4, 0, 0, 0}}; // as the integer that it is
  }
  for (const RowsView &view : viewsOf(*extent, byRows, chip.lanes)) {
    llvm::Expected<Place> x = place(op.getX(), view.sizes, view.x, view.offset);
    int64_t sizes[] = {view.sizes[0], view.sizes[1], 1, byRows ? 1 : view.sizes[3]};
    llvm::Expected<Place> y = place(op.getY(), sizes, view.y, view.resultOffset);
    if (!x || !y) {
      return llvm::joinErrors(x.takeError(), y.takeError());
    }
    SmallVector<Place> extras;
    for (Value extra : op.getExtras()) {
      int64_t count = typeOf(extra).getNumElements(), zeros[4] = {0, 0, 0, 0};
      if (count != 1 && count != typeOf(op.getY()).getNumElements()) {
        return refuse("has an epilogue that broadcasts to some of the dims, which is not emitted yet");
      }
      llvm::Expected<Place> placed =
          place(extra, sizes, count == 1 ? zeros : view.y, count == 1 ? 0 : view.resultOffset);
      if (!placed) {
        return placed.takeError();
      }
      extras.push_back(*placed);
    }
    auto build = [&](const Shape &begin, const Shape &part, Area &area, Tile &tile) {
      Place from = slice(slice(*x, 0, begin.dims[0], part.dims[0], chip), 1, begin.dims[1], part.dims[1], chip);
      from = byRows ? from : slice(from, 3, begin.dims[3], part.dims[3], chip);
      Place to = tileOf(*y, begin, part, chip);
      area.lane = laneOf({to, from});
      from = load(from, area, tile);
      Place out = resultOf(to, area), total = epilogue.empty() ? out : area.allocate(to.shape, Type::f32);
      if (!prologue.empty()) {
        Place made = area.allocate(from.shape, Type::f32);
        compute(stream, prologue, made, from, tile);
        from = made;
      }
      auto kind = Reduction(uint8_t(op.getKind()));
      if (byRows) {
        reduce(total, from, kind, tile);
      } else {
        reduceRows(total, from, kind, tile);
      }
      SmallVector<Place> operands = {total};
      for (const Place &extra : extras) {
        operands.push_back(load(tileOf(extra, begin, part, chip), area, tile));
      }
      if (!epilogue.empty()) {
        compute(stream, epilogue, out, operands, tile);
      }
      store(out, to, tile);
    };
    if (llvm::Error error = tiler.append(y->shape, Shape{{1, chip.lanes, 0, 1}}, build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

/// Along a dim that others follow.
llvm::Error Emitter::emitSoftmaxRows(device::SoftmaxOp op) {
  Extent extent = *extentOf(typeOf(op.getX()).getShape(), op.getAxis());
  const Instructions powers = {{Op::sub, 4, 0, 1, 0}, {Op::expNegative, 4, 4, 0, 0}};
  const Instructions inverse = {{Op::constant, 4, 0, 0, llvm::bit_cast<uint32_t>(1.0f)}, {Op::div, 4, 4, 0, 0}};
  const Instructions factor = op.getLog() ? Instructions{{Op::log, 4, 0, 0, 0}} : inverse;
  const Instructions scale = {{Op::mul, 4, 0, 1, 0}};
  const Instructions difference = {{Op::sub, 4, 0, 1, 0}, {Op::sub, 4, 4, 2, 0}};
  for (const RowsView &view : viewsOf(extent, false, chip.lanes)) {
    llvm::Expected<Place> x = place(op.getX(), view.sizes, view.x, view.offset);
    llvm::Expected<Place> y = place(op.getY(), view.sizes, view.x, view.offset);
    if (!x || !y) {
      return llvm::joinErrors(x.takeError(), y.takeError());
    }
    auto build = [&](const Shape &begin, const Shape &part, Area &area, Tile &tile) {
      Place from = tileOf(*x, begin, part, chip), to = tileOf(*y, begin, part, chip);
      area.lane = laneOf({to, from});
      from = load(from, area, tile);
      Shape row = part;
      row.dims[2] = 1;
      Place best = area.allocate(row, Type::f32), power = area.allocate(part, Type::f32),
            total = area.allocate(row, Type::f32), out = resultOf(to, area);
      reduceRows(best, from, Reduction::largest, tile);
      compute(stream, powers, power, {from, repeatedRow(best)}, tile);
      reduceRows(total, power, Reduction::sum, tile);
      compute(stream, factor, total, {total}, tile);
      if (op.getLog()) {
        compute(stream, difference, out, {from, repeatedRow(best), repeatedRow(total)}, tile);
      } else {
        compute(stream, scale, out, {power, repeatedRow(total)}, tile);
      }
      store(out, to, tile);
    };
    if (llvm::Error error = tiler.append(y->shape, Shape{{1, chip.lanes, 0, 1}}, build)) {
      return error;
    }
  }
  return llvm::Error::success();
}

} // namespace tessera::npu

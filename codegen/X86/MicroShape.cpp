//===- MicroShape.cpp - Sizes and work splits of the micro-kernels --------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/MicroShape.h"

#include "device_dialect/IR/Layout.h"
#include "top_dialect/IR/Sizes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::x86 {

ConvShape::ConvShape(device::ConvOp op)
    : images(Shape(op.getX())[0]), h(Shape(op.getX())[2]), w(Shape(op.getX())[3]), oh(Shape(op.getY())[2]),
      ow(Shape(op.getY())[3]), n(std::max<int64_t>(1, likelyOf(images))), c(Shape(op.getX())[1].value()),
      oc(Shape(op.getY())[1].value()) {
  assert(Shape(op.getX()).rank() == 4 && "2-D convolutions only");
  ArrayRef<int64_t> weight = op.getWeightShape();
  kh = weight[2], kw = weight[3];
  strideH = op.getStrides()[0], strideW = op.getStrides()[1];
  dilationH = op.getDilations()[0], dilationW = op.getDilations()[1];
  padTop = op.getPads()[0], padLeft = op.getPads()[1], padBottom = op.getPads()[2], padRight = op.getPads()[3];
  groups = op.getGroups();
  xElement = getElementTypeOrSelf(op.getX().getType()), wElement = getElementTypeOrSelf(op.getW().getType());
  yElement = getElementTypeOrSelf(op.getY().getType());
  kind = tileKindOf(xElement, packingOf(op)).value_or(TileKind::F32);
  xBytes = device::elementBytes(xElement);
  yBytes = device::elementBytes(yElement);
  widens = kind == TileKind::F32 && xBytes < 4;
  bool halves = kind == TileKind::S16 && packingOf(op) && packingOf(op).getChunk(); // bytes are multiplied
  aBytes = widens ? 4 : halves ? 1 : xBytes;
}

LogicalResult checkPacking(Operation *op, const X86Target &target) {
  PackingAttr packing = packingOf(op);
  if (!packing) {
    return op->emitOpError("has weights packed for another family of chips");
  }
  if (packing.getChunk()) {
    return target.amx ? success()
                      : op->emitOpError() << "has weights packed as " << packing << ", but " << target.name()
                                          << " does not support AMX tiles";
  }
  if (packing.getStep() == PackedStep::i8x4 && !target.vnni) {
    return op->emitOpError() << "has weights packed as " << packing << ", but " << target.name()
                             << " does not support dot products of bytes";
  }
  if (packing.getStep() == PackedStep::bf16x2 && !target.bf16) {
    return op->emitOpError() << "has weights packed as " << packing << ", but " << target.name()
                             << " does not support dot products of bf16";
  }
  bool depthwise = packing.getOrder() == PackedOrder::depthwise || packing.getOrder() == PackedOrder::windows;
  if (int64_t most = maxTileRows(target, packing.getColumns() / kBlock); !depthwise && packing.getRows() > most) {
    return op->emitOpError() << "has weights packed as " << packing << ", but the registers of " << target.name()
                             << " hold " << most << " rows of such a tile";
  }
  return success();
}

TileWeights::TileWeights(const X86Target &target, Panels operand)
    : panels(std::move(operand)), copied(stepBits(panels.step) < 32 && !target.hasFma()),
      tileStep(copied ? PackedStep::f32 : panels.step), stepBytes(stepBytesOfB(panels.step)),
      tileStepBytes(stepBytesOfB(tileStep)) {}

TileWeights TileWeights::asCopies() const {
  TileWeights copies = *this;
  copies.copied = true, copies.tileStep = PackedStep::f32, copies.tileStepBytes = stepBytesOfB(PackedStep::f32);
  return copies;
}

void TileWeights::describe(TileShape &shape) const {
  shape.step = tileStep;
  shape.panelRowBytes = shape.blocks * tileStepBytes;
  shape.groups = panels.runs;
  if (panels.scaleRows && !copied) {
    shape.scalesAt = panels.weightBytesOfBlock() * shape.blocks;
    shape.runsPerScale = panels.runsPerScale;
  }
}

void TileWeights::copyPanel(KernelBuilder &kb, Value from, Value to, int64_t blocks) const {
  if (isScaledStep(panels.step)) {
    return copyIntegers(kb, from, to, blocks);
  }
  Type element = panels.step == PackedStep::bf16 ? Type(kb.b.getBF16Type()) : kb.b.getF16Type();
  widenFloats(kb, element, from, to, kb.constant(panels.steps() * blocks * kBlock));
}

void TileWeights::copyIntegers(KernelBuilder &kb, Value from, Value to, int64_t blocks) const {
  int64_t width = blocks * kBlock, bytesBefore = 0, stepsBefore = 0, rowsBefore = 0;
  auto bytes = VectorType::get({kBlock}, kb.b.getI8Type()), words = VectorType::get({kBlock}, kb.b.getI32Type()),
       floats = VectorType::get({kBlock}, kb.b.getF32Type());
  Value scales = byteOffset(kb, from, panels.weightBytesOfBlock() * blocks);
  auto splat = [&](int32_t value) -> Value {
    return arith::ConstantOp::create(kb.b, DenseElementsAttr::get(words, value));
  };
  auto shiftLeft = [&](Value value, int32_t by) -> Value { return arith::ShLIOp::create(kb.b, value, splat(by)); };
  auto shiftRight = [&](Value value, int32_t by) -> Value { return arith::ShRSIOp::create(kb.b, value, splat(by)); };
  for (const StepRun &run : panels.runs) {
    int64_t perByte = panels.step == PackedStep::i4 ? 2 : 1, rowsOfRun = ceilDiv(run.size, perByte);
    kb.forLoop(0, run.count, 1, [&](Value index) {
      Value scaleRow = panels.scaleRows ? kb.add(kb.div(index, panels.runsPerScale), rowsBefore) : Value();
      kb.forLoop(0, blocks, 1, [&](Value block) {
        Value column = kb.mul(block, kBlock);
        Value scale = scaleRow ? kb.load(floats, scales, kb.add(kb.mul(scaleRow, width), column)) : Value();
        for (int64_t k = 0; k < run.size; ++k) {
          Value row = kb.add(kb.mul(index, rowsOfRun), k / perByte);
          Value at = kb.add(kb.add(kb.mul(row, width), bytesBefore * blocks), column);
          Value value = arith::ExtSIOp::create(kb.b, words, kb.load(bytes, from, at));
          if (perByte == 2) {
            value = shiftRight(shiftLeft(value, k % 2 ? 24 : 28), 28);
          }
          value = arith::SIToFPOp::create(kb.b, floats, value);
          value = scale ? Value(arith::MulFOp::create(kb.b, value, scale)) : value;
          Value step = kb.add(kb.add(kb.mul(index, run.size), k), stepsBefore);
          kb.store(value, to, kb.add(kb.mul(step, width), column));
        }
      });
    });
    bytesBefore += run.count * rowsOfRun * kBlock, stepsBefore += run.count * run.size;
    rowsBefore += panels.scaleRows ? run.count / panels.runsPerScale : 0;
  }
}

std::optional<TileKind> tileKindOf(Type x, PackingAttr packing) {
  if (packing && packing.getStep() == PackedStep::bf16x2) {
    return TileKind::BF16;
  }
  if (x.isF32() || x.isF16() || x.isBF16()) {
    return TileKind::F32;
  }
  if (x.isInteger(8)) {
    return x.isUnsignedInteger() ? TileKind::U8 : TileKind::S8;
  }
  if (x.isSignlessInteger(16)) {
    return TileKind::S16;
  }
  return std::nullopt;
}

EvenSplit::EvenSplit(int64_t total, int64_t largest)
    : pieces(std::max<int64_t>(1, ceilDiv(total, largest))), size(total / pieces), wide(total % pieces) {}

WorkSplit splitWork(int64_t flops, int64_t rowSteps, int64_t panels, int64_t aBytes, int64_t bBytes, int64_t outer) {
  constexpr int64_t kTileNs = 60'000, kSmallNs = 4'000, kMostTiles = 64, kRowBytes = 640 * 1024;
  // The minimum time of one core; a matmul of few rows is bound by loading its weights.
  int64_t ns = std::max(flops / 100, bBytes / 40) * outer;
  // Below kSmallNs, starting a second tile costs more than it gains.
  int64_t wanted = ns < kSmallNs ? 1 : std::clamp<int64_t>(ns / kTileNs, 2, kMostTiles);
  int64_t fewestRowParts = std::max<int64_t>(1, std::min(rowSteps, ceilDiv(aBytes, kRowBytes)));
  WorkSplit best;
  double bestCost = -1;
  auto consider = [&](int64_t rowParts, int64_t panelParts) {
    int64_t parts = outer * rowParts * panelParts;
    // Uneven parts leave a thread idle at the end, because a row step or panel cannot be divided.
    double rowWaste = double(ceilDiv(rowSteps, rowParts) * rowParts) / rowSteps;
    double panelWaste = double(ceilDiv(panels, panelParts) * panelParts) / panels;
    double missing = double(std::max(wanted, parts)) / std::min(wanted, parts);
    double odd = parts % 2 && parts > 1 && parts < 16 ? 1.0 + 0.5 / parts : 1.0;
    double traffic = double(aBytes) * panelParts + double(bBytes) * rowParts;
    double cost = (double(flops) / 60 + traffic / 8) * (1 + (rowWaste * panelWaste - 1) / parts) * odd *
                  (1 + (parts < wanted ? 0.5 : 0.02) * (missing - 1));
    if (bestCost < 0 || cost < bestCost) {
      bestCost = cost;
      best = {rowParts, panelParts};
    }
  };
  int64_t most = std::min(rowSteps, std::max(fewestRowParts + 2, ceilDiv(2 * wanted, outer)));
  for (int64_t rowParts = fewestRowParts; rowParts <= most; ++rowParts) {
    int64_t enough = std::min(panels, std::max<int64_t>(1, ceilDiv(wanted, outer * rowParts)));
    consider(rowParts, enough);
    consider(rowParts, std::min(panels, enough + 1));
  }
  return best;
}

WorkSplit splitCopiedWork(int64_t flops, int64_t rowSteps, int64_t panels, int64_t aBytes, int64_t bBytes,
                          int64_t outer) {
  constexpr int64_t kTileNs = 400'000, kMostTiles = 16, kCacheBytes = 16 * 1024 * 1024;
  int64_t wanted = std::clamp<int64_t>(flops / 100 * outer / kTileNs, 2, kMostTiles);
  // Bytes per nanosecond. Reads of B overlap with the arithmetic, unless B comes from memory.
  double copies = 28, reads = bBytes > kCacheBytes ? 40 : 800;
  WorkSplit best;
  double bestCost = -1;
  for (int64_t rowParts = 1; rowParts <= std::min(rowSteps, 2 * wanted); ++rowParts) {
    int64_t panelParts = std::min(panels, ceilDiv(wanted, outer * rowParts)), parts = outer * rowParts * panelParts;
    double rowWaste = double(ceilDiv(rowSteps, rowParts) * rowParts) / double(rowSteps);
    double panelWaste = double(ceilDiv(panels, panelParts) * panelParts) / double(panels);
    double odd = parts % 2 && parts > 1 ? 1.0 + 0.5 / double(parts) : 1.0;
    double cost = double(flops) / 100 * odd * (1 + (rowWaste * panelWaste - 1) / double(parts)) +
                  double(aBytes * panelParts) / copies + double(bBytes * rowParts) / reads;
    if (bestCost < 0 || cost < bestCost) {
      bestCost = cost, best = {rowParts, panelParts};
    }
  }
  return best;
}

void forRowsOfBlocks(KernelBuilder &kb, const ConvShape &s, int64_t blocks, int64_t tapsPerTile,
                     llvm::function_ref<void(Value, Value, Value, Value)> body) {
  constexpr int64_t kWanted = 16;
  int64_t likelyRows = std::max<int64_t>(1, likelyOf(s.oh)), taps = likelyRows * likelyOf(s.ow) * s.kh * s.kw;
  int64_t rowParts = std::clamp<int64_t>(std::min(taps / tapsPerTile, ceilDiv(kWanted, s.n * blocks)), 1, likelyRows);
  kb.forTiles(s.images * blocks * rowParts, [&](Value tile) {
    Value part = kb.rem(tile, rowParts), rest = kb.div(tile, rowParts);
    Value block = kb.rem(rest, blocks), image = kb.div(rest, blocks);
    Value rowBegin = kb.div(kb.mul(part, s.oh), rowParts), rowEnd = kb.div(kb.mul(kb.add(part, 1), s.oh), rowParts);
    body(image, block, rowBegin, rowEnd);
  });
}

void forOpenTiles(KernelBuilder &kb, Value begin, Value total, int64_t largest,
                  function_ref<void(Value, Value, int64_t)> emitTiles) {
  for (int64_t positions = largest; positions > 0;) {
    Value count = kb.div(total, positions);
    emitTiles(begin, count, positions);
    begin = kb.add(begin, kb.mul(count, positions));
    total = kb.rem(total, positions);
    positions = positions > 16 ? 8 : positions > 8 ? 4 : positions / 2;
  }
}

std::optional<SmallVector<TileExtra>> classifyExtras(Operation *op, OperandRange extras, RankedTensorType y,
                                                     unsigned &unsupported) {
  SmallVector<TileExtra> kinds;
  bool blocked = device::isBlocked(y);
  // A row is an index of the result apart from its columns: a position of an image, or a row of a matrix.
  int64_t columnDim = blocked ? 1 : y.getRank() - 1;
  for (auto [index, value] : llvm::enumerate(extras)) {
    unsupported = index;
    auto type = cast<RankedTensorType>(value.getType());
    Type element = type.getElementType();
    if (!device::isEpilogueElement(element)) {
      return std::nullopt;
    }
    TileExtra extra{ExtraKind::Full, element, device::elementBytes(element)};
    SmallVector<Dim> dims(y.getRank() - type.getRank(), Dim(1));
    llvm::append_range(dims, Shape(type).dims());
    bool onlyColumn =
        llvm::all_of(llvm::seq<int64_t>(0, y.getRank()), [&](int64_t d) { return dims[d].is(1) || d == columnDim; });
    auto startsLike = [&](int64_t count) {
      return llvm::all_of(llvm::seq<int64_t>(0, count), [&](int64_t d) { return sameSize(dims[d], Shape(y)[d]); });
    };
    if (countElements(type).is(1)) {
      extra.kind = ExtraKind::Scalar;
    } else if (sameSizes(type, y) && device::isBlocked(type) == blocked) {
      extra.kind = ExtraKind::Full;
    } else if (onlyColumn && sameSize(Shape(y)[columnDim], dims[columnDim])) {
      extra.kind = ExtraKind::Column;
    } else if (!blocked && y.getRank() > 2 && sameSize(Shape(y).back(), dims.back()) && dims[y.getRank() - 2].is(1) &&
               startsLike(y.getRank() - 2)) {
      extra.kind = ExtraKind::Column, extra.perMatrix = true;
    } else if (!blocked && dims.back().is(1) && startsLike(y.getRank() - 1)) {
      extra.kind = ExtraKind::Row, extra.rowStride = 1;
    } else {
      return std::nullopt;
    }
    kinds.push_back(extra);
  }
  return kinds;
}

} // namespace tessera::x86

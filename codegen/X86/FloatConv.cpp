//===- FloatConv.cpp - Direct convolution of floats -----------------------===//
// SPDX-License-Identifier: Apache-2.0
//
// Vector instructions multiply f32 or pairs of bf16. A reads the blocked input in place. If the window crosses the
// border, the input rows of a launch tile are first copied to scratch with their padding. If outer taps see only
// padding at many positions, the tiles of these positions skip such taps. A row-major input (the image of a first
// layer, with few channels) is always copied, and so are f16 and bf16 that are multiplied as f32.
//===----------------------------------------------------------------------===//
#include "codegen/X86/ConvLoops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// Splits the |output| positions of a dim into runs that see the same taps.
SmallVector<BorderSegment> segmentsOf(int64_t output, int64_t input, int64_t stride, int64_t pad, int64_t dilation,
                                      int64_t kernel) {
  SmallVector<BorderSegment> segments;
  for (int64_t at = 0; at < output; ++at) {
    int64_t start = at * stride - pad;
    int64_t first = start < 0 ? ceilDiv(-start, dilation) : 0;
    int64_t last = start >= input ? 0 : std::min(kernel, ceilDiv(input - start, dilation));
    bool unseen = first >= last;
    if (unseen) { // all taps see zeros; keep one, because a tile needs at least one
      first = 0, last = 1;
    }
    BorderSegment *before = segments.empty() ? nullptr : &segments.back();
    if (before && before->first == first && before->last == last && before->unseen == unseen) {
      before->end = at + 1;
    } else {
      segments.push_back({at, at + 1, first, last, unseen});
    }
  }
  return segments;
}

/// Returns the segments if skipping taps pays off although it needs more and smaller tiles. Only floats skip taps:
/// integers may be padded with nonzero values, which the bias accounts for.
std::optional<BorderSegments> findSkips(const ConvGeometry &g) {
  constexpr size_t kMostSegments = 9; // pairs of segments, each of which needs its own code
  constexpr int64_t kFewColumns = 6;  // narrower tiles take as long
  constexpr double kMostOfWhole = 0.85;
  const ConvShape &s = g.s;
  if (g.packing.getOrder() != PackedOrder::blocks || g.packing.getScaleGroup() || isScaledStep(g.packing.getStep()) ||
      !s.padded() || s.hasOpenPlanes() || g.tiling.isOneRow() || g.tiling.tileH != 1) {
    return std::nullopt;
  }
  int64_t oh = s.oh.value(), ow = s.ow.value();
  BorderSegments segments{true, segmentsOf(oh, s.h.value(), s.strideH, s.padTop, s.dilationH, s.kh),
                          segmentsOf(ow, s.w.value(), s.strideW, s.padLeft, s.dilationW, s.kw)};
  double rows = 0, all = 0;
  for (const BorderSegment &segment : segments.rows) {
    rows += double(segment.length() * segment.taps());
  }
  for (const BorderSegment &segment : segments.columns) {
    EvenSplit split(segment.length(), g.packing.getRows());
    all += rows * double(split.pieces * std::max(kFewColumns, split.length(0)) * segment.taps());
  }
  bool pays = segments.rows.size() * segments.columns.size() <= kMostSegments &&
              all <= kMostOfWhole * double(oh * ow * s.kh * s.kw);
  return pays ? std::optional(segments) : std::nullopt;
}

ConvGeometry geometryOf(device::ConvOp op, const X86Target &target) {
  ConvShape s(op);
  bool blocked = packingOf(op).getOrder() == PackedOrder::blocks;
  bool flat = s.isPointwise() && s.strideH == 1 && s.strideW == 1 && blocked && !s.padded();
  ConvGeometry g(op, target, s.padded() || !blocked || s.widens || (s.hasOpenPlanes() && !flat), flat);
  g.tiling.stackRows(rowsOfVectorTile(g));
  if (std::optional<BorderSegments> skips = findSkips(g)) {
    g.segments = *skips;
    auto isSeen = [](const BorderSegment &segment) { return !segment.unseen; };
    if (llvm::all_of(skips->rows, isSeen) && llvm::all_of(skips->columns, isSeen)) {
      g.input.copied = s.widens; // no tile reads padding
    }
  }
  g.splitLaunch();
  if (!g.input.copied) {
    g.readInPlace();
  } else if (flat) {
    g.copyFlat(g.rowStepsOfPart());
  } else {
    g.copyRows(positionsOfVectorRow(g));
  }
  return g;
}

/// Returns, for each pair of segments, the offset of every K group inside the image and the K steps skipped before it.
SmallVector<int32_t> seenOffsets(const ConvGeometry &g) {
  const ConvShape &s = g.s;
  SmallVector<int32_t> offsets;
  int64_t perStep = stepElements(g.packing.getStep());
  for (const BorderSegment &rows : g.segments.rows) {
    for (const BorderSegment &columns : g.segments.columns) {
      int64_t skipped = 0;
      for (int64_t group = 0; group < s.icBlocks() * s.kh * s.kw; ++group) {
        int64_t block = group / s.kw / s.kh, y = group / s.kw % s.kh, x = group % s.kw;
        int64_t channels = std::min(kBlock, s.groupC() - block * kBlock);
        if (y < rows.first || y >= rows.last || x < columns.first || x >= columns.last) {
          skipped += ceilDiv(channels, perStep);
          continue;
        }
        offsets.push_back(g.tapOffset(block, y, x));
        offsets.push_back(std::exchange(skipped, 0));
      }
    }
  }
  return offsets;
}

class FloatConv {
public:
  FloatConv(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), g(geometryOf(op, targetOf(kb))),
        loops(kb, op, g, extras, g.segments.skip ? seenOffsets(g) : g.groupOffsets(groupsOfVectorRow(g)),
              [this](TileShape &shape, SegmentIndex at) { complete(shape, at); }) {}

  void emit();

private:
  void complete(TileShape &shape, SegmentIndex at) const;
  void copyPositions(Value from, Value to, Value count);
  void copyRows(const ConvPart &part, Value firstRow);
  void copyFlat(const ConvPart &part, Value begin, Value end);

  device::ConvOp op;
  KernelBuilder &kb;
  const ConvGeometry g;
  ConvLoops loops;
};

/// Restricts |shape| to the K groups that its segments see.
void FloatConv::complete(TileShape &shape, SegmentIndex at) const {
  bool neighbours = g.packing.getOrder() == PackedOrder::taps;
  shape.oddGroups = neighbours && shape.kind == TileKind::BF16 && g.s.kw % 2 != 0;
  const BorderSegments &segments = g.segments;
  if (!segments.skip) {
    return;
  }
  size_t columns = segments.columns.size();
  auto taps = [&](size_t row, size_t column) { return segments.rows[row].taps() * segments.columns[column].taps(); };
  int64_t before = 0;
  for (size_t pair = 0; pair < at.row * columns + at.column; ++pair) {
    before += taps(pair / columns, pair % columns);
  }
  shape.skips = true, shape.tableBytes = before * g.s.icBlocks() * 2 * int64_t(sizeof(int32_t));
  for (StepRun &run : shape.groups) { // the runs of whole channel blocks, and of the remaining channels
    run.count = run.count / (g.s.kh * g.s.kw) * taps(at.row, at.column);
  }
}

/// Copies |count| positions of the input in the form in which A is read.
void FloatConv::copyPositions(Value from, Value to, Value count) {
  if (g.s.widens) {
    return widenFloats(kb, g.s.xElement, from, to, kb.mul(count, g.input.lanes));
  }
  LLVM::MemcpyOp::create(kb.b, to, from, kb.mul(count, g.input.positionBytes), /*isVolatile=*/false);
}

void FloatConv::copyRows(const ConvPart &part, Value firstRow) {
  copyPaddedRows(
      kb, g, part, firstRow, [&](Value from, Value to, Value count) { copyPositions(from, to, count); },
      [&](Value to, Dim bytes) { fillBytes(kb, to, bytes, static_cast<int8_t>(op.getPadValue())); });
}

/// Copies the positions [begin, end) of the flat row to scratch.
void FloatConv::copyFlat(const ConvPart &part, Value begin, Value end) {
  Value source = byteOffset(kb, kb.operand(0), kb.mul(part.imageGroup, g.sourceGroup()));
  kb.forLoop(0, g.input.planes, 1, [&](Value block) {
    Value first = kb.add(kb.mul(block, g.s.h * g.s.w), begin);
    copyPositions(byteOffset(kb, source, kb.mul(first, g.sourceBytes())),
                  byteOffset(kb, kb.scratch(), kb.mul(block, g.input.plane)), kb.sub(end, begin));
  });
}

void FloatConv::emit() {
  kb.setScratchBytes(g.scratchBytes());
  kb.forTiles(g.launchTiles(), [&](Value tile) {
    ConvPart part = loops.partOf(tile);
    if (!g.input.copied) {
      loops.emitInPlace(part);
    } else if (g.tiling.flat) {
      loops.emitFlat(part, g.rowStepsOfPart(), [&](Value begin, Value end) { copyFlat(part, begin, end); });
    } else {
      loops.emitCopied(part, [&](Value firstRow) { copyRows(part, firstRow); });
    }
  });
}

} // namespace

void emitFloatConv(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras) {
  FloatConv(op, kb, extras).emit();
}

} // namespace tessera::x86

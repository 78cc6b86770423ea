//===- MicroConv.cpp - Direct convolution on register tiles ---------------===//
// SPDX-License-Identifier: Apache-2.0
//
// As a matmul, a convolution has output positions as rows and output channels as columns; K runs over (input channel
// block, kernel row, kernel column, channel), the order of the packed weights. A reads the blocked input in place. If
// the window crosses the border, the input rows of a launch tile are first copied to scratch with their padding. If
// outer taps see only padding at many positions, the tiles of these positions skip such taps.
// A row-major input (the image of a first layer, with few channels) is always copied; its K is (channel, kernel row,
// kernel column). AMX tiles need K contiguous in each row, so their copy has channels last; an i16 input has two
// copies, one of the low and one of the high bytes.
//===----------------------------------------------------------------------===//
#include "codegen/X86/AmxTile.h"
#include "codegen/X86/Micro.h"
#include "codegen/X86/MicroShape.h"
#include "device_dialect/IR/Layout.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace tessera::x86 {
namespace {

/// A run of positions along a dim of the result at which the same taps, [first, last), lie inside the image.
struct BorderSegment {
  int64_t begin, end, first, last;
  bool unseen = false; ///< no tap lies inside the image
  int64_t length() const { return end - begin; }
  int64_t taps() const { return last - first; }
};

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

class DirectConv {
public:
  DirectConv(device::ConvOp op, KernelBuilder &kb, ArrayRef<TileExtra> extras)
      : op(op), kb(kb), s(op), packing(packingOf(op)), channelsLast(hasChannelsLast(packing.getOrder())),
        blockedInput(packing.getOrder() == PackedOrder::blocks || packing.getOrder() == PackedOrder::channels_last),
        apart(packing.getOrder() == PackedOrder::apart), signedDots(s.kind == TileKind::S8 && flipsBytes(packing)),
        copied(s.padded() || !blockedInput || channelsLast || s.widens || (signedDots && s.groupOc() >= kWorthCopying)),
        lanesOfX(blockedInput ? kBlock : 1),
        elementBytes(channelsLast ? paddedDepth(packing.getOrder(), s.groupC(), s.aBytes, s.kw, packing.getChunk())
                                  : s.aBytes * lanesOfX),
        weights(targetOf(kb), panelsOfConv(packing, s.groups)), extraKinds(extras),
        panelBlocks(weights.panels.panelBlocks),
        // A 1x1 kernel does not mix rows, so all positions form one long row. The copy removes strides.
        flat(s.kh == 1 && s.kw == 1 && (channelsLast || (s.strideH == 1 && s.strideW == 1)) &&
             (!copied || ((s.widens || channelsLast) && blockedInput && !s.padded()))),
        stepW(flat ? 1 : s.strideW), outH(flat ? 1 : s.oh), outW(flat ? s.oh * s.ow : s.ow),
        halves(channelsLast && s.kind == TileKind::S16), columns(outW, packing.getRows()), tileH(rowsOfTile()),
        rowSteps(outH == 1 ? columns.pieces : ceilDiv(outH, tileH)) {
    skips = findSkips();
    if (!skips) {
      rowSegments = {{0, outH, 0, s.kh}}, columnSegments = {{0, outW, 0, s.kw}};
    }
    auto isSeen = [](const BorderSegment &segment) { return !segment.unseen; };
    if (skips && llvm::all_of(rowSegments, isSeen) && llvm::all_of(columnSegments, isSeen)) {
      copied = s.widens; // no tile reads padding
    }
    for (const BorderSegment &segment : columnSegments) {
      tilesPerRow += EvenSplit(segment.length(), packing.getRows()).pieces;
    }
  }

  void emit();

private:
  bool findSkips();
  /// Register tiles that are neighbours in output rows of one run.
  struct Tiles {
    EvenSplit split;
    int64_t first;  ///< column of the result at which they begin
    int64_t before; ///< number of tiles of the row before them
    size_t rowSegment, columnSegment;
  };
  void planMemory();
  int64_t stepsOfStrip() const;
  void emitStrip(Value imageGroup, Value panelBegin, Value panelEnd, Value rowBegin, Value rowEnd);
  int64_t rowsOfTile() const;
  int64_t positionsOfRow() const;
  void copyRows(Value image, Value group, Value firstRow);
  void copyFlat(Value imageGroup, Value begin, Value end);
  void copyPositions(Value from, Value to, Value count);
  /// Returns the first position of tile |piece| of the flat row.
  Value positionOf(Value piece) {
    return kb.add(kb.mul(piece, columns.size), kb.min(piece, kb.constant(columns.wide)));
  }
  void emitPanels(Value panelBegin, Value panelEnd, Value rowBegin, Value rowEnd);
  void emitPanel(Value panel, Value rowBegin, Value rowEnd, bool last);
  void emitRows(Value begin, Value end, int64_t rows, bool last);
  void emitRow(Value step, const Tiles &tiles, int64_t rows, Value tileBegin, Value tileEnd, bool last);
  void emitTiles(Value step, const Tiles &tiles, Value begin, Value end, int64_t rows, int64_t width, bool last);
  SmallVector<int32_t> groupOffsets() const;
  SmallVector<int32_t> seenOffsets() const;
  void leaveOut(TileShape &shape, size_t rowSegment, size_t columnSegment) const;
  TileShape tileShape(int64_t rows, int64_t width, int64_t blocks) const;
  int64_t weightsOfGroup() const {
    bool plain = s.kind == TileKind::F32 && weights.stepBytes == kBlockBytes;
    return plain ? steps * s.groupOc() * 4 : s.ocBlocks() * weights.panels.bytesOfBlock();
  }

  device::ConvOp op;
  KernelBuilder &kb;
  ConvShape s;
  /// Number of output channels from which copying signed bytes as value + 128 is cheaper than adding 128 in the K loop
  /// of each panel.
  static constexpr int64_t kWorthCopying = 64;
  PackingAttr packing;
  bool channelsLast; ///< the copy in scratch has channels last, for AMX tiles
  bool blockedInput;
  bool apart;      ///< row-major input, each K step holds one kernel column
  bool signedDots; ///< signed A is multiplied as A + 128
  bool copied;
  int64_t lanesOfX;     ///< elements of one position of the input in memory
  int64_t elementBytes; ///< bytes of one position as it is multiplied
  TileWeights weights;
  ArrayRef<TileExtra> extraKinds;
  int64_t panelBlocks;
  bool flat;     ///< all positions form one row
  int64_t stepW; ///< positions of A between neighbouring positions of the result
  int64_t outH, outW;
  bool halves;       ///< low and high bytes of i16 are copied separately
  EvenSplit columns; ///< register tiles of one output row
  int64_t tileH;     ///< output rows of one register tile
  int64_t rowSteps;  ///< register tiles of a flat row, else groups of tileH output rows
  bool skips;        ///< tiles skip taps that see only padding
  SmallVector<BorderSegment> rowSegments, columnSegments;

  WorkSplit work;
  int64_t panels = 0, lastBlocks = 0, steps = 0;
  int64_t pitch = 0, plane = 0; ///< bytes of a row and of a channel block of the data that A reads
  int64_t highAt = 0;           ///< with halves: bytes from the copy of the low bytes to that of the high bytes
  int64_t panelOffset = 0;      ///< offset of the widened panel in scratch
  int64_t strip = 0;            ///< row steps of a flat row that are copied at a time
  int64_t panelScratch() const { return weights.copied ? steps * panelBlocks * weights.tileStepBytes : 0; }
  int64_t prefetchLines = 0, tilesPerRow = 0;
  std::unique_ptr<TileFunctions> tiles;
  TileFunctions::Pointers base; ///< pointers of the current image, group and panel; a: the first input row of the tile
  Value firstStep;              ///< row step whose first row is at base.a
  Value partBegin;              ///< first row step of the launch tile
};

/// Computes the runs and returns true if skipping taps pays off although it needs more and smaller tiles. Supports
/// floats only: integers may be padded with nonzero values, which the bias accounts for.
bool DirectConv::findSkips() {
  constexpr size_t kMostSegments = 9; // pairs of runs, each of which needs its own code
  constexpr int64_t kFewColumns = 6;  // narrower tiles take as long
  constexpr double kMostOfWhole = 0.85;
  if (!sumsFloats(s.kind) || packing.getOrder() != PackedOrder::blocks || packing.getScaleGroup() ||
      isScaledStep(packing.getStep()) || !s.padded() || flat || outH == 1 || tileH != 1) {
    return false;
  }
  rowSegments = segmentsOf(s.oh, s.h, s.strideH, s.padTop, s.dilationH, s.kh);
  columnSegments = segmentsOf(s.ow, s.w, s.strideW, s.padLeft, s.dilationW, s.kw);
  double rows = 0, all = 0;
  for (const BorderSegment &segment : rowSegments) {
    rows += double(segment.length() * segment.taps());
  }
  for (const BorderSegment &segment : columnSegments) {
    EvenSplit split(segment.length(), packing.getRows());
    all += rows * double(split.pieces * std::max(kFewColumns, split.length(0)) * segment.taps());
  }
  return rowSegments.size() * columnSegments.size() <= kMostSegments &&
         all <= kMostOfWhole * double(s.oh * s.ow * s.kh * s.kw);
}

/// Returns the number of output rows of one register tile.
int64_t DirectConv::rowsOfTile() const {
  if (outH == 1 || columns.pieces > 1) {
    return 1;
  }
  if (!channelsLast) {
    return std::clamp<int64_t>(packing.getRows() / outW, 1, outH);
  }
  // Output rows share an AMX window if the window holds them and the input rows between them.
  int64_t between = s.strideH * positionsOfRow() / s.strideW;
  int64_t perWindow = outW > kWindowRows ? 0 : 1 + (kWindowRows - outW) / between;
  return std::clamp<int64_t>(packing.getRows() / kWindowRows * perWindow, 1, outH);
}

/// Returns the number of positions in a row of the copy.
int64_t DirectConv::positionsOfRow() const {
  // The last K step of a kernel row reads beyond its taps if they do not fill the step (the weights there are zero).
  int64_t perStep = stepElements(packing.getStep());
  int64_t lastTap = apart ? (s.kw - 1) * s.dilationW : (s.kw - 1) / perStep * perStep;
  int64_t reach = blockedInput || channelsLast ? (s.kw - 1) * s.dilationW + 1 : lastTap + perStep;
  int64_t positions = (s.ow - 1) * s.strideW + reach;
  return channelsLast ? int64_t(llvm::alignTo(positions, s.strideW)) : positions;
}

void DirectConv::planMemory() {
  steps = weights.panels.steps();
  panels = ceilDiv(s.ocBlocks(), panelBlocks);
  lastBlocks = s.ocBlocks() - (panels - 1) * panelBlocks;
  int64_t inBytes = s.icBlocks() * kBlock * s.aBytes * s.h * s.w;
  int64_t flops = s.flops() / s.n / s.groups / productsPerStep(packing.getStep(), packing.getChunk());
  work = splitWork(flops, rowSteps, panels, inBytes * (copied ? 2 : 1), weightsOfGroup(), s.n * s.groups);
  if (!copied) {
    pitch = s.w * elementBytes;
    plane = s.h * pitch;
    kb.setScratchBytes(panelScratch());
    return;
  }
  panelOffset = 0;
  int64_t planes = channelsLast ? 1 : blockedInput ? s.icBlocks() : s.groupC();
  // An AMX window reads all of its rows, even those that the tile does not need.
  int64_t behind = channelsLast ? kWindowRows * s.strideW * elementBytes : 0;
  if (flat) {
    strip = std::min(ceilDiv(rowSteps, work.rowParts), stepsOfStrip());
    plane = strip * (columns.size + (columns.wide ? 1 : 0)) * elementBytes;
    panelOffset = plane * planes + behind;
    highAt = halves ? llvm::alignTo(panelOffset, 64) + 64 : 0;
    panelOffset += highAt;
    kb.setScratchBytes(panelOffset + panelScratch());
    return;
  }
  int64_t rowsOut = ceilDiv(rowSteps, work.rowParts) * tileH;
  if (outH == 1) {
    rowsOut = 1;
  }
  int64_t rowsIn = (rowsOut - 1) * s.strideH + (s.kh - 1) * s.dilationH + 1;
  pitch = positionsOfRow() * elementBytes;
  plane = rowsIn * pitch;
  panelOffset = int64_t(llvm::alignTo(plane * planes + behind, 64));
  highAt = halves ? panelOffset + 64 : 0;
  panelOffset += highAt;
  kb.setScratchBytes(panelOffset + panelScratch());
}

/// Returns the number of row steps to copy at a time. AMX reads its few rows so fast that the copy should stay in L1;
/// then all weights are read again for each strip, which is cheap while they are in L2.
int64_t DirectConv::stepsOfStrip() const {
  constexpr int64_t kStripBytes = 24 * 1024, kMostWeights = 256 * 1024;
  if (!channelsLast || weightsOfGroup() > kMostWeights) {
    return rowSteps;
  }
  return std::max<int64_t>(1, kStripBytes / (columns.size * elementBytes * (halves ? 2 : 1)));
}

SmallVector<int32_t> DirectConv::groupOffsets() const {
  SmallVector<int32_t> offsets;
  if (flat) {
    return offsets; // one K group per channel block, with a constant stride
  }
  if (skips) {
    return seenOffsets();
  }
  int64_t outer = channelsLast ? 1 : blockedInput ? s.icBlocks() : s.groupC();
  // The taps of one kernel row are contiguous in a row-major image, and so are all their channels in a channels-last
  // copy: they form one K group.
  bool neighbours = channelsLast ? s.dilationW == 1 : !blockedInput && !apart;
  int64_t taps = neighbours ? 1 : s.kw;
  for (int64_t channel = 0; channel < outer; ++channel) {
    for (int64_t y = 0; y < s.kh; ++y) {
      for (int64_t x = 0; x < taps; ++x) {
        offsets.push_back(channel * plane + y * s.dilationH * pitch + x * s.dilationW * elementBytes);
      }
    }
  }
  return offsets;
}

/// Returns, for each pair of runs, the offset of every K group inside the image and the K steps skipped before it.
SmallVector<int32_t> DirectConv::seenOffsets() const {
  SmallVector<int32_t> offsets;
  int64_t perStep = stepElements(packing.getStep());
  for (const BorderSegment &rows : rowSegments) {
    for (const BorderSegment &columns : columnSegments) {
      int64_t skipped = 0;
      for (int64_t group = 0; group < s.icBlocks() * s.kh * s.kw; ++group) {
        int64_t block = group / s.kw / s.kh, y = group / s.kw % s.kh, x = group % s.kw;
        int64_t channels = std::min(kBlock, s.groupC() - block * kBlock);
        if (y < rows.first || y >= rows.last || x < columns.first || x >= columns.last) {
          skipped += ceilDiv(channels, perStep);
          continue;
        }
        offsets.push_back(block * plane + y * s.dilationH * pitch + x * s.dilationW * elementBytes);
        offsets.push_back(std::exchange(skipped, 0));
      }
    }
  }
  return offsets;
}

/// Restricts |shape| to the K groups that the given pair of runs sees.
void DirectConv::leaveOut(TileShape &shape, size_t rowSegment, size_t columnSegment) const {
  auto taps = [&](size_t row, size_t column) { return rowSegments[row].taps() * columnSegments[column].taps(); };
  int64_t before = 0;
  for (size_t pair = 0; pair < rowSegment * columnSegments.size() + columnSegment; ++pair) {
    before += taps(pair / columnSegments.size(), pair % columnSegments.size());
  }
  int64_t own = taps(rowSegment, columnSegment);
  shape.skips = true, shape.tableBytes = before * s.icBlocks() * 2 * int64_t(sizeof(int32_t));
  for (StepRun &run : shape.groups) { // the runs of whole channel blocks, and of the remaining channels
    run.count = run.count / (s.kh * s.kw) * own;
  }
}

TileShape DirectConv::tileShape(int64_t rows, int64_t width, int64_t blocks) const {
  TileShape shape;
  shape.kind = signedDots && copied ? TileKind::U8 : s.kind;
  shape.blocks = blocks;
  weights.describe(shape);
  shape.groupBytes = flat ? plane : 0;
  shape.oddGroups = packing.getOrder() == PackedOrder::taps && shape.kind == TileKind::BF16 && s.kw % 2 != 0;
  if (channelsLast) {
    int64_t taps = s.dilationW == 1 ? s.kw : 1;
    shape.groups = {{s.kh * s.kw / taps, taps * elementBytes / 4}};
    shape.chunk = packing.getChunk(), shape.rowStride = stepW * elementBytes, shape.windowRows = kWindowRows;
    shape.highAt = highAt;
  }
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      shape.rows.push_back(y * s.strideH * pitch + x * stepW * elementBytes);
    }
  }
  shape.prefetchLines = prefetchLines;
  shape.aheadBytes = streamAhead(shape.step, weightsOfGroup());
  return shape;
}

/// Returns the byte that fills the border; i16 inputs have zero padding.
static int8_t padByte(device::ConvOp op, bool flipped) {
  return static_cast<int8_t>(op.getPadValue() ^ (flipped ? 0x80 : 0));
}

/// Copies |count| positions of the input in the form in which A is read.
void DirectConv::copyPositions(Value from, Value to, Value count) {
  int64_t inputPlane = s.h * s.w * s.xBytes * lanesOfX;
  if (channelsLast && !blockedInput) {
    copyPixels(kb, from, to, count, s.groupC(), inputPlane, s.aBytes);
  } else if (channelsLast) {
    copyChannelsLast(kb, from, to, count, s.icBlocks(), inputPlane, s.aBytes, elementBytes, highAt);
  } else if (s.widens) {
    widenFloats(kb, s.xElement, from, to, kb.mul(count, lanesOfX));
  } else if (signedDots) {
    flipBytes(kb, from, to, kb.mul(count, elementBytes));
  } else {
    LLVM::MemcpyOp::create(kb.b, to, from, kb.mul(count, elementBytes), /*isVolatile=*/false);
  }
}

/// Copies the positions [begin, end) of the flat row to scratch.
void DirectConv::copyFlat(Value imageGroup, Value begin, Value end) {
  int64_t sourceBytes = s.xBytes * lanesOfX;
  Value source = byteOffset(kb, kb.operand(0), kb.mul(imageGroup, s.icBlocks() * s.h * s.w * sourceBytes));
  if (channelsLast) {
    int64_t inputPlane = s.h * s.w * sourceBytes;
    if (s.strideH == 1 && s.strideW == 1) {
      return copyChannelsLast(kb, byteOffset(kb, source, kb.mul(begin, sourceBytes)), kb.scratch(), kb.sub(end, begin),
                              s.icBlocks(), inputPlane, s.aBytes, elementBytes, highAt);
    }
    return copyChannelsLast(kb, source, kb.scratch(), kb.sub(end, begin), s.icBlocks(), inputPlane, s.aBytes,
                            elementBytes, highAt, [&](Value index) {
                              Value position = kb.add(begin, index), row = kb.div(position, s.ow);
                              Value column = kb.rem(position, s.ow);
                              return kb.add(kb.mul(row, s.strideH * s.w), kb.mul(column, s.strideW));
                            });
  }
  kb.forLoop(0, s.icBlocks(), 1, [&](Value block) {
    Value first = kb.add(kb.mul(block, s.h * s.w), begin);
    copyPositions(byteOffset(kb, source, kb.mul(first, sourceBytes)),
                  byteOffset(kb, kb.scratch(), kb.mul(block, plane)), kb.sub(end, begin));
  });
}

/// Copies the input rows of the launch tile, which begin at |firstRow| (may be negative), to scratch with their
/// padding; for VNNI, signed bytes become value + 128.
void DirectConv::copyRows(Value image, Value group, Value firstRow) {
  int64_t planes = channelsLast ? 1 : blockedInput ? s.icBlocks() : s.groupC();
  int64_t sourceBytes = s.xBytes * lanesOfX, inputPlane = s.h * s.w * sourceBytes, rowsIn = plane / pitch,
          width = pitch / elementBytes, inputPlanes = blockedInput ? s.icBlocks() : s.groupC();
  int64_t inside = std::max<int64_t>(0, std::min(s.w, width - s.padLeft));
  int64_t right = width - s.padLeft - inside;
  Type byte = kb.b.getI8Type();
  auto clear = [&](Value to, int64_t bytes) {
    for (int64_t half = 0; bytes > 0 && half < (halves ? 2 : 1); ++half) {
      Value value = LLVM::ConstantOp::create(kb.b, byte, kb.b.getI8IntegerAttr(padByte(op, signedDots)));
      LLVM::MemsetOp::create(kb.b, byteOffset(kb, to, half * highAt), value, kb.constant(bytes), /*isVolatile=*/false);
    }
  };
  Value source =
      byteOffset(kb, kb.operand(0), kb.mul(kb.add(kb.mul(image, s.groups), group), inputPlanes * inputPlane));
  kb.forLoop(0, planes, 1, [&](Value channel) {
    Value from = byteOffset(kb, source, kb.mul(channel, inputPlane));
    Value to = byteOffset(kb, kb.scratch(), kb.mul(channel, plane));
    // Rows above, inside and below the image.
    Value rows = kb.constant(rowsIn);
    Value top = kb.min(rows, kb.max(kb.constant(0), kb.sub(kb.constant(0), firstRow)));
    Value bottom = kb.max(top, kb.min(rows, kb.sub(kb.constant(s.h), firstRow)));
    auto clearRows = [&](Value begin, Value end) {
      kb.forLoop(begin, end, 1, [&](Value row) { clear(byteOffset(kb, to, kb.mul(row, pitch)), pitch); });
    };
    if (!s.padded() && width == s.w) {
      // Whole rows are contiguous in both places.
      copyPositions(byteOffset(kb, from, kb.mul(firstRow, s.w * sourceBytes)), to, kb.mul(bottom, s.w));
      return;
    }
    clearRows(kb.constant(0), top);
    kb.forLoop(top, bottom, 1, [&](Value row) {
      Value target = byteOffset(kb, to, kb.mul(row, pitch));
      clear(target, std::min(s.padLeft, width) * elementBytes);
      if (inside > 0) {
        copyPositions(byteOffset(kb, from, kb.mul(kb.add(firstRow, row), s.w * sourceBytes)),
                      byteOffset(kb, target, s.padLeft * elementBytes), kb.constant(inside));
      }
      clear(byteOffset(kb, target, (s.padLeft + inside) * elementBytes), right * elementBytes);
    });
    clearRows(bottom, rows);
  });
}

void DirectConv::emit() {
  planMemory();
  // The next panel is prefetched while the tiles of this one run; the weights of a small layer stay in L2 anyway.
  int64_t tilesPerPanel = (outH == 1 ? 1 : tilesPerRow) * ceilDiv(rowSteps, work.rowParts);
  if (weightsOfGroup() > 256 * 1024 && !weights.copied) {
    int64_t lines = weights.panels.bytesOfBlock() / kBlockBytes;
    prefetchLines = std::min<int64_t>(ceilDiv(lines * panelBlocks, tilesPerPanel), 2 * lines);
  }
  tiles = std::make_unique<TileFunctions>(kb, op.getEpilogue(), extraKinds,
                                          op.getBias() ? TileFunctions::Bias::First : TileFunctions::Bias::None,
                                          groupOffsets());
  int64_t outImage = s.ocBlocks() * s.oh * s.ow * kBlock, parts = work.rowParts * work.panelParts;
  unsigned firstExtra = op.getBias() ? 3 : 2;
  kb.forTiles(s.n * s.groups * parts, [&](Value tile) {
    if (channelsLast) {
      emitTileConfig(kb, kWindowRows, packing.getChunk());
    }
    Value rowPart = kb.rem(tile, work.rowParts), rest = kb.div(tile, work.rowParts);
    Value panelPart = kb.rem(rest, work.panelParts), imageGroup = kb.div(rest, work.panelParts);
    Value group = kb.rem(imageGroup, s.groups), image = kb.div(imageGroup, s.groups);
    Value rowBegin = kb.div(kb.mul(rowPart, rowSteps), work.rowParts);
    Value rowEnd = kb.div(kb.mul(kb.add(rowPart, 1), rowSteps), work.rowParts);
    Value panelBegin = kb.div(kb.mul(panelPart, panels), work.panelParts);
    Value panelEnd = kb.div(kb.mul(kb.add(panelPart, 1), panels), work.panelParts);

    base = {};
    partBegin = rowBegin;
    firstStep = kb.constant(0);
    if (copied && !flat) {
      firstStep = outH == 1 ? firstStep : rowBegin;
      copyRows(image, group, kb.sub(kb.mul(firstStep, tileH * s.strideH), kb.constant(s.padTop)));
      base.a = kb.scratch();
    } else if (!copied) {
      int64_t around = s.padTop * pitch + s.padLeft * elementBytes;
      base.a = byteOffset(kb, kb.operand(0), kb.sub(kb.mul(imageGroup, s.icBlocks() * plane), kb.constant(around)));
    }
    base.b = byteOffset(kb, kb.operand(1), kb.mul(group, s.ocBlocks() * weights.panels.bytesOfBlock()));
    base.c = byteOffset(kb, kb.result(), kb.mul(imageGroup, outImage * s.yBytes));
    if (op.getBias()) {
      base.bias = byteOffset(kb, kb.operand(2), kb.mul(group, s.groupOc() * 4));
    }
    for (auto [index, extra] : llvm::enumerate(extraKinds)) {
      Value pointer = kb.operand(firstExtra + index);
      bool full = extra.kind == ExtraKind::Full, column = extra.kind == ExtraKind::Column;
      base.extras.push_back(full     ? byteOffset(kb, pointer, kb.mul(imageGroup, outImage * extra.elementBytes))
                            : column ? byteOffset(kb, pointer, kb.mul(group, s.groupOc() * extra.elementBytes))
                                     : pointer);
    }
    if (copied && flat) {
      kb.forLoop(rowBegin, rowEnd, strip, [&](Value begin) {
        emitStrip(imageGroup, panelBegin, panelEnd, begin, kb.min(kb.add(begin, strip), rowEnd));
      });
    } else {
      emitPanels(panelBegin, panelEnd, rowBegin, rowEnd);
    }
    if (channelsLast) {
      emitTileRelease(kb);
    }
  });
}

/// Copies the row steps [rowBegin, rowEnd) of a flat row and multiplies them.
void DirectConv::emitStrip(Value imageGroup, Value panelBegin, Value panelEnd, Value rowBegin, Value rowEnd) {
  Value first = positionOf(rowBegin);
  copyFlat(imageGroup, first, positionOf(rowEnd));
  base.a = byteOffset(kb, kb.scratch(), kb.mul(first, -elementBytes));
  emitPanels(panelBegin, panelEnd, rowBegin, rowEnd);
}

/// Emits the panels [panelBegin, panelEnd) of the row steps [rowBegin, rowEnd).
void DirectConv::emitPanels(Value panelBegin, Value panelEnd, Value rowBegin, Value rowEnd) {
  // The last panel may be narrower or end inside a block, so it has separate tile functions.
  bool special = lastBlocks != panelBlocks || s.groupOc() % kBlock;
  Value fullEnd = special ? kb.min(panelEnd, kb.constant(panels - 1)) : panelEnd;
  if (!special || panels > 1) {
    kb.forLoop(panelBegin, fullEnd, 1, [&](Value panel) { emitPanel(panel, rowBegin, rowEnd, false); });
  }
  if (special) {
    kb.forLoop(kb.max(panelBegin, kb.constant(panels - 1)), panelEnd, 1,
               [&](Value panel) { emitPanel(panel, rowBegin, rowEnd, true); });
  }
}

void DirectConv::emitPanel(Value panel, Value rowBegin, Value rowEnd, bool last) {
  TileFunctions::Pointers image = base;
  int64_t panelBytes = panelBlocks * weights.panels.bytesOfBlock(), outPlane = s.oh * s.ow * kBlock;
  base.b = byteOffset(kb, base.b, kb.mul(panel, panelBytes));
  if (weights.copied) {
    Value widened = byteOffset(kb, kb.scratch(), panelOffset);
    weights.copyPanel(kb, base.b, widened, last ? lastBlocks : panelBlocks);
    base.b = widened;
  }
  base.c = byteOffset(kb, base.c, kb.mul(panel, panelBlocks * outPlane * s.yBytes));
  if (base.bias) {
    base.bias = byteOffset(kb, base.bias, kb.mul(panel, panelBlocks * kBlockBytes));
  }
  for (auto [extra, pointer] : llvm::zip_equal(extraKinds, base.extras)) {
    if (extra.kind == ExtraKind::Full) {
      pointer = byteOffset(kb, pointer, kb.mul(panel, panelBlocks * outPlane * extra.elementBytes));
    } else if (extra.kind == ExtraKind::Column) {
      pointer = byteOffset(kb, pointer, kb.mul(panel, panelBlocks * kBlock * extra.elementBytes));
    }
  }
  base.prefetch = prefetchLines ? byteOffset(kb, base.b, panelBytes) : Value();
  if (outH == 1) {
    emitRow(kb.constant(0), {columns, 0, 0, 0, 0}, 1, rowBegin, rowEnd, last);
  } else {
    int64_t fullSteps = outH / tileH;
    Value fullEnd = outH % tileH ? kb.min(rowEnd, kb.constant(fullSteps)) : rowEnd;
    emitRows(rowBegin, fullEnd, tileH, last);
    if (outH % tileH) {
      emitRows(kb.max(rowBegin, kb.constant(fullSteps)), rowEnd, outH % tileH, last);
    }
  }
  base = image;
}

/// Emits the row steps [begin, end), each of |rows| output rows.
void DirectConv::emitRows(Value begin, Value end, int64_t rows, bool last) {
  for (size_t row = 0; row < rowSegments.size(); ++row) {
    Value from = skips ? kb.max(begin, kb.constant(rowSegments[row].begin)) : begin;
    Value to = skips ? kb.min(end, kb.constant(rowSegments[row].end)) : end;
    kb.forLoop(from, to, 1, [&](Value step) {
      int64_t before = 0;
      for (size_t column = 0; column < columnSegments.size(); ++column) {
        const BorderSegment &segment = columnSegments[column];
        EvenSplit split(segment.length(), packing.getRows());
        emitRow(step, {split, segment.begin, before, row, column}, rows, kb.constant(0), kb.constant(split.pieces),
                last);
        before += split.pieces;
      }
    });
  }
}

/// Emits the register tiles [tileBegin, tileEnd) of the |rows| output rows of a row step.
void DirectConv::emitRow(Value step, const Tiles &tiles, int64_t rows, Value tileBegin, Value tileEnd, bool last) {
  const EvenSplit &split = tiles.split;
  Value wide = kb.constant(split.wide);
  if (split.wide) {
    emitTiles(step, tiles, tileBegin, kb.min(tileEnd, wide), rows, split.size + 1, last);
  }
  if (split.wide < split.pieces) {
    emitTiles(step, tiles, kb.max(tileBegin, wide), tileEnd, rows, split.size, last);
  }
}

/// Emits the register tiles [begin, end), all |width| positions wide.
void DirectConv::emitTiles(Value step, const Tiles &segment, Value begin, Value end, int64_t rows, int64_t width,
                           bool last) {
  Value a = byteOffset(kb, base.a, kb.mul(kb.sub(step, firstStep), tileH * s.strideH * pitch));
  Value c = kb.mul(step, tileH * outW * kBlock); // offset of the row in a channel block, in elements
  int64_t blocks = last ? lastBlocks : panelBlocks;
  TileShape shape = tileShape(rows, width, blocks);
  if (skips) {
    leaveOut(shape, segment.rowSegment, segment.columnSegment);
  }
  TileResult result;
  result.blockStride = s.oh * s.ow * kBlock;
  result.elementBytes = s.yBytes;
  result.element = s.yElement;
  result.tailLanes = last && s.groupOc() % kBlock ? s.groupOc() % kBlock : kBlock;
  for (int64_t y = 0; y < rows; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      result.rows.push_back((y * outW + x) * kBlock);
    }
  }
  bool narrow = width == segment.split.size;
  kb.forLoop(begin, end, 1, [&](Value tile) {
    Value within = narrow ? kb.add(kb.mul(tile, width), segment.split.wide) : kb.mul(tile, width);
    Value column = kb.add(within, segment.first);
    TileFunctions::Pointers at = base;
    at.a = byteOffset(kb, a, kb.mul(column, stepW * elementBytes));
    Value element = kb.add(c, kb.mul(column, kBlock));
    at.c = byteOffset(kb, base.c, kb.mul(element, s.yBytes));
    for (auto [extra, pointer] : llvm::zip_equal(extraKinds, at.extras)) {
      if (extra.kind == ExtraKind::Full) {
        pointer = byteOffset(kb, pointer, kb.mul(element, extra.elementBytes));
      }
    }
    if (prefetchLines) {
      // Each tile of the panel prefetches its share of the next panel.
      Value row = kb.mul(kb.sub(step, partBegin), tilesPerRow);
      Value index = outH == 1 ? kb.sub(tile, partBegin) : kb.add(kb.add(row, tile), segment.before);
      at.prefetch = byteOffset(kb, base.prefetch, kb.mul(index, prefetchLines * 64));
    }
    tiles->call(shape, result, at);
  });
}

} // namespace

LogicalResult emitMicroConv(device::ConvOp op, KernelBuilder &kb) {
  unsigned unsupported = 0;
  auto y = cast<RankedTensorType>(op.getY().getType());
  std::optional<SmallVector<TileExtra>> extras = classifyExtras(op, op.getExtras(), y, unsupported);
  if (!extras) {
    return op.emitOpError() << "packed convolution cannot read epilogue operand " << unsupported << " of type "
                            << op.getExtras()[unsupported].getType()
                            << "; allowed: the result's type, one value per channel, one value";
  }
  if (failed(checkPacking(op, targetOf(kb)))) {
    return failure();
  }
  switch (packingOf(op).getOrder()) {
  case PackedOrder::winograd:
    return emitWinograd(op, kb, *extras);
  case PackedOrder::windows:
    return emitDepthwise8(op, kb, *extras);
  case PackedOrder::depthwise:
    return tileKindOf(getElementTypeOrSelf(op.getX().getType())) == TileKind::F32 ? emitDepthwise(op, kb, *extras)
                                                                                  : emitDepthwise8(op, kb, *extras);
  default:
    DirectConv(op, kb, *extras).emit();
    return success();
  }
}

} // namespace tessera::x86

//===- MappedInput.cpp - Pictures mapped inside a convolution -------------===//
// SPDX-License-Identifier: Apache-2.0
// A picture is quantised before the first convolution. A map of three channels keeps three lanes busy, and one over all
// lanes would have to go through off-chip memory to get the layout that the matrix unit needs. Therefore each tile of
// the convolution loads its rows in bands: within a band, channel by channel, |step| neighbouring rows lie in
// neighbouring lanes; the bands follow each other over the lanes. One command maps all bands; then each band is moved
// to the channels of the first |step| kernel rows. The other kernel rows see the same data some rows further down.
//===----------------------------------------------------------------------===//
#include "codegen/Npu/Contraction/Contraction.h"

#include "bmodel/npu/latency.h"

#include "llvm/Support/MathExtras.h"

using namespace bmodel::npu;

namespace tessera::npu {
namespace {

/// Returns the number of rows of x to load per row of the result. Further kernel rows see rows that later rows of the
/// result load.
uint32_t phasesOf(const Window &window) { return std::min(window.step[0], window.kernel[0]); }

Descriptor copyOf(const TileView &to, const TileView &from) {
  copy_command copy;
  copy.x = from.tensor, copy.y = to.tensor, copy.shape = to.shape;
  return encode(copy);
}

class MappedLoader {
public:
  MappedLoader(const Contraction &contraction, const Im2colBuffer &place, const Shape &begin, const Shape &size,
               CommandStream &stream, Tile &tile)
      : contraction(contraction), place(place), begin(begin), stream(stream), chip(stream.chip), tile(tile),
        from(slice(contraction.mapped->from, 0, begin.dims[0], size.dims[0], chip)), channels(contraction.x.dim(1)),
        phases(phasesOf(contraction.window)), rows(place.buffer.dim(2)) {
    for (uint32_t phase = 0; phase < phases; ++phase) {
      seen.push_back(rowsSeen(contraction, begin.dims[2], rows, phase));
    }
  }

  void run(uint32_t count, LocalBudget &localBudget) {
    uint32_t perBand = uint32_t(llvm::divideCeil(rows, count));
    Shape shape{{from.dim(0), count * lanes(), perBand, place.seenColumns}};
    loaded = localBudget.allocate(shape, from.tensor.type);
    mapped = localBudget.allocate(shape, contraction.x.tensor.type);
    padPlace();
    for (uint32_t band = 0; band < count; ++band) {
      // If fewer rows are left, the last band begins earlier and repeats some.
      uint32_t low = std::min(band * perBand, rows - perBand);
      loadBand(band, {low, low + perBand});
      moveBand(band, {low, low + perBand});
    }
    compute(stream, contraction.mapped->program, mapped, {loaded}, tile.first);
    shiftRows();
  }

private:
  uint32_t lanes() const { return phases * channels; }

  static SeenRows meet(SeenRows a, SeenRows b) { return {std::max(a.low, b.low), std::min(a.end, b.end)}; }

  TileView lanesOf(const TileView &of, uint32_t band, uint32_t phase, uint32_t count) const {
    return slice(of, 1, (band * phases + phase) * channels, count * channels, chip);
  }

  /// Fills the padding around x.
  void padPlace() {
    Edges edges{0, 0, place.left, place.buffer.dim(3) - place.left - place.seenColumns};
    for (SeenRows each : seen) {
      edges.top = std::max(edges.top, each.low), edges.bottom = std::max(edges.bottom, rows - each.end);
    }
    llvm::append_range(tile.loads,
                       fillEdges(slice(place.buffer, 1, 0, lanes(), chip), edges, contraction.window.padValue, chip));
  }

  /// Loads a band. Fills missing rows, because the map reads them: across the whole band, as they are few.
  void loadBand(uint32_t band, SeenRows rowsOfBand) {
    Edges edges{0, 0, 0, 0};
    for (SeenRows each : seen) {
      SeenRows there = meet(each, rowsOfBand);
      uint32_t all = rowsOfBand.end - rowsOfBand.low;
      bool none = there.low >= there.end;
      edges.top = std::max(edges.top, none ? all : there.low - rowsOfBand.low);
      edges.bottom = std::max(edges.bottom, none ? 0 : rowsOfBand.end - there.end);
    }
    llvm::append_range(tile.first.loads, fillEdges(lanesOf(loaded, band, 0, phases), edges, 0, chip));
    const Window &window = contraction.window;
    for (uint32_t phase = 0; phase < phases; ++phase) {
      SeenRows there = meet(seen[phase], rowsOfBand);
      if (there.low >= there.end) {
        continue;
      }
      uint32_t row = (begin.dims[2] + there.low) * window.step[0] + phase - window.padding[0];
      uint32_t count = there.end - there.low;
      TileView rowsOfX = slice(everyRow(from, row, window.step[0], count, chip), 3, 0, place.seenColumns, chip);
      TileView to = slice(lanesOf(loaded, band, phase, 1), 2, there.low - rowsOfBand.low, count, chip);
      tile.first.loads.push_back(copyOf(to, rowsOfX));
    }
  }

  /// Moves mapped rows to the channels of the first kernel rows. Phases that see the same rows are moved together.
  void moveBand(uint32_t band, SeenRows rowsOfBand) {
    for (uint32_t phase = 0, count = 0; phase < phases; phase += count) {
      SeenRows there = meet(seen[phase], rowsOfBand);
      for (count = 1; phase + count < phases && meet(seen[phase + count], rowsOfBand) == there;) {
        ++count;
      }
      if (there.low >= there.end) {
        continue;
      }
      uint32_t size = there.end - there.low;
      TileView to = slice(place.buffer, 1, phase * channels, count * channels, chip);
      to = slice(slice(to, 2, there.low, size, chip), 3, place.left, place.seenColumns, chip);
      TileView of = slice(lanesOf(mapped, band, phase, count), 2, there.low - rowsOfBand.low, size, chip);
      tile.loads.push_back(copyOf(to, of));
    }
  }

  /// Copies the rows that the other kernel rows see. The padding is already filled.
  void shiftRows() {
    uint32_t kernel = contraction.window.kernel[0], shifts = mappedShifts(contraction);
    for (uint32_t shift = 1; shift <= shifts; ++shift) {
      uint32_t count = std::min(phases, kernel - shift * phases) * channels;
      TileView to = slice(slice(place.buffer, 1, shift * lanes(), count, chip), 2, 0, rows - shifts, chip);
      tile.loads.push_back(copyOf(to, slice(slice(place.buffer, 1, 0, count, chip), 2, shift, rows - shifts, chip)));
    }
  }

  const Contraction &contraction;
  const Im2colBuffer &place;
  const Shape &begin;
  CommandStream &stream;
  const Chip &chip;
  Tile &tile;
  TileView from, loaded, mapped;
  uint32_t channels, phases, rows;  ///< rows: of the buffer, including those that only further kernel rows see
  llvm::SmallVector<SeenRows> seen; ///< by phase
};

} // namespace

uint32_t mappedShifts(const Contraction &contraction) {
  return (contraction.window.kernel[0] - 1) / contraction.window.step[0];
}

bool canMapInput(const Contraction &contraction, const Chip &chip) {
  const Window &window = contraction.window;
  return contraction.depth.isPlain() && contraction.groups == 1 && window.kernel[0] > 1 && window.dilation[0] == 1 &&
         window.spread[0] == 1 && window.spread[1] == 1 && 2 * phasesOf(window) * contraction.x.dim(1) <= chip.lanes;
}

MappedCycles planBands(const Contraction &contraction, uint32_t resultRows, double multiply, const Chip &chip) {
  const Window &window = contraction.window;
  const MappedInput &mapped = *contraction.mapped;
  uint32_t lanes = phasesOf(window) * contraction.x.dim(1), shifts = mappedShifts(contraction),
           rows = resultRows + shifts;
  double images = contraction.x.dim(0), row = images * lanes * contraction.x.dim(3); // elements
  double loads = rows * row * double(sizeOf(mapped.from.tensor.type)) / chip.ddrBytesPerCycle();
  double width = std::min<double>(chip.dmaLocalBytes, double(lanes) * chip.portBytes);
  double moves = row * double(sizeOf(contraction.x.tensor.type)) * (rows + double(shifts) * resultRows) / width;
  InstructionCounts counts = countsOf(mapped.program.data(), mapped.program.size());
  double each = std::max(1.0, counts.plain + double(counts.slow) * chip.functionCycles) * 4 / chip.vectorBytes;
  MappedCycles best{0, 0, 0};
  for (uint32_t bands = 1; bands * lanes <= chip.lanes && bands <= rows; ++bands) {
    // A band takes a load per phase and a move; shifts and the fills of two sides come in addition.
    double commands = double(bands) * (phasesOf(window) + 1) + shifts + 2;
    MappedCycles result{bands, loads + moves + commands * chip.dmaLatency,
                        multiply + images * double(llvm::divideCeil(rows, bands)) * contraction.x.dim(3) * each};
    auto worth = [](const MappedCycles &cycles) {
      return std::pair(std::max(cycles.moves, cycles.computes), cycles.moves + cycles.computes);
    };
    if (!best.bands || worth(result) < worth(best)) {
      best = result;
    }
  }
  return best;
}

void loadMapped(const Contraction &contraction, const Im2colBuffer &place, const Shape &begin, const Shape &size,
                CommandStream &stream, LocalBudget &localBudget, Tile &tile) {
  double multiply = multiplyCycles(contraction, contraction.im2col, stream.chip) * size.dims[2] / contraction.y.dim(2);
  uint32_t bands = planBands(contraction, size.dims[2], multiply, stream.chip).bands;
  MappedLoader(contraction, place, begin, size, stream, tile).run(bands, localBudget);
}

} // namespace tessera::npu

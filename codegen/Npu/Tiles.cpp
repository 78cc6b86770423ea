//===- Tiles.cpp - Cutting an op into what fits local memory --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Npu/Emitter.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace bmodel::npu;
using llvm::ArrayRef;

namespace tessera::npu {
namespace {

/// The next smaller tile: the largest cut is made where it costs least, rows first, channels last.
bool shrink(Shape &size, const Shape &granule) {
  for (unsigned dim : {0u, 2u, 1u, 3u}) {
    uint32_t unit = granule.dims[dim];
    if (unit && size.dims[dim] > unit) {
      uint32_t units = uint32_t(llvm::divideCeil(size.dims[dim], unit));
      size.dims[dim] = (units + 1) / 2 * unit;
      return true;
    }
  }
  return false;
}

/// Calls visit(begin, size) for every tile.
template <typename Visit>
void eachTile(const Shape &whole, const Shape &step, Visit visit) {
  Shape begin{{0, 0, 0, 0}};
  for (begin.dims[1] = 0; begin.dims[1] < whole.dims[1]; begin.dims[1] += step.dims[1]) {
    for (begin.dims[0] = 0; begin.dims[0] < whole.dims[0]; begin.dims[0] += step.dims[0]) {
      for (begin.dims[2] = 0; begin.dims[2] < whole.dims[2]; begin.dims[2] += step.dims[2]) {
        for (begin.dims[3] = 0; begin.dims[3] < whole.dims[3]; begin.dims[3] += step.dims[3]) {
          Shape size;
          for (int i = 0; i < 4; ++i) {
            size.dims[i] = std::min(step.dims[i], whole.dims[i] - begin.dims[i]);
          }
          visit(begin, size);
        }
      }
    }
  }
}

/// Makes all tiles of one size; false if one does not fit.
bool makeTiles(const Chip &chip, const Shape &whole, const Shape &step, uint64_t reserved, bool two, BuildTile build,
               std::vector<Tile> &tiles) {
  uint64_t half = two ? (chip.laneBytes - reserved) / 2 : chip.laneBytes - reserved;
  bool fits = true;
  eachTile(whole, step, [&](const Shape &begin, const Shape &size) {
    uint64_t base = reserved + (two ? tiles.size() % 2 * half : 0);
    Area area(chip, base, base + half);
    if (fits) {
      fits = build(begin, size, area, tiles.emplace_back());
    }
  });
  return fits;
}

/// Whether the first tile fits.
bool firstFits(const Chip &chip, const Shape &step, uint64_t reserved, bool two, BuildTile build) {
  uint64_t half = two ? (chip.laneBytes - reserved) / 2 : chip.laneBytes - reserved;
  Area area(chip, reserved, reserved + half);
  Tile tile;
  return build(Shape{{0, 0, 0, 0}}, step, area, tile);
}

} // namespace

Rows rowsOf(const Window &window, uint32_t rows, uint32_t begin, uint32_t size) {
  int64_t first = int64_t(begin) * window.step[0] - window.padding[0];
  int64_t last = first + int64_t(size - 1) * window.step[0] + int64_t(window.kernel[0] - 1) * window.dilation[0];
  int64_t from = std::clamp<int64_t>(first, 0, rows - 1), to = std::clamp<int64_t>(last, from, rows - 1);
  return {uint32_t(from), uint32_t(to - from + 1), int16_t(from - first)};
}

Place load(const Place &from, Area &area, Tile &tile) {
  Shape shape = from.shape;
  for (int i : {0, 2, 3}) {
    shape.dims[i] = from.tensor.strides[i] ? shape.dims[i] : 1;
  }
  Place to = area.allocate(shape, from.tensor.type);
  copy_command copy;
  copy.y = to.tensor, copy.x = from.tensor, copy.shape = shape;
  tile.loads.push_back(encode(copy));
  for (int i : {0, 2, 3}) {
    to.tensor.strides[i] = from.tensor.strides[i] || from.shape.dims[i] == 1 ? to.tensor.strides[i] : 0;
  }
  to.shape = from.shape;
  return to;
}

void store(const Place &local, const Place &to, Tile &tile) {
  copy_command copy;
  copy.y = to.tensor, copy.x = local.tensor, copy.shape = to.shape;
  tile.stores.push_back(encode(copy));
}

void compute(Stream &stream, const Instructions &program, const Place &y, ArrayRef<Place> operands, Tile &tile) {
  map_command map;
  Tensor *fields[] = {&map.a, &map.b, &map.c, &map.d};
  for (auto [field, operand] : llvm::zip(fields, operands)) {
    *field = operand.tensor;
  }
  map.y = y.tensor, map.shape = y.shape;
  stream.setProgram(map, program);
  tile.computes.push_back(encode(map));
}

llvm::Error appendTiles(Stream &stream, const Shape &whole, const Shape &granule, uint64_t reserved, BuildTile build) {
  const Chip &chip = stream.chip;
  // Two at once are worth a smaller tile, unless there is only one.
  bool two = !firstFits(chip, whole, reserved, false, build);
  Shape step = whole;
  std::vector<Tile> tiles;
  // A tile at a border sees less of the input than those inside: the first one fitting is not enough.
  while (!firstFits(chip, step, reserved, two, build) || !makeTiles(chip, whole, step, reserved, two, build, tiles)) {
    tiles.clear();
    if (shrink(step, granule)) {
      continue;
    }
    if (!two) {
      return llvm::createStringError(
          llvm::formatv("needs more than the {0} bytes of a lane for its smallest tile", chip.laneBytes));
    }
    two = false, step = whole;
  }
  stream.append(tiles, two);
  return llvm::Error::success();
}

} // namespace tessera::npu

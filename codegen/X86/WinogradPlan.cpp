//===- WinogradPlan.cpp - How a Winograd convolution is divided -----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/WinogradPlan.h"

using namespace mlir;

namespace tessera::x86 {

/// V and P of a launch tile stay in L2. With more output tiles per launch tile, the weights are read less often.
static constexpr int64_t kScratchBytes = 1200 * 1024;
/// Wanted launch tiles, if there is enough work.
static constexpr int64_t kWanted = 4;

WinogradPlan::WinogradPlan(device::ConvOp op, const X86Target &target)
    : s(op), weights(target, panelsOfConv(packingOf(op), 1)), tileRows(packingOf(op).getRows()),
      m(packingOf(op).getOutputTile()), window(m + 2), points(window * window), tilesH(ceilDiv(s.oh, m)),
      tilesW(ceilDiv(s.ow, m)), panels(s.ocBlocks(), weights.panels.panelBlocks), open(s.hasOpenPlanes()) {
  open ? splitOpenGrid() : splitRows();
  layOutScratch();
}

/// Returns the output tiles of which V and P fit kScratchBytes.
int64_t WinogradPlan::mostTilesInCache() const {
  int64_t outBlocks = ceilDiv(panels.count, panelParts) * panels.blocks;
  return kScratchBytes / (points * (s.icBlocks() + outBlocks) * kBlockBytes);
}

void WinogradPlan::splitRows() {
  int64_t rows = tilesH.value(), columns = tilesW.value();
  bool smallWork = s.flops() / s.n < 4'000'000;
  for (panelParts = 1;; ++panelParts) {
    rowsPerPart = std::clamp<int64_t>(mostTilesInCache() / columns, 1, rows);
    int64_t rowParts = ceilDiv(rows, rowsPerPart);
    rowsPerPart = ceilDiv(rows, rowParts);
    // Provide work for two threads or more if there is enough work.
    if (smallWork || panelParts >= panels.count || s.n * rowParts * panelParts >= 2) {
      break;
    }
  }
  // Splitting rows is better than splitting panels as long as a register tile stays full.
  int64_t fewestRows = ceilDiv(tileRows, columns);
  while (!smallWork && panelParts == 1 && rowsPerPart > fewestRows && s.n * ceilDiv(rows, rowsPerPart) < kWanted) {
    --rowsPerPart;
  }
  int64_t rowParts = ceilDiv(rows, rowsPerPart);
  rowsPerPart = ceilDiv(rows, rowParts);
  most = rowsPerPart * columns;
}

void WinogradPlan::splitOpenGrid() {
  int64_t likely = std::max<int64_t>(1, likelyOf(tilesH * tilesW));
  bool smallWork = s.flops() / s.n < 4'000'000;
  // Whole register tiles, few enough for kWanted launch tiles at the likely sizes.
  auto tilesPerPart = [&] {
    int64_t wanted = smallWork ? likely : ceilDiv(likely, ceilDiv(kWanted, s.n));
    int64_t fitting = std::min({wanted, mostTilesInCache(), std::max<int64_t>(1, maxOf(tilesH * tilesW))});
    return std::max<int64_t>(1, fitting / tileRows) * tileRows;
  };
  for (panelParts = 1;; ++panelParts) {
    most = tilesPerPart();
    if (smallWork || panelParts >= panels.count || s.n * ceilDiv(likely, most) * panelParts >= 2) {
      break;
    }
  }
}

void WinogradPlan::layOutScratch() {
  panelsPerPart = ceilDiv(panels.count, panelParts);
  panelParts = ceilDiv(panels.count, panelsPerPart);
  // An odd number of cache lines between points keeps them in different cache sets.
  auto oddLines = [](int64_t lines) { return (lines | 1) * kBlockBytes; };
  inputPointBytes = oddLines(s.icBlocks() * most);
  productPointBytes = oddLines(panelsPerPart * panels.blocks * most);
  productOffset = points * inputPointBytes;
  zeroOffset = productOffset + points * productPointBytes;
  panelOffset = zeroOffset + window * kBlockBytes;
  scratchBytes = panelOffset + (weights.copied ? s.c * panels.blocks * kBlockBytes : 0);
}

} // namespace tessera::x86

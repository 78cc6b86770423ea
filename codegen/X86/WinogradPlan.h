//===- WinogradPlan.h - How a Winograd convolution is divided ------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_X86_WINOGRADPLAN_H
#define TESSERA_CODEGEN_X86_WINOGRADPLAN_H

#include "codegen/X86/MicroShape.h"

namespace tessera::x86 {

/// How a convolution F(m x m, 3 x 3) is divided into launch tiles, and the scratch of one. The result is a grid of
/// output tiles of m x m positions. A launch tile computes some of them for some panels of output channels: whole rows
/// of the grid if its sizes are known; otherwise, a constant number of output tiles in row-major order, so that the
/// scratch has constant strides.
struct WinogradPlan {
  WinogradPlan(device::ConvOp op, const X86Target &target);

  ConvShape s;
  TileWeights weights;
  int64_t tileRows;          ///< most rows of a register tile
  int64_t m, window, points; ///< window: m + 2 positions; points: window * window
  Dim tilesH, tilesW;        ///< rows and columns of the grid
  PanelSplit panels;
  int64_t rowsPerPart = 0; ///< rows of the grid per launch tile; unused if |open|
  int64_t most = 0;        ///< output tiles of a launch tile; the last one may have fewer
  int64_t panelParts = 1, panelsPerPart = 1;
  bool open; ///< the grid is known at run time only

  // Offsets and strides in the scratch, in bytes: V, P, a line of zeros, a panel of widened weights.
  int64_t inputPointBytes = 0, productPointBytes = 0, productOffset = 0, zeroOffset = 0, panelOffset = 0;
  int64_t scratchBytes = 0;

  /// Returns the number of launch tiles per image and panel part.
  Dim parts() const { return open ? ceilDiv(tilesH * tilesW, most) : ceilDiv(tilesH, rowsPerPart); }

private:
  void splitRows();
  void splitOpenGrid();
  void layOutScratch();
  int64_t mostTilesInCache() const;
};

} // namespace tessera::x86

#endif // TESSERA_CODEGEN_X86_WINOGRADPLAN_H

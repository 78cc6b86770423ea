// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --split-input-file --cuda-choose-tiles="multiprocessors=132 int8-rate=2457 f16-rate=1228" | FileCheck %s --check-prefix=FAST
// RUN: tessera-opt %s --split-input-file --cuda-choose-tiles="multiprocessors=58 int8-rate=614 f16-rate=153" | FileCheck %s --check-prefix=SLOW

// If tensor cores are fast relative to shared memory, tiles whose warps read it less often are better: 128 x 64 would
// fit the grid as well, but its passes over shared memory would take longer than its multiplications.
// FAST-LABEL: func.func @passes
// FAST: cuda.tile = #cuda.tile<128 x 128,
// SLOW-LABEL: func.func @passes
// SLOW: cuda.tile = #cuda.tile<128 x 64,
func.func @passes(%x: tensor<4096x1024xf16>, %w: tensor<1024x1024xf16>) -> tensor<4096x1024xf32> {
  %y = device.matmul %x, %w : (tensor<4096x1024xf16>, tensor<1024x1024xf16>) -> tensor<4096x1024xf32>
  return %y : tensor<4096x1024xf32>
}

// -----

// If every tile is bound by multiplications, the tile that moves the fewest bytes is chosen.
// FAST-LABEL: func.func @bytes
// FAST: cuda.tile = #cuda.tile<128 x 128,
// SLOW-LABEL: func.func @bytes
// SLOW: cuda.tile = #cuda.tile<128 x 128,
func.func @bytes(%x: tensor<4096x4096xi8>, %w: tensor<4096x4096xi8>) -> tensor<4096x4096xi32> {
  %y = device.matmul %x, %w : (tensor<4096x4096xi8>, tensor<4096x4096xi8>) -> tensor<4096x4096xi32>
  return %y : tensor<4096x4096xi32>
}

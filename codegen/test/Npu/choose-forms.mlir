// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-assign-addresses --npu-choose-forms | FileCheck %s
// RUN: tessera-opt %s --device-assign-addresses --npu-choose-forms="chip=npu-edge" | FileCheck %s --check-prefix=EDGE

// A picture has three channels: kernel rows become channels while it is loaded. On a slower chip this does not pay.
// CHECK-LABEL: func.func @picture
// CHECK: npu.taps = [#npu.taps<fetched = rows_loaded, resident = rows_moved>]
// EDGE-LABEL: func.func @picture
// EDGE: npu.taps = [#npu.taps<fetched = window, resident = window>]
func.func @picture(%x: tensor<1x3x64x64xi8>) -> tensor<1x8x32x32xi32> {
  %w = top.constant dense<3> : tensor<8x3x3x3xi8> : tensor<8x3x3x3xi8>
  %c = device.conv %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x64x64xi8>, tensor<8x3x3x3xi8>) -> tensor<1x8x32x32xi32>
  return %c : tensor<1x8x32x32xi32>
}

// The quantisation of a picture is computed in the convolution, which then moves it to channels of kernel rows.
// CHECK-LABEL: func.func @quantised_picture
// CHECK: device.map
// CHECK: npu.fused = #npu.fused<readers>
// CHECK: npu.taps = [#npu.taps<fetched = {{rows|all}}_moved
func.func @quantised_picture(%x: tensor<1x3x224x224xf32>) -> tensor<1x6x112x112xi32> {
  %w = top.constant dense<3> : tensor<6x3x7x7xi8> : tensor<6x3x7x7xi8>
  %q = device.map(%x) {
  ^bb0(%e: f32):
    %least = arith.constant -128.0 : f32
    %most = arith.constant 127.0 : f32
    %r = math.roundeven %e : f32
    %a = arith.maximumf %r, %least : f32
    %b = arith.minimumf %a, %most : f32
    %i = arith.fptosi %b : f32 to i8
    device.yield %i : i8
  } : (tensor<1x3x224x224xf32>) -> tensor<1x3x224x224xi8>
  %c = device.conv %q, %w {strides = array<i64: 2, 2>, pads = array<i64: 3, 3, 3, 3>, dilations = array<i64: 1, 1>} : (tensor<1x3x224x224xi8>, tensor<6x3x7x7xi8>) -> tensor<1x6x112x112xi32>
  return %c : tensor<1x6x112x112xi32>
}

// The map is not fused if it has another reader, or if the kernel has a single tap. An earlier choice is replaced.
// CHECK-LABEL: func.func @read_twice
// CHECK-NOT: npu.fused
func.func @read_twice(%x: tensor<1x3x128x128xf32>) -> (tensor<1x8x64x64xi32>, tensor<1x8x128x128xi32>, tensor<1x8x128x128xi32>) {
  %w = top.constant dense<3> : tensor<8x3x3x3xi8> : tensor<8x3x3x3xi8>
  %v = top.constant dense<3> : tensor<8x3x1x1xi8> : tensor<8x3x1x1xi8>
  %q = device.map(%x) {
  ^bb0(%e: f32):
    %least = arith.constant -128.0 : f32
    %most = arith.constant 127.0 : f32
    %r = math.roundeven %e : f32
    %a = arith.maximumf %r, %least : f32
    %b = arith.minimumf %a, %most : f32
    %i = arith.fptosi %b : f32 to i8
    device.yield %i : i8
  } : (tensor<1x3x128x128xf32>) -> tensor<1x3x128x128xi8>
  %c = device.conv %q, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x128x128xi8>, tensor<8x3x3x3xi8>) -> tensor<1x8x64x64xi32>
  %d = device.conv %q, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x128x128xi8>, tensor<8x3x1x1xi8>) -> tensor<1x8x128x128xi32>
  %p = device.map(%x) {
  ^bb0(%e: f32):
    %least = arith.constant -128.0 : f32
    %most = arith.constant 127.0 : f32
    %r = math.roundeven %e : f32
    %a = arith.maximumf %r, %least : f32
    %b = arith.minimumf %a, %most : f32
    %i = arith.fptosi %b : f32 to i8
    device.yield %i : i8
  } {npu.fused = #npu.fused<readers>} : (tensor<1x3x128x128xf32>) -> tensor<1x3x128x128xi8>
  %f = device.conv %p, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x128x128xi8>, tensor<8x3x1x1xi8>) -> tensor<1x8x128x128xi32>
  return %c, %d, %f : tensor<1x8x64x64xi32>, tensor<1x8x128x128xi32>, tensor<1x8x128x128xi32>
}

// A kernel with a single tap cannot be folded. An earlier choice is replaced.
// CHECK-LABEL: func.func @pointwise
// CHECK: npu.taps = [#npu.taps<fetched = window, resident = window>]
func.func @pointwise(%x: tensor<1x3x64x64xi8>) -> tensor<1x8x64x64xi32> {
  %w = top.constant dense<3> : tensor<8x3x1x1xi8> : tensor<8x3x1x1xi8>
  %c = device.conv %x, %w {npu.taps = [#npu.taps<fetched = rows_loaded, resident = window>], strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x64x64xi8>, tensor<8x3x1x1xi8>) -> tensor<1x8x64x64xi32>
  return %c : tensor<1x8x64x64xi32>
}

// One attribute for each volume.
// CHECK-LABEL: func.func @volumes
// CHECK: npu.taps = [#npu.taps<fetched = window, resident = window>, #npu.taps<fetched = window, resident = window>]
func.func @volumes(%x: tensor<2x3x4x16x16xi8>) -> tensor<2x4x2x14x14xi32> {
  %w = top.constant dense<3> : tensor<4x3x3x3x3xi8> : tensor<4x3x3x3x3xi8>
  %c = device.conv %x, %w {strides = array<i64: 1, 1, 1>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<2x3x4x16x16xi8>, tensor<4x3x3x3x3xi8>) -> tensor<2x4x2x14x14xi32>
  return %c : tensor<2x4x2x14x14xi32>
}

// With a single query, heads are spread over the lanes.
// CHECK-LABEL: func.func @one_query
// CHECK: device.attention {{.*}}npu.attention = #npu.attention<batches, blocks = 1>
func.func @one_query(%q: tensor<8x1x32xf32>, %k: tensor<8x24x32xf32>, %v: tensor<8x24x32xf32>) -> tensor<8x1x32xf32> {
  %a = device.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<8x1x32xf32>, tensor<8x24x32xf32>, tensor<8x24x32xf32>) -> tensor<8x1x32xf32>
  return %a : tensor<8x1x32xf32>
}

// Attention of f16 is not supported, so no form is chosen.
// CHECK-LABEL: func.func @narrow
// CHECK-NOT: npu.attention
func.func @narrow(%q: tensor<8x4x32xf16>, %k: tensor<8x24x32xf16>, %v: tensor<8x24x32xf16>) -> tensor<8x4x32xf16> {
  %a = device.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<8x4x32xf16>, tensor<8x24x32xf16>, tensor<8x24x32xf16>) -> tensor<8x4x32xf16>
  return %a : tensor<8x4x32xf16>
}

// Many rows are spread over the lanes and need not be transposed. With a single row, columns are spread over the lanes.
// An earlier choice is replaced.
// CHECK-LABEL: func.func @rows
// CHECK: device.matmul {{.*}}npu.row_lanes = 1 : i64
func.func @rows(%a: tensor<1x64x16xi8>) -> tensor<1x64x32xi32> {
  %b = top.constant dense<3> : tensor<16x32xi8> : tensor<16x32xi8>
  %c = device.matmul %a, %b : (tensor<1x64x16xi8>, tensor<16x32xi8>) -> tensor<1x64x32xi32>
  return %c : tensor<1x64x32xi32>
}

// CHECK-LABEL: func.func @one_row
// CHECK-NOT: npu.row_lanes
func.func @one_row(%a: tensor<1x4xi8>) -> tensor<1x256xi32> {
  %b = top.constant dense<3> : tensor<4x256xi8> : tensor<4x256xi8>
  %c = device.matmul %a, %b {npu.row_lanes = 1 : i64} : (tensor<1x4xi8>, tensor<4x256xi8>) -> tensor<1x256xi32>
  return %c : tensor<1x256xi32>
}

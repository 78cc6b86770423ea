// SPDX-License-Identifier: Apache-2.0
// Printing a function after any phase and parsing it again gives the same commands.

// DEFINE: %{fuse} = --npu-fuse-copies="chip=npu-base"
// DEFINE: %{forms} = --npu-choose-forms="chip=npu-base"
// DEFINE: %{stores} = --npu-choose-direct-stores="chip=npu-base"
// DEFINE: %{schedule} = --npu-schedule="chip=npu-base"
// RUN: tessera-opt %s --device-assign-addresses %{fuse} %{forms} %{stores} %{schedule} --npu-emit-stream="chip=npu-base output=%t.whole" -o /dev/null
// RUN: FileCheck %s --input-file %t.whole

// RUN: tessera-opt %s --device-assign-addresses -o %t.0
// RUN: tessera-opt %t.0 %{fuse} %{forms} %{stores} %{schedule} --npu-emit-stream="chip=npu-base output=%t.again" -o /dev/null
// RUN: cmp %t.whole %t.again

// RUN: tessera-opt %t.0 %{fuse} -o %t.1
// RUN: tessera-opt %t.1 %{forms} %{stores} %{schedule} --npu-emit-stream="chip=npu-base output=%t.again" -o /dev/null
// RUN: cmp %t.whole %t.again

// RUN: tessera-opt %t.1 %{forms} -o %t.2
// RUN: tessera-opt %t.2 %{stores} %{schedule} --npu-emit-stream="chip=npu-base output=%t.again" -o /dev/null
// RUN: cmp %t.whole %t.again

// RUN: tessera-opt %t.2 %{stores} -o %t.3
// RUN: FileCheck %s --check-prefix=FORMS --input-file %t.3
// RUN: tessera-opt %t.3 %{schedule} --npu-emit-stream="chip=npu-base output=%t.again" -o /dev/null
// RUN: cmp %t.whole %t.again

// RUN: tessera-opt %t.3 %{schedule} --npu-verify-decisions="chip=npu-base" -o %t.4
// RUN: tessera-opt %t.4 --npu-emit-stream="chip=npu-base output=%t.again" -o /dev/null
// RUN: cmp %t.whole %t.again

// CHECK: // image: workspace
// CHECK: conv id=
// CHECK: pool id=
// CHECK: // rows: workspace
// CHECK: reduce id=

// With few input channels, kernel taps become channels. The result is stored directly with channels last.
// FORMS-LABEL: func.func @image
// FORMS: npu.taps = [#npu.taps<fetched = rows_loaded, resident = rows_moved>]
// FORMS: device.copy {{.*}}npu.pieces = #npu.pieces<{{direct|early}}>
func.func @image(%x: tensor<1x3x64x64xi8>) -> tensor<1x15x15x8xi8> {
  %w = top.constant dense<3> : tensor<8x3x3x3xi8> : tensor<8x3x3x3xi8>
  %c = device.conv %x, %w epilogue {
  ^bb0(%s: i32):
    %f = arith.sitofp %s : i32 to f32
    %k = arith.constant 0.003 : f32
    %m = arith.mulf %f, %k : f32
    %r = math.roundeven %m : f32
    %l = arith.constant -128.0 : f32
    %h = arith.constant 127.0 : f32
    %a = arith.maximumf %r, %l : f32
    %n = arith.minimumf %a, %h : f32
    %i = arith.fptosi %n : f32 to i32
    %b = arith.trunci %i : i32 to i8
    device.yield %b : i8
  } {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x64x64xi8>, tensor<8x3x3x3xi8>) -> tensor<1x8x32x32xi8>
  %p = device.pool max %c {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x8x32x32xi8>) -> tensor<1x8x15x15xi8>
  %y = device.copy %p {pieces = [#device.piece<source = 0, sizes = [1, 15, 15, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 3, 1], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x8x15x15xi8>) -> tensor<1x15x15x8xi8>
  return %y : tensor<1x15x15x8xi8>
}

// A norm behind an attention stores its rows twice, the second time transposed.
// FORMS-LABEL: func.func @rows
// FORMS: device.attention {{.*}}npu.attention = #npu.attention<{{queries|matrix|batches|blocks}}, blocks =
// FORMS: npu.fused = #npu.fused<producer, target = 1>
func.func @rows(%q: tensor<1x16x32xf32>, %k: tensor<1x24x32xf32>, %v: tensor<1x24x32xf32>) -> (tensor<1x16x32xf32>, tensor<1x32x16xf32>) {
  %a = device.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<1x16x32xf32>, tensor<1x24x32xf32>, tensor<1x24x32xf32>) -> tensor<1x16x32xf32>
  %n = device.norm %a {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
  %s = device.softmax %n {axis = 2 : i64} : (tensor<1x16x32xf32>) -> tensor<1x16x32xf32>
  %u = device.copy %n {pieces = [#device.piece<source = 0, sizes = [1, 32, 16], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<1x16x32xf32>) -> tensor<1x32x16xf32>
  %t = device.softmax %u {axis = 2 : i64} : (tensor<1x32x16xf32>) -> tensor<1x32x16xf32>
  return %s, %t : tensor<1x16x32xf32>, tensor<1x32x16xf32>
}

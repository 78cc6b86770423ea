// SPDX-License-Identifier: Apache-2.0
// A first choice whether a convolution quantises its picture comes from an estimate for the convolution alone. The
// search over schedules then compares complete programs.
// DEFINE: %{forms} = --npu-fuse-copies="chip=npu-base" --npu-choose-forms="chip=npu-base"
// RUN: tessera-opt %s --device-assign-addresses %{forms} | FileCheck %s --check-prefix=FORMS
// RUN: tessera-opt %s --device-assign-addresses %{forms} --npu-schedule="chip=npu-base" --npu-verify-decisions="chip=npu-base" -o %t.whole
// RUN: FileCheck %s --input-file %t.whole
// RUN: tessera-opt %s --device-assign-addresses %{forms} --npu-schedule="chip=npu-base effort=1" | FileCheck %s --check-prefix=FORMS

// The emitted program is the one that was chosen. With --plan, the faster of the two forms is found as well.
// RUN: tessera-opt %s --device-assign-addresses %{forms} --npu-schedule="chip=npu-base" --npu-emit-stream="chip=npu-base output=%t.stream" -o /dev/null
// RUN: tessera-opt %t.whole --npu-emit-stream="chip=npu-base output=%t.again" -o /dev/null
// RUN: cmp %t.stream %t.again
// RUN: tessera-opt %s --device-assign-addresses %{forms} --npu-schedule="chip=npu-base plan=%S/Inputs/nothing.json" | FileCheck %s

// FORMS-LABEL: func.func @small
// FORMS-NOT: npu.fused
// CHECK-LABEL: func.func @small
// CHECK: npu.fused = #npu.fused<readers>
// CHECK: npu.taps = [#npu.taps<fetched = {{rows|all}}_moved
func.func @small(%x: tensor<1x3x128x128xf32>) -> tensor<1x8x32x32xi8> {
  %w = top.constant dense<3> : tensor<8x3x3x3xi8> : tensor<8x3x3x3xi8>
  %v = top.constant dense<3> : tensor<8x8x3x3xi8> : tensor<8x8x3x3xi8>
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
  %c = device.conv %q, %w epilogue {
  ^bb0(%e: i32):
    %l = arith.constant -128 : i32
    %m = arith.constant 127 : i32
    %a = arith.maxsi %e, %l : i32
    %b = arith.minsi %a, %m : i32
    %j = arith.trunci %b : i32 to i8
    device.yield %j : i8
  } {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x128x128xi8>, tensor<8x3x3x3xi8>) -> tensor<1x8x64x64xi8>
  %d = device.conv %c, %v epilogue {
  ^bb0(%e: i32):
    %l = arith.constant -128 : i32
    %m = arith.constant 127 : i32
    %a = arith.maxsi %e, %l : i32
    %b = arith.minsi %a, %m : i32
    %j = arith.trunci %b : i32 to i8
    device.yield %j : i8
  } {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x8x64x64xi8>, tensor<8x8x3x3xi8>) -> tensor<1x8x32x32xi8>
  return %d : tensor<1x8x32x32xi8>
}

// FORMS-LABEL: func.func @large
// FORMS: npu.fused = #npu.fused<readers>
// FORMS: npu.taps
// CHECK-LABEL: func.func @large
// CHECK-NOT: npu.fused
// CHECK: npu.taps
func.func @large(%x: tensor<1x3x400x400xf32>) -> tensor<1x8x200x200xi8> {
  %w = top.constant dense<3> : tensor<8x3x3x3xi8> : tensor<8x3x3x3xi8>
  %v = top.constant dense<3> : tensor<8x8x3x3xi8> : tensor<8x8x3x3xi8>
  %q = device.map(%x) {
  ^bb0(%e: f32):
    %least = arith.constant -128.0 : f32
    %most = arith.constant 127.0 : f32
    %r = math.roundeven %e : f32
    %a = arith.maximumf %r, %least : f32
    %b = arith.minimumf %a, %most : f32
    %i = arith.fptosi %b : f32 to i8
    device.yield %i : i8
  } : (tensor<1x3x400x400xf32>) -> tensor<1x3x400x400xi8>
  %c = device.conv %q, %w epilogue {
  ^bb0(%e: i32):
    %l = arith.constant -128 : i32
    %m = arith.constant 127 : i32
    %a = arith.maxsi %e, %l : i32
    %b = arith.minsi %a, %m : i32
    %j = arith.trunci %b : i32 to i8
    device.yield %j : i8
  } {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x3x400x400xi8>, tensor<8x3x3x3xi8>) -> tensor<1x8x400x400xi8>
  %d = device.conv %c, %v epilogue {
  ^bb0(%e: i32):
    %l = arith.constant -128 : i32
    %m = arith.constant 127 : i32
    %a = arith.maxsi %e, %l : i32
    %b = arith.minsi %a, %m : i32
    %j = arith.trunci %b : i32 to i8
    device.yield %j : i8
  } {strides = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x8x400x400xi8>, tensor<8x8x3x3xi8>) -> tensor<1x8x200x200xi8>
  return %d : tensor<1x8x200x200xi8>
}

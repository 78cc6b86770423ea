// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-assign-addresses --npu-fuse-copies="chip=npu-base" --npu-verify-decisions --split-input-file | FileCheck %s

// The norm reads transposed rows and computes the map behind it. The result only exists in transposed form.
// CHECK-LABEL: func.func @turned_norm
// CHECK: device.copy %{{.*}}npu.fused = #npu.fused<readers>
// CHECK: device.norm
// CHECK-NOT: npu.fused
// CHECK: device.map
// CHECK: npu.fused = #npu.fused<producer>
// CHECK: device.copy %{{.*}}npu.fused = #npu.fused<producer, target = 0>
func.func @turned_norm(%x: tensor<1x24x9x8xf32>) -> tensor<1x24x9x8xf32> {
  %t = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 9, 8, 24], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 2, 3, 1], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x24x9x8xf32>) -> tensor<1x9x8x24xf32>
  %n = device.norm %t {axis = 3 : i64, epsilon = 1.0e-5 : f64} : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
  %b = device.map(%n) {
  ^bb0(%e: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %e, %zero : f32
    device.yield %m : f32
  } : (tensor<1x9x8x24xf32>) -> tensor<1x9x8x24xf32>
  %u = device.copy %b {pieces = [#device.piece<source = 0, sizes = [1, 24, 9, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 3, 1, 2], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]} : (tensor<1x9x8x24xf32>) -> tensor<1x24x9x8xf32>
  %y = device.softmax %u {axis = 3 : i64} : (tensor<1x24x9x8xf32>) -> tensor<1x24x9x8xf32>
  return %y : tensor<1x24x9x8xf32>
}

// -----

// The rows are also read as they are: the norm stores both the rows and the transposed copy.
// CHECK-LABEL: func.func @stored_twice
// CHECK: device.copy %{{.*}}npu.fused = #npu.fused<producer, target = 1>
func.func @stored_twice(%x: tensor<1x9x24xf32>) -> (tensor<1x9x24xf32>, tensor<1x24x9xf32>) {
  %n = device.norm %x {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<1x9x24xf32>) -> tensor<1x9x24xf32>
  %s = device.softmax %n {axis = 2 : i64} : (tensor<1x9x24xf32>) -> tensor<1x9x24xf32>
  %u = device.copy %n {pieces = [#device.piece<source = 0, sizes = [1, 24, 9], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<1x9x24xf32>) -> tensor<1x24x9xf32>
  %t = device.softmax %u {axis = 2 : i64} : (tensor<1x24x9xf32>) -> tensor<1x24x9xf32>
  return %s, %t : tensor<1x9x24xf32>, tensor<1x24x9xf32>
}

// -----

// A softmax cannot read transposed rows, so the copy is not fused.
// CHECK-LABEL: func.func @not_fused
// CHECK-NOT: npu.fused
func.func @not_fused(%x: tensor<1x24x9xf32>) -> tensor<1x9x24xf32> {
  %t = device.copy %x {npu.fused = #npu.fused<readers>, pieces = [#device.piece<source = 0, sizes = [1, 9, 24], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<1x24x9xf32>) -> tensor<1x9x24xf32>
  %y = device.softmax %t {axis = 2 : i64} : (tensor<1x9x24xf32>) -> tensor<1x9x24xf32>
  return %y : tensor<1x9x24xf32>
}

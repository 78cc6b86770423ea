// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-assign-addresses --npu-fuse-copies --npu-schedule --npu-verify-decisions | FileCheck %s
// RUN: tessera-opt %s --device-assign-addresses --npu-fuse-copies --npu-schedule="effort=0" | FileCheck %s --check-prefix=NONE
// RUN: tessera-opt %s --device-assign-addresses --npu-fuse-copies --npu-schedule="plan=%S/Inputs/two-layers.json" | FileCheck %s --check-prefix=PLAN

// Values that fit local memory stay whole, from the layer that writes them to the last that reads them.
// CHECK-LABEL: func.func @small
// CHECK-SAME: npu.effort = 2
// CHECK: device.lut {{.*}}npu.resident = #npu.resident<layers 0 to 1, bytes = 64, dense = true, stored = false>
// CHECK: device.pool {{.*}}npu.resident = #npu.resident<layers 1 to 2, bytes = 64, dense = true, stored = false>
// NONE-LABEL: func.func @small
// NONE-SAME: npu.effort = 0
// NONE-NOT: npu.resident
// PLAN-LABEL: func.func @small
// PLAN-NOT: npu.resident
// PLAN: device.pool {{.*}}npu.resident = #npu.resident<layers 1 to 2
func.func @small(%x: tensor<1x16x8x8xi8>) -> tensor<1x16x4x4xi8> {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  %a = device.lut %x, %t : (tensor<1x16x8x8xi8>, tensor<256xi8>) -> tensor<1x16x8x8xi8>
  %b = device.pool max %a {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xi8>) -> tensor<1x16x8x8xi8>
  %y = device.pool max %b {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x16x8x8xi8>) -> tensor<1x16x4x4xi8>
  return %y : tensor<1x16x4x4xi8>
}

// Larger values stay slice by slice: the lut is one row ahead of the window that reads its result, and passes on two
// rows.
// CHECK-LABEL: func.func @large
// CHECK: device.lut {{.*}}npu.slices = #npu.slices<layers 0 to 2, from = [0, 49, 99, 149], until = [51, 101, 151, 200]>
// CHECK: device.pool {{.*}}npu.slices = #npu.slices<layers 0 to 2, from = [0, 50, 100, 150], until = [50, 100, 150, 200]>
// CHECK: device.pool {{.*}}npu.slices = #npu.slices<layers 0 to 2, from = [0, 25, 50, 75], until = [25, 50, 75, 100]>
// NONE-NOT: npu.slices
func.func @large(%x: tensor<1x64x200x200xi8>) -> tensor<1x64x100x100xi8> {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  %a = device.lut %x, %t : (tensor<1x64x200x200xi8>, tensor<256xi8>) -> tensor<1x64x200x200xi8>
  %b = device.pool max %a {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x64x200x200xi8>) -> tensor<1x64x200x200xi8>
  %y = device.pool max %b {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x64x200x200xi8>) -> tensor<1x64x100x100xi8>
  return %y : tensor<1x64x100x100xi8>
}

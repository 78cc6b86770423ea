// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-assign-addresses --npu-choose-direct-stores | FileCheck %s

// Every second row and column of a pool: its tiles are stored directly at their positions in the result.
// CHECK-LABEL: func.func @shuffled
// CHECK: device.copy {{.*}}npu.pieces = #npu.pieces<direct>
func.func @shuffled(%x: tensor<1x32x64x64xi8>) -> tensor<1x32x31x2x32xi8> {
  %p = device.pool max %x {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, pads = array<i64: 0, 1, 0, 1>, dilations = array<i64: 1, 1>} : (tensor<1x32x64x64xi8>) -> tensor<1x32x62x64xi8>
  %r = device.reshape %p : (tensor<1x32x62x64xi8>) -> tensor<1x32x2x31x64xi8>
  %y = device.copy %r {pieces = [#device.piece<source = 0, sizes = [1, 32, 31, 2, 32], dst_offsets = [0, 0, 0, 0, 0], dst_steps = [1, 1, 1, 1, 1], src_dims = [0, 1, 3, 2, 4], src_offsets = [0, 0, 0, 0, 0], src_steps = [1, 1, 1, 1, 1]>]} : (tensor<1x32x2x31x64xi8>) -> tensor<1x32x31x2x32xi8>
  return %y : tensor<1x32x31x2x32xi8>
}

// A table does not store images, so its piece is moved right after it. The piece of an argument is moved with the copy.
// CHECK-LABEL: func.func @joined
// CHECK: device.copy {{.*}}npu.pieces = #npu.pieces<early, turn>
func.func @joined(%x: tensor<1x64x64xi8>) -> tensor<1x64x128xi8> {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  %a = device.lut %x, %t : (tensor<1x64x64xi8>, tensor<256xi8>) -> tensor<1x64x64xi8>
  %y = device.copy %a, %x {pieces = [
    #device.piece<source = 0, sizes = [1, 64, 64], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>,
    #device.piece<source = 1, sizes = [1, 64, 64], dst_offsets = [0, 0, 64], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<1x64x64xi8>, tensor<1x64x64xi8>) -> tensor<1x64x128xi8>
  return %y : tensor<1x64x128xi8>
}

// The copy is read on the chip, so it is not a direct store.
// CHECK-LABEL: func.func @read
// CHECK-NOT: npu.pieces
func.func @read(%x: tensor<1x64x64xi8>) -> tensor<1x64x64xi8> {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  %a = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 64, 64], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>]} : (tensor<1x64x64xi8>) -> tensor<1x64x64xi8>
  %y = device.lut %a, %t : (tensor<1x64x64xi8>, tensor<256xi8>) -> tensor<1x64x64xi8>
  return %y : tensor<1x64x64xi8>
}

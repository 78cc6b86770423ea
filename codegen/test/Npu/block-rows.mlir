// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --npu-block-rows="chip=npu-pro" --split-input-file | FileCheck %s

// Rows 2 * r and 2 * r + 1 of the first result are channels 0 and 1 of row r. Its kernels have five rows with a stride
// of four; the second channel sees the last three. The next convolution sees the odd row of the previous block and both
// rows of its own block. Its result keeps its rows and its name; the first result loses its name. Only non-zero weights
// count for the bound of the sums.
// CHECK-LABEL: func.func @chain
// CHECK: %[[W:.*]] = top.constant dense<{{\[\[\[\[}}1], [2], [3], [0], [0]{{\]\], \[\[\[}}0], [0], [1], [2], [3]]]]> : tensor<2x1x5x1xi8>
// CHECK: %[[B:.*]] = top.constant dense<7> : tensor<2xi32>
// CHECK: %[[T:.*]] = device.conv %arg0, %[[W]] bias %[[B]] epilogue
// CHECK: } {dilations = array<i64: 1, 1>, padValue = 9 : i64, pads = array<i64: 1, 0, 0, 0>, strides = array<i64: 4, 1>, sumBound = 49152 : i64} : {{.*}} -> tensor<1x2x32x128xi8>
// CHECK: %[[V:.*]] = top.constant dense<{{\[\[\[\[}}0], [5]], {{\[\[}}4], [6]]]]> : tensor<1x2x2x1xi8>
// CHECK: device.conv %[[T]], %[[V]] epilogue
// CHECK: } {dilations = array<i64: 1, 1>, padValue = 9 : i64, pads = array<i64: 1, 0, 0, 0>, strides = array<i64: 1, 1>, sumBound = 49152 : i64, top.outputs = ["y"]} : {{.*}} -> tensor<1x1x32x128xi8>
func.func @chain(%x: tensor<1x1x128x128xi8>) -> tensor<1x1x32x128xi8> {
  %w = top.constant dense<[[[[1], [2], [3]]]]> : tensor<1x1x3x1xi8> : tensor<1x1x3x1xi8>
  %b = top.constant dense<7> : tensor<1xi32> : tensor<1xi32>
  %v = top.constant dense<[[[[4], [5], [6]]]]> : tensor<1x1x3x1xi8> : tensor<1x1x3x1xi8>
  %t = device.conv %x, %w bias %b epilogue {
  ^bb0(%s: i32):
    %c = arith.trunci %s : i32 to i8
    device.yield %c : i8
  } {padValue = 9 : i64, strides = array<i64: 2, 1>, pads = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>, top.outputs = ["t"]} : (tensor<1x1x128x128xi8>, tensor<1x1x3x1xi8>, tensor<1xi32>) -> tensor<1x1x64x128xi8>
  %y = device.conv %t, %v epilogue {
  ^bb0(%s: i32):
    %c = arith.trunci %s : i32 to i8
    device.yield %c : i8
  } {padValue = 9 : i64, strides = array<i64: 2, 1>, pads = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x1x64x128xi8>, tensor<1x1x3x1xi8>) -> tensor<1x1x32x128xi8>
  %l = device.map(%y) {
  ^bb0(%e: i8):
    device.yield %e : i8
  } : (tensor<1x1x32x128xi8>) -> tensor<1x1x32x128xi8>
  return %l : tensor<1x1x32x128xi8>
}

// -----

// For a result of the function, a copy restores the order of rows, which a store can do. Factors are repeated for each
// row.
// CHECK-LABEL: func.func @result
// CHECK: top.constant dense<{{\[\[\[}}10]], {{\[\[}}10]], {{\[\[}}10]], {{\[\[}}10]], {{\[\[}}20]], {{\[\[}}20]], {{\[\[}}20]], {{\[\[}}20]]]> : tensor<8x1x1xi32>
// CHECK: %[[Y:.*]] = device.conv {{.*}} epilogue
// CHECK: pads = array<i64: 1, 0, 1, 0>, strides = array<i64: 4, 1>, sumBound = 49152 : i64} : {{.*}} -> tensor<1x8x32x128xi32>
// CHECK-NEXT: %[[R:.*]] = device.reshape %[[Y]] : (tensor<1x8x32x128xi32>) -> tensor<1x2x4x32x128xi32>
// CHECK-NEXT: %[[C:.*]] = device.copy %[[R]] {pieces = [#device.piece<source = 0, sizes = [1, 2, 32, 4, 128], {{.*}} src_dims = [0, 1, 3, 2, 4]
// CHECK-NEXT: %[[Z:.*]] = device.reshape %[[C]] {top.outputs = ["y"]} : (tensor<1x2x32x4x128xi32>) -> tensor<1x2x128x128xi32>
// CHECK-NEXT: return %[[Z]]
func.func @result(%x: tensor<1x1x128x128xi8>) -> tensor<1x2x128x128xi32> {
  %w = top.constant dense<[[[[1], [2], [3]]], [[[4], [5], [6]]]]> : tensor<2x1x3x1xi8> : tensor<2x1x3x1xi8>
  %f = top.constant dense<[[[10]], [[20]]]> : tensor<2x1x1xi32> : tensor<2x1x1xi32>
  %y = device.conv %x, %w extras(%f) epilogue {
  ^bb0(%s: i32, %e: i32):
    %c = arith.addi %s, %e : i32
    device.yield %c : i32
  } {strides = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x1x128x128xi8>, tensor<2x1x3x1xi8>, tensor<2x1x1xi32>) -> tensor<1x2x128x128xi32>
  return %y : tensor<1x2x128x128xi32>
}

// -----

// Not rewritten: sums of floats have a specified order, weights that are not constant cannot be rearranged, and an
// addend per element is not the same for all rows.
// CHECK-LABEL: func.func @others
// CHECK: device.conv {{.*}} -> tensor<1x2x128x128xf32>
// CHECK: device.conv {{.*}} -> tensor<1x2x128x128xi32>
// CHECK: device.conv
// CHECK: } {{.*}} -> tensor<1x2x128x128xi32>
// CHECK-NEXT: return
func.func @others(%f: tensor<1x1x128x128xf32>, %x: tensor<1x1x128x128xi8>, %v: tensor<2x1x3x1xi8>, %e: tensor<1x2x128x128xi32>) -> (tensor<1x2x128x128xf32>, tensor<1x2x128x128xi32>, tensor<1x2x128x128xi32>) {
  %u = top.constant dense<2.0> : tensor<2x1x3x1xf32> : tensor<2x1x3x1xf32>
  %w = top.constant dense<2> : tensor<2x1x3x1xi8> : tensor<2x1x3x1xi8>
  %a = device.conv %f, %u {strides = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x128x128xf32>, tensor<2x1x3x1xf32>) -> tensor<1x2x128x128xf32>
  %b = device.conv %x, %v {strides = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x128x128xi8>, tensor<2x1x3x1xi8>) -> tensor<1x2x128x128xi32>
  %c = device.conv %x, %w extras(%e) epilogue {
  ^bb0(%s: i32, %r: i32):
    %t = arith.addi %s, %r : i32
    device.yield %t : i32
  } {strides = array<i64: 1, 1>, pads = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x128x128xi8>, tensor<2x1x3x1xi8>, tensor<1x2x128x128xi32>) -> tensor<1x2x128x128xi32>
  return %a, %b, %c : tensor<1x2x128x128xf32>, tensor<1x2x128x128xi32>, tensor<1x2x128x128xi32>
}

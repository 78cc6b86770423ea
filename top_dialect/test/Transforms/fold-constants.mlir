// RUN: tessera-opt %s --top-fold-constants --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Folds the shape arithmetic that exporters emit before a reshape.
// CHECK-LABEL: @shape_arithmetic
// CHECK-NEXT: top.reshape %arg0 {shape = array<i64: 2, 12>} : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
// CHECK-NEXT: return {{.*}} : tensor<2x12xf32>
func.func @shape_arithmetic(%x: tensor<2x3x4xf32>) -> tensor<?x?xf32> {
  %shape = top.shape %x {start = 0, end = 3} : (tensor<2x3x4xf32>) -> tensor<3xi64>
  %zero = top.constant dense<0> : tensor<i64> : tensor<i64>
  %n = top.gather %shape, %zero {axis = 0} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %n1 = top.reshape %n {shape = array<i64: 1>} : (tensor<i64>) -> tensor<1xi64>
  %rest = top.constant dense<-1> : tensor<1xi64> : tensor<1xi64>
  %dims = top.concat %n1, %rest {axis = 0} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  %y = top.reshape %x, %dims {shape = array<i64: -1, -1>} : (tensor<2x3x4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}

// -----

// Only the batch is unknown: the other dims are still folded.
// CHECK-LABEL: @part_of_dynamic_shape
// CHECK: %[[C:.*]] = top.constant dense<8> : tensor<1xi64>
// CHECK: return %[[C]]
func.func @part_of_dynamic_shape(%x: tensor<?x8xf32>) -> tensor<1xi64> {
  %shape = top.shape %x {start = 0, end = 2} : (tensor<?x8xf32>) -> tensor<2xi64>
  %y = top.slice %shape {starts = array<i64: 1>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<2xi64>) -> tensor<1xi64>
  return %y : tensor<1xi64>
}

// -----

// CHECK-LABEL: @evaluates
// CHECK: top.constant dense<[5.000000e+00, 7.000000e+00]> : tensor<2xf32>
// CHECK-NEXT: return
func.func @evaluates() -> tensor<2xf32> {
  %a = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %b = top.constant dense<[4.0, 5.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.add %a, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// A broadcast that would expand a scalar to 16 MiB is not folded.
// CHECK-LABEL: @keeps_growth
// CHECK: top.expand
func.func @keeps_growth() -> tensor<4194304xf32> {
  %a = top.constant dense<1.0> : tensor<1xf32> : tensor<1xf32>
  %y = top.expand %a {shape = array<i64: 4194304>} : (tensor<1xf32>) -> tensor<4194304xf32>
  return %y : tensor<4194304xf32>
}

// -----

// CHECK-LABEL: @no_ops
// CHECK-NEXT: return %arg0
func.func @no_ops(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %zero = top.constant dense<0.0> : tensor<f32> : tensor<f32>
  %one = top.constant dense<1.0> : tensor<1x1xf32> : tensor<1x1xf32>
  %a = top.add %x, %zero : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %b = top.mul %one, %a : (tensor<1x1xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %c = top.sub %b, %zero : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %d = top.div %c, %one : (tensor<2x4xf32>, tensor<1x1xf32>) -> tensor<2x4xf32>
  %e = top.pow %d, %one : (tensor<2x4xf32>, tensor<1x1xf32>) -> tensor<2x4xf32>
  %f = top.cast %e {to = f32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %g = top.pad %f {pads = array<i64: 0, 0, 0, 0>, mode = 0 : i32} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %h = top.expand %g {shape = array<i64: 2, 4>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %i = top.tile %h {repeats = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %j = top.concat %i {axis = 0} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %k = top.slice %j {starts = array<i64: 0, 0>, sizes = array<i64: 2, 4>, steps = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %l = top.transpose %k {perm = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %m = top.reshape %l {shape = array<i64: 2, 4>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %m : tensor<2x4xf32>
}

// -----

// x + 0 that broadcasts x is not an identity.
// CHECK-LABEL: @keeps_broadcast
// CHECK: top.add
func.func @keeps_broadcast(%x: tensor<4xf32>) -> tensor<2x4xf32> {
  %zero = top.constant dense<0.0> : tensor<2x1xf32> : tensor<2x1xf32>
  %y = top.add %x, %zero : (tensor<4xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// CHECK-LABEL: @powers
// CHECK-NEXT: top.mul %arg0, %arg0
// CHECK-NEXT: top.sqrt
// CHECK-NEXT: top.rsqrt
// CHECK-NEXT: return
func.func @powers(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = top.constant dense<2.0> : tensor<f32> : tensor<f32>
  %half = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %minus = top.constant dense<-0.5> : tensor<f32> : tensor<f32>
  %a = top.pow %x, %two : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b = top.pow %a, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c = top.pow %b, %minus : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

// Slices: a gather with evenly spaced indices; a slice of a slice; a slice of one operand of a concat.
// CHECK-LABEL: @slices
// CHECK-NEXT: %[[A:.*]] = top.slice %arg0 {sizes = array<i64: 2, 2>, starts = array<i64: 0, 5>, steps = array<i64: 1, -4>}
// CHECK-NEXT: return %[[A]], %arg0
func.func @slices(%x: tensor<2x6xf32>, %y: tensor<2x6xf32>) -> (tensor<2x2xf32>, tensor<2x6xf32>) {
  %odd = top.constant dense<[5, 3, 1]> : tensor<3xi64> : tensor<3xi64>
  %a = top.gather %x, %odd {axis = 1} : (tensor<2x6xf32>, tensor<3xi64>) -> tensor<2x3xf32>
  %b = top.slice %a {starts = array<i64: 0, 0>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 2>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  %c = top.concat %y, %x {axis = 1} : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x12xf32>
  %d = top.slice %c {starts = array<i64: 0, 6>, sizes = array<i64: 2, 6>, steps = array<i64: 1, 1>} : (tensor<2x12xf32>) -> tensor<2x6xf32>
  return %b, %d : tensor<2x2xf32>, tensor<2x6xf32>
}

// -----

// A constant condition selects one branch.
// CHECK-LABEL: @branch
// CHECK-NEXT: %[[Y:.*]] = top.relu %arg0
// CHECK-NEXT: return %[[Y]]
func.func @branch(%x: tensor<4xf32>) -> tensor<4xf32> {
  %rate = top.constant dense<16000> : tensor<i64> : tensor<i64>
  %wanted = top.constant dense<16000> : tensor<i64> : tensor<i64>
  %cond = top.compare %rate, %wanted {kind = 0 : i32} : (tensor<i64>, tensor<i64>) -> tensor<i1>
  %y = top.if %cond {
    %a = top.relu %x : (tensor<4xf32>) -> tensor<4xf32>
    top.yield %a : tensor<4xf32>
  } else {
    top.yield %x : tensor<4xf32>
  } : (tensor<i1>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// A dequantised constant stays if a convolution reads it, also through moves; for an addition it is folded to floats.
// CHECK-LABEL: @dequantized_weights
// CHECK-DAG: %[[W:.*]] = top.dequantize {{.*}} -> tensor<2x1x1x1xf32>
// CHECK-DAG: %[[T:.*]] = top.dequantize {{.*}} -> tensor<1x2xf32>
// CHECK-DAG: %[[B:.*]] = top.constant dense<[1.000000e+00, -1.500000e+00]> : tensor<2xf32>
// CHECK-DAG: %[[C:.*]] = top.constant dense<2.000000e+00> : tensor<1xf32>
// CHECK: top.conv %{{.*}}, %[[W]], %[[B]]
// CHECK: %[[TT:.*]] = top.transpose %[[T]]
// CHECK: top.matmul %{{.*}}, %[[TT]]
// CHECK: top.add %{{.*}}, %[[C]]
func.func @dequantized_weights(%x: tensor<1x1x3x2xf32>) -> tensor<1x2x3x1xf32> {
  %s = top.constant dense<0.5> : tensor<f32> : tensor<f32>
  %z = top.constant dense<0> : tensor<i8> : tensor<i8>
  %z32 = top.constant dense<0> : tensor<i32> : tensor<i32>
  %qw = top.constant dense<[[[[3]]], [[[-4]]]]> : tensor<2x1x1x1xi8> : tensor<2x1x1x1xi8>
  %qb = top.constant dense<[2, -3]> : tensor<2xi32> : tensor<2xi32>
  %qt = top.constant dense<[[2, -3]]> : tensor<1x2xi8> : tensor<1x2xi8>
  %qc = top.constant dense<[4]> : tensor<1xi8> : tensor<1xi8>
  %w = top.dequantize %qw, %s, %z : (tensor<2x1x1x1xi8>, tensor<f32>, tensor<i8>) -> tensor<2x1x1x1xf32>
  %b = top.dequantize %qb, %s, %z32 : (tensor<2xi32>, tensor<f32>, tensor<i32>) -> tensor<2xf32>
  %t = top.dequantize %qt, %s, %z : (tensor<1x2xi8>, tensor<f32>, tensor<i8>) -> tensor<1x2xf32>
  %c = top.dequantize %qc, %s, %z : (tensor<1xi8>, tensor<f32>, tensor<i8>) -> tensor<1xf32>
  %y = top.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x3x2xf32>, tensor<2x1x1x1xf32>, tensor<2xf32>) -> tensor<1x2x3x2xf32>
  %tt = top.transpose %t {perm = array<i64: 1, 0>} : (tensor<1x2xf32>) -> tensor<2x1xf32>
  %m = top.matmul %y, %tt : (tensor<1x2x3x2xf32>, tensor<2x1xf32>) -> tensor<1x2x3x1xf32>
  %r = top.add %m, %c : (tensor<1x2x3x1xf32>, tensor<1xf32>) -> tensor<1x2x3x1xf32>
  return %r : tensor<1x2x3x1xf32>
}

// -----

// A kernel is cropped to the input if it is larger than all of it, unless there is padding or another window.
// CHECK-LABEL: @windows_end
// CHECK: top.avg_pool {{.*}}kernel = array<i64: 3, 2>
// CHECK: top.max_pool {{.*}}kernel = array<i64: 3, 3>
// CHECK: top.avg_pool {{.*}}kernel = array<i64: 6, 4>
func.func @windows_end(%x: tensor<1x4x3x3xf32>) -> (tensor<1x4x1x2xf32>, tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>) {
  %0 = top.avg_pool %x {kernel = array<i64: 9, 2>, strides = array<i64: 9, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, ceilMode = true, countIncludePad = true} : (tensor<1x4x3x3xf32>) -> tensor<1x4x1x2xf32>
  %1 = top.max_pool %x {kernel = array<i64: 640, 640>, strides = array<i64: 640, 640>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, ceilMode = true} : (tensor<1x4x3x3xf32>) -> tensor<1x4x1x1xf32>
  %2 = top.avg_pool %x {kernel = array<i64: 6, 4>, strides = array<i64: 6, 1>, pads = array<i64: 1, 0, 2, 1>, dilations = array<i64: 1, 1>, countIncludePad = true} : (tensor<1x4x3x3xf32>) -> tensor<1x4x1x1xf32>
  return %0, %1, %2 : tensor<1x4x1x2xf32>, tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>
}

// -----

// CHECK-LABEL: @heads_are_not_merged
// CHECK-NEXT: %[[T:.*]] = top.transpose %arg0 {perm = array<i64: 0, 1, 3, 2>{{.*}}} : (tensor<2x4x5x3xf32>) -> tensor<2x4x3x5xf32>
// CHECK-NEXT: return %[[T]]
func.func @heads_are_not_merged(%x: tensor<2x4x5x3xf32>) -> tensor<2x4x3x5xf32> {
  %0 = top.reshape %x {shape = array<i64: 8, 5, 3>} : (tensor<2x4x5x3xf32>) -> tensor<8x5x3xf32>
  %1 = top.transpose %0 {perm = array<i64: 0, 2, 1>} : (tensor<8x5x3xf32>) -> tensor<8x3x5xf32>
  %2 = top.reshape %1 {shape = array<i64: 2, 4, 3, 5>} : (tensor<8x3x5xf32>) -> tensor<2x4x3x5xf32>
  return %2 : tensor<2x4x3x5xf32>
}

// -----

// The dims are split differently from how they were merged.
// CHECK-LABEL: @repeated_heads
// CHECK-NEXT: %[[R:.*]] = top.reshape %arg0 {shape = array<i64: 1, 4, 5, 3>}
// CHECK-NEXT: top.transpose %[[R]] {perm = array<i64: 0, 1, 3, 2>}
func.func @repeated_heads(%x: tensor<1x2x2x5x3xf32>) -> tensor<1x4x3x5xf32> {
  %0 = top.reshape %x {shape = array<i64: 4, 5, 3>} : (tensor<1x2x2x5x3xf32>) -> tensor<4x5x3xf32>
  %1 = top.transpose %0 {perm = array<i64: 0, 2, 1>} : (tensor<4x5x3xf32>) -> tensor<4x3x5xf32>
  %2 = top.reshape %1 {shape = array<i64: 1, 4, 3, 5>} : (tensor<4x3x5xf32>) -> tensor<1x4x3x5xf32>
  return %2 : tensor<1x4x3x5xf32>
}

// -----

// The second reshape splits the dim that was moved.
// CHECK-LABEL: @moved_dims_are_split
// CHECK: top.transpose {{.*}}perm = array<i64: 0, 2, 1>
// CHECK-NEXT: top.reshape
func.func @moved_dims_are_split(%x: tensor<2x4x5x3xf32>) -> tensor<2x4x15xf32> {
  %0 = top.reshape %x {shape = array<i64: 8, 5, 3>} : (tensor<2x4x5x3xf32>) -> tensor<8x5x3xf32>
  %1 = top.transpose %0 {perm = array<i64: 0, 2, 1>} : (tensor<8x5x3xf32>) -> tensor<8x3x5xf32>
  %2 = top.reshape %1 {shape = array<i64: 2, 4, 15>} : (tensor<8x3x5xf32>) -> tensor<2x4x15xf32>
  return %2 : tensor<2x4x15xf32>
}

// -----

// The addition uses a view whose dims are the same except for ones.
// CHECK-LABEL: @added_without_view
// CHECK-NEXT: %[[M:.*]] = top.reshape %arg1 {shape = array<i64: 3, 1, 5>}
// CHECK-NEXT: top.add %arg0, %[[M]] : (tensor<3x2x5xf32>, tensor<3x1x5xf32>)
// CHECK-NEXT: return
func.func @added_without_view(%x: tensor<3x2x5xf32>, %m: tensor<1x3x1x5xf32>) -> tensor<3x2x5xf32> {
  %0 = top.reshape %x {shape = array<i64: 1, 3, 2, 5>} : (tensor<3x2x5xf32>) -> tensor<1x3x2x5xf32>
  %1 = top.add %0, %m : (tensor<1x3x2x5xf32>, tensor<1x3x1x5xf32>) -> tensor<1x3x2x5xf32>
  %2 = top.reshape %1 {shape = array<i64: 3, 2, 5>} : (tensor<1x3x2x5xf32>) -> tensor<3x2x5xf32>
  return %2 : tensor<3x2x5xf32>
}

// -----

// CHECK-LABEL: @added_under_a_view
// CHECK-COUNT-2: top.reshape
func.func @added_under_a_view(%x: tensor<6x5xf32>, %m: tensor<3x1x5xf32>) -> tensor<6x5xf32> {
  %0 = top.reshape %x {shape = array<i64: 3, 2, 5>} : (tensor<6x5xf32>) -> tensor<3x2x5xf32>
  %1 = top.add %0, %m : (tensor<3x2x5xf32>, tensor<3x1x5xf32>) -> tensor<3x2x5xf32>
  %2 = top.reshape %1 {shape = array<i64: 6, 5>} : (tensor<3x2x5xf32>) -> tensor<6x5xf32>
  return %2 : tensor<6x5xf32>
}

// -----

// Tensors without elements are constants, whatever op computes them, and so are results computed from them alone: the
// sum is 0.
// CHECK-LABEL: @empty
// CHECK-NEXT: %[[E:.*]] = top.constant dense<> : tensor<2x0xf32>
// CHECK-NEXT: return %[[E]], %arg0
func.func @empty(%x: tensor<2xf32>, %e: tensor<2x0xf32>) -> (tensor<2x0xf32>, tensor<2xf32>) {
  %a = top.neg %e : (tensor<2x0xf32>) -> tensor<2x0xf32>
  %s = top.reduce %e {kind = 0 : i32, axes = array<i64: 1>, keepDims = false} : (tensor<2x0xf32>) -> tensor<2xf32>
  %y = top.add %x, %s : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %a, %y : tensor<2x0xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: @empty_results
// CHECK-DAG: %[[V:.*]] = top.constant dense<> : tensor<0xf32>
// CHECK-DAG: %[[I:.*]] = top.constant dense<> : tensor<0xi64>
// CHECK: return %[[V]], %[[I]]
func.func @empty_results(%x: tensor<4xf32>) -> (tensor<0xf32>, tensor<0xi64>) {
  %v, %i = top.topk %x {k = 0 : i64, axis = 0 : i64} : (tensor<4xf32>) -> (tensor<0xf32>, tensor<0xi64>)
  return %v, %i : tensor<0xf32>, tensor<0xi64>
}

// -----

// An operand without elements adds nothing to a concatenation.
// CHECK-LABEL: @concat_of_empty
// CHECK-NEXT: %[[R:.*]] = top.concat %arg0, %arg0
// CHECK-NEXT: return %[[R]]
func.func @concat_of_empty(%x: tensor<2x3xf32>, %e: tensor<0x3xf32>) -> tensor<4x3xf32> {
  %0 = top.concat %x, %e, %x {axis = 0 : i64} : (tensor<2x3xf32>, tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %0 : tensor<4x3xf32>
}

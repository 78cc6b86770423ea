// RUN: tessera-opt %s --top-quantize=precision=DYNAMIC_INT8 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=TOLD < %t
// RUN: tessera-opt %s --top-quantize="precision=W8 quantize-table=%S/Inputs/dynamic.json" | FileCheck %s --check-prefix=LINE
// RUN: not tessera-opt %s --top-quantize="precision=BF16 quantize-table=%S/Inputs/dynamic_conv.json" 2>&1 | FileCheck %s --check-prefix=CONV
// SPDX-License-Identifier: Apache-2.0

// At run time, each row of the left operand gets a scale and zero point for its own range; both matmuls share the
// bytes. Bias and activation stay f32. Other contractions than matmuls with one constant matrix stay f32, with a
// remark.
// TOLD: remark: 's' (top.matmul) stays float: neither of its operands is a constant
// TOLD: remark: 'c' (top.conv) stays float: top.conv cannot be quantised at run time; only top.matmul can
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:[^:]*]]: tensor<2x5x4xf32>
// CHECK-COUNT-2: top.reduce %[[X]] {axes = array<i64: 2>, {{.*}} -> tensor<2x5x1xf32>
// CHECK: %[[Q:.*]] = top.quantize %[[X]], %[[SCALE:.*]], %[[ZERO:.*]] : (tensor<2x5x4xf32>, tensor<2x5x1xf32>, tensor<2x5x1xui8>) -> tensor<2x5x4xui8>
// CHECK-NOT: top.quantize
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{.*}}> : tensor<4x3xi8>
// CHECK: %[[A:.*]] = top.sub
// CHECK: %[[B:.*]] = top.cast %[[W]] {to = i32}
// CHECK: %[[P:.*]] = top.matmul %[[A]], %[[B]]{{.*}} -> tensor<2x5x3xi32>
// CHECK: %[[S:.*]] = top.constant dense<[0.0236220472, {{.*}}]> : tensor<3xf32>
// CHECK: %[[F:.*]] = top.cast %[[P]] {to = f32}
// CHECK: %[[M:.*]] = top.mul %[[F]], %[[S]]
// CHECK: %[[N:.*]] = top.mul %[[M]], %[[SCALE]]
// CHECK: %[[Y:.*]] = top.add %[[N]]
// CHECK: top.clip %[[Y]] {hi = 6.000000e+00 : f64, lo = 0.000000e+00 : f64, top.outputs = ["y"]}

// A line of the table selects one op; the default precision applies to the others.
// LINE: top.matmul %{{.*}} -> tensor<2x5x3xf32>
// LINE: top.matmul %{{.*}} -> tensor<2x5x3xi32>

// CONV: dynamic_conv.json': 'c' cannot be DYNAMIC_INT8: top.conv cannot be quantised at run time; only top.matmul can
func.func @main(%x: tensor<2x5x4xf32> {top.name = "x"}, %i: tensor<1x1x3x3xf32> {top.name = "i"})
    -> (tensor<2x5x3xf32> {top.name = "y"}, tensor<2x5x3xf32> {top.name = "z"}, tensor<2x5x5xf32> {top.name = "s"}, tensor<1x1x3x3xf32> {top.name = "c"}) {
  %w = top.constant dense<[[1.0, -0.5, 0.0], [2.0, 0.25, 0.0], [-3.0, 0.1, 0.0], [0.5, 0.5, 0.0]]> : tensor<4x3xf32> : tensor<4x3xf32>
  %b = top.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32> : tensor<3xf32>
  %k = top.constant dense<2.0> : tensor<1x1x1x1xf32> : tensor<1x1x1x1xf32>
  %y = top.matmul %x, %w, %b {relu = true, reluLimit = 6.0 : f64, top.outputs = ["y"]} : (tensor<2x5x4xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<2x5x3xf32>
  %z = top.matmul %x, %w {top.outputs = ["z"]} : (tensor<2x5x4xf32>, tensor<4x3xf32>) -> tensor<2x5x3xf32>
  %s = top.matmul %z, %z {transB = true, top.outputs = ["s"]} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> tensor<2x5x5xf32>
  %c = top.conv %i, %k {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x1x3x3xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x3x3xf32>
  return %y, %z, %s, %c : tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x5xf32>, tensor<1x1x3x3xf32>
}

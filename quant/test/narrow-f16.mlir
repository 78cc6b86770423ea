// RUN: tessera-opt %s --top-quantize=precision=F16 2>&1 | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// The largest f16 is 65504: an op with a larger constant stays f32, with a remark. Infinities are allowed.
// CHECK: remark: 'b' (top.matmul) stays float: a constant reaches 7.000e+04, the largest f16 is 65504
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[V:.*]] = top.constant dense<{{.*}}7.000000e+04{{.*}}> : tensor<2x2xf32>
// CHECK-DAG: %[[W:.*]] = top.constant dense<{{.*}}-6.372070e-01{{.*}}> : tensor<2x2xf16>
// CHECK: %[[B:.*]] = top.matmul %{{.*}}, %[[V]]
// CHECK-NOT: top.cast %[[B]]
// CHECK: top.matmul %[[B]]
func.func @main(%x: tensor<3x2xf32> {top.name = "x"}) -> (tensor<3x2xf32> {top.name = "y"}) {
  %w = top.constant dense<[[1.0, -0.637], [25.5, 0x7f800000]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %v = top.constant dense<[[1.0, 70000.0], [25.5, 0.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %wt = top.matmul %x, %w {top.outputs = ["a"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %b = top.matmul %wt, %v {top.outputs = ["b"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %y = top.matmul %b, %w {top.outputs = ["y"]} : (tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

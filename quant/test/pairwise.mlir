// RUN: tessera-opt %s --top-quantize="calibration-table=%S/Inputs/pairwise_table.json quantize-table=%S/Inputs/pairwise.json" | FileCheck %s
// RUN: tessera-opt %s --top-quantize=calibration-table=%S/Inputs/pairwise_table.json 2>&1 | FileCheck %s --check-prefix=FLOAT
// SPDX-License-Identifier: Apache-2.0

// A product of two activations becomes integers if a quantise table requests it: the left operand in its own range, the
// right one symmetric like weights. Without a request it stays float.
// CHECK: %[[BZ:.*]] = top.constant dense<0> : tensor<i8>
// CHECK: top.quantize %arg1, %{{.*}}, %[[BZ]]
// CHECK: %[[AZ:.*]] = top.constant dense<-128>
// CHECK: top.quantize %arg0, %{{.*}}, %[[AZ]]
// CHECK: top.matmul
// FLOAT: 'y' (top.matmul) stays float: neither of its operands is a constant (an INT8 line in a quantise table makes it run on integers)
// FLOAT-NOT: top.quantize
func.func @main(%a: tensor<2x3x4xf32> {top.name = "a"}, %b: tensor<2x4x5xf32> {top.name = "b"}) -> (tensor<2x3x5xf32> {top.name = "y"}) {
  %y = top.matmul %a, %b {top.outputs = ["y"]} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

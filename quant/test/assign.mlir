// RUN: tessera-opt %s --assign-precision="precision=F32" --mlir-print-debuginfo | FileCheck %s --check-prefix=F32
// RUN: tessera-opt %s --assign-precision="precision=BF16" | FileCheck %s --check-prefix=BF16
// RUN: tessera-opt %s --assign-precision="precision=BF16 calibration-table=%S/Inputs/assign.json" | FileCheck %s --check-prefix=SENSITIVE
// RUN: tessera-opt %s --assign-precision="precision=F16 calibration-table=%S/Inputs/assign.json" | FileCheck %s --check-prefix=F16
// RUN: tessera-opt %s --assign-precision="precision=INT8 calibration-table=%S/Inputs/assign.json" | FileCheck %s --check-prefix=INT8
// RUN: tessera-opt %s --assign-precision="precision=INT16 calibration-table=%S/Inputs/assign.json" | FileCheck %s --check-prefix=INT16
// RUN: tessera-opt %s --assign-precision="precision=W8" | FileCheck %s --check-prefix=W8
// RUN: tessera-opt %s --assign-precision="precision=W4" | FileCheck %s --check-prefix=W4
// RUN: tessera-opt %s --assign-precision="precision=DYNAMIC_INT8" | FileCheck %s --check-prefix=DYNAMIC
// RUN: tessera-opt %s --assign-precision="precision=INT8 calibration-table=%S/Inputs/assign.json quantize-table=%S/Inputs/assign_choices.json" | FileCheck %s --check-prefix=TABLE
// The pass keeps precisions that are assigned, and the rest of the pipeline arrives at the same function.
// RUN: tessera-opt %s --assign-precision="precision=INT16 calibration-table=%S/Inputs/assign.json" -o %t.mlir
// RUN: tessera-opt %t.mlir --assign-precision="precision=INT16 calibration-table=%S/Inputs/assign.json" -o %t.again.mlir
// RUN: diff %t.mlir %t.again.mlir
// RUN: tessera-opt %t.mlir --apply-precision=calibration-table=%S/Inputs/assign.json -o %t.applied.mlir
// RUN: tessera-opt %s --top-quantize="precision=INT16 calibration-table=%S/Inputs/assign.json" -o %t.whole.mlir
// RUN: diff %t.applied.mlir %t.whole.mlir
// RUN: FileCheck %s --check-prefix=GONE < %t.whole.mlir
// RUN: not tessera-opt %t.mlir --assign-precision="precision=INT8 calibration-table=%S/Inputs/assign.json" 2>&1 | FileCheck %s --check-prefix=OTHER
// SPDX-License-Identifier: Apache-2.0

// F32: func.func @main({{.*}} attributes {top.precision = "F32"}
// F32: top.conv {{.*}}top.precision = "F32", top.precision_reason = "F32 is the precision of ops that the quantise table does not list"
// F32: top.softmax {{.*}}top.precision = "F32"

// The first convolution sums 2 products. All other ops compute and store 16 bits.
// BF16: attributes {top.precision = "BF16"}
// BF16: top.conv {{.*}}top.precision = "F32", top.precision_reason = "2 products are too few for BF16", {{.*}}top.stores = ["BF16"]
// BF16: top.relu {{.*}}top.precision = "BF16"
// BF16-NOT: top.stores
// BF16: top.softmax {{.*}}top.precision = "BF16"
// SENSITIVE: top.relu {{.*}}top.precision = "BF16"{{.*}}top.stores = ["F32"]

// F16: top.conv {{.*}}top.precision = "F32", top.precision_reason = "2 products
// F16: top.matmul {{.*}}top.precision = "F32", top.precision_reason = "its result reaches 7.000e+04, the largest f16 is 65504"
// F16: top.softmax {{.*}}top.precision = "F16"

// INT8: attributes {top.calibrated_model = "0", top.precision = "INT8"}
// INT8: top.conv {{.*}}top.precision = "INT8", top.precision_reason = "the calibration table has the ranges of its tensors"
// INT8: top.relu {{.*}}top.precision = "INT8"{{.*}}top.stores = ["INT16"]
// INT8: top.matmul {{.*}}top.precision = "INT16", top.precision_reason = "tensor 'r' alone would change the outputs by 30% in int8; at most 20% is allowed"
// INT8: top.softmax {{.*}}top.precision = "F32", top.precision_reason = "top.softmax has no integer form"

// INT16: @main(%{{.*}}: tensor<1x2x4x4xf32> {top.name = "x", top.stores = "INT16"})
// INT16: top.conv {{.*}}top.precision = "INT16", top.precision_reason = "INT16 was requested"
// INT16: top.relu {{.*}}top.stores = ["INT16"]
// INT16: top.matmul {{.*}}top.precision = "INT16"
// INT16: top.softmax {{.*}}top.precision = "F32"
// GONE-NOT: top.precision
// GONE-NOT: top.stores
// GONE-NOT: top.calibrated
// OTHER: error: the function's ops have precisions for INT16, but INT8 was requested; remove its attribute 'top.precision' to have them assigned again

// Only the two ops with weights have integer weights. The convolution has too few input channels for 4 bits, and no
// contraction follows the matmul.
// W8: top.conv {{.*}}top.precision = "W8"
// W8: top.relu {{.*}}top.precision = "F32"
// W8: top.matmul {{.*}}top.precision = "W8"
// W4: top.conv {{.*}}top.precision = "W8", top.precision_reason = "4 bits would save little, or harm the outputs most"
// W4: top.matmul {{.*}}top.precision = "W4"
// W4: top.matmul {{.*}}top.precision = "W8"

// DYNAMIC: top.conv {{.*}}top.precision = "F32", top.precision_reason = "top.conv cannot be quantised at run time; only top.matmul can"
// DYNAMIC: top.relu {{.*}}top.precision = "F32"
// DYNAMIC: top.matmul {{.*}}top.precision = "DYNAMIC_INT8"

// TABLE: top.conv {{.*}}top.precision = "F32"{{.*}}top.precision_requested = "BF16", top.stores = ["BF16"]
// TABLE: top.matmul {{.*}}top.precision = "W4"{{.*}}top.precision_requested = "W4"
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<16x16xf32> {top.name = "s"}) {
  %w = top.constant dense<1.27> : tensor<16x2x1x1xf32> : tensor<16x2x1x1xf32>
  %v = top.constant dense<0.5> : tensor<16x16xf32> : tensor<16x16xf32>
  %c = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.outputs = ["c"]} : (tensor<1x2x4x4xf32>, tensor<16x2x1x1xf32>) -> tensor<1x16x4x4xf32>
  %r = top.relu %c {top.outputs = ["r"]} : (tensor<1x16x4x4xf32>) -> tensor<1x16x4x4xf32>
  %t = top.reshape %r {shape = array<i64: 16, 16>, top.outputs = ["t"]} : (tensor<1x16x4x4xf32>) -> tensor<16x16xf32>
  %m = top.matmul %t, %v {top.outputs = ["m"]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %n = top.matmul %m, %v {top.outputs = ["n"]} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %s = top.softmax %n {axis = 1 : i64, top.outputs = ["s"]} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  return %s : tensor<16x16xf32>
}

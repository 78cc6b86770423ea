// RUN: not tessera-opt %s --split-input-file --apply-precision=calibration-table=%S/Inputs/table.json 2>&1 | FileCheck %s
// SPDX-License-Identifier: Apache-2.0
//
// Each function states a precision that an op cannot have. The error names the ONNX node.

// An op without a precision.
// CHECK: error: 'Relu_1' (top.relu) has no attribute 'top.precision'; remove that of the function to have all precisions assigned
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.outputs = ["y"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("Relu_1")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// An op that computes no floats.
// CHECK: error: 'ArgMax_1' (top.arg_reduce) has the attribute 'top.precision' but computes no floats
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x1x4x4xi64> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.arg_reduce %x {axis = 1 : i64, keepdims = true, top.precision = "INT8"} : (tensor<1x2x4x4xf32>) -> tensor<1x1x4x4xi64> loc("ArgMax_1")
  return %y : tensor<1x1x4x4xi64>
}

// -----

// A precision that does not exist.
// CHECK: error: 'Relu_2' (top.relu): top.precision is 'INT9'; allowed: F32, INT8, INT16, BF16, F16, W8, W4, W8A8, W4A8, DYNAMIC_INT8
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.precision = "INT9"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("Relu_2")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// INT8 of an op without an integer form.
// CHECK: error: 'Softmax_1' (top.softmax) cannot be INT8: top.softmax has no integer form
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.softmax %x {axis = 1 : i64, top.precision = "INT8"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("Softmax_1")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// INT8 of an op whose input has no range.
// CHECK: error: 'Conv_1' (top.conv) cannot be INT8: tensor 'u' has no line in the calibration table
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "u"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.precision = "INT8"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("Conv_1")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// INT8 of an op whose weight is computed.
// CHECK: error: 'Conv_2' (top.conv) cannot be INT8: its constant operand is the first one, not the second
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x1x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %v = top.slice %x {starts = array<i64: 0, 0, 0, 0>, sizes = array<i64: 1, 2, 1, 1>, steps = array<i64: 1, 1, 1, 1>, top.precision = "F32"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x1x1xf32>
  %y = top.conv %x, %v {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.precision = "INT8"} : (tensor<1x2x4x4xf32>, tensor<1x2x1x1xf32>) -> tensor<1x1x4x4xf32> loc("Conv_2")
  return %y : tensor<1x1x4x4xf32>
}

// -----

// INT8 of an op that no integer op reads.
// CHECK: error: 'Relu_3' (top.relu) cannot be INT8: no op that reads it runs on integers
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.outputs = ["y"], top.precision = "INT8"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("Relu_3")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// INT16 of attention.
// CHECK: error: 'Attention_1' (top.attention) cannot be INT16: attention supports 8-bit integers only, but INT16 was requested
func.func @main(%q: tensor<2x3x4xf32> {top.name = "x"}, %k: tensor<2x3x4xf32> {top.name = "a"}, %v: tensor<2x3x4xf32> {top.name = "b"}) -> (tensor<2x3x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.attention %q, %k, %v {scale = 0.5 : f64, top.precision = "INT16"} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32> loc("Attention_1")
  return %y : tensor<2x3x4xf32>
}

// -----

// INT16 of an op that reads bytes.
// CHECK: error: 'Conv_3' (top.conv) cannot be INT16: none of its operands is stored in INT16 (top.stores)
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.precision = "INT16"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("Conv_3")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// INT8 of an op that reads 16 bits.
// CHECK: error: 'Conv_4' (top.conv) cannot be INT8: one of its operands is stored in INT16
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x", top.stores = "INT16"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.precision = "INT8"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("Conv_4")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// A tensor of 16 bits that no integer op reads.
// CHECK: error: tensor 'x' cannot be stored in INT16: no integer op reads it in 16 bits
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x", top.stores = "INT16"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.precision = "F32"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// 16-bit floats of an op that states its types.
// CHECK: error: 'Cast_1' (top.cast) cannot be BF16: top.cast does not compute f32
func.func @main(%x: tensor<4xi32> {top.name = "x"}) -> (tensor<4xf32> {top.name = "out"}) attributes {top.precision = "BF16"} {
  %y = top.cast %x {to = f32, top.precision = "BF16"} : (tensor<4xi32>) -> tensor<4xf32> loc("Cast_1")
  return %y : tensor<4xf32>
}

// -----

// F16 of an op with a constant that f16 cannot hold.
// CHECK: error: 'Mul_1' (top.mul) cannot be F16: a constant reaches 1.000e+05, the largest f16 is 65504
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %s = top.constant dense<1.0e5> : tensor<f32> : tensor<f32>
  %y = top.mul %x, %s {top.precision = "F16"} : (tensor<1x2x4x4xf32>, tensor<f32>) -> tensor<1x2x4x4xf32> loc("Mul_1")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Integer weights of an op without weights.
// CHECK: error: 'Relu_4' (top.relu) cannot be W8: top.relu does not have weights
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.precision = "W8"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("Relu_4")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// 4-bit weights of fewer channels than a group has.
// CHECK: error: 'Conv_5' (top.conv) cannot be W4: it has fewer than 16 input channels, the size of a group of 4-bit weights
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.precision = "W4"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("Conv_5")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Run-time quantisation of another op than a matmul.
// CHECK: error: 'Conv_6' (top.conv) cannot be DYNAMIC_INT8: top.conv cannot be quantised at run time; only top.matmul can
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %w = top.constant dense<1.0> : tensor<2x2x1x1xf32> : tensor<2x2x1x1xf32>
  %y = top.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, top.precision = "DYNAMIC_INT8"} : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> loc("Conv_6")
  return %y : tensor<1x2x4x4xf32>
}


// -----

// A function without precisions.
// CHECK: error: the ops of the function have no precisions: run assign-precision first
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) {
  %y = top.relu %x : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// Unknown names in the other attributes.
// CHECK: error: the function: top.precision is 'INT9'; allowed: F32,
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT9"} {
  %y = top.relu %x {top.precision = "F32"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// CHECK: error: input 'x': top.stores is 'INT9'; allowed: F32,
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x", top.stores = "INT9"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.precision = "F32"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

// CHECK: error: 'Relu_5' (top.relu): top.precision_requested is 'INT9'; allowed: F32,
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.precision = "F32", top.precision_requested = "INT9"} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("Relu_5")
  return %y : tensor<1x2x4x4xf32>
}

// -----

// CHECK: error: 'Relu_6' (top.relu): top.stores is 'INT9'; allowed: F32,
func.func @main(%x: tensor<1x2x4x4xf32> {top.name = "x"}) -> (tensor<1x2x4x4xf32> {top.name = "out"}) attributes {top.precision = "INT8"} {
  %y = top.relu %x {top.precision = "F32", top.stores = ["INT9"]} : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> loc("Relu_6")
  return %y : tensor<1x2x4x4xf32>
}

// SPDX-License-Identifier: Apache-2.0
//
// One function for each row of the table of operators that chips run (docs/generated/supported-ops.md): an ONNX operator as
// the importer emits it, in a typical but small size. SupportedOps.h surveys each one on every chip in every precision.

func.func @probe_0(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x3x16x16xf32> {top.name = "y"}) attributes {title = "Conv"} {
  %0 = top.constant dense<2.500000e-01> : tensor<3x8x3x3xf32> : tensor<3x8x3x3xf32>
  %1 = top.conv %arg0, %0 {dilations = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<3x8x3x3xf32>) -> tensor<1x3x16x16xf32>
  return %1 : tensor<1x3x16x16xf32>
}

func.func @probe_1(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x3x7x7xf32> {top.name = "y"}) attributes {title = "Conv, strided and dilated"} {
  %0 = top.constant dense<2.500000e-01> : tensor<3x8x3x3xf32> : tensor<3x8x3x3xf32>
  %1 = top.conv %arg0, %0 {dilations = array<i64: 2, 2>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<3x8x3x3xf32>) -> tensor<1x3x7x7xf32>
  return %1 : tensor<1x3x7x7xf32>
}

func.func @probe_2(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Conv, depthwise"} {
  %0 = top.constant dense<2.500000e-01> : tensor<8x1x3x3xf32> : tensor<8x1x3x3xf32>
  %1 = top.conv %arg0, %0 {dilations = array<i64: 1, 1>, groups = 8 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x16x16xf32>
  return %1 : tensor<1x8x16x16xf32>
}

func.func @probe_3(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x6x16x16xf32> {top.name = "y"}) attributes {title = "Conv, grouped"} {
  %0 = top.constant dense<2.500000e-01> : tensor<6x4x3x3xf32> : tensor<6x4x3x3xf32>
  %1 = top.conv %arg0, %0 {dilations = array<i64: 1, 1>, groups = 2 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x16x16xf32>
  return %1 : tensor<1x6x16x16xf32>
}

func.func @probe_4(%arg0: tensor<1x8x32xf32> {top.name = "x"}) -> (tensor<1x8x32xf32> {top.name = "y"}) attributes {title = "Conv, one spatial dim"} {
  %0 = top.constant dense<2.500000e-01> : tensor<8x8x3xf32> : tensor<8x8x3xf32>
  %1 = top.conv %arg0, %0 {dilations = array<i64: 1>, pads = array<i64: 1, 1>, strides = array<i64: 1>, top.outputs = ["y"]} : (tensor<1x8x32xf32>, tensor<8x8x3xf32>) -> tensor<1x8x32xf32>
  return %1 : tensor<1x8x32xf32>
}

func.func @probe_5(%arg0: tensor<1x2x8x8x8xf32> {top.name = "x"}) -> (tensor<1x4x8x8x8xf32> {top.name = "y"}) attributes {title = "Conv, three spatial dims"} {
  %0 = top.constant dense<2.500000e-01> : tensor<4x2x3x3x3xf32> : tensor<4x2x3x3x3xf32>
  %1 = top.conv %arg0, %0 {dilations = array<i64: 1, 1, 1>, pads = array<i64: 1, 1, 1, 1, 1, 1>, strides = array<i64: 1, 1, 1>, top.outputs = ["y"]} : (tensor<1x2x8x8x8xf32>, tensor<4x2x3x3x3xf32>) -> tensor<1x4x8x8x8xf32>
  return %1 : tensor<1x4x8x8x8xf32>
}

func.func @probe_6(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x32x32xf32> {top.name = "y"}) attributes {title = "ConvTranspose"} {
  %0 = top.constant dense<2.500000e-01> : tensor<8x8x2x2xf32> : tensor<8x8x2x2xf32>
  %1 = top.conv_transpose %arg0, %0 {dilations = array<i64: 1, 1>, outputPadding = array<i64: 0, 0>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<8x8x2x2xf32>) -> tensor<1x8x32x32xf32>
  return %1 : tensor<1x8x32x32xf32>
}

func.func @probe_7(%arg0: tensor<4x16xf32> {top.name = "x"}) -> (tensor<4x16xf32> {top.name = "y"}) attributes {title = "MatMul, Gemm, by weights"} {
  %0 = top.constant dense<2.500000e-01> : tensor<16x16xf32> : tensor<16x16xf32>
  %1 = top.matmul %arg0, %0 {top.outputs = ["y"]} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}

func.func @probe_8(%arg0: tensor<1x2x16x8xf32> {top.name = "x"}, %arg1: tensor<1x2x8x16xf32> {top.name = "b"}) -> (tensor<1x2x16x16xf32> {top.name = "y"}) attributes {title = "MatMul, two tensors"} {
  %0 = top.matmul %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x2x16x8xf32>, tensor<1x2x8x16xf32>) -> tensor<1x2x16x16xf32>
  return %0 : tensor<1x2x16x16xf32>
}

func.func @probe_9(%arg0: tensor<1x2x16x8xf32> {top.name = "q"}, %arg1: tensor<1x2x16x8xf32> {top.name = "k"}, %arg2: tensor<1x2x16x8xf32> {top.name = "v"}) -> (tensor<1x2x16x8xf32> {top.name = "y"}) attributes {title = "Attention"} {
  %0 = top.attention %arg0, %arg1, %arg2 {scale = 0.35355339059327373 : f64, top.outputs = ["y"]} : (tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>, tensor<1x2x16x8xf32>) -> tensor<1x2x16x8xf32>
  return %0 : tensor<1x2x16x8xf32>
}

func.func @probe_10(%arg0: tensor<4x1x8xf32> {top.name = "x"}) -> (tensor<4x1x1x8xf32> {top.name = "y"}) attributes {title = "LSTM"} {
  %0 = top.constant dense<2.500000e-01> : tensor<1x32x8xf32> : tensor<1x32x8xf32>
  %1 = top.constant dense<1.250000e-01> : tensor<1x32x8xf32> : tensor<1x32x8xf32>
  %y, %yH, %yC = top.rnn %arg0, %0, %1 {activations = ["Sigmoid", "Tanh", "Tanh"], direction = 0 : i32, hiddenSize = 8 : i64, kind = 2 : i32, top.outputs = ["y", "", ""]} : (tensor<4x1x8xf32>, tensor<1x32x8xf32>, tensor<1x32x8xf32>) -> (tensor<4x1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
  return %y : tensor<4x1x1x8xf32>
}

func.func @probe_11(%arg0: tensor<4x1x8xf32> {top.name = "x"}) -> (tensor<4x1x1x8xf32> {top.name = "y"}) attributes {title = "GRU"} {
  %0 = top.constant dense<2.500000e-01> : tensor<1x24x8xf32> : tensor<1x24x8xf32>
  %1 = top.constant dense<1.250000e-01> : tensor<1x24x8xf32> : tensor<1x24x8xf32>
  %y, %yH, %yC = top.rnn %arg0, %0, %1 {activations = ["Sigmoid", "Tanh"], direction = 0 : i32, hiddenSize = 8 : i64, kind = 1 : i32, top.outputs = ["y", "", ""]} : (tensor<4x1x8xf32>, tensor<1x24x8xf32>, tensor<1x24x8xf32>) -> (tensor<4x1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
  return %y : tensor<4x1x1x8xf32>
}

func.func @probe_12(%arg0: tensor<4x1x8xf32> {top.name = "x"}) -> (tensor<4x1x1x8xf32> {top.name = "y"}) attributes {title = "RNN"} {
  %0 = top.constant dense<2.500000e-01> : tensor<1x8x8xf32> : tensor<1x8x8xf32>
  %1 = top.constant dense<1.250000e-01> : tensor<1x8x8xf32> : tensor<1x8x8xf32>
  %y, %yH, %yC = top.rnn %arg0, %0, %1 {activations = ["Tanh"], direction = 0 : i32, hiddenSize = 8 : i64, kind = 0 : i32, top.outputs = ["y", "", ""]} : (tensor<4x1x8xf32>, tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> (tensor<4x1x1x8xf32>, tensor<1x1x8xf32>, tensor<1x1x8xf32>)
  return %y : tensor<4x1x1x8xf32>
}

func.func @probe_13(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x8x8xf32> {top.name = "y"}) attributes {title = "MaxPool"} {
  %0 = top.max_pool %arg0 {dilations = array<i64: 1, 1>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}

func.func @probe_14(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x8x8xf32> {top.name = "y"}) attributes {title = "AveragePool"} {
  %0 = top.avg_pool %arg0 {dilations = array<i64: 1, 1>, kernel = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}

func.func @probe_15(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "GlobalAveragePool"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 1 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_16(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "GlobalMaxPool"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 2 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_17(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Add"} {
  %0 = top.add %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_18(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Sub"} {
  %0 = top.sub %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_19(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Mul"} {
  %0 = top.mul %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_20(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Div"} {
  %0 = top.div %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_21(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Pow"} {
  %0 = top.pow %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_22(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x1x1xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Add, Mul, with broadcasts"} {
  %0 = top.add %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x1x1xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_23(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Min"} {
  %0 = top.min %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_24(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Max"} {
  %0 = top.max %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_25(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Relu"} {
  %0 = top.relu %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_26(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Clip"} {
  %0 = top.clip %arg0 {hi = 6.000000e+00 : f64, lo = 0.000000e+00 : f64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_27(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "LeakyRelu"} {
  %0 = top.leaky_relu %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_28(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "PRelu"} {
  %0 = top.constant dense<2.500000e-01> : tensor<8x1x1xf32> : tensor<8x1x1xf32>
  %1 = top.prelu %arg0, %0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<8x1x1xf32>) -> tensor<1x8x16x16xf32>
  return %1 : tensor<1x8x16x16xf32>
}

func.func @probe_29(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Sigmoid"} {
  %0 = top.sigmoid %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_30(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Tanh"} {
  %0 = top.tanh %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_31(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "HardSigmoid"} {
  %0 = top.hard_sigmoid %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_32(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "HardSwish"} {
  %0 = top.hard_swish %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_33(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Softplus"} {
  %0 = top.softplus %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_34(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Softsign"} {
  %0 = top.softsign %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_35(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Elu"} {
  %0 = top.elu %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_36(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Selu"} {
  %0 = top.selu %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_37(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Erf"} {
  %0 = top.erf %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_38(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Exp"} {
  %0 = top.exp %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_39(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Log"} {
  %0 = top.log %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_40(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Sqrt"} {
  %0 = top.sqrt %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_41(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Reciprocal"} {
  %0 = top.reciprocal %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_42(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Abs"} {
  %0 = top.abs %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_43(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Neg"} {
  %0 = top.neg %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_44(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Sign"} {
  %0 = top.sign %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_45(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Floor"} {
  %0 = top.floor %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_46(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Ceil"} {
  %0 = top.ceil %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_47(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Round"} {
  %0 = top.round %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_48(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Sin"} {
  %0 = top.sin %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_49(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Cos"} {
  %0 = top.cos %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_50(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Mish"} {
  %0 = top.mish %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_51(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Gelu"} {
  %0 = top.gelu %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_52(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Swish (x * Sigmoid(x))"} {
  %0 = top.silu %arg0 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_53(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Greater, Where"} {
  %0 = top.compare %arg0, %arg1 {kind = 4 : i32, top.outputs = ["g"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xi1>
  %1 = top.where %0, %arg0, %arg1 {top.outputs = ["y"]} : (tensor<1x8x16x16xi1>, tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %1 : tensor<1x8x16x16xf32>
}

func.func @probe_54(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xi64> {top.name = "y"}) attributes {title = "Cast to int64"} {
  %0 = top.cast %arg0 {to = i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xi64>
  return %0 : tensor<1x8x16x16xi64>
}

func.func @probe_55(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Softmax, innermost dim"} {
  %0 = top.softmax %arg0 {axis = 3 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_56(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "Softmax, channels"} {
  %0 = top.softmax %arg0 {axis = 1 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_57(%arg0: tensor<4x32xf32> {top.name = "x"}) -> (tensor<4x32xf32> {top.name = "y"}) attributes {title = "LogSoftmax"} {
  %0 = top.softmax %arg0 {axis = 1 : i64, log = true, top.outputs = ["y"]} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

func.func @probe_58(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "ReduceMean, rows and columns"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 1 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_59(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "ReduceSum, rows and columns"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 0 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_60(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "ReduceMax, rows and columns"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 2 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_61(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "ReduceMin, rows and columns"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 3 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_62(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "ReduceProd, rows and columns"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 4 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_63(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x1x1xf32> {top.name = "y"}) attributes {title = "ReduceL2, rows and columns"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2, 3>, kind = 6 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x1x1xf32>
  return %0 : tensor<1x8x1x1xf32>
}

func.func @probe_64(%arg0: tensor<1x16x32xf32> {top.name = "x"}) -> (tensor<1x16x1xf32> {top.name = "y"}) attributes {title = "ReduceMean, innermost dim"} {
  %0 = top.reduce %arg0 {axes = array<i64: 2>, kind = 1 : i32, top.outputs = ["y"]} : (tensor<1x16x32xf32>) -> tensor<1x16x1xf32>
  return %0 : tensor<1x16x1xf32>
}

func.func @probe_65(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x1x16x16xf32> {top.name = "y"}) attributes {title = "ReduceMean, channels"} {
  %0 = top.reduce %arg0 {axes = array<i64: 1>, kind = 1 : i32, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x1x16x16xf32>
  return %0 : tensor<1x1x16x16xf32>
}

func.func @probe_66(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "BatchNormalization"} {
  %0 = top.constant dense<4.999900e-01> : tensor<8x1x1xf32> : tensor<8x1x1xf32>
  %1 = top.mul %arg0, %0 : (tensor<1x8x16x16xf32>, tensor<8x1x1xf32>) -> tensor<1x8x16x16xf32>
  %2 = top.constant dense<0.125002503> : tensor<8x1x1xf32> : tensor<8x1x1xf32>
  %3 = top.add %1, %2 {top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<8x1x1xf32>) -> tensor<1x8x16x16xf32>
  return %3 : tensor<1x8x16x16xf32>
}

func.func @probe_67(%arg0: tensor<1x16x32xf32> {top.name = "x"}) -> (tensor<1x16x32xf32> {top.name = "y"}) attributes {title = "LayerNormalization"} {
  %0 = top.constant dense<2.500000e-01> : tensor<32xf32> : tensor<32xf32>
  %1 = top.layer_norm %arg0 scale %0 bias %0 {axis = 2 : i64, epsilon = 1.000000e-05 : f64, top.outputs = ["y"]} : (tensor<1x16x32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<1x16x32xf32>
  return %1 : tensor<1x16x32xf32>
}

func.func @probe_68(%arg0: tensor<1x16x32xf32> {top.name = "x"}) -> (tensor<1x16x32xf32> {top.name = "y"}) attributes {title = "RMSNormalization"} {
  %0 = top.constant dense<2.500000e-01> : tensor<32xf32> : tensor<32xf32>
  %1 = top.layer_norm %arg0 scale %0 {axis = 2 : i64, epsilon = 1.000000e-05 : f64, rms = true, top.outputs = ["y"]} : (tensor<1x16x32xf32>, tensor<32xf32>) -> tensor<1x16x32xf32>
  return %1 : tensor<1x16x32xf32>
}

func.func @probe_69(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "InstanceNormalization"} {
  %0 = top.constant dense<2.500000e-01> : tensor<8xf32> : tensor<8xf32>
  %1 = top.group_norm %arg0, %0, %0 {epsilon = 1.000000e-05 : f64, groups = 8 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x16x16xf32>
  return %1 : tensor<1x8x16x16xf32>
}

func.func @probe_70(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "GroupNormalization"} {
  %0 = top.constant dense<2.500000e-01> : tensor<8xf32> : tensor<8xf32>
  %1 = top.group_norm %arg0, %0, %0 {epsilon = 1.000000e-05 : f64, groups = 2 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<1x8x16x16xf32>
  return %1 : tensor<1x8x16x16xf32>
}

func.func @probe_71(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "LRN"} {
  %0 = top.lrn %arg0 {alpha = 1.000000e-04 : f64, beta = 7.500000e-01 : f64, bias = 1.000000e+00 : f64, size = 3 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x16x16xf32>
  return %0 : tensor<1x8x16x16xf32>
}

func.func @probe_72(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x2048xf32> {top.name = "y"}) attributes {title = "Reshape, Flatten, Squeeze, Unsqueeze"} {
  %0 = top.reshape %arg0 {shape = array<i64: 1, 2048>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x2048xf32>
  return %0 : tensor<1x2048xf32>
}

func.func @probe_73(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x16x16x8xf32> {top.name = "y"}) attributes {title = "Transpose"} {
  %0 = top.transpose %arg0 {perm = array<i64: 0, 2, 3, 1>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x16x16x8xf32>
  return %0 : tensor<1x16x16x8xf32>
}

func.func @probe_74(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x8x16x16xf32> {top.name = "b"}) -> (tensor<1x16x16x16xf32> {top.name = "y"}) attributes {title = "Concat"} {
  %0 = top.concat %arg0, %arg1 {axis = 1 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>, tensor<1x8x16x16xf32>) -> tensor<1x16x16x16xf32>
  return %0 : tensor<1x16x16x16xf32>
}

func.func @probe_75(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x4x8x16xf32> {top.name = "y"}) attributes {title = "Slice, Split"} {
  %0 = top.slice %arg0 {sizes = array<i64: 1, 4, 8, 16>, starts = array<i64: 0, 2, 4, 0>, steps = array<i64: 1, 1, 1, 1>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x4x8x16xf32>
  return %0 : tensor<1x4x8x16xf32>
}

func.func @probe_76(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x8x8xf32> {top.name = "y"}) attributes {title = "Slice, with steps"} {
  %0 = top.slice %arg0 {sizes = array<i64: 1, 8, 8, 8>, starts = array<i64: 0, 0, 0, 1>, steps = array<i64: 1, 1, 2, 2>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}

func.func @probe_77(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x18x18xf32> {top.name = "y"}) attributes {title = "Pad"} {
  %0 = top.pad %arg0 {mode = 0 : i32, pads = array<i64: 0, 0, 1, 1, 0, 0, 1, 1>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x18x18xf32>
  return %0 : tensor<1x8x18x18xf32>
}

func.func @probe_78(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x18x18xf32> {top.name = "y"}) attributes {title = "Pad, reflected"} {
  %0 = top.pad %arg0 {mode = 1 : i32, pads = array<i64: 0, 0, 1, 1, 0, 0, 1, 1>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x18x18xf32>
  return %0 : tensor<1x8x18x18xf32>
}

func.func @probe_79(%arg0: tensor<1x8x4x4xf32> {top.name = "x"}) -> (tensor<1x8x8x8xf32> {top.name = "y"}) attributes {title = "Expand, Tile"} {
  %0 = top.tile %arg0 {repeats = array<i64: 1, 1, 2, 2>, top.outputs = ["y"]} : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}

func.func @probe_80(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x2x32x32xf32> {top.name = "y"}) attributes {title = "DepthToSpace"} {
  %0 = top.depth_to_space %arg0 {blockSize = 2 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x2x32x32xf32>
  return %0 : tensor<1x2x32x32xf32>
}

func.func @probe_81(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x32x8x8xf32> {top.name = "y"}) attributes {title = "SpaceToDepth"} {
  %0 = top.space_to_depth %arg0 {blockSize = 2 : i64, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x32x8x8xf32>
  return %0 : tensor<1x32x8x8xf32>
}

func.func @probe_82(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x32x32xf32> {top.name = "y"}) attributes {title = "Resize, nearest, by whole factors"} {
  %0 = top.resize %arg0 {coord = 0 : i32, mode = 0 : i32, scales = array<f64: 1.000000e+00, 1.000000e+00, 2.000000e+00, 2.000000e+00>, sizes = array<i64: 1, 8, 32, 32>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x32x32xf32>
  return %0 : tensor<1x8x32x32xf32>
}

func.func @probe_83(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x32x32xf32> {top.name = "y"}) attributes {title = "Resize, linear"} {
  %0 = top.resize %arg0 {coord = 0 : i32, mode = 1 : i32, scales = array<f64: 1.000000e+00, 1.000000e+00, 2.000000e+00, 2.000000e+00>, sizes = array<i64: 1, 8, 32, 32>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x32x32xf32>
  return %0 : tensor<1x8x32x32xf32>
}

func.func @probe_84(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x8x32x32xf32> {top.name = "y"}) attributes {title = "Resize, cubic"} {
  %0 = top.resize %arg0 {coord = 0 : i32, mode = 2 : i32, scales = array<f64: 1.000000e+00, 1.000000e+00, 2.000000e+00, 2.000000e+00>, sizes = array<i64: 1, 8, 32, 32>, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x8x32x32xf32>
  return %0 : tensor<1x8x32x32xf32>
}

func.func @probe_85(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}, %arg1: tensor<1x16x16x2xf32> {top.name = "g"}) -> (tensor<1x8x16x16xf32> {top.name = "y"}) attributes {title = "GridSample"} {
  %0 = top.reshape %arg1 {shape = array<i64: 1, 256, 2>} : (tensor<1x16x16x2xf32>) -> tensor<1x256x2xf32>
  %1 = top.slice %0 {sizes = array<i64: 1, 256, 1>, starts = array<i64: 0, 0, 1>, steps = array<i64: 1, 1, 1>} : (tensor<1x256x2xf32>) -> tensor<1x256x1xf32>
  %2 = top.reshape %1 {shape = array<i64: 1, 256>} : (tensor<1x256x1xf32>) -> tensor<1x256xf32>
  %3 = top.constant dense<8.000000e+00> : tensor<f32> : tensor<f32>
  %4 = top.mul %2, %3 : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %5 = top.constant dense<7.500000e+00> : tensor<f32> : tensor<f32>
  %6 = top.add %4, %5 : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %7 = top.floor %6 : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %8 = top.sub %6, %7 : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %9 = top.constant dense<1.000000e+00> : tensor<f32> : tensor<f32>
  %10 = top.sub %9, %8 : (tensor<f32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %11 = top.constant dense<0.000000e+00> : tensor<f32> : tensor<f32>
  %12 = top.compare %7, %11 {kind = 5 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %13 = top.constant dense<1.500000e+01> : tensor<f32> : tensor<f32>
  %14 = top.compare %7, %13 {kind = 3 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %15 = top.and %12, %14 : (tensor<1x256xi1>, tensor<1x256xi1>) -> tensor<1x256xi1>
  %16 = top.where %15, %10, %11 : (tensor<1x256xi1>, tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %17 = top.clip %7 {hi = 1.500000e+01 : f64, lo = 0.000000e+00 : f64} : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %18 = top.add %7, %9 : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %19 = top.compare %18, %11 {kind = 5 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %20 = top.compare %18, %13 {kind = 3 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %21 = top.and %19, %20 : (tensor<1x256xi1>, tensor<1x256xi1>) -> tensor<1x256xi1>
  %22 = top.where %21, %8, %11 : (tensor<1x256xi1>, tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %23 = top.clip %18 {hi = 1.500000e+01 : f64, lo = 0.000000e+00 : f64} : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %24 = top.slice %0 {sizes = array<i64: 1, 256, 1>, starts = array<i64: 0, 0, 0>, steps = array<i64: 1, 1, 1>} : (tensor<1x256x2xf32>) -> tensor<1x256x1xf32>
  %25 = top.reshape %24 {shape = array<i64: 1, 256>} : (tensor<1x256x1xf32>) -> tensor<1x256xf32>
  %26 = top.mul %25, %3 : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %27 = top.add %26, %5 : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %28 = top.floor %27 : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %29 = top.sub %27, %28 : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %30 = top.sub %9, %29 : (tensor<f32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %31 = top.compare %28, %11 {kind = 5 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %32 = top.compare %28, %13 {kind = 3 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %33 = top.and %31, %32 : (tensor<1x256xi1>, tensor<1x256xi1>) -> tensor<1x256xi1>
  %34 = top.where %33, %30, %11 : (tensor<1x256xi1>, tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %35 = top.clip %28 {hi = 1.500000e+01 : f64, lo = 0.000000e+00 : f64} : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %36 = top.add %28, %9 : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %37 = top.compare %36, %11 {kind = 5 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %38 = top.compare %36, %13 {kind = 3 : i32} : (tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xi1>
  %39 = top.and %37, %38 : (tensor<1x256xi1>, tensor<1x256xi1>) -> tensor<1x256xi1>
  %40 = top.where %39, %29, %11 : (tensor<1x256xi1>, tensor<1x256xf32>, tensor<f32>) -> tensor<1x256xf32>
  %41 = top.clip %36 {hi = 1.500000e+01 : f64, lo = 0.000000e+00 : f64} : (tensor<1x256xf32>) -> tensor<1x256xf32>
  %42 = top.reshape %arg0 {shape = array<i64: 1, 8, 256>} : (tensor<1x8x16x16xf32>) -> tensor<1x8x256xf32>
  %43 = top.transpose %42 {perm = array<i64: 0, 2, 1>} : (tensor<1x8x256xf32>) -> tensor<1x256x8xf32>
  %44 = top.cast %17 {to = i64} : (tensor<1x256xf32>) -> tensor<1x256xi64>
  %45 = top.cast %35 {to = i64} : (tensor<1x256xf32>) -> tensor<1x256xi64>
  %46 = top.constant dense<16> : tensor<i64> : tensor<i64>
  %47 = top.mul %44, %46 : (tensor<1x256xi64>, tensor<i64>) -> tensor<1x256xi64>
  %48 = top.add %47, %45 : (tensor<1x256xi64>, tensor<1x256xi64>) -> tensor<1x256xi64>
  %49 = top.mul %16, %34 : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %50 = top.reshape %48 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xi64>) -> tensor<1x256x1xi64>
  %51 = top.gather_nd %43, %50 {batchDims = 1 : i64} : (tensor<1x256x8xf32>, tensor<1x256x1xi64>) -> tensor<1x256x8xf32>
  %52 = top.reshape %49 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xf32>) -> tensor<1x256x1xf32>
  %53 = top.mul %51, %52 : (tensor<1x256x8xf32>, tensor<1x256x1xf32>) -> tensor<1x256x8xf32>
  %54 = top.cast %41 {to = i64} : (tensor<1x256xf32>) -> tensor<1x256xi64>
  %55 = top.add %47, %54 : (tensor<1x256xi64>, tensor<1x256xi64>) -> tensor<1x256xi64>
  %56 = top.mul %16, %40 : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %57 = top.reshape %55 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xi64>) -> tensor<1x256x1xi64>
  %58 = top.gather_nd %43, %57 {batchDims = 1 : i64} : (tensor<1x256x8xf32>, tensor<1x256x1xi64>) -> tensor<1x256x8xf32>
  %59 = top.reshape %56 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xf32>) -> tensor<1x256x1xf32>
  %60 = top.mul %58, %59 : (tensor<1x256x8xf32>, tensor<1x256x1xf32>) -> tensor<1x256x8xf32>
  %61 = top.add %53, %60 : (tensor<1x256x8xf32>, tensor<1x256x8xf32>) -> tensor<1x256x8xf32>
  %62 = top.cast %23 {to = i64} : (tensor<1x256xf32>) -> tensor<1x256xi64>
  %63 = top.mul %62, %46 : (tensor<1x256xi64>, tensor<i64>) -> tensor<1x256xi64>
  %64 = top.add %63, %45 : (tensor<1x256xi64>, tensor<1x256xi64>) -> tensor<1x256xi64>
  %65 = top.mul %22, %34 : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %66 = top.reshape %64 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xi64>) -> tensor<1x256x1xi64>
  %67 = top.gather_nd %43, %66 {batchDims = 1 : i64} : (tensor<1x256x8xf32>, tensor<1x256x1xi64>) -> tensor<1x256x8xf32>
  %68 = top.reshape %65 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xf32>) -> tensor<1x256x1xf32>
  %69 = top.mul %67, %68 : (tensor<1x256x8xf32>, tensor<1x256x1xf32>) -> tensor<1x256x8xf32>
  %70 = top.add %61, %69 : (tensor<1x256x8xf32>, tensor<1x256x8xf32>) -> tensor<1x256x8xf32>
  %71 = top.add %63, %54 : (tensor<1x256xi64>, tensor<1x256xi64>) -> tensor<1x256xi64>
  %72 = top.mul %22, %40 : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
  %73 = top.reshape %71 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xi64>) -> tensor<1x256x1xi64>
  %74 = top.gather_nd %43, %73 {batchDims = 1 : i64} : (tensor<1x256x8xf32>, tensor<1x256x1xi64>) -> tensor<1x256x8xf32>
  %75 = top.reshape %72 {shape = array<i64: 1, 256, 1>} : (tensor<1x256xf32>) -> tensor<1x256x1xf32>
  %76 = top.mul %74, %75 : (tensor<1x256x8xf32>, tensor<1x256x1xf32>) -> tensor<1x256x8xf32>
  %77 = top.add %70, %76 : (tensor<1x256x8xf32>, tensor<1x256x8xf32>) -> tensor<1x256x8xf32>
  %78 = top.transpose %77 {perm = array<i64: 0, 2, 1>} : (tensor<1x256x8xf32>) -> tensor<1x8x256xf32>
  %79 = top.reshape %78 {shape = array<i64: 1, 8, 16, 16>, top.outputs = ["y"]} : (tensor<1x8x256xf32>) -> tensor<1x8x16x16xf32>
  return %79 : tensor<1x8x16x16xf32>
}

func.func @probe_86(%arg0: tensor<1x8xi64> {top.name = "i"}) -> (tensor<1x8x16xf32> {top.name = "y"}) attributes {title = "Gather (embedding)"} {
  %0 = top.constant dense<2.500000e-01> : tensor<16x16xf32> : tensor<16x16xf32>
  %1 = top.gather %0, %arg0 {axis = 0 : i64, top.outputs = ["y"]} : (tensor<16x16xf32>, tensor<1x8xi64>) -> tensor<1x8x16xf32>
  return %1 : tensor<1x8x16xf32>
}

func.func @probe_87(%arg0: tensor<4x16xf32> {top.name = "x"}, %arg1: tensor<4x8xi64> {top.name = "i"}) -> (tensor<4x8xf32> {top.name = "y"}) attributes {title = "GatherElements"} {
  %0 = top.gather_elements %arg0, %arg1 {axis = 1 : i64, top.outputs = ["y"]} : (tensor<4x16xf32>, tensor<4x8xi64>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @probe_88(%arg0: tensor<4x16xf32> {top.name = "x"}, %arg1: tensor<2x1xi64> {top.name = "i"}) -> (tensor<2x16xf32> {top.name = "y"}) attributes {title = "GatherND"} {
  %0 = top.gather_nd %arg0, %arg1 {top.outputs = ["y"]} : (tensor<4x16xf32>, tensor<2x1xi64>) -> tensor<2x16xf32>
  return %0 : tensor<2x16xf32>
}

func.func @probe_89(%arg0: tensor<4x16xf32> {top.name = "x"}, %arg1: tensor<2x1xi64> {top.name = "i"}, %arg2: tensor<2x16xf32> {top.name = "u"}) -> (tensor<4x16xf32> {top.name = "y"}) attributes {title = "ScatterND"} {
  %0 = top.scatter_nd %arg0, %arg1, %arg2 {top.outputs = ["y"]} : (tensor<4x16xf32>, tensor<2x1xi64>, tensor<2x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

func.func @probe_90(%arg0: tensor<4x16xf32> {top.name = "x"}, %arg1: tensor<4x2xi64> {top.name = "i"}, %arg2: tensor<4x2xf32> {top.name = "u"}) -> (tensor<4x16xf32> {top.name = "y"}) attributes {title = "ScatterElements"} {
  %0 = top.scatter_elements %arg0, %arg1, %arg2 {axis = 1 : i64, top.outputs = ["y"]} : (tensor<4x16xf32>, tensor<4x2xi64>, tensor<4x2xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

func.func @probe_91(%arg0: tensor<1x8x16x16xf32> {top.name = "x"}) -> (tensor<1x16x16xi64> {top.name = "y"}) attributes {title = "ArgMax, ArgMin"} {
  %0 = top.arg_reduce %arg0 {axis = 1 : i64, keepDims = false, top.outputs = ["y"]} : (tensor<1x8x16x16xf32>) -> tensor<1x16x16xi64>
  return %0 : tensor<1x16x16xi64>
}

func.func @probe_92(%arg0: tensor<4x32xf32> {top.name = "x"}) -> (tensor<4x5xf32> {top.name = "y"}, tensor<4x5xi64> {top.name = "i"}) attributes {title = "TopK"} {
  %values, %indices = top.topk %arg0 {axis = 1 : i64, k = 5 : i64, top.outputs = ["y", "i"]} : (tensor<4x32xf32>) -> (tensor<4x5xf32>, tensor<4x5xi64>)
  return %values, %indices : tensor<4x5xf32>, tensor<4x5xi64>
}

func.func @probe_93(%arg0: tensor<4x32xf32> {top.name = "x"}) -> (tensor<4x32xf32> {top.name = "y"}) attributes {title = "CumSum"} {
  %0 = top.cumsum %arg0 {axis = 1 : i64, top.outputs = ["y"]} : (tensor<4x32xf32>) -> tensor<4x32xf32>
  return %0 : tensor<4x32xf32>
}

func.func @probe_94(%arg0: tensor<1x32x4xf32> {top.name = "boxes"}, %arg1: tensor<1x2x32xf32> {top.name = "scores"}) -> (tensor<1x2x5xi64> {top.name = "y"}) attributes {title = "NonMaxSuppression"} {
  %most = top.constant dense<5> : tensor<i64> : tensor<i64>
  %iou = top.constant dense<5.000000e-01> : tensor<f32> : tensor<f32>
  %0 = top.non_max_suppression %arg0, %arg1, %most, %iou, %iou {k = 5 : i64, top.outputs = ["y"]} : (tensor<1x32x4xf32>, tensor<1x2x32xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<1x2x5xi64>
  return %0 : tensor<1x2x5xi64>
}

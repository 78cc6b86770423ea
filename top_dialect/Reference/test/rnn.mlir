// SPDX-License-Identifier: Apache-2.0
// Recurrent ops: every function returns pairs (actual, expected).

func.func @rnn_forward() -> (tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) {
  %0 = top.constant dense<[[[1.5, 1.75]], [[0.0, 0.0]]]> : tensor<2x1x2xf32> : tensor<2x1x2xf32>
  %1 = top.constant dense<[[[-0.4375, -0.375], [-0.4375, 0.0]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %2 = top.constant dense<[[[-0.0625, 0.5], [0.3125, 0.5]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %3 = top.constant dense<[[-0.5, 0.125, -0.0625, -0.3125]]> : tensor<1x4xf32> : tensor<1x4xf32>
  %y:3 = top.rnn %0, %1, %2 bias %3 {kind = 0 : i32, direction = 0 : i32, hiddenSize = 2 : i64, activations = ["Tanh"]} : (tensor<2x1x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x4xf32>) -> (tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  %e0 = top.constant dense<[[[[-0.95404524, -0.68779016]]], [[[-0.68937683, -0.68022585]]]]> : tensor<2x1x1x2xf32> : tensor<2x1x1x2xf32>
  %e1 = top.constant dense<[[[-0.68937683, -0.68022585]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  %e2 = top.constant dense<[[[-0.68937683, -0.68022585]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  return %y#0, %e0, %y#1, %e1, %y#2, %e2 : tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>
}

func.func @rnn_reverse_lengths() -> (tensor<3x1x2x2xf32>, tensor<3x1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) {
  %0 = top.constant dense<[[[0.75, 0.75], [0.5, -1.5]], [[-1.75, 0.75], [-1.5, 0.5]], [[-0.75, -1.25], [0.75, -1.25]]]> : tensor<3x2x2xf32> : tensor<3x2x2xf32>
  %1 = top.constant dense<[[[-0.4375, 0.3125], [0.0, -0.125]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %2 = top.constant dense<[[[-0.25, -0.125], [0.25, 0.0625]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %3 = top.constant dense<[[-0.1875, 0.4375, -0.0625, 0.1875]]> : tensor<1x4xf32> : tensor<1x4xf32>
  %4 = top.constant dense<[2, 3]> : tensor<2xi32> : tensor<2xi32>
  %5 = top.constant dense<[[[-1.5, -2.0], [1.5, 0.75]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %y:3 = top.rnn %0, %1, %2 bias %3 lens %4 h %5 {kind = 0 : i32, direction = 1 : i32, hiddenSize = 2 : i64, activations = ["Relu"]} : (tensor<3x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x4xf32>, tensor<2xi32>, tensor<1x2x2xf32>) -> (tensor<3x1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>)
  %e0 = top.constant dense<[[[[0.0, 0.8769531], [0.0, 0.9553833]]], [[[1.375, 0.03125], [0.41210938, 0.6376953]]], [[[0.0, 0.0], [0.0, 1.203125]]]]> : tensor<3x1x2x2xf32> : tensor<3x1x2x2xf32>
  %e1 = top.constant dense<[[[0.0, 0.8769531], [0.0, 0.9553833]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %e2 = top.constant dense<[[[0.0, 0.8769531], [0.0, 0.9553833]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  return %y#0, %e0, %y#1, %e1, %y#2, %e2 : tensor<3x1x2x2xf32>, tensor<3x1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

func.func @gru() -> (tensor<2x1x2x2xf32>, tensor<2x1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>) {
  %0 = top.constant dense<[[[1.0, -2.0], [-0.75, 1.75]], [[0.25, 1.75], [-1.75, -0.75]]]> : tensor<2x2x2xf32> : tensor<2x2x2xf32>
  %1 = top.constant dense<[[[-0.375, 0.1875], [-0.1875, 0.3125], [0.4375, 0.125], [0.375, -0.0625], [-0.5, -0.0625], [-0.3125, 0.1875]]]> : tensor<1x6x2xf32> : tensor<1x6x2xf32>
  %2 = top.constant dense<[[[-0.375, 0.0], [-0.1875, 0.0625], [-0.375, -0.375], [0.3125, -0.1875], [-0.25, 0.1875], [0.1875, 0.25]]]> : tensor<1x6x2xf32> : tensor<1x6x2xf32>
  %3 = top.constant dense<[[-0.5, 0.0, 0.125, 0.1875, 0.0, -0.5, 0.125, 0.1875, 0.0625, -0.0625, -0.125, -0.3125]]> : tensor<1x12xf32> : tensor<1x12xf32>
  %4 = top.constant dense<[[[1.0, 0.25], [0.5, -1.75]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %y:3 = top.rnn %0, %1, %2 bias %3 h %4 {kind = 1 : i32, direction = 0 : i32, hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh"]} : (tensor<2x2x2xf32>, tensor<1x6x2xf32>, tensor<1x6x2xf32>, tensor<1x12xf32>, tensor<1x2x2xf32>) -> (tensor<2x1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>)
  %e0 = top.constant dense<[[[[-0.24839315, -0.5274351], [0.19730958, -1.2962974]]], [[[-0.30204886, -0.5454059], [0.38301685, -0.92653847]]]]> : tensor<2x1x2x2xf32> : tensor<2x1x2x2xf32>
  %e1 = top.constant dense<[[[-0.30204886, -0.5454059], [0.38301685, -0.92653847]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  %e2 = top.constant dense<[[[-0.30204886, -0.5454059], [0.38301685, -0.92653847]]]> : tensor<1x2x2xf32> : tensor<1x2x2xf32>
  return %y#0, %e0, %y#1, %e1, %y#2, %e2 : tensor<2x1x2x2xf32>, tensor<2x1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>, tensor<1x2x2xf32>
}

func.func @gru_linear_before_reset() -> (tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) {
  %0 = top.constant dense<[[[0.5, -0.5]], [[0.25, -1.0]]]> : tensor<2x1x2xf32> : tensor<2x1x2xf32>
  %1 = top.constant dense<[[[0.0, 0.125], [-0.3125, 0.375], [0.1875, 0.0625], [0.125, -0.375], [0.1875, 0.5], [0.3125, 0.125]]]> : tensor<1x6x2xf32> : tensor<1x6x2xf32>
  %2 = top.constant dense<[[[-0.3125, 0.1875], [0.125, -0.375], [0.25, 0.125], [0.0, -0.5], [0.3125, -0.125], [0.1875, 0.25]]]> : tensor<1x6x2xf32> : tensor<1x6x2xf32>
  %3 = top.constant dense<[[-0.25, 0.3125, 0.0, -0.3125, -0.1875, -0.375, -0.5, -0.0625, 0.0, -0.4375, -0.25, -0.125]]> : tensor<1x12xf32> : tensor<1x12xf32>
  %y:3 = top.rnn %0, %1, %2 bias %3 {kind = 1 : i32, direction = 1 : i32, hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh"], linearBeforeReset = true} : (tensor<2x1x2xf32>, tensor<1x6x2xf32>, tensor<1x6x2xf32>, tensor<1x12xf32>) -> (tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  %e0 = top.constant dense<[[[[-0.4685964, -0.30966765]]], [[[-0.4543892, -0.24293572]]]]> : tensor<2x1x1x2xf32> : tensor<2x1x1x2xf32>
  %e1 = top.constant dense<[[[-0.4685964, -0.30966765]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  %e2 = top.constant dense<[[[-0.4685964, -0.30966765]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  return %y#0, %e0, %y#1, %e1, %y#2, %e2 : tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>
}

func.func @lstm() -> (tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) {
  %0 = top.constant dense<[[[-1.75, 0.25]], [[-1.25, 1.5]]]> : tensor<2x1x2xf32> : tensor<2x1x2xf32>
  %1 = top.constant dense<[[[-0.3125, 0.3125], [-0.25, 0.4375], [0.1875, -0.25], [0.25, -0.125], [0.5, 0.4375], [-0.25, 0.125], [-0.125, -0.25], [-0.3125, -0.5]]]> : tensor<1x8x2xf32> : tensor<1x8x2xf32>
  %2 = top.constant dense<[[[-0.125, 0.0625], [0.5, 0.125], [-0.5, -0.125], [0.3125, -0.5], [-0.5, -0.4375], [-0.1875, 0.3125], [0.0, -0.125], [-0.125, -0.25]]]> : tensor<1x8x2xf32> : tensor<1x8x2xf32>
  %3 = top.constant dense<[[-0.1875, -0.375, -0.25, 0.3125, 0.125, -0.5, 0.0, 0.0, 0.375, -0.25, -0.0625, 0.125, 0.3125, 0.1875, 0.125, 0.125]]> : tensor<1x16xf32> : tensor<1x16xf32>
  %4 = top.constant dense<[[[1.75, -1.0]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  %5 = top.constant dense<[[[0.75, 1.25]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  %y:3 = top.rnn %0, %1, %2 bias %3 h %4 c %5 {kind = 2 : i32, direction = 0 : i32, hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh", "Tanh"]} : (tensor<2x1x2xf32>, tensor<1x8x2xf32>, tensor<1x8x2xf32>, tensor<1x16xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) -> (tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  %e0 = top.constant dense<[[[[0.08468055, 0.49621496]]], [[[0.03939059, 0.10993769]]]]> : tensor<2x1x1x2xf32> : tensor<2x1x1x2xf32>
  %e1 = top.constant dense<[[[0.03939059, 0.10993769]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  %e2 = top.constant dense<[[[0.15043706, 0.2618271]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  return %y#0, %e0, %y#1, %e1, %y#2, %e2 : tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>
}

func.func @lstm_bidirectional() -> (tensor<3x2x2x1xf32>, tensor<3x2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>) {
  %0 = top.constant dense<[[[-0.5], [-1.5]], [[-1.25], [0.5]], [[-1.0], [-1.25]]]> : tensor<3x2x1xf32> : tensor<3x2x1xf32>
  %1 = top.constant dense<[[[-0.1875], [-0.125], [0.3125], [0.375]], [[0.375], [0.0625], [-0.125], [0.5]]]> : tensor<2x4x1xf32> : tensor<2x4x1xf32>
  %2 = top.constant dense<[[[-0.3125], [-0.0625], [-0.125], [-0.5]], [[0.0625], [0.0625], [-0.3125], [0.4375]]]> : tensor<2x4x1xf32> : tensor<2x4x1xf32>
  %3 = top.constant dense<[[-0.4375, -0.0625, 0.0, -0.0625, -0.4375, -0.0625, -0.3125, -0.0625], [0.0625, 0.0, -0.0625, -0.25, 0.3125, 0.0625, 0.4375, 0.375]]> : tensor<2x8xf32> : tensor<2x8xf32>
  %4 = top.constant dense<[3, 1]> : tensor<2xi32> : tensor<2xi32>
  %y:3 = top.rnn %0, %1, %2 bias %3 lens %4 {kind = 2 : i32, direction = 2 : i32, hiddenSize = 1 : i64, activations = ["Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Tanh"]} : (tensor<3x2x1xf32>, tensor<2x4x1xf32>, tensor<2x4x1xf32>, tensor<2x8xf32>, tensor<2xi32>) -> (tensor<3x2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>)
  %e0 = top.constant dense<[[[[-0.04590993], [-0.10778885]], [[-0.15712957], [-0.1211838]]], [[[-0.105895884], [0.0]], [[-0.16545232], [0.0]]], [[[-0.10755259], [0.0]], [[-0.08864274], [0.0]]]]> : tensor<3x2x2x1xf32> : tensor<3x2x2x1xf32>
  %e1 = top.constant dense<[[[-0.10755259], [-0.10778885]], [[-0.15712957], [-0.1211838]]]> : tensor<2x2x1xf32> : tensor<2x2x1xf32>
  %e2 = top.constant dense<[[[-0.2177743], [-0.21217474]], [[-0.32166076], [-0.2513789]]]> : tensor<2x2x1xf32> : tensor<2x2x1xf32>
  return %y#0, %e0, %y#1, %e1, %y#2, %e2 : tensor<3x2x2x1xf32>, tensor<3x2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>
}

func.func @lstm_peephole_clip() -> (tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>) {
  %0 = top.constant dense<[[[-2.0, -1.75]], [[0.0, 1.5]]]> : tensor<2x1x2xf32> : tensor<2x1x2xf32>
  %1 = top.constant dense<[[[0.125, 0.4375], [-0.3125, -0.3125], [-0.0625, 0.125], [0.125, 0.0], [0.25, -0.0625], [0.0, 0.375], [-0.375, -0.3125], [0.5, 0.125]]]> : tensor<1x8x2xf32> : tensor<1x8x2xf32>
  %2 = top.constant dense<[[[-0.25, 0.5], [0.4375, 0.125], [-0.375, 0.3125], [0.4375, 0.0], [-0.3125, 0.5], [0.4375, 0.375], [0.4375, -0.3125], [0.0625, 0.375]]]> : tensor<1x8x2xf32> : tensor<1x8x2xf32>
  %3 = top.constant dense<[[[-1.5, 1.0]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  %4 = top.constant dense<[[-0.5, -0.4375, -0.375, 0.3125, 0.1875, 0.1875]]> : tensor<1x6xf32> : tensor<1x6xf32>
  %y:3 = top.rnn %0, %1, %2 c %3 peephole %4 {kind = 2 : i32, direction = 0 : i32, hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh", "Tanh"], clip = 0.5 : f64} : (tensor<2x1x2xf32>, tensor<1x8x2xf32>, tensor<1x8x2xf32>, tensor<1x1x2xf32>, tensor<1x6xf32>) -> (tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  %e0 = top.constant dense<[[[[-0.17893988, 0.043176934]]], [[[-0.2631467, 0.06457032]]]]> : tensor<2x1x1x2xf32> : tensor<2x1x1x2xf32>
  %e1 = top.constant dense<[[[-0.2631467, 0.06457032]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  %e2 = top.constant dense<[[[-0.4627779, 0.13233703]]]> : tensor<1x1x2xf32> : tensor<1x1x2xf32>
  return %y#0, %e0, %y#1, %e1, %y#2, %e2 : tensor<2x1x1x2xf32>, tensor<2x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>
}

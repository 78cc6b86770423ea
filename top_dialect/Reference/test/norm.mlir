// SPDX-License-Identifier: Apache-2.0
// Softmax, normalisation, attention: every function returns pairs (actual, expected).

func.func @softmax() -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %0 = top.constant dense<[[[-1.5, 1.25], [0.5, 1.25], [-0.25, 0.0]], [[1.0, 2.0], [0.75, -0.5], [-2.0, 2.0]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  %y = top.softmax %0 {axis = 1 : i64} : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %e0 = top.constant dense<[[[0.08417934, 0.43734875], [0.6220059, 0.43734875], [0.29381478, 0.12530251]], [[0.5468701, 0.4802878], [0.42590284, 0.039424423], [0.027227059, 0.4802878]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  return %y, %e0 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

func.func @log_softmax() -> (tensor<1x2xf32>, tensor<1x2xf32>) {
  %0 = top.constant dense<[[1000.0, 1001.0]]> : tensor<1x2xf32> : tensor<1x2xf32>
  %y = top.softmax %0 {axis = 1 : i64, log = true} : (tensor<1x2xf32>) -> tensor<1x2xf32>
  %e0 = top.constant dense<[[-1.3132616, -0.3132617]]> : tensor<1x2xf32> : tensor<1x2xf32>
  return %y, %e0 : tensor<1x2xf32>, tensor<1x2xf32>
}

func.func @batch_norm() -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %0 = top.constant dense<[[[-1.5, 1.25], [0.5, 1.25], [-0.25, 0.0]], [[1.0, 2.0], [0.75, -0.5], [-2.0, 2.0]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  %1 = top.constant dense<[1.0, 2.0, 0.5]> : tensor<3xf32> : tensor<3xf32>
  %2 = top.constant dense<[0.0, 1.0, -1.0]> : tensor<3xf32> : tensor<3xf32>
  %3 = top.constant dense<[0.5, 0.0, 1.0]> : tensor<3xf32> : tensor<3xf32>
  %4 = top.constant dense<[1.0, 4.0, 0.25]> : tensor<3xf32> : tensor<3xf32>
  %y = top.batch_norm %0, %1, %2, %3, %4 {epsilon = 0.1 : f64} : (tensor<2x3x2xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x2xf32>
  %e0 = top.constant dense<[[[-1.9069252, 0.71509695], [1.4938648, 2.234662], [-2.0564427, -1.8451543]], [[0.4767313, 1.4301939], [1.7407973, 0.50613517], [-3.5354626, -0.15484576]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  return %y, %e0 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

func.func @layer_norm() -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %0 = top.constant dense<[[[-1.5, 1.25], [0.5, 1.25], [-0.25, 0.0]], [[1.0, 2.0], [0.75, -0.5], [-2.0, 2.0]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  %1 = top.constant dense<[[1.0, 2.0], [3.0, 4.0], [0.5, 1.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %2 = top.constant dense<[[1.0, 2.0], [3.0, 4.0], [0.5, 1.0]]> : tensor<3x2xf32> : tensor<3x2xf32>
  %y = top.layer_norm %0 scale %1 bias %2 {axis = 1 : i64, epsilon = 1.0e-05 : f64} : (tensor<2x3x2xf32>, tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2xf32>
  %e0 = top.constant dense<[[[-0.7962327, 4.1905274], [3.9200215, 8.381055], [0.25904197, 0.7809472]], [[1.3233888, 4.0579286], [3.4409847, 1.0601021], [-0.39666885, 2.0289643]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  return %y, %e0 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

func.func @layer_norm_plain() -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %0 = top.constant dense<[[[-1.5, 1.25], [0.5, 1.25], [-0.25, 0.0]], [[1.0, 2.0], [0.75, -0.5], [-2.0, 2.0]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  %y = top.layer_norm %0 {axis = 2 : i64, epsilon = 0.01 : f64} : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %e0 = top.constant dense<[[[-0.99736583, 0.99736583], [-0.9662349, 0.9662349], [-0.7808688, 0.7808688]], [[-0.9805807, 0.9805807], [0.98744065, -0.98744065], [-0.99875236, 0.99875236]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  return %y, %e0 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

func.func @rms_norm() -> (tensor<2x3x2xf32>, tensor<2x3x2xf32>) {
  %0 = top.constant dense<[[[-1.5, 1.25], [0.5, 1.25], [-0.25, 0.0]], [[1.0, 2.0], [0.75, -0.5], [-2.0, 2.0]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  %1 = top.constant dense<[2.0, 3.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.layer_norm %0 scale %1 {axis = 2 : i64, epsilon = 1.0e-05 : f64, rms = true} : (tensor<2x3x2xf32>, tensor<2xf32>) -> tensor<2x3x2xf32>
  %e0 = top.constant dense<[[[-2.1728523, 2.7160652], [1.0504457, 3.9391713], [-2.8279748, 0.0]], [[1.2649086, 3.7947257], [2.3533647, -2.3533647], [-1.9999975, 2.9999962]]]> : tensor<2x3x2xf32> : tensor<2x3x2xf32>
  return %y, %e0 : tensor<2x3x2xf32>, tensor<2x3x2xf32>
}

func.func @group_norm() -> (tensor<2x4x3xf32>, tensor<2x4x3xf32>) {
  %0 = top.constant dense<[[[-1.75, -0.25, 1.5], [-1.0, -2.0, -1.75], [2.0, -1.5, -1.0], [-1.25, 2.0, -1.75]], [[0.75, 0.75, 1.0], [-1.0, 1.25, -2.0], [0.0, -0.25, -0.25], [-1.75, -0.25, -1.5]]]> : tensor<2x4x3xf32> : tensor<2x4x3xf32>
  %1 = top.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  %2 = top.constant dense<[0.0, 1.0, 0.0, -1.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.group_norm %0, %1, %2 {groups = 2 : i64, epsilon = 1.0e-05 : f64} : (tensor<2x4x3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x3xf32>
  %e0 = top.constant dense<[[[-0.7207157, 0.5147969, 1.9562283], [0.7940812, -0.8532689, -0.44143137], [4.1996465, -2.3331368, -1.3998821], [-3.4886792, 4.5995283, -4.733019]], [[0.52223116, 0.52223116, 0.7311236], [-0.8800321, 2.880032, -2.5511718], [2.9103966, 1.818998, 1.818998], [-7.3058596, 1.4253305, -5.8506613]]]> : tensor<2x4x3xf32> : tensor<2x4x3xf32>
  return %y, %e0 : tensor<2x4x3xf32>, tensor<2x4x3xf32>
}

func.func @instance_norm() -> (tensor<2x4x3xf32>, tensor<2x4x3xf32>) {
  %0 = top.constant dense<[[[-1.75, -0.25, 1.5], [-1.0, -2.0, -1.75], [2.0, -1.5, -1.0], [-1.25, 2.0, -1.75]], [[0.75, 0.75, 1.0], [-1.0, 1.25, -2.0], [0.0, -0.25, -0.25], [-1.75, -0.25, -1.5]]]> : tensor<2x4x3xf32> : tensor<2x4x3xf32>
  %1 = top.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> : tensor<4xf32>
  %2 = top.constant dense<[0.0, 1.0, 0.0, -1.0]> : tensor<4xf32> : tensor<4xf32>
  %y = top.group_norm %0, %1, %2 {groups = 4 : i64, epsilon = 1.0e-05 : f64} : (tensor<2x4x3xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4x3xf32>
  %e0 = top.constant dense<[[[-1.1921626, -0.0627454, 1.2549081], [3.74555, -0.961107, 0.21555719], [4.205469, -2.5879812, -1.6174883], [-3.2055168, 4.6140428, -4.408526]], [[-0.7068524, -0.7068524, 1.4137048], [0.3868623, 3.697806, -1.0846682], [4.241114, -2.120557, -2.120557], [-4.555962, 4.5879407, -3.0319784]]]> : tensor<2x4x3xf32> : tensor<2x4x3xf32>
  return %y, %e0 : tensor<2x4x3xf32>, tensor<2x4x3xf32>
}

func.func @lrn() -> (tensor<1x5x2xf32>, tensor<1x5x2xf32>) {
  %0 = top.constant dense<[[[-1.0, -0.75], [-0.25, 1.0], [1.25, -2.0], [-0.25, 1.75], [0.25, -1.75]]]> : tensor<1x5x2xf32> : tensor<1x5x2xf32>
  %y = top.lrn %0 {size = 3 : i64, alpha = 0.3 : f64, beta = 0.75 : f64, bias = 1.5 : f64} : (tensor<1x5x2xf32>) -> tensor<1x5x2xf32>
  %e0 = top.constant dense<[[[-0.7008743, -0.5137086], [-0.16343428, 0.58236206], [0.8513665, -1.0686862], [-0.1702733, 0.876917], [0.18330254, -0.99871254]]]> : tensor<1x5x2xf32> : tensor<1x5x2xf32>
  return %y, %e0 : tensor<1x5x2xf32>, tensor<1x5x2xf32>
}

func.func @lrn_even() -> (tensor<1x5x2xf32>, tensor<1x5x2xf32>) {
  %0 = top.constant dense<[[[-1.0, -0.75], [-0.25, 1.0], [1.25, -2.0], [-0.25, 1.75], [0.25, -1.75]]]> : tensor<1x5x2xf32> : tensor<1x5x2xf32>
  %y = top.lrn %0 {size = 2 : i64, alpha = 1.0 : f64, beta = 0.5 : f64, bias = 1.0 : f64} : (tensor<1x5x2xf32>) -> tensor<1x5x2xf32>
  %e0 = top.constant dense<[[[-0.80812204, -0.56195146], [-0.18569534, 0.5345225], [0.9284767, -0.93955237], [-0.24253562, 0.86824316], [0.24618298, -1.0999439]]]> : tensor<1x5x2xf32> : tensor<1x5x2xf32>
  return %y, %e0 : tensor<1x5x2xf32>, tensor<1x5x2xf32>
}

func.func @attention() -> (tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>) {
  %0 = top.constant dense<[[[[-1.75, 1.25, -0.5, -0.5], [-1.75, -1.75, -0.5, 0.75], [-1.25, -1.5, -1.25, -2.0]], [[0.5, -2.0, -1.75, -0.75], [-2.0, -0.75, 1.5, 0.0], [0.75, 1.0, 2.0, -2.0]]], [[[-2.0, 0.25, 1.5, -1.25], [-1.0, -2.0, 1.25, -0.5], [0.5, -2.0, 0.0, -1.75]], [[-0.5, -1.75, -0.25, 1.25], [-1.25, 1.75, -1.5, 1.75], [-2.0, 0.0, -1.5, -2.0]]]]> : tensor<2x2x3x4xf32> : tensor<2x2x3x4xf32>
  %1 = top.constant dense<[[[[1.5, 0.25, 0.0, 1.5], [-1.0, 0.25, -2.0, 0.5], [-1.75, -0.5, -0.75, 0.75], [-0.25, -1.75, 0.25, -0.25], [-0.75, -0.5, 0.5, -0.25]]], [[[-0.75, -0.5, -1.0, -1.5], [0.5, -2.0, 2.0, -1.25], [1.5, 1.0, 2.0, -0.75], [0.5, 0.75, 1.5, -1.75], [0.0, -1.0, -0.25, -2.0]]]]> : tensor<2x1x5x4xf32> : tensor<2x1x5x4xf32>
  %2 = top.constant dense<[[[[1.75, -1.75], [-0.25, -1.75], [1.5, 1.25], [0.75, -1.0], [1.0, -0.75]]], [[[-1.25, 1.0], [0.25, -1.25], [-0.75, -1.75], [1.0, 0.25], [0.75, -2.0]]]]> : tensor<2x1x5x2xf32> : tensor<2x1x5x2xf32>
  %3 = top.constant dense<[[1.75, 0.0, -0.5, -2.0, -0.5], [-1.75, 2.0, -2.0, 0.5, 1.75], [-1.75, -1.75, -0.5, 1.0, 2.0]]> : tensor<3x5xf32> : tensor<3x5xf32>
  %y = top.attention %0, %1, %2, %3 {scale = 0.5 : f64} : (tensor<2x2x3x4xf32>, tensor<2x1x5x4xf32>, tensor<2x1x5x2xf32>, tensor<3x5xf32>) -> tensor<2x2x3x2xf32>
  %e0 = top.constant dense<[[[[0.61690176, -0.89999664], [0.2940317, -1.2768487], [0.9068621, -0.7451685]], [[0.9405473, -1.307008], [0.80496365, -0.88813746], [0.9679363, -0.78660613]]], [[[-0.6817172, 0.1466459], [0.30375886, -1.3038576], [0.7250818, -1.8345921]], [[-0.7358506, 0.21131386], [0.49133557, -1.144231], [0.6625373, -1.7591571]]]]> : tensor<2x2x3x2xf32> : tensor<2x2x3x2xf32>
  return %y, %e0 : tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>
}

func.func @attention_no_mask() -> (tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>) {
  %0 = top.constant dense<[[[[-1.75, 1.25, -0.5, -0.5], [-1.75, -1.75, -0.5, 0.75], [-1.25, -1.5, -1.25, -2.0]], [[0.5, -2.0, -1.75, -0.75], [-2.0, -0.75, 1.5, 0.0], [0.75, 1.0, 2.0, -2.0]]], [[[-2.0, 0.25, 1.5, -1.25], [-1.0, -2.0, 1.25, -0.5], [0.5, -2.0, 0.0, -1.75]], [[-0.5, -1.75, -0.25, 1.25], [-1.25, 1.75, -1.5, 1.75], [-2.0, 0.0, -1.5, -2.0]]]]> : tensor<2x2x3x4xf32> : tensor<2x2x3x4xf32>
  %1 = top.constant dense<[[[[1.5, 0.25, 0.0, 1.5], [-1.0, 0.25, -2.0, 0.5], [-1.75, -0.5, -0.75, 0.75], [-0.25, -1.75, 0.25, -0.25], [-0.75, -0.5, 0.5, -0.25]]], [[[-0.75, -0.5, -1.0, -1.5], [0.5, -2.0, 2.0, -1.25], [1.5, 1.0, 2.0, -0.75], [0.5, 0.75, 1.5, -1.75], [0.0, -1.0, -0.25, -2.0]]]]> : tensor<2x1x5x4xf32> : tensor<2x1x5x4xf32>
  %2 = top.constant dense<[[[[1.75, -1.75], [-0.25, -1.75], [1.5, 1.25], [0.75, -1.0], [1.0, -0.75]]], [[[-1.25, 1.0], [0.25, -1.25], [-0.75, -1.75], [1.0, 0.25], [0.75, -2.0]]]]> : tensor<2x1x5x2xf32> : tensor<2x1x5x2xf32>
  %y = top.attention %0, %1, %2 {scale = 0.5 : f64} : (tensor<2x2x3x4xf32>, tensor<2x1x5x4xf32>, tensor<2x1x5x2xf32>) -> tensor<2x2x3x2xf32>
  %e0 = top.constant dense<[[[[0.64429003, -0.4989986], [0.99932903, 0.009204419], [0.7351876, -0.6017679]], [[0.67205274, -0.90092915], [1.0607492, -0.18842283], [1.0573434, -0.9460251]]], [[[0.27638182, -0.5781815], [0.23511554, -1.1610068], [0.27088815, -1.1912665]], [[-0.008118271, -0.84775794], [-0.727693, 0.26406875], [-0.56171983, 0.057575658]]]]> : tensor<2x2x3x2xf32> : tensor<2x2x3x2xf32>
  return %y, %e0 : tensor<2x2x3x2xf32>, tensor<2x2x3x2xf32>
}

func.func @attention_masked_row() -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %q = top.constant dense<[[1.0, 2.0], [0.5, 0.25]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %v = top.constant dense<[[3.0, 4.0], [5.0, 6.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %mask = top.constant dense<[[0xFF800000, 0xFF800000], [0xFF800000, 0.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.attention %q, %q, %v, %mask {scale = 0.5 : f64, zeroMaskedRows} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %z = top.attention %q, %q, %v, %mask {levels = 255 : i64, scale = 0.5 : f64, zeroMaskedRows} : (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = top.constant dense<[[0.0, 0.0], [5.0, 6.0]]> : tensor<2x2xf32> : tensor<2x2xf32>
  return %y, %e, %z, %e : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

func.func @rope() -> (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) {
  %0 = top.constant dense<[[[[1.25, 1.25, 1.0, -0.25], [-1.5, 1.75, -0.75, -0.5]], [[-2.0, -1.0, -1.5, 1.5], [-1.75, -2.0, -0.75, -0.25]]]]> : tensor<1x2x2x4xf32> : tensor<1x2x2x4xf32>
  %1 = top.constant dense<[[2.0, -2.0], [0.75, 0.25]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %2 = top.constant dense<[[-0.75, -1.75], [-1.75, -0.25]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.rope %0, %1, %2 : (tensor<1x2x2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2x4xf32>
  %e0 = top.constant dense<[[[[3.25, -2.9375, 1.0625, -1.6875], [-2.4375, 0.3125, 2.0625, -0.5625]], [[-5.125, 4.625, -1.5, -1.25], [-2.625, -0.5625, 2.5, 0.4375]]]]> : tensor<1x2x2x4xf32> : tensor<1x2x2x4xf32>
  return %y, %e0 : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>
}

func.func @rope_interleaved() -> (tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>) {
  %0 = top.constant dense<[[[[1.25, 1.25, 1.0, -0.25], [-1.5, 1.75, -0.75, -0.5]], [[-2.0, -1.0, -1.5, 1.5], [-1.75, -2.0, -0.75, -0.25]]]]> : tensor<1x2x2x4xf32> : tensor<1x2x2x4xf32>
  %1 = top.constant dense<[[2.0, -2.0], [0.75, 0.25]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %2 = top.constant dense<[[-0.75, -1.75], [-1.75, -0.25]]> : tensor<2x2xf32> : tensor<2x2xf32>
  %y = top.rope %0, %1, %2 {interleaved = true} : (tensor<1x2x2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<1x2x2x4xf32>
  %e0 = top.constant dense<[[[[3.4375, 1.5625, -2.4375, -1.25], [1.9375, 3.9375, -0.3125, 0.0625]], [[-4.75, -0.5, 5.625, -0.375], [-4.8125, 1.5625, -0.25, 0.125]]]]> : tensor<1x2x2x4xf32> : tensor<1x2x2x4xf32>
  return %y, %e0 : tensor<1x2x2x4xf32>, tensor<1x2x2x4xf32>
}

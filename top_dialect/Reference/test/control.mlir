// SPDX-License-Identifier: Apache-2.0
// If and loop: every function returns pairs (actual, expected).

func.func @if_then() -> (tensor<1xf32>, tensor<1xf32>) {
  %c = top.constant dense<true> : tensor<i1> : tensor<i1>
  %a = top.constant dense<1.0> : tensor<1xf32> : tensor<1xf32>
  %b = top.constant dense<2.0> : tensor<1xf32> : tensor<1xf32>
  %y = top.if %c {
    %s = top.add %a, %b : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
    top.yield %s : tensor<1xf32>
  } else {
    top.yield %a : tensor<1xf32>
  } : (tensor<i1>) -> tensor<1xf32>
  %e = top.constant dense<3.0> : tensor<1xf32> : tensor<1xf32>
  return %y, %e : tensor<1xf32>, tensor<1xf32>
}

func.func @if_else_other_shape() -> (tensor<?xf32>, tensor<2xf32>) {
  %c = top.constant dense<false> : tensor<i1> : tensor<i1>
  %a = top.constant dense<1.0> : tensor<1xf32> : tensor<1xf32>
  %b = top.constant dense<2.0> : tensor<2xf32> : tensor<2xf32>
  %y = top.if %c {
    top.yield %a : tensor<1xf32>
  } else {
    %s = top.add %a, %b : (tensor<1xf32>, tensor<2xf32>) -> tensor<2xf32>
    top.yield %s : tensor<2xf32>
  } : (tensor<i1>) -> tensor<?xf32>
  %e = top.constant dense<3.0> : tensor<2xf32> : tensor<2xf32>
  return %y, %e : tensor<?xf32>, tensor<2xf32>
}

func.func @loop_counts() -> (tensor<i64>, tensor<i64>, tensor<?xi64>, tensor<3xi64>) {
  %n = top.constant dense<3> : tensor<i64> : tensor<i64>
  %zero = top.constant dense<0> : tensor<i64> : tensor<i64>
  %y:2 = top.loop trip %n init(%zero) {
  ^body(%i: tensor<i64>, %go: tensor<i1>, %sum: tensor<i64>):
    %next = top.add %sum, %i : (tensor<i64>, tensor<i64>) -> tensor<i64>
    top.yield %go, %next, %sum : tensor<i1>, tensor<i64>, tensor<i64>
  } : (tensor<i64>, tensor<i64>) -> (tensor<i64>, tensor<?xi64>)
  %e0 = top.constant dense<3> : tensor<i64> : tensor<i64>
  %e1 = top.constant dense<[0, 0, 1]> : tensor<3xi64> : tensor<3xi64>
  return %y#0, %e0, %y#1, %e1 : tensor<i64>, tensor<i64>, tensor<?xi64>, tensor<3xi64>
}

func.func @loop_until() -> (tensor<f32>, tensor<f32>) {
  %go = top.constant dense<true> : tensor<i1> : tensor<i1>
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %limit = top.constant dense<10.0> : tensor<f32> : tensor<f32>
  %y = top.loop while %go init(%one) {
  ^body(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<f32>):
    %double = top.add %v, %v : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %more = top.compare %double, %limit {kind = 2 : i32} : (tensor<f32>, tensor<f32>) -> tensor<i1>
    top.yield %more, %double : tensor<i1>, tensor<f32>
  } : (tensor<i1>, tensor<f32>) -> tensor<f32>
  %e = top.constant dense<16.0> : tensor<f32> : tensor<f32>
  return %y, %e : tensor<f32>, tensor<f32>
}

func.func @loop_never() -> (tensor<f32>, tensor<f32>, tensor<?xf32>, tensor<0xf32>) {
  %n = top.constant dense<0> : tensor<i64> : tensor<i64>
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %y:2 = top.loop trip %n init(%one) {
  ^body(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<f32>):
    top.yield %c, %v, %v : tensor<i1>, tensor<f32>, tensor<f32>
  } : (tensor<i64>, tensor<f32>) -> (tensor<f32>, tensor<?xf32>)
  %e = top.constant dense<> : tensor<0xf32> : tensor<0xf32>
  return %y#0, %one, %y#1, %e : tensor<f32>, tensor<f32>, tensor<?xf32>, tensor<0xf32>
}

// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @constant_c1() {
  // expected-error @below {{value has type 'tensor<2xf32>', result 'tensor<3xf32>' (C1)}}
  %0 = top.constant dense<1.0> : tensor<2xf32> : tensor<3xf32>
  return
}

// -----

func.func @constant_c2() {
  // expected-error @below {{has 1028 bytes, but at most 1024 may be stored in the module: use top.weight (C2)}}
  %0 = top.constant dense<1.0> : tensor<257xf32> : tensor<257xf32>
  return
}

// -----

func.func @if_c1(%cond: tensor<i1>, %a: tensor<2xf32>) {
  // expected-error @below {{regions yield 1 and 0 values (C1)}}
  %0 = top.if %cond {
    top.yield %a : tensor<2xf32>
  } else {
    top.yield
  } : (tensor<i1>) -> tensor<2xf32>
  return
}

// -----

func.func @if_c2(%cond: tensor<2xi1>, %a: tensor<2xf32>) {
  // expected-error @below {{condition is 'tensor<2xi1>', but must be one i1 (C2)}}
  %0 = top.if %cond {
    top.yield %a : tensor<2xf32>
  } else {
    top.yield %a : tensor<2xf32>
  } : (tensor<2xi1>) -> tensor<2xf32>
  return
}

// -----

func.func @loop_c1(%trips: tensor<i64>, %x: tensor<4xf32>) {
  // expected-error @below {{body yields 1 values, but must yield a condition and 1 carried (C1)}}
  %0 = top.loop trip %trips init(%x) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %carried: tensor<4xf32>):
    top.yield %c : tensor<i1>
  } : (tensor<i64>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @loop_c2(%trips: tensor<i64>, %x: tensor<4xf32>) {
  // expected-error @below {{body takes 1 values, but must take iteration, condition and 1 carried (C2)}}
  %0 = top.loop trip %trips init(%x) {
  ^bb0(%c: tensor<i1>):
    top.yield %c, %x : tensor<i1>, tensor<4xf32>
  } : (tensor<i64>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @loop_c3(%cond: tensor<f32>, %x: tensor<4xf32>) {
  // expected-error @below {{condition is 'tensor<f32>', but must be one i1 (C3)}}
  %0 = top.loop while %cond init(%x) {
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %carried: tensor<4xf32>):
    top.yield %c, %x : tensor<i1>, tensor<4xf32>
  } : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

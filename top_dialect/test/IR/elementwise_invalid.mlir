// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @binary_c1(%a: tensor<4xf32>, %b: tensor<4xf16>) {
  // expected-error @below {{operands have element types 'f32' and 'f16', but they must be the same (C1)}}
  %0 = top.add %a, %b : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @binary_c2(%a: tensor<4xf32>, %b: tensor<3xf32>) {
  // expected-error @below {{dims 4 and 3 do not broadcast (C2)}}
  %0 = top.mul %a, %b : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @compare_result(%a: tensor<4xf32>, %b: tensor<4xf32>) {
  // expected-error @below {{result 0 is declared as 'tensor<4xf32>', but inferred as 'tensor<4xi1>'}}
  %0 = top.compare %a, %b {kind = 0 : i32} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @where_c1(%a: tensor<4xi1>, %b: tensor<4xf32>, %c: tensor<4xi64>) {
  // expected-error @below {{(C1)}}
  %0 = top.where %a, %b, %c : (tensor<4xi1>, tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @where_c2(%a: tensor<4xi1>, %b: tensor<3xf32>, %c: tensor<1xf32>) {
  // expected-error @below {{dims 4 and 3 do not broadcast (C2)}}
  %0 = top.where %a, %b, %c : (tensor<4xi1>, tensor<3xf32>, tensor<1xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @unary_result(%a: tensor<4xf32>) {
  // expected-error @below {{result 0 is declared as 'tensor<5xf32>', but inferred as 'tensor<4xf32>'}}
  %0 = top.exp %a : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @too_large(%a: tensor<1048576x1xf32>, %b: tensor<1x1048576xf32>) {
  // expected-error @below {{result of 1048576x1048576 elements of 'f32' exceeds the limit of 128 GiB per tensor}}
  %0 = top.add %a, %b : (tensor<1048576x1xf32>, tensor<1x1048576xf32>) -> tensor<1048576x1048576xf32>
  return
}

// -----

func.func @bitcast_width(%a: tensor<4xf32>) {
  // expected-error @below {{cannot read the bits of 'f32' as 'i64': allowed are 'f32', 'f64' and integers of as many bits, 8 or more (C1)}}
  %0 = top.bitcast %a {to = i64} : (tensor<4xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @bitcast_of_f16(%a: tensor<4xf16>) {
  // expected-error @below {{cannot read the bits of 'f16' as 'i16'}}
  %0 = top.bitcast %a {to = i16} : (tensor<4xf16>) -> tensor<4xi16>
  return
}

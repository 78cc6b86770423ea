// RUN: tessera-opt %s -verify-diagnostics -split-input-file

func.func @custom_c1_count(%a: tensor<2x3xf32>) {
  // expected-error @below {{1 results, but 0 types (C1)}}
  %0 = top.custom %a {opDomain = "test", opName = "Sort", opVersion = 1 : i64, opAttributes = "{}", types = []} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @custom_c1_size(%a: tensor<2x3xf32>) {
  // expected-error @below {{result 0 has the type tensor<?x3xf32>, but a tensor whose sizes are numbers or expressions is required (C1)}}
  %0 = top.custom %a {opDomain = "test", opName = "Sort", opVersion = 1 : i64, opAttributes = "{}", types = [tensor<?x3xf32>]} : (tensor<2x3xf32>) -> tensor<?x3xf32>
  return
}

// -----

func.func @custom_types(%a: tensor<2x3xf32>) {
  // expected-error @below {{result}}
  %0 = top.custom %a {opDomain = "test", opName = "Sort", opVersion = 1 : i64, opAttributes = "{}", types = [tensor<3x2xf32>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// RUN: tessera-opt %s | FileCheck %s

// The library is not needed to read a module.
// CHECK-LABEL: @custom
// CHECK: top.custom %{{.*}} {opAttributes = "{\22scale\22:2}", opDomain = "test", opName = "Sort", opVersion = 1 : i64, types = [tensor<2x3xf32>, tensor<2x3xi64>]}
func.func @custom(%a: tensor<2x3xf32>) {
  %0:2 = top.custom %a {opDomain = "test", opName = "Sort", opVersion = 1 : i64, opAttributes = "{\22scale\22:2}", types = [tensor<2x3xf32>, tensor<2x3xi64>]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi64>)
  return
}

// CHECK-LABEL: @open
// CHECK: types = [tensor<?xf32, #top.dims<[3*n[1:8]]>>]
func.func @open(%a: tensor<?x3xf32, #top.dims<[n[1:8], 3]>>) {
  %0 = top.custom %a {opDomain = "test", opName = "Flatten", opVersion = 1 : i64, opAttributes = "{}", types = [tensor<?xf32, #top.dims<[3*n[1:8]]>>]} : (tensor<?x3xf32, #top.dims<[n[1:8], 3]>>) -> tensor<?xf32, #top.dims<[3*n[1:8]]>>
  return
}

// RUN: tessera-opt %s --top-fold-constants --top-sink-transposes --top-dce | FileCheck %s

// The Top passes keep sizes that are expressions.

// A slice of all rows but the first is the same rows of the transposed tensor; its list of sizes belongs to its own dims,
// so it stays below the transpose.
// CHECK-LABEL: @slice_below_transpose
// CHECK: top.transpose
// CHECK: top.slice{{.*}}top.dims = #top.dims<[4, n[2:8] - 1, 3]>{{.*}} -> tensor<4x?x3xf32, #top.dims<[4, n[2:8] - 1, 3]>>
func.func @slice_below_transpose(%x: tensor<?x3x4xf32, #top.dims<[n[2:8], 3, 4]>>) -> tensor<4x?x3xf32, #top.dims<[4, n[2:8] - 1, 3]>> {
  %0 = top.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<?x3x4xf32, #top.dims<[n[2:8], 3, 4]>>) -> tensor<4x?x3xf32, #top.dims<[4, n[2:8], 3]>>
  %1 = top.slice %0 {starts = array<i64: 0, 1, 0>, sizes = array<i64: 4, -1, 3>, steps = array<i64: 1, 1, 1>, top.dims = #top.dims<[4, n[2:8] - 1, 3]>} : (tensor<4x?x3xf32, #top.dims<[4, n[2:8], 3]>>) -> tensor<4x?x3xf32, #top.dims<[4, n[2:8] - 1, 3]>>
  return %1 : tensor<4x?x3xf32, #top.dims<[4, n[2:8] - 1, 3]>>
}

// A slice of a constant has as many results as its size has values.
// CHECK-LABEL: @slice_of_constant
// CHECK: top.slice
func.func @slice_of_constant(%x: tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[n[1:4]]>> {
  %c = top.constant dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf32> : tensor<4xf32>
  %0 = top.slice %c {starts = array<i64: 0>, sizes = array<i64: -1>, steps = array<i64: 1>, top.dims = #top.dims<[n[1:4]]>} : (tensor<4xf32>) -> tensor<?xf32, #top.dims<[n[1:4]]>>
  %1 = top.add %x, %0 : (tensor<?xf32, #top.dims<[n[1:4]]>>, tensor<?xf32, #top.dims<[n[1:4]]>>) -> tensor<?xf32, #top.dims<[n[1:4]]>>
  return %1 : tensor<?xf32, #top.dims<[n[1:4]]>>
}

// CHECK-LABEL: @gather_is_slice
// CHECK: top.slice{{.*}}sizes = array<i64: -1, 1, 4>{{.*}}top.dims = #top.dims<[n[1:8], 1, 4]>
// CHECK: top.reshape{{.*}} -> tensor<?x4xf32, #top.dims<[n[1:8], 4]>>
func.func @gather_is_slice(%x: tensor<?x3x4xf32, #top.dims<[n[1:8], 3, 4]>>) -> tensor<?x4xf32, #top.dims<[n[1:8], 4]>> {
  %i = top.constant dense<1> : tensor<i64> : tensor<i64>
  %0 = top.gather %x, %i {axis = 1 : i64} : (tensor<?x3x4xf32, #top.dims<[n[1:8], 3, 4]>>, tensor<i64>) -> tensor<?x4xf32, #top.dims<[n[1:8], 4]>>
  return %0 : tensor<?x4xf32, #top.dims<[n[1:8], 4]>>
}

// Two transposes become one, whose result has the sizes of the second.
// CHECK-LABEL: @transposes
// CHECK: top.transpose %{{.*}} {perm = array<i64: 1, 2, 0>} : {{.*}} -> tensor<?x?x4xf32, #top.dims<[m[2:8], 2*k[1:8], 4]>>
func.func @transposes(%x: tensor<4x?x?xf32, #top.dims<[4, m[2:8], 2*k[1:8]]>>) -> tensor<?x?x4xf32, #top.dims<[m[2:8], 2*k[1:8], 4]>> {
  %0 = top.transpose %x {perm = array<i64: 2, 0, 1>} : (tensor<4x?x?xf32, #top.dims<[4, m[2:8], 2*k[1:8]]>>) -> tensor<?x4x?xf32, #top.dims<[2*k[1:8], 4, m[2:8]]>>
  %1 = top.transpose %0 {perm = array<i64: 2, 0, 1>} : (tensor<?x4x?xf32, #top.dims<[2*k[1:8], 4, m[2:8]]>>) -> tensor<?x?x4xf32, #top.dims<[m[2:8], 2*k[1:8], 4]>>
  return %1 : tensor<?x?x4xf32, #top.dims<[m[2:8], 2*k[1:8], 4]>>
}

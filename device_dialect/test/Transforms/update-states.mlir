// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-update-states | FileCheck %s
// RUN: tessera-opt %s --device-update-states --device-simplify-copies --device-assign-addresses --device-verify-addresses | FileCheck %s --check-prefix=PLACED

#before = #top.size<p[0:6]>
#after = #top.size<n[1:2] + p[0:6]>
#earlier = #device.piece<source = 0, sizes = [1, ?, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1], symbolic = [p[0:6]]>
#new = #device.piece<source = 1, sizes = [1, ?, 4], dst_offsets = [0, ?, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1], symbolic = [n[1:2], p[0:6]]>

// The state has space for 6 + 2 rows. Attention reads it where it is.
// CHECK-LABEL: func.func @attention
// CHECK-SAME: %arg1: tensor<1x8x4xf32> {
// CHECK-SAME: top.in_place = "present"
// CHECK-SAME: -> tensor<1x?x4xf32
// CHECK: %[[GROWN:.*]] = device.insert %arg1, %arg0 {axis = 1 : i64, offset = #top.size<p[0:6]>}
// CHECK: device.attention %arg0, %[[GROWN]], %[[GROWN]] {keys = #top.size<{{.*}}>, scale
// CHECK: return %{{[^,]*}} :
// PLACED-LABEL: func.func @attention
// PLACED-NOT: device.copy
// PLACED: device.insert {{.*}}device.addresses = array<i64: 0>, device.inplace = 0 : i64, device.memories = array<i64: -2>
func.func @attention(%x: tensor<1x?x4xf32, #top.dims<[1, n[1:2], 4]>>,
    %past: tensor<1x?x4xf32, #top.dims<[1, p[0:6], 4]>> {top.state = "past", top.growth = {after = #after, axis = 1 : i64, before = #before}})
    -> (tensor<1x?x4xf32, #top.dims<[1, n[1:2], 4]>>, tensor<1x?x4xf32, #top.dims<[1, n[1:2] + p[0:6], 4]>> {top.name = "present", top.state = "past"}) {
  %c = device.copy %past, %x {pieces = [#earlier, #new]} : (tensor<1x?x4xf32, #top.dims<[1, p[0:6], 4]>>, tensor<1x?x4xf32, #top.dims<[1, n[1:2], 4]>>) -> tensor<1x?x4xf32, #top.dims<[1, n[1:2] + p[0:6], 4]>>
  %y = device.attention %x, %c, %c {scale = 1.0} : (tensor<1x?x4xf32, #top.dims<[1, n[1:2], 4]>>, tensor<1x?x4xf32, #top.dims<[1, n[1:2] + p[0:6], 4]>>, tensor<1x?x4xf32, #top.dims<[1, n[1:2] + p[0:6], 4]>>) -> tensor<1x?x4xf32, #top.dims<[1, n[1:2], 4]>>
  return %y, %c : tensor<1x?x4xf32, #top.dims<[1, n[1:2], 4]>>, tensor<1x?x4xf32, #top.dims<[1, n[1:2] + p[0:6], 4]>>
}

// A scatter writes into the state.
// CHECK-LABEL: func.func @scatter
// CHECK: device.scatter %arg2, %arg0, %arg1 {inPlace}
// CHECK: return %{{[^,]*}} : tensor<2xf32>
// PLACED-LABEL: func.func @scatter
// PLACED-NOT: device.copy
// PLACED: device.scatter {{.*}}device.memories = array<i64: -3>
func.func @scatter(%i: tensor<2xi64>, %u: tensor<2xf32>, %past: tensor<4xf32> {top.state = "past"})
    -> (tensor<2xf32>, tensor<4xf32> {top.name = "present", top.state = "past"}) {
  %y = device.scatter %past, %i, %u {axis = 0 : i64} : (tensor<4xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<4xf32>
  %g = device.gather %y, %i {axis = 0 : i64} : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return %g, %y : tensor<2xf32>, tensor<4xf32>
}

// An argument that is no state is copied before.
// PLACED-LABEL: func.func @argument
// PLACED: %[[COPY:.*]] = device.copy %arg0
// PLACED: device.insert %[[COPY]], %arg1
func.func @argument(%x: tensor<8x4xf32>, %u: tensor<2x4xf32>) -> tensor<8x4xf32> {
  %y = device.insert %x, %u {axis = 0 : i64, offset = #before} : (tensor<8x4xf32>, tensor<2x4xf32>) -> tensor<8x4xf32>
  return %y : tensor<8x4xf32>
}

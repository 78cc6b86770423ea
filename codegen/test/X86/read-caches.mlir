// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-update-states --x86-read-caches | FileCheck %s

#before = #top.size<p[0:6]>
#after = #top.size<n[1:2] + p[0:6]>
#earlier = #device.piece<source = 0, sizes = [1, ?, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1], symbolic = [p[0:6]]>
#new = #device.piece<source = 1, sizes = [1, ?, 4], dst_offsets = [0, ?, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1], symbolic = [n[1:2], p[0:6]]>
#new4 = #top.dims<[1, n[1:2], 4]>
#past4 = #top.dims<[1, p[0:6], 4]>
#all4 = #top.dims<[1, n[1:2] + p[0:6], 4]>

// CHECK-LABEL: func.func @halves
// CHECK-NOT: device.map
// CHECK: %[[GROWN:.*]] = device.insert
// CHECK-NOT: device.map
// CHECK: device.attention %arg0, %[[GROWN]], %[[GROWN]] {keys = #top.size<{{.*}}>, scale = {{.*}}} : (tensor<1x?x4xf32{{.*}}>, tensor<1x8x4xbf16>, tensor<1x8x4xbf16>)
func.func @halves(%q: tensor<1x?x4xf32, #new4>, %x: tensor<1x?x4xbf16, #new4>,
    %past: tensor<1x?x4xbf16, #past4> {top.state = "past", top.growth = {after = #after, axis = 1 : i64, before = #before}})
    -> (tensor<1x?x4xf32, #new4>, tensor<1x?x4xbf16, #all4> {top.name = "present", top.state = "past"}) {
  %c = device.copy %past, %x {pieces = [#earlier, #new]} : (tensor<1x?x4xbf16, #past4>, tensor<1x?x4xbf16, #new4>) -> tensor<1x?x4xbf16, #all4>
  %f = device.map (%c) {
  ^bb0(%e: bf16):
    %w = arith.extf %e : bf16 to f32
    device.yield %w : f32
  } : (tensor<1x?x4xbf16, #all4>) -> tensor<1x?x4xf32, #all4>
  %y = device.attention %q, %f, %f {scale = 1.0} : (tensor<1x?x4xf32, #new4>, tensor<1x?x4xf32, #all4>, tensor<1x?x4xf32, #all4>) -> tensor<1x?x4xf32, #new4>
  return %y, %c : tensor<1x?x4xf32, #new4>, tensor<1x?x4xbf16, #all4>
}

// Another computation of the rows stays, as do exact functions.
// CHECK-LABEL: func.func @squares
// CHECK: device.map
// CHECK: device.attention {{.*}} : (tensor<1x?x4xf32{{.*}}>, tensor<1x?x4xf32{{.*}}>, tensor<1x?x4xf32{{.*}}>)
func.func @squares(%q: tensor<1x?x4xf32, #new4>, %x: tensor<1x?x4xbf16, #new4>,
    %past: tensor<1x?x4xbf16, #past4> {top.state = "past", top.growth = {after = #after, axis = 1 : i64, before = #before}})
    -> (tensor<1x?x4xf32, #new4>, tensor<1x?x4xbf16, #all4> {top.name = "present", top.state = "past"}) {
  %c = device.copy %past, %x {pieces = [#earlier, #new]} : (tensor<1x?x4xbf16, #past4>, tensor<1x?x4xbf16, #new4>) -> tensor<1x?x4xbf16, #all4>
  %f = device.map (%c) {
  ^bb0(%e: bf16):
    %w = arith.extf %e : bf16 to f32
    %z = arith.mulf %w, %w : f32
    device.yield %z : f32
  } : (tensor<1x?x4xbf16, #all4>) -> tensor<1x?x4xf32, #all4>
  %y = device.attention %q, %f, %f {scale = 1.0} : (tensor<1x?x4xf32, #new4>, tensor<1x?x4xf32, #all4>, tensor<1x?x4xf32, #all4>) -> tensor<1x?x4xf32, #new4>
  return %y, %c : tensor<1x?x4xf32, #new4>, tensor<1x?x4xbf16, #all4>
}

// CHECK-LABEL: func.func @exact
// CHECK: device.map
func.func @exact(%q: tensor<1x?x4xf32, #new4>, %x: tensor<1x?x4xbf16, #new4>,
    %past: tensor<1x?x4xbf16, #past4> {top.state = "past", top.growth = {after = #after, axis = 1 : i64, before = #before}})
    -> (tensor<1x?x4xf32, #new4>, tensor<1x?x4xbf16, #all4> {top.name = "present", top.state = "past"}) attributes {device.exact} {
  %c = device.copy %past, %x {pieces = [#earlier, #new]} : (tensor<1x?x4xbf16, #past4>, tensor<1x?x4xbf16, #new4>) -> tensor<1x?x4xbf16, #all4>
  %f = device.map (%c) {
  ^bb0(%e: bf16):
    %w = arith.extf %e : bf16 to f32
    device.yield %w : f32
  } : (tensor<1x?x4xbf16, #all4>) -> tensor<1x?x4xf32, #all4>
  %y = device.attention %q, %f, %f {scale = 1.0} : (tensor<1x?x4xf32, #new4>, tensor<1x?x4xf32, #all4>, tensor<1x?x4xf32, #all4>) -> tensor<1x?x4xf32, #new4>
  return %y, %c : tensor<1x?x4xf32, #new4>, tensor<1x?x4xbf16, #all4>
}

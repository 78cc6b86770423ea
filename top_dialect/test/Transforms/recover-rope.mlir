// RUN: tessera-opt %s --top-recover-rope --split-input-file | FileCheck %s
// SPDX-License-Identifier: Apache-2.0

// Pairs in a new last dim, rotated and stacked again (stories, GPT-J).
// CHECK-LABEL: @pairs
// CHECK: %[[X:.*]] = top.reshape %arg0 {shape = array<i64: 1, 2, 3, 8>}
// CHECK-NEXT: %[[R:.*]] = top.rope %[[X]], %arg1, %arg2 {interleaved = true}
// CHECK-NEXT: %[[Y:.*]] = top.reshape %[[R]] {shape = array<i64: 1, 2, 3, 4, 2>, top.outputs = ["y"]}
// CHECK-NEXT: return %[[Y]]
func.func @pairs(%x: tensor<1x2x3x4x2xf32>, %cos: tensor<3x4xf32>, %sin: tensor<1x1x3x4xf32>) -> tensor<1x2x3x4x2xf32> {
  %s1 = top.slice %x {starts = array<i64: 0, 0, 0, 0, 0>, sizes = array<i64: 1, 2, 3, 4, 1>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<1x2x3x4x2xf32>) -> tensor<1x2x3x4x1xf32>
  %s2 = top.slice %x {starts = array<i64: 0, 0, 0, 0, 1>, sizes = array<i64: 1, 2, 3, 4, 1>, steps = array<i64: 1, 1, 1, 1, 1>} : (tensor<1x2x3x4x2xf32>) -> tensor<1x2x3x4x1xf32>
  %x1 = top.reshape %s1 {shape = array<i64: 1, 2, 3, 4>} : (tensor<1x2x3x4x1xf32>) -> tensor<1x2x3x4xf32>
  %x2 = top.reshape %s2 {shape = array<i64: 1, 2, 3, 4>} : (tensor<1x2x3x4x1xf32>) -> tensor<1x2x3x4xf32>
  %a = top.mul %x1, %cos : (tensor<1x2x3x4xf32>, tensor<3x4xf32>) -> tensor<1x2x3x4xf32>
  %b = top.mul %x2, %sin : (tensor<1x2x3x4xf32>, tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32>
  %y1 = top.sub %a, %b : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %c = top.mul %sin, %x1 : (tensor<1x1x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %d = top.mul %x2, %cos : (tensor<1x2x3x4xf32>, tensor<3x4xf32>) -> tensor<1x2x3x4xf32>
  %y2 = top.add %d, %c : (tensor<1x2x3x4xf32>, tensor<1x2x3x4xf32>) -> tensor<1x2x3x4xf32>
  %u1 = top.reshape %y1 {shape = array<i64: 1, 2, 3, 4, 1>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4x1xf32>
  %u2 = top.reshape %y2 {shape = array<i64: 1, 2, 3, 4, 1>} : (tensor<1x2x3x4xf32>) -> tensor<1x2x3x4x1xf32>
  %y = top.concat %u1, %u2 {axis = 4, top.outputs = ["y"]} : (tensor<1x2x3x4x1xf32>, tensor<1x2x3x4x1xf32>) -> tensor<1x2x3x4x2xf32>
  return %y : tensor<1x2x3x4x2xf32>
}

// -----

// Halves rotated and concatenated.
// CHECK-LABEL: @halves
// CHECK-NEXT: top.rope %arg0, %arg1, %arg2 :
// CHECK-NEXT: return
func.func @halves(%x: tensor<2x3x4xf32>, %cos: tensor<3x2xf32>, %sin: tensor<3x2xf32>) -> tensor<2x3x4xf32> {
  %x1 = top.slice %x {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %x2 = top.slice %x {starts = array<i64: 0, 0, 2>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %a = top.mul %x1, %cos : (tensor<2x3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2xf32>
  %b = top.mul %x2, %sin : (tensor<2x3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2xf32>
  %y1 = top.sub %a, %b : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %c = top.mul %x1, %sin : (tensor<2x3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2xf32>
  %d = top.mul %x2, %cos : (tensor<2x3x2xf32>, tensor<3x2xf32>) -> tensor<2x3x2xf32>
  %y2 = top.add %c, %d : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %y = top.concat %y1, %y2 {axis = 2} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// x cos + rotate_half(x) sin (Llama in transformers): the angles are one half repeated.
// CHECK-LABEL: @rotate_half
// CHECK: %[[C:.*]] = top.slice %{{.*}} {sizes = array<i64: 3, 2>
// CHECK: %[[S:.*]] = top.slice %{{.*}} {sizes = array<i64: 3, 2>
// CHECK: top.rope %arg0, %[[C]], %[[S]] :
// CHECK-NEXT: return
func.func @rotate_half(%x: tensor<2x3x4xf32>, %freqs: tensor<3x2xf32>) -> tensor<2x3x4xf32> {
  %emb = top.concat %freqs, %freqs {axis = 1} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %cos = top.cos %emb : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %sin = top.sin %emb : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %x1 = top.slice %x {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %x2 = top.slice %x {starts = array<i64: 0, 0, 2>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %n = top.neg %x2 : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %r = top.concat %n, %x1 {axis = 2} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  %a = top.mul %x, %cos : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %b = top.mul %r, %sin : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %y = top.add %a, %b : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// The halves of these angles differ, so this is not a rotary embedding with half as many angles.
// CHECK-LABEL: @keeps_other_angles
// CHECK-NOT: top.rope
// CHECK: return
func.func @keeps_other_angles(%x: tensor<2x3x4xf32>, %cos: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  %sin = top.constant dense<[[0.0, 1.0, 0.0, 2.0]]> : tensor<1x4xf32> : tensor<1x4xf32>
  %x1 = top.slice %x {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %x2 = top.slice %x {starts = array<i64: 0, 0, 2>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %n = top.neg %x2 : (tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %r = top.concat %n, %x1 {axis = 2} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  %a = top.mul %x, %cos : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %b = top.mul %r, %sin : (tensor<2x3x4xf32>, tensor<1x4xf32>) -> tensor<2x3x4xf32>
  %y = top.add %a, %b : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// One angle for a whole row: top.rope broadcasts leading dims only.
// CHECK-LABEL: @keeps_one_angle
// CHECK-NOT: top.rope
// CHECK: return
func.func @keeps_one_angle(%x: tensor<2x3x4xf32>, %cos: tensor<3x1xf32>, %sin: tensor<3x1xf32>) -> tensor<2x3x4xf32> {
  %x1 = top.slice %x {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %x2 = top.slice %x {starts = array<i64: 0, 0, 2>, sizes = array<i64: 2, 3, 2>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x2xf32>
  %a = top.mul %x1, %cos : (tensor<2x3x2xf32>, tensor<3x1xf32>) -> tensor<2x3x2xf32>
  %b = top.mul %x2, %sin : (tensor<2x3x2xf32>, tensor<3x1xf32>) -> tensor<2x3x2xf32>
  %y1 = top.sub %a, %b : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %c = top.mul %x1, %sin : (tensor<2x3x2xf32>, tensor<3x1xf32>) -> tensor<2x3x2xf32>
  %d = top.mul %x2, %cos : (tensor<2x3x2xf32>, tensor<3x1xf32>) -> tensor<2x3x2xf32>
  %y2 = top.add %c, %d : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x2xf32>
  %y = top.concat %y1, %y2 {axis = 2} : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// The halves of the angles depend on one number that is not constant.
// CHECK-LABEL: @keeps_scaled_angles
// CHECK-NOT: top.rope
// CHECK: return
func.func @keeps_scaled_angles(%x: tensor<3x4xf32>, %freqs: tensor<3x2xf32>, %scale: tensor<f32>) -> tensor<3x4xf32> {
  %emb = top.concat %freqs, %freqs {axis = 1} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %number = top.sqrt %scale : (tensor<f32>) -> tensor<f32>
  %angle = top.mul %emb, %number : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x4xf32>
  %cos = top.cos %angle : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %sin = top.sin %angle : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %x1 = top.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 3, 2>, steps = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %x2 = top.slice %x {starts = array<i64: 0, 2>, sizes = array<i64: 3, 2>, steps = array<i64: 1, 1>} : (tensor<3x4xf32>) -> tensor<3x2xf32>
  %n = top.neg %x2 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %r = top.concat %n, %x1 {axis = 1} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %a = top.mul %x, %cos : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %b = top.mul %r, %sin : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %y = top.add %a, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

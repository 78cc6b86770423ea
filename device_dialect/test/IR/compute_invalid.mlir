// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s -verify-diagnostics -split-input-file

// expected-error @+1 {{block 0 is not positive (blocked_c1)}}
func.func @blocked_c1(%x: tensor<1x2x3x4xf32, #device.blocked<0>>) { return }

// -----

// expected-error @+1 {{a channel-blocked tensor needs rank 2 or more, but has rank 1 (blocked_c2)}}
func.func @blocked_c2(%x: tensor<4xf32, #device.blocked<16>>) { return }

// -----

func.func @conv_c1(%x: tensor<1x2x8xf32>, %w: tensor<4x2x3xf32>) -> tensor<1x4x6xf32> {
  // expected-error @+1 {{ranks of x, w and y are 3, 3, 3, allowed all 4 or all 5 (conv_c1)}}
  %y = device.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x8xf32>, tensor<4x2x3xf32>) -> tensor<1x4x6xf32>
  return %y : tensor<1x4x6xf32>
}

// -----

func.func @conv_c2(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32> {
  // expected-error @+1 {{strides holds 0, allowed from 1 (conv_c2)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 0>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// -----

func.func @conv_c3(%x: tensor<1x2x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32> {
  // expected-error @+1 {{1 groups do not divide C = 2 and OC = 4 with C / groups = 3 (conv_c3)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// -----

func.func @conv_c4(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>, %b: tensor<5xf32>) -> tensor<1x4x6x6xf32> {
  // expected-error @+1 {{bias has dims 5, expected 4 (conv_c4)}}
  %y = device.conv %x, %w bias %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>, tensor<5xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// -----

func.func @conv_c5(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x8x6xf32> {
  // expected-error @+1 {{result has dims 1x4x8x6, expected 1x4x6x6 (conv_c5)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x6xf32>
  return %y : tensor<1x4x8x6xf32>
}

// -----

func.func @conv_c7(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32> {
  // expected-error @+1 {{epilogue argument 0 is 'f64', expected 'f32' (conv_c7)}}
  %y = device.conv %x, %w epilogue {
  ^bb0(%acc: f64):
    %t = arith.truncf %acc : f64 to f32
    device.yield %t : f32
  } {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// -----

func.func @conv_c7_extra(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x6x6xf32> {
  // expected-error @+1 {{extra operands without an epilogue (conv_c7)}}
  %y = device.conv %x, %w extras(%x) {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>, tensor<1x2x8x8xf32>) -> tensor<1x4x6x6xf32>
  return %y : tensor<1x4x6x6xf32>
}

// -----

func.func @matmul_c1(%a: tensor<4xf32>, %b: tensor<4x5xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{ranks of a and b are 1, 2, allowed from 2 (matmul_c1)}}
  %y = device.matmul %a, %b : (tensor<4xf32>, tensor<4x5xf32>) -> tensor<5xf32>
  return %y : tensor<5xf32>
}

// -----

func.func @matmul_c2(%a: tensor<3x4xf32>, %b: tensor<5x4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{a has K = 4, b has K = 5 (matmul_c2)}}
  %y = device.matmul %a, %b : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

func.func @matmul_c3(%a: tensor<2x3x4xf32>, %b: tensor<3x4x5xf32>) -> tensor<2x3x5xf32> {
  // expected-error @+1 {{batch dims of a and b, 2 and 3, do not broadcast (matmul_c3)}}
  %y = device.matmul %a, %b : (tensor<2x3x4xf32>, tensor<3x4x5xf32>) -> tensor<2x3x5xf32>
  return %y : tensor<2x3x5xf32>
}

// -----

func.func @matmul_c4(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %c: tensor<3xf32>) -> tensor<3x5xf32> {
  // expected-error @+1 {{bias has dims 3, expected 5 (matmul_c4)}}
  %y = device.matmul %a, %b bias %c : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<3xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

func.func @matmul_c5(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) -> tensor<5x3xf32> {
  // expected-error @+1 {{result has dims 5x3, expected 3x5 (matmul_c5)}}
  %y = device.matmul %a, %b : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<5x3xf32>
  return %y : tensor<5x3xf32>
}

// -----

func.func @matmul_c7(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>, %r: tensor<4x5xf32>) -> tensor<3x5xf32> {
  // expected-error @+1 {{extra operand has dims 4x5, which do not broadcast to 3x5 (matmul_c7)}}
  %y = device.matmul %a, %b extras(%r) epilogue {
  ^bb0(%acc: f32, %e: f32):
    device.yield %e : f32
  } : (tensor<3x4xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// -----

func.func @pool_c1(%x: tensor<1x2x8xf32>) -> tensor<1x2x4xf32> {
  // expected-error @+1 {{ranks of x and y are 3, 3, allowed both 4 or both 5 (pool_c1)}}
  %y = device.pool max %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<1x2x8xf32>) -> tensor<1x2x4xf32>
  return %y : tensor<1x2x4xf32>
}

// -----

func.func @pool_c2(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> {
  // expected-error @+1 {{kernel has 1 entries, expected 2 (pool_c2)}}
  %y = device.pool max %x {kernel = array<i64: 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

func.func @pool_c3(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x5x4xf32> {
  // expected-error @+1 {{the window at position 4 of dim 2 holds no element (pool_c3)}}
  %y = device.pool max %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x5x4xf32>
  return %y : tensor<1x2x5x4xf32>
}

// -----

func.func @pool_c4(%x: tensor<1x2x8x8xf32>) -> tensor<1x3x4x4xf32> {
  // expected-error @+1 {{result dims 1x3x4x4 do not fit operand dims 1x2x8x8 (pool_c4)}}
  %y = device.pool max %x {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x3x4x4xf32>
  return %y : tensor<1x3x4x4xf32>
}

// -----

func.func @pool_c5(%x: tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32> {
  // expected-error @+1 {{epilogue takes 2 arguments, expected 1 (pool_c5)}}
  %y = device.pool max %x epilogue {
  ^bb0(%a: f32, %b: f32):
    device.yield %a : f32
  } {kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xf32>) -> tensor<1x2x4x4xf32>
  return %y : tensor<1x2x4x4xf32>
}

// -----

func.func @map_c1(%x: tensor<3xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{operand has dims 3, which do not broadcast to 4 (map_c1)}}
  %y = device.map (%x) {
  ^bb0(%e: f32):
    device.yield %e : f32
  } : (tensor<3xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @map_c2(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{body yields 'f32', expected 'i32' (map_c2)}}
  %y = device.map (%x) {
  ^bb0(%e: f32):
    device.yield %e : f32
  } : (tensor<4xf32>) -> tensor<4xi32>
  return %y : tensor<4xi32>
}

// -----

func.func @map_c3(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{body holds 'builtin.unrealized_conversion_cast', which does not map elementwise (map_c3)}}
  %y = device.map (%x) {
  ^bb0(%e: f32):
    // expected-note @+1 {{the op}}
    %s = builtin.unrealized_conversion_cast %e : f32 to f32
    device.yield %s : f32
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @reduce_c1(%x: tensor<2x3xf32>) -> tensor<1x1xf32> {
  // expected-error @+1 {{axes are not sorted and unique: 0 after 1 (reduce_c1)}}
  %y = device.reduce sum %x {axes = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

// -----

func.func @reduce_c2(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{result has dims 2, expected 2x1 (reduce_c2)}}
  %y = device.reduce sum %x {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

func.func @reduce_c3(%x: tensor<2x3xf32>) -> tensor<2x1xf32> {
  // expected-error @+1 {{prologue argument 0 is 'i32', expected 'f32' (reduce_c3)}}
  %y = device.reduce sum %x prologue {
  ^bb0(%e: i32):
    device.yield %e : i32
  } {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  return %y : tensor<2x1xf32>
}

// -----

func.func @softmax_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{axis 2 is outside 0..1 (softmax_c1)}}
  %y = device.softmax %x {axis = 2} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @softmax_c2(%x: tensor<2x3xi32>) -> tensor<2x3xi32> {
  // expected-error @+1 {{operand elements are 'i32', allowed floats (softmax_c2)}}
  %y = device.softmax %x {axis = 1} : (tensor<2x3xi32>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// -----

func.func @norm_c1(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{axis -1 is outside 0..1 (norm_c1)}}
  %y = device.norm %x {axis = -1, epsilon = 1.0e-5} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @norm_c2(%x: tensor<2x3xf32>, %s: tensor<2xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{scale or bias has dims 2, expected 3 (norm_c2)}}
  %y = device.norm %x scale %s {axis = 1, epsilon = 1.0e-5} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @norm_c3(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{result has dims 3x2, expected 2x3 (norm_c3)}}
  %y = device.norm %x {axis = 1, epsilon = 1.0e-5} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}

// -----

func.func @norm_c4(%x: tensor<2x3xf32>) -> tensor<2x3xi8> {
  // expected-error @+1 {{epilogue takes 2 arguments, expected 1 (norm_c4)}}
  %y = device.norm %x epilogue {
  ^bb0(%a: f32, %b: f32):
    %q = arith.fptosi %a : f32 to i8
    device.yield %q : i8
  } {axis = 1, epsilon = 1.0e-5} : (tensor<2x3xf32>) -> tensor<2x3xi8>
  return %y : tensor<2x3xi8>
}

// -----

func.func @attention_c1(%q: tensor<2x3x4xf32>, %k: tensor<2x5x6xf32>) -> tensor<2x3x6xf32> {
  // expected-error @+1 {{E of q and k are 4 and 6, T of k and v are 5 and 5 (attention_c1)}}
  %y = device.attention %q, %k, %k {scale = 1.0} : (tensor<2x3x4xf32>, tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x3x6xf32>
  return %y : tensor<2x3x6xf32>
}

// -----

func.func @attention_c2(%q: tensor<2x3x4xf32>, %k: tensor<5x4xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{ranks of q, k and v are 3, 2, 2, allowed equal and from 2 (attention_c2)}}
  %y = device.attention %q, %k, %k {scale = 1.0} : (tensor<2x3x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @attention_c3(%q: tensor<2x3x4xf32>, %m: tensor<4x5xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{mask has dims 4x5, which do not broadcast to 2x3x3 (attention_c3)}}
  %y = device.attention %q, %q, %q, %m {scale = 1.0} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @attention_c4(%q: tensor<2x3x4xf32>) -> tensor<2x4x3xf32> {
  // expected-error @+1 {{result has dims 2x4x3, expected 2x3x4 (attention_c4)}}
  %y = device.attention %q, %q, %q {scale = 1.0} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
  return %y : tensor<2x4x3xf32>
}

// -----

func.func @attention_c9(%q: tensor<2x3x4xf32>, %k: tensor<2x8x4xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{has keys = n + 6, allowed at most the rows of k and v, without views (attention_c9)}}
  %y = device.attention %q, %k, %k {scale = 1.0, keys = #top.size<n[0:3] + 6>} : (tensor<2x3x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @attention_c5_count(%q: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{has 0 views, allowed 4 of tensors of f32, f16, bf16 or i8 whose dims are known (attention_c5)}}
  %y = device.attention %q, %q, %q {scale = 1.0, views = []} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

#whole = #device.piece<source = 0, sizes = [2, 3, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>
#beyond = #device.piece<source = 0, sizes = [2, 3, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 1, 0], src_steps = [1, 1, 1]>
func.func @attention_c5_within(%q: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{has view 1 = #device.piece<source = 0, sizes = [2, 3, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 1, 0], src_steps = [1, 1, 1]> of 'tensor<2x3x4xf32>', allowed a piece inside the tensor with contiguous rows (attention_c5)}}
  %y = device.attention %q, %q, %q {scale = 1.0, views = [#whole, #beyond, #whole, #whole]} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

#whole = #device.piece<source = 0, sizes = [2, 3, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 1, 2], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>
#columns = #device.piece<source = 0, sizes = [2, 3, 4], dst_offsets = [0, 0, 0], dst_steps = [1, 1, 1], src_dims = [0, 2, 1], src_offsets = [0, 0, 0], src_steps = [1, 1, 1]>
func.func @attention_c5_neighbours(%q: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{has view 3 = }}
  %y = device.attention %q, %q, %q {scale = 1.0, views = [#whole, #whole, #whole, #columns]} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @attention_c6(%q: tensor<2x3x4xf32>) -> tensor<2x3x4xi8> {
  // expected-error @+1 {{(attention_c6)}}
  %y = device.attention %q, %q, %q epilogue {
  ^bb0(%a: f32):
    device.yield %a : f32
  } {scale = 1.0} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xi8>
  return %y : tensor<2x3x4xi8>
}

// -----

func.func @attention_c7_floats(%q: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{has levels = 255 and operands of 'f32', 'f32', 'f32', allowed levels from 1 to 255 and a valueScale on i8 operands with an f32 mask and result, or neither attribute (attention_c7)}}
  %y = device.attention %q, %q, %q {scale = 1.0, levels = 255 : i64, valueScale = 0.5 : f64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @attention_c7_levels(%q: tensor<2x3x4xi8>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{has levels = 256 and operands of 'i8', 'i8', 'i8'}}
  %y = device.attention %q, %q, %q {scale = 1.0, levels = 256 : i64, valueScale = 0.5 : f64} : (tensor<2x3x4xi8>, tensor<2x3x4xi8>, tensor<2x3x4xi8>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @attention_c7_bytes(%q: tensor<2x3x4xi8>) -> tensor<2x3x4xf32> {
  // expected-error @+1 {{has levels = 0 and operands of 'i8', 'i8', 'i8'}}
  %y = device.attention %q, %q, %q {scale = 1.0} : (tensor<2x3x4xi8>, tensor<2x3x4xi8>, tensor<2x3x4xi8>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

func.func @attention_c8(%q: tensor<1x4xi8>, %k: tensor<65794x4xi8>) -> tensor<1x4xf32> {
  // expected-error @+1 {{sums 65794 keys and a depth of 4, allowed are 65793 and 131071: sums of more may exceed 32 bits (attention_c8)}}
  %y = device.attention %q, %k, %k {scale = 1.0, levels = 255 : i64, valueScale = 0.5 : f64} : (tensor<1x4xi8>, tensor<65794x4xi8>, tensor<65794x4xi8>) -> tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}

// -----

func.func @recurrent_c1(%x: tensor<5x1x3xf32>, %w: tensor<1x8x4xf32>, %r: tensor<1x8x2xf32>) -> tensor<5x1x1x2xf32> {
  // expected-error @+1 {{w has dims 1x8x4, expected 1x8x3 (recurrent_c1)}}
  %y, %h, %c = device.recurrent %x, %r w %w {kind = "lstm", direction = "forward", hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh", "Tanh"]}
    : (tensor<5x1x3xf32>, tensor<1x8x2xf32>, tensor<1x8x4xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// -----

func.func @recurrent_c1_sums(%x: tensor<5x1x3xf32>, %r: tensor<1x8x2xf32>) -> tensor<5x1x1x2xf32> {
  // expected-error @+1 {{x has dims 5x1x3, expected 5x1x8 (recurrent_c1)}}
  %y, %h, %c = device.recurrent %x, %r {kind = "lstm", direction = "forward", hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh", "Tanh"]}
    : (tensor<5x1x3xf32>, tensor<1x8x2xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// -----

func.func @recurrent_c2(%x: tensor<5x1x3xf32>, %w: tensor<1x8x3xf32>, %r: tensor<1x8x2xf32>) -> tensor<5x1x1x2xf32> {
  // expected-error @+1 {{kind 'lsmt' or direction 'forward' is not known}}
  %y, %h, %c = device.recurrent %x, %r w %w {kind = "lsmt", direction = "forward", hiddenSize = 2 : i64, activations = ["Sigmoid", "Tanh", "Tanh"]}
    : (tensor<5x1x3xf32>, tensor<1x8x2xf32>, tensor<1x8x3xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// -----

func.func @recurrent_c3(%x: tensor<5x1x3xf32>, %w: tensor<1x8x3xf32>, %r: tensor<1x8x2xf32>) -> tensor<5x1x1x2xf32> {
  // expected-error @+1 {{1 activations ["Tanh"], expected 3 of ONNX's names (recurrent_c3)}}
  %y, %h, %c = device.recurrent %x, %r w %w {kind = "lstm", direction = "forward", hiddenSize = 2 : i64, activations = ["Tanh"]}
    : (tensor<5x1x3xf32>, tensor<1x8x2xf32>, tensor<1x8x3xf32>) -> (tensor<5x1x1x2xf32>, tensor<1x1x2xf32>, tensor<1x1x2xf32>)
  return %y : tensor<5x1x1x2xf32>
}

// -----

func.func @matmul_c7_accumulator(%a: tensor<3x4xf16>, %b: tensor<4x5xf16>) -> tensor<3x5xf16> {
  // expected-error @+1 {{accumulates 'f32' but stores 'f16' without an epilogue that converts (matmul_c7)}}
  %y = device.matmul %a, %b : (tensor<3x4xf16>, tensor<4x5xf16>) -> tensor<3x5xf16>
  return %y : tensor<3x5xf16>
}

// -----

func.func @conv_c8(%x: tensor<1x2x8x8xi8>, %w: tensor<4x2x3x3xui8>) -> tensor<1x4x6x6xi32> {
  // expected-error @+1 {{multiplies 'i8' and 'ui8', allowed one type for all, f32, f16 or bf16 each with a bias of f32, or i8, ui8 or i16 times i8 with a bias of i32 (conv_c8)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xi8>, tensor<4x2x3x3xui8>) -> tensor<1x4x6x6xi32>
  return %y : tensor<1x4x6x6xi32>
}

// -----

func.func @conv_c8_bias(%x: tensor<1x2x8x8xui8>, %w: tensor<4x2x3x3xi8>, %b: tensor<4xf32>) -> tensor<1x4x6x6xi32> {
  // expected-error @+1 {{multiplies 'ui8' and 'i8' and adds a bias of 'f32', allowed one type for all}}
  %y = device.conv %x, %w bias %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x2x8x8xui8>, tensor<4x2x3x3xi8>, tensor<4xf32>) -> tensor<1x4x6x6xi32>
  return %y : tensor<1x4x6x6xi32>
}

// -----

// 65794 products of 255 and -128 exceed i32.
func.func @conv_c9(%x: tensor<1x65794x1x1xui8>, %w: tensor<4x65794x1x1xi8>) -> tensor<1x4x1x1xi32> {
  // expected-error @+1 {{sums 65794 products of 'ui8' and 'i8' in i32, allowed 65793 so that no sum can overflow (conv_c9)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x65794x1x1xui8>, tensor<4x65794x1x1xi8>) -> tensor<1x4x1x1xi32>
  return %y : tensor<1x4x1x1xi32>
}

// -----

func.func @conv_c9_i16(%x: tensor<1x512x1x1xi16>, %w: tensor<4x512x1x1xi8>) -> tensor<1x4x1x1xi32> {
  // expected-error @+1 {{sums 512 products of 'i16' and 'i8' in i32, allowed 511 so that no sum can overflow (conv_c9)}}
  %0 = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x512x1x1xi16>, tensor<4x512x1x1xi8>) -> tensor<1x4x1x1xi32>
  return %0 : tensor<1x4x1x1xi32>
}

// -----

func.func @conv_c9_bound(%x: tensor<1x512x1x1xi16>, %w: tensor<4x512x1x1xi8>) -> tensor<1x4x1x1xi32> {
  // expected-error @+1 {{sumBound is 2147483648, allowed 0 to 2147483647 (conv_c9)}}
  %0 = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, sumBound = 2147483648 : i64} : (tensor<1x512x1x1xi16>, tensor<4x512x1x1xi8>) -> tensor<1x4x1x1xi32>
  return %0 : tensor<1x4x1x1xi32>
}

// -----

func.func @conv_c10(%x: tensor<1x2x8x8xi8>, %w: tensor<4x2x3x3xi8>) -> tensor<1x4x8x8xi32> {
  // expected-error @+1 {{padValue is 200, allowed 0 or a value of an i8 or ui8 x, which is 'i8' here (conv_c10)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, padValue = 200 : i64} : (tensor<1x2x8x8xi8>, tensor<4x2x3x3xi8>) -> tensor<1x4x8x8xi32>
  return %y : tensor<1x4x8x8xi32>
}

// -----

func.func @conv_c10_float(%x: tensor<1x2x8x8xf32>, %w: tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32> {
  // expected-error @+1 {{padValue is 1, allowed 0 or a value of an i8 or ui8 x, which is 'f32' here (conv_c10)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, padValue = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<4x2x3x3xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

func.func @matmul_c8(%a: tensor<3x4xui8>, %b: tensor<4x5xui8>) -> tensor<3x5xi32> {
  // expected-error @+1 {{multiplies 'ui8' and 'ui8', allowed one type for all, f32, f16 or bf16 each with a bias of f32, or i8, ui8 or i16 times i8 with a bias of i32 (matmul_c8)}}
  %y = device.matmul %a, %b : (tensor<3x4xui8>, tensor<4x5xui8>) -> tensor<3x5xi32>
  return %y : tensor<3x5xi32>
}

// -----

func.func @matmul_c9(%a: tensor<1x131072xi8>, %b: tensor<131072x1xi8>) -> tensor<1x1xi32> {
  // expected-error @+1 {{sums 131072 products of 'i8' and 'i8' in i32, allowed 131071 so that no sum can overflow (matmul_c9)}}
  %y = device.matmul %a, %b : (tensor<1x131072xi8>, tensor<131072x1xi8>) -> tensor<1x1xi32>
  return %y : tensor<1x1xi32>
}

// -----

func.func @lut_c1(%x: tensor<3xi16>, %t: tensor<256xi8>) -> tensor<3xi8> {
  // expected-error @+1 {{elements are 'i16', allowed i8 and ui8 (lut_c1)}}
  %y = device.lut %x, %t : (tensor<3xi16>, tensor<256xi8>) -> tensor<3xi8>
  return %y : tensor<3xi8>
}

// -----

func.func @lut_c2(%x: tensor<3xi8>, %t: tensor<256xui8>) -> tensor<3xi8> {
  // expected-error @+1 {{table has elements 'ui8', expected the result's 'i8' (lut_c2)}}
  %y = device.lut %x, %t : (tensor<3xi8>, tensor<256xui8>) -> tensor<3xi8>
  return %y : tensor<3xi8>
}

// -----

func.func @lut_c2_size(%x: tensor<3xi8>, %t: tensor<128xi8>) -> tensor<3xi8> {
  // expected-error @+1 {{table has dims 128, expected 256 (lut_c2)}}
  %y = device.lut %x, %t : (tensor<3xi8>, tensor<128xi8>) -> tensor<3xi8>
  return %y : tensor<3xi8>
}

// -----

func.func @lut_c2_channels(%x: tensor<1x3x2x2xi8>, %t: tensor<2x256xi8>) -> tensor<1x3x2x2xi8> {
  // expected-error @+1 {{table has dims 2x256, expected 3x256 (lut_c2)}}
  %y = device.lut %x, %t : (tensor<1x3x2x2xi8>, tensor<2x256xi8>) -> tensor<1x3x2x2xi8>
  return %y : tensor<1x3x2x2xi8>
}

// -----

func.func @lut_c2_rank(%x: tensor<1x3x2xi8>, %t: tensor<3x256xi8>) -> tensor<1x3x2xi8> {
  // expected-error @+1 {{table has dims 3x256, expected 256 (lut_c2)}}
  %y = device.lut %x, %t : (tensor<1x3x2xi8>, tensor<3x256xi8>) -> tensor<1x3x2xi8>
  return %y : tensor<1x3x2xi8>
}

// -----

func.func @lut_c3(%x: tensor<3xi8>, %t: tensor<256xi8>) -> tensor<4xi8> {
  // expected-error @+1 {{result has dims 4, expected 3 (lut_c3)}}
  %y = device.lut %x, %t : (tensor<3xi8>, tensor<256xi8>) -> tensor<4xi8>
  return %y : tensor<4xi8>
}

// -----

func.func @scales_dims(%x: tensor<2x40xf32>, %w: tensor<40x3xi8>, %s: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{scales has dims 2x3, expected 3x3 (matmul_c10)}}
  %y = device.matmul %x, %w scales %s {weightGroup = 16 : i64} : (tensor<2x40xf32>, tensor<40x3xi8>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// -----

func.func @scales_of_bytes(%x: tensor<2x16xi8>, %w: tensor<16x3xi8>, %s: tensor<1x3xf32>) -> tensor<2x3xi32> {
  // expected-error @+1 {{scales of 'f32' with weightGroup 16, allowed f32 with a positive weightGroup and a float first operand (matmul_c10)}}
  %y = device.matmul %x, %w scales %s {weightGroup = 16 : i64} : (tensor<2x16xi8>, tensor<16x3xi8>, tensor<1x3xf32>) -> tensor<2x3xi32>
  return %y : tensor<2x3xi32>
}

// -----

func.func @group_without_scales(%x: tensor<1x16x4x4xf32>, %w: tensor<3x16x1x1xf32>) -> tensor<1x3x4x4xf32> {
  // expected-error @+1 {{weightGroup is 16 without scales (conv_c11)}}
  %y = device.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, weightGroup = 16 : i64} : (tensor<1x16x4x4xf32>, tensor<3x16x1x1xf32>) -> tensor<1x3x4x4xf32>
  return %y : tensor<1x3x4x4xf32>
}

// RUN: tessera-opt %s --x86-emit-kernels | FileCheck %s

// A layout change goes through registers: 16 rows, four rounds of interleaving, no gather.
// CHECK-LABEL: func.func @copy
// CHECK-COUNT-16: llvm.load {{.*}} : !llvm.ptr -> vector<16xi32>
// CHECK-COUNT-64: vector.shuffle
// CHECK-NOT: gather
func.func @to_blocks(%x: tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32, #device.blocked<16>> {
  %y = device.copy %x {pieces = [#device.piece<source = 0, sizes = [1, 32, 8, 8], dst_offsets = [0, 0, 0, 0], dst_steps = [1, 1, 1, 1], src_dims = [0, 1, 2, 3], src_offsets = [0, 0, 0, 0], src_steps = [1, 1, 1, 1]>]}
    : (tensor<1x32x8x8xf32>) -> tensor<1x32x8x8xf32, #device.blocked<16>>
  return %y : tensor<1x32x8x8xf32, #device.blocked<16>>
}

// RUN: tessera-opt %s --x86-emit-kernels="chip=x86-avx512" | FileCheck %s

// 20 channels are one whole block and one of four lanes, whose other lanes become zero although f(0) is not.
// CHECK-LABEL: func.func @map
// CHECK: llvm.load {{.*}} : !llvm.ptr -> vector<32xf32>
// CHECK: llvm.store
// CHECK: llvm.intr.masked.load {{.*}}vector<16xf32>
// CHECK: arith.select {{.*}} : vector<16xi1>, vector<16xf32>
// CHECK: llvm.store {{.*}} : vector<16xf32>
func.func @add_one(%x: tensor<1x20x4x4xf32, #device.blocked<16>>) -> tensor<1x20x4x4xf32, #device.blocked<16>> {
  %y = device.map (%x) {
  ^bb0(%e: f32):
    %one = arith.constant 1.0 : f32
    %m = arith.addf %e, %one : f32
    device.yield %m : f32
  } : (tensor<1x20x4x4xf32, #device.blocked<16>>) -> tensor<1x20x4x4xf32, #device.blocked<16>>
  return %y : tensor<1x20x4x4xf32, #device.blocked<16>>
}

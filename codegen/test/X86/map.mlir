// RUN: tessera-opt %s --x86-emit-kernels="chip=x86-avx512" | FileCheck %s --check-prefixes=CHECK,AVX512
// RUN: tessera-opt %s --x86-emit-kernels="chip=x86-v2" | FileCheck %s --check-prefixes=CHECK,V2
// RUN: tessera-opt %s --x86-emit-kernels="chip=x86-avx2 lower=true" | FileCheck %s --check-prefix=LLVM

// The kernel has the ABI of kernel_abi.h, handles two registers of f32 at a time, and needs no mask without a
// remainder.
// CHECK-LABEL: func.func @map(%{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr)
// AVX512: llvm.load {{.*}} : !llvm.ptr -> vector<32xf32>
// V2: llvm.load {{.*}} : !llvm.ptr -> vector<8xf32>
// CHECK-NOT: masked
// CHECK: llvm.store
// LLVM-LABEL: llvm.func @map
// LLVM-NOT: func.call
func.func @relu(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %y = device.map (%x) {
  ^bb0(%e: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %e, %zero : f32
    device.yield %m : f32
  } : (tensor<2x64xf32>) -> tensor<2x64xf32>
  return %y : tensor<2x64xf32>
}

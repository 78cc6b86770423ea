// RUN: not tessera-opt %s --x86-emit-kernels="chip=x86-sse9" 2>&1 | FileCheck %s

// CHECK: unknown chip 'x86-sse9': allowed are x86, x86-v2, x86-avx2, x86-avx512
module {
}

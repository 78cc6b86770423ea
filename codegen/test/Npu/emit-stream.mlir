// SPDX-License-Identifier: Apache-2.0
// RUN: tessera-opt %s --device-assign-addresses --npu-fuse-copies --npu-schedule --npu-emit-stream -o /dev/null | FileCheck %s
// RUN: not tessera-opt %s --device-assign-addresses --npu-emit-stream 2>&1 | FileCheck %s --check-prefix=BARE

// The first table passes its result on in local memory. Meanwhile the second one is loaded.
// CHECK: // main: workspace 0, constants 256
// CHECK-NEXT: copy id=1 {{.*}}layer=0 y=local:{{.*}} x=io0:
// CHECK-NEXT: copy id=2 {{.*}}layer=0 y=local:{{.*}} x=constants:
// CHECK-NEXT: copy id=3 {{.*}}layer=1 y=local:{{.*}} x=constants:
// CHECK-NEXT: lut id=1
// CHECK: lut id=2 {{.*}}layer=1 y=local:
// CHECK-NEXT: copy {{.*}}layer=1 y=io1:
// BARE: error: does not have a schedule (npu.effort): run npu-schedule first
func.func @main(%x: tensor<1x16x32x32xi8>) -> tensor<1x16x32x32xi8> {
  %t = top.constant dense<7> : tensor<256xi8> : tensor<256xi8>
  %a = device.lut %x, %t : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  %y = device.lut %a, %t : (tensor<1x16x32x32xi8>, tensor<256xi8>) -> tensor<1x16x32x32xi8>
  return %y : tensor<1x16x32x32xi8>
}

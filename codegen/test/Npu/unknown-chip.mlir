// SPDX-License-Identifier: Apache-2.0
// RUN: not tessera-opt %s --npu-fuse-copies="chip=npu-huge" 2>&1 | FileCheck %s

// CHECK: unknown chip 'npu-huge': neither one of npu-edge, npu-base, npu-pro nor a description that can be read
module {
}

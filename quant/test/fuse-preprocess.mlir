// RUN: tessera-opt %s --split-input-file --top-fuse-preprocess=format=bgr_packed 2>&1 | FileCheck %s --check-prefix=BGR
// RUN: tessera-opt %s --split-input-file --top-fuse-preprocess=format=planar 2>&1 | FileCheck %s --check-prefix=PLANAR
// RUN: not tessera-opt %s --split-input-file --top-fuse-preprocess=format=rgba 2>&1 | FileCheck %s --check-prefix=FORMAT
// SPDX-License-Identifier: Apache-2.0
// FORMAT: error: 'rgba' is not a pixel format; allowed: packed, planar, rgb_packed, rgb_planar, bgr_packed, bgr_planar

// The channels are reversed, transposed to the model's layout, and scaled in the order in which the tools do it.
// BGR-LABEL: func.func @main
// BGR-SAME: %[[P:[^:]*]]: tensor<1x4x5x3xui8> {top.name = "x", top.preprocess = "{\22channel_format\22:\22nhwc\22,\22mean\22:[0],\22pixel_format\22:\22bgr\22,\22resize_dims\22:[4,5],\22scale\22:[1]}"}
// BGR: %[[R:.*]] = top.slice %[[P]] {sizes = array<i64: 1, 4, 5, 3>, starts = array<i64: 0, 0, 0, 2>, steps = array<i64: 1, 1, 1, -1>}
// BGR: %[[T:.*]] = top.transpose %[[R]] {perm = array<i64: 0, 3, 1, 2>}
// BGR: %[[C:.*]] = top.cast %[[T]]
// BGR: %[[M:.*]] = top.constant dense<{{.*}}1.000000e+00{{.*}}2.000000e+00{{.*}}3.000000e+00{{.*}}> : tensor<1x3x1x1xf32>
// BGR: %[[S:.*]] = top.sub %[[C]], %[[M]]
// BGR: %[[K:.*]] = top.constant dense<5.000000e-01> : tensor<1x1x1x1xf32>
// BGR: %[[X:.*]] = top.mul %[[S]], %[[K]]
// BGR: top.relu %[[X]]
// PLANAR-LABEL: func.func @main
// PLANAR-SAME: tensor<1x3x4x5xui8>
// PLANAR-NOT: top.slice
// PLANAR-NOT: top.transpose
// PLANAR: top.cast
func.func @main(%x: tensor<1x3x4x5xf32> {top.name = "x", top.preprocess = "{\"resize_dims\":[4,5],\"mean\":[1.0,2.0,3.0],\"scale\":[0.5],\"pixel_format\":\"rgb\",\"channel_format\":\"nchw\"}"}) -> (tensor<1x3x4x5xf32> {top.name = "y"}) {
  %y = top.relu %x {top.outputs = ["y"]} : (tensor<1x3x4x5xf32>) -> tensor<1x3x4x5xf32>
  return %y : tensor<1x3x4x5xf32>
}

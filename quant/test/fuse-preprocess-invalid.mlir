// RUN: tessera-opt %s --split-input-file --verify-diagnostics --top-fuse-preprocess=format=rgb_packed
// SPDX-License-Identifier: Apache-2.0

// expected-error@below {{the model has no pre-processing to fuse; pass it to model_transform (--mean, --scale, --pixel_format)}}
module {
  func.func @main(%x: tensor<1x3x4x5xf32> {top.name = "x"}) -> (tensor<1x3x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x3x4x5xf32>
  }
}

// -----

// expected-error@below {{input 'x' cannot be given as pixels: expected a static f32 tensor of rank 4 with 3 channel(s), as for rgb images}}
module {
  func.func @main(%x: tensor<1x4x4x5xf32> {top.name = "x", top.preprocess = "{\"mean\":[1.0],\"scale\":[0.5],\"pixel_format\":\"rgb\",\"channel_format\":\"nchw\"}"}) -> (tensor<1x4x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x4x4x5xf32>
  }
}

// -----

// expected-error@below {{input 'x' takes grey images, which do not have a channel order; allowed: packed, planar}}
module {
  func.func @main(%x: tensor<1x1x4x5xf32> {top.name = "x", top.preprocess = "{\"mean\":[1.0],\"scale\":[0.5],\"pixel_format\":\"gray\",\"channel_format\":\"nchw\"}"}) -> (tensor<1x1x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x1x4x5xf32>
  }
}

// -----

// expected-error@below {{input 'x' has a malformed pre-processing record}}
module {
  func.func @main(%x: tensor<1x1x4x5xf32> {top.name = "x", top.preprocess = "{\"mean\":[1.0}"}) -> (tensor<1x1x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x1x4x5xf32>
  }
}

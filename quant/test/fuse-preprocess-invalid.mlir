// RUN: tessera-opt %s --split-input-file --verify-diagnostics --top-fuse-preprocess=format=rgb_packed
// SPDX-License-Identifier: Apache-2.0

// expected-error@below {{the model has no pre-processing that could be fused: give it to model_transform (--mean, --scale, --pixel_format)}}
module {
  func.func @main(%x: tensor<1x3x4x5xf32> {top.name = "x"}) -> (tensor<1x3x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x3x4x5xf32>
  }
}

// -----

// expected-error@below {{input 'x' cannot be given as pixels: it is no f32 tensor of four dims with 3 channel(s), as rgb pictures are}}
module {
  func.func @main(%x: tensor<1x4x4x5xf32> {top.name = "x", top.preprocess = "{\"mean\":[1.0],\"scale\":[0.5],\"pixel_format\":\"rgb\",\"channel_format\":\"nchw\"}"}) -> (tensor<1x4x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x4x4x5xf32>
  }
}

// -----

// expected-error@below {{input 'x' takes grey pictures, which have no order of channels: packed or planar}}
module {
  func.func @main(%x: tensor<1x1x4x5xf32> {top.name = "x", top.preprocess = "{\"mean\":[1.0],\"scale\":[0.5],\"pixel_format\":\"gray\",\"channel_format\":\"nchw\"}"}) -> (tensor<1x1x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x1x4x5xf32>
  }
}

// -----

// expected-error@below {{input 'x' has a damaged record of pre-processing}}
module {
  func.func @main(%x: tensor<1x1x4x5xf32> {top.name = "x", top.preprocess = "{\"mean\":[1.0}"}) -> (tensor<1x1x4x5xf32> {top.name = "y"}) {
    return %x : tensor<1x1x4x5xf32>
  }
}

//===- Passes.td - Layouts, tiles and packed weights of cuda ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_TRANSFORMS_PASSES
#define CUDA_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def FuseAttentionPass : Pass<"cuda-fuse-attention", "::mlir::func::FuncOp"> {
  let summary = "Let attention read and write heads where projections have them, in 16-bit floats where the model asks for these";
  let description = [{
    Before: row-major tensors, epilogues are fused. After: `device.attention` has `views` instead of copies that permute or slice q, k
    and v for it or permute its result, also behind a map of the result; such a map runs on the permuted tensor. A map that only rounds
    the result to f16 or bf16 is part of the op, and where tensor cores can then compute it, q, k and v have that type too:
    what makes them rounds them.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numViews", "views", "Copies that attention does without">,
                    Statistic<"numNarrow", "narrow", "Attentions made of 16-bit floats">];
}

def AssignLayoutsPass : Pass<"cuda-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "Choose channel-blocked or row-major per tensor";
  let description = [{
    Before: all tensors row-major. After: convolutions that tiles can compute write channel blocks of 32 (NC/32HW32), as do depthwise
    ones of such tensors; pools, maps, resizes, spatial reductions and channel concatenations between them are blocked too; everything
    else, the function's arguments and its results are row-major. Where a consumer wants the other layout there is one identity
    `device.copy` (or a `device.reshape` where the bytes agree) per tensor. A convolution over few channels reads its row-major
    input as it is.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect"];
  let statistics = [Statistic<"numCopies", "layout-copies", "Layout changes inserted">,
                    Statistic<"numBlocked", "blocked-tensors", "Results made channel-blocked">];
}

def ChooseTilesPass : Pass<"cuda-choose-tiles", "::mlir::func::FuncOp"> {
  let summary = "Choose the tiles by which products are computed";
  let description = [{
    Before: layouts are assigned, weights lie in logical order. After: convolutions and matrix products that tiles can compute carry
    `cuda.tile`, the one of a list of shapes that a model of the chip finds fastest: products, copies to shared memory, passes over it and the
    latency of a step, on as many multiprocessors as there are blocks. Where they are few, several share a tile along K (`split_k`), if the
    function gains more by that than the launch that clears their counters takes. Attention that fits them carries `cuda.attention`, of the most
    rows of q a block with which all multiprocessors have work. Products of few rows by integer weights carry `cuda.gemv`.
  }];
  let options = [
    Option<"multiprocessors", "multiprocessors", "int64_t", "108", "Of the chip">,
    Option<"int8Rate", "int8-rate", "int64_t", "2048", "Products of bytes that a multiprocessor computes in a cycle">,
    Option<"f16Rate", "f16-rate", "int64_t", "1024", "The same of f16 and bf16">,
    Option<"tf32Rate", "tf32-rate", "int64_t", "512", "The same of tf32">,
    Option<"f32Rate", "f32-rate", "int64_t", "64", "The same of f32, by cores">,
    Option<"launchCycles", "launch-cycles", "int64_t", "1410", "Cycles before a launch begins">,
    Option<"candidates", "candidates", "int64_t", "0", "Of so many tiles, the fastest by the model, ops tell (`cuda.candidates`)">,
    Option<"tf32", "tf32", "bool", "false", "Factors of f32 are rounded to tf32">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect"];
  let statistics = [Statistic<"numTiles", "tiles", "Products by tiles">];
}

def FollowPlanPass : Pass<"cuda-follow-plan", "::mlir::func::FuncOp"> {
  let summary = "Give products the tiles of a plan";
  let description = [{
    Before: products carry `cuda.tile`, weights lie in logical order. After: each carries `cuda.product` as well, its content address: op,
    attributes, types and whether its factors are tf32. Those that the plan has by it carry the plan's tile. A tile that does not suit
    its op, and one that changes what is computed (tf32), is an error.
  }];
  let options = [Option<"plan", "plan", "std::string", "\"\"", "File of a plan (TilePlan.h); none: no tile changes">];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect"];
  let statistics = [Statistic<"numPlanned", "planned", "Products whose tile the plan says">];
}

def PackWeightsPass : Pass<"cuda-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Put constant weights into the order their kernels read";
  let description = [{
    Before: products by tiles carry these, weights lie in logical order. After: constant weights of these lie
    as `packing = #cuda.packing<...>` of their op says; the logical ones are dropped from the module.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numPacked", "packed-weights", "Weights packed">];
}

#endif // CUDA_TRANSFORMS_PASSES

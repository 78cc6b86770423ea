//===- Passes.td - Layouts, tiles and packed weights of cuda ---*- tablegen -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef CUDA_TRANSFORMS_PASSES
#define CUDA_TRANSFORMS_PASSES

include "mlir/Pass/PassBase.td"

def FuseAttentionPass : Pass<"cuda-fuse-attention", "::mlir::func::FuncOp"> {
  let summary = "Fuse head permutations into attention, and use 16-bit floats where the model rounds to them";
  let description = [{
    Before: row-major tensors, epilogues are fused. After: `device.attention` has `views` that replace copies which
    permute or slice q, k and v or permute the result, also after a map of the result; such a map then runs on the
    permuted tensor. A map that only rounds the result to f16 or bf16 becomes part of the op. If tensor cores can then
    compute the op, q, k and v get that type too, rounded by the ops that compute them.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numViews", "views", "Copies replaced by views">,
                    Statistic<"numNarrow", "narrow", "Attentions converted to 16-bit floats">];
}

def AssignLayoutsPass : Pass<"cuda-assign-layouts", "::mlir::func::FuncOp"> {
  let summary = "Choose a channel-blocked or row-major layout per tensor";
  let description = [{
    Before: all tensors row-major. After: convolutions that tiles can compute write channel blocks of 32 (NC/32HW32),
    and so do depthwise convolutions of such tensors. Pools, maps, resizes, spatial reductions and channel
    concatenations between them are blocked too; everything else, including the function's arguments and results, is
    row-major. If a consumer requires the other layout, there is one identity `device.copy` per tensor, or a
    `device.reshape` if the bytes are the same. A convolution over few channels reads its row-major input.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect"];
  let statistics = [Statistic<"numCopies", "layout-copies", "Layout changes inserted">,
                    Statistic<"numBlocked", "blocked-tensors", "Results that became channel-blocked">];
}

def ChooseTilesPass : Pass<"cuda-choose-tiles", "::mlir::func::FuncOp"> {
  let summary = "Choose the tiles of convolutions, matmuls and attention";
  let description = [{
    Before: layouts are assigned, weights are in logical order. After: convolutions and matmuls that tiles can compute
    carry `cuda.tile`, the fastest one of a list of shapes by a model of the chip: multiplications, copies to shared
    memory, passes over it and the latency of a step, on as many multiprocessors as there are blocks. If there are few
    blocks, several share a tile along K (`split_k`), provided that the function gains more by that than the launch that
    clears their counters takes. Attention that tensor cores support carries `cuda.attention`, with the most rows of q
    per block that still give all multiprocessors work. Matmuls of few rows by integer weights carry `cuda.gemv`.
  }];
  let options = [
    Option<"multiprocessors", "multiprocessors", "int64_t", "108", "Number of multiprocessors of the chip">,
    Option<"int8Rate", "int8-rate", "int64_t", "2048", "Multiply-adds of bytes per multiprocessor and cycle">,
    Option<"f16Rate", "f16-rate", "int64_t", "1024", "Multiply-adds of f16 or bf16 per multiprocessor and cycle">,
    Option<"tf32Rate", "tf32-rate", "int64_t", "512", "Multiply-adds of tf32 per multiprocessor and cycle">,
    Option<"f32Rate", "f32-rate", "int64_t", "64", "f32 multiply-adds of the cores per multiprocessor and cycle">,
    Option<"launchCycles", "launch-cycles", "int64_t", "1410", "Cycles before a launch begins">,
    Option<"candidates", "candidates", "int64_t", "0", "Number of fastest tiles to list per op (`cuda.candidates`)">,
    Option<"tf32", "tf32", "bool", "false", "Round f32 operands to tf32">,
  ];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect"];
  let statistics = [Statistic<"numTiles", "tiles", "Ops computed by tiles">];
}

def FollowPlanPass : Pass<"cuda-follow-plan", "::mlir::func::FuncOp"> {
  let summary = "Apply the tiles of a plan";
  let description = [{
    Before: ops carry `cuda.tile`, weights are in logical order. After: each of them carries `cuda.product` as well, a
    hash of its op, attributes, types and whether its operands are tf32. Ops whose hash is in the plan carry the plan's
    tile. It is an error if that tile does not suit the op or would change its results (tf32).
  }];
  let options = [Option<"plan", "plan", "std::string", "\"\"", "Plan file (TilePlan.h); empty: no tile changes">];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect"];
  let statistics = [Statistic<"numPlanned", "planned", "Ops whose tile comes from the plan">];
}

def PackWeightsPass : Pass<"cuda-pack-weights", "::mlir::func::FuncOp"> {
  let summary = "Pack constant weights in the order that their kernels read";
  let description = [{
    Before: ops carry their tiles, weights are in logical order. After: their constant weights are packed in the order
    that `packing = #cuda.packing<...>` of the op states; the logical weights are dropped from the module.
  }];
  let dependentDialects = ["::tessera::device::DeviceDialect", "::tessera::cuda::CudaDialect", "::tessera::top::TopDialect"];
  let statistics = [Statistic<"numPacked", "packed-weights", "Weights packed">];
}

#endif // CUDA_TRANSFORMS_PASSES

//===- Pipelines.cpp - The order of the Top passes ------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "mlir/Pass/PassManager.h"
#include "top_dialect/Transforms/Passes.h"

namespace tessera::top {
namespace {
#define GEN_PASS_REGISTRATION
#include "top_dialect/Transforms/Passes.h.inc"
} // namespace

void buildTopPipeline(mlir::OpPassManager &pm, const TopPipelineOptions &options) {
  // Exporters write the same shape arithmetic again for every layer: merge it, then evaluate it
  // once. From here on shapes are attributes, and what is no computation is gone.
  pm.addPass(createCsePass());
  pm.addPass(createFoldConstantsPass());
  // The recoveries compare values, so equal ones must be one value. They come before anything
  // moves or folds a constant that a formula needs.
  pm.addPass(createCsePass());
  if (options.recover) {
    pm.addPass(createRecoverActivationsPass());
    pm.addPass(createRecoverSoftmaxPass());
    pm.addPass(createRecoverNormsPass());
    pm.addPass(createRecoverRopePass());
    // After rope, whose result is the query; before transposes of keys become flags of a matmul.
    pm.addPass(createRecoverAttentionPass());
  }
  // Graphs that were exported from NHWC have transposes between a convolution and its batch_norm,
  // bias and activation: out of the way before those are folded.
  if (options.sinkTransposes) {
    pm.addPass(createSinkTransposesPass());
  }
  if (options.foldWeights) {
    pm.addPass(createFoldBatchNormPass());
    pm.addPass(createFoldPadPass());
  }
  // After batch_norm, which needs an op without activation; bias first, as the activation follows
  // it.
  if (options.fuse) {
    pm.addPass(createFuseBiasPass());
    pm.addPass(createFuseActivationPass());
  }
  // What the passes above made equal or superfluous.
  pm.addPass(createFoldConstantsPass());
  pm.addPass(createCsePass());
  pm.addPass(createDcePass());
}

void registerTopTransforms() {
  registerTopPasses();
  mlir::PassPipelineRegistration<TopPipelineOptions>("top-pipeline", "Optimise a freshly imported Top module",
                                                     buildTopPipeline);
}

} // namespace tessera::top

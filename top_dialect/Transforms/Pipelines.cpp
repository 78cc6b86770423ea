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
  // Exporters repeat the same shape arithmetic for every layer: merge it, then evaluate it once. After that, shapes are
  // attributes, and ops that do not compute anything are gone.
  pm.addPass(createCsePass());
  pm.addPass(createFoldConstantsPass());
  // The recoveries compare values, so equal values must be one value. They run before any pass moves or folds a
  // constant that a formula needs.
  pm.addPass(createCsePass());
  if (options.recover) {
    pm.addPass(createRecoverActivationsPass());
    pm.addPass(createRecoverSoftmaxPass());
    pm.addPass(createRecoverNormsPass());
    pm.addPass(createRecoverRopePass());
    // Runs after rope, whose result is the query, and before transposes of keys become flags of a matmul.
    pm.addPass(createRecoverAttentionPass());
  }
  // Graphs exported from NHWC have transposes between a convolution and its batch_norm, bias and activation. Move them
  // away before those are folded.
  if (options.sinkTransposes) {
    pm.addPass(createSinkTransposesPass());
  }
  if (options.foldWeights) {
    pm.addPass(createFoldBatchNormPass());
    pm.addPass(createFoldPadPass());
  }
  // Runs after the batch_norm folding, which needs an op without activation. Bias comes first, because the activation
  // follows it.
  if (options.fuse) {
    pm.addPass(createFuseBiasPass());
    pm.addPass(createFuseActivationPass());
  }
  // Clean up after the passes above.
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

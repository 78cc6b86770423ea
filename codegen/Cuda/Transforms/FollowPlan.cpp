//===- FollowPlan.cpp - Applies the tiles of a plan -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/TilePlan.h"
#include "codegen/Cuda/Transforms/Passes.h"
#include "codegen/Kernels/KernelInterface.h"

#include "mlir/AsmParser/AsmParser.h"

namespace tessera::cuda {
#define GEN_PASS_DEF_FOLLOWPLANPASS
#include "codegen/Cuda/Transforms/Passes.h.inc"
} // namespace tessera::cuda

using namespace mlir;

namespace tessera::cuda {
namespace {

class FollowPlan : public impl::FollowPlanPassBase<FollowPlan> {
public:
  using FollowPlanPassBase::FollowPlanPassBase;

  void runOnOperation() override {
    TilePlan tiles;
    if (!plan.empty()) {
      llvm::Expected<TilePlan> read = readTilePlan(plan);
      if (!read) {
        getOperation().emitError() << llvm::toString(read.takeError());
        return signalPassFailure();
      }
      tiles = std::move(*read);
    }
    WalkResult result = getOperation().walk([&](Operation *op) {
      TileAttr tile = tileOf(op);
      if (!tile) {
        return WalkResult::advance();
      }
      std::string product = kernels::kernelKey(op, tile.getTf32() ? "product tf32" : "product");
      op->setAttr(CudaDialect::kProductAttr, StringAttr::get(&getContext(), product));
      auto planned = tiles.find(product);
      return WalkResult(planned == tiles.end() ? success() : follow(op, tile, planned->second));
    });
    if (result.wasInterrupted()) {
      signalPassFailure();
    }
  }

private:
  LogicalResult follow(Operation *op, TileAttr tile, StringRef text) {
    // The parser reports errors at a location inside the text; report them at the op instead.
    std::string message;
    Attribute parsed;
    {
      ScopedDiagnosticHandler handler(&getContext(), [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
      parsed = parseAttribute(text, &getContext());
    }
    auto wanted = dyn_cast_or_null<TileAttr>(parsed);
    if (!wanted) {
      return op->emitError("the plan's tile '")
             << text << "' is not a #cuda.tile" << (message.empty() ? "" : ": ") << message;
    }
    if (wanted.getTf32() != tile.getTf32()) {
      return op->emitError("the plan's tile ")
             << wanted << " differs in tf32 from " << tile << " and would change the results";
    }
    op->setAttr(CudaDialect::kTileAttr, wanted);
    ++numPlanned;
    return success();
  }
};

} // namespace
} // namespace tessera::cuda

//===- AssignLayouts.cpp - Assigns channel-blocked or row-major layouts ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Contraction/TiledContraction.h"
#include "codegen/Cuda/Kernels/Depthwise.h"
#include "codegen/Cuda/Transforms/Passes.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/LayoutAssignment.h"

namespace tessera::cuda {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "codegen/Cuda/Transforms/Passes.h.inc"
} // namespace tessera::cuda

using namespace mlir;

namespace tessera::cuda {
namespace {

using device::LayoutPolicy;

/// Returns true for the types that convolutions on tensor cores write, and other kernels read, in channel blocks.
bool canBlockElement(Type type) {
  return type.isF32() || device::isNarrowFloat(type) || type.isInteger(8) || type.isInteger(16);
}

std::optional<LayoutPolicy::ConvInput> chooseConv(device::ConvOp conv) {
  auto y = cast<RankedTensorType>(conv.getY().getType());
  bool isRead = device::isBlocked(conv.getX().getType());
  if (!canBlockElement(y.getElementType())) {
    return std::nullopt;
  }
  if (fitsTile(conv)) {
    // With few channels, blocks would be mostly padding.
    constexpr int64_t kFewChannels = 8;
    bool few = conv.getWeightShape()[1] * int64_t(conv.getGroups()) <= kFewChannels;
    return few ? LayoutPolicy::ConvInput::RowMajor : LayoutPolicy::ConvInput::Blocked;
  }
  return isRead && isDepthwise(conv) ? std::optional(LayoutPolicy::ConvInput::Blocked) : std::nullopt;
}

struct AssignLayouts : impl::AssignLayoutsPassBase<AssignLayouts> {
  using AssignLayoutsPassBase::AssignLayoutsPassBase;

  void runOnOperation() override {
    LayoutPolicy policy{kBlockChannels, canBlockElement, chooseConv};
    SmallVector<device::ConvOp> convs;
    getOperation().walk([&](device::ConvOp conv) {
      if (device::canBlock(conv.getX(), policy) && (fitsTile(conv) || isDepthwise(conv))) {
        convs.push_back(conv);
      }
    });
    llvm::for_each(convs, device::splitEpilogue);
    device::LayoutCounts counts = device::assignLayouts(getOperation(), policy);
    numCopies += counts.copies, numBlocked += counts.blocked;
  }
};

} // namespace
} // namespace tessera::cuda

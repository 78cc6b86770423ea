//===- AssignLayouts.cpp - Assigns channel-blocked or row-major layouts ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Transforms/ConvAlgorithm.h"
#include "codegen/X86/Transforms/Passes.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"
#include "device_dialect/Transforms/LayoutAssignment.h"
#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/TensorTypes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::x86 {
#define GEN_PASS_DEF_ASSIGNLAYOUTSPASS
#include "codegen/X86/Transforms/Passes.h.inc"
} // namespace tessera::x86

using namespace mlir;

namespace tessera::x86 {
namespace {

class AssignLayouts : public impl::AssignLayoutsPassBase<AssignLayouts> {
public:
  using AssignLayoutsPassBase::AssignLayoutsPassBase;

  void runOnOperation() override {
    auto canBlock = [](Type element) {
      return element.isF32() || device::isNarrowFloat(element) || isIntegerOperand(element);
    };
    auto chooseConv = [&](device::ConvOp conv) { return this->chooseConv(conv); };
    device::LayoutPolicy policy{kBlock, canBlock, chooseConv};
    SmallVector<device::ConvOp> convs;
    getOperation().walk([&](device::ConvOp conv) {
      if (device::canBlock(conv.getX(), policy)) {
        convs.push_back(conv);
      }
    });
    for (device::ConvOp conv : convs) {
      mergeGroups(conv);
      device::splitEpilogue(conv);
    }
    device::LayoutCounts counts = device::assignLayouts(getOperation(), policy);
    numCopies += counts.copies, numBlocked += counts.blocked;
  }

private:
  std::optional<device::LayoutPolicy::ConvInput> chooseConv(device::ConvOp conv) {
    std::optional<ConvChoice> fast =
        chooseConvAlgorithm(conv, {.vectorBytes = vectorBytes, .bf16Dots = bf16Dots, .amx = amx}, winograd);
    bool constants = top::isConstant(conv.getW()) && (!isByte(typeOf(conv.getX()).getElementType()) ||
                                                      !conv.getBias() || top::isConstant(conv.getBias()));
    if (!fast || !constants) {
      return std::nullopt;
    }
    ConvWeightDims dims = weightDims(conv);
    // A few channels are read from a row-major image, because blocks would be mostly padding.
    bool few = dims.groupC <= 4 || (dims.groupC < kBlock && dims.kw > 1);
    bool rows = fast->algorithm == ConvAlgorithm::direct && dims.groups == 1 && few &&
                !device::isBlocked(conv.getX().getType());
    conv->setAttr(X86Dialect::kAlgorithmAttr, AlgorithmAttr::get(&getContext(), fast->algorithm, fast->outputTile));
    return rows ? device::LayoutPolicy::ConvInput::RowMajor : device::LayoutPolicy::ConvInput::Blocked;
  }

  /// Merges neighbouring groups until they fill whole blocks; the weights between former groups are zero.
  void mergeGroups(device::ConvOp conv) {
    RankedTensorType w = typeOf(conv.getW());
    std::optional<top::TensorData> data;
    bool types = w.getElementType().isF32() || device::isNarrowFloat(w.getElementType()) || isByte(w.getElementType());
    if (conv.getGroups() == 1 || conv.getScales() || conv.getPacking() || !types || w.getRank() != 4) {
      return;
    }
    ConvWeightDims dims = weightDims(conv);
    int64_t merge = dims.groupC == 1 && dims.oc == dims.groups ? 1 : groupsToMerge(conv);
    if (merge <= 1 || !(data = top::getConstantData(conv.getW()))) {
      return;
    }
    int64_t taps = dims.kh * dims.kw, groupOc = dims.oc / dims.groups, filter = dims.groupC * taps;
    auto type = RankedTensorType::get({dims.oc, dims.groupC * merge, dims.kh, dims.kw}, w.getElementType());
    int64_t filterBytes = filter * device::elementBytes(w.getElementType());
    std::vector<char> bytes(merge * dims.oc * filterBytes, 0);
    for (int64_t oc = 0; oc < dims.oc; ++oc) {
      int64_t place = oc / groupOc % merge;
      std::copy_n(data->data<char>().data() + oc * filterBytes, filterBytes,
                  bytes.data() + (oc * merge + place) * filterBytes);
    }
    OpBuilder builder(conv);
    conv.getWMutable().set(top::createConstant(builder, conv.getW().getLoc(), type, std::move(bytes), "merged_groups"));
    conv.setGroups(dims.groups / merge);
  }
};

} // namespace
} // namespace tessera::x86

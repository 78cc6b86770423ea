//===- BlockedLayout.cpp - Handlers of onnxruntime's convolutions with blocked channels --===//
// SPDX-License-Identifier: Apache-2.0
//
// The domain com.microsoft.nchwc stores tensors as [N, C / block, H, W, block], and filters in a matching order. All
// operators between ReorderInput and ReorderOutput treat channels alike, so that the import only pads the channels to
// whole blocks and restores the usual order of the filters.
#include "top_dialect/Import/Onnx/GraphImporter.h"
#include "top_dialect/Import/Onnx/NodeImporter.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

constexpr llvm::StringLiteral kDomain = "com.microsoft.nchwc";
/// The block sizes that onnxruntime uses: without and with AVX-512.
constexpr int64_t kNarrow = 8, kWide = 16;

/// Returns the block size that the channel counts of |graph| prove, or nothing if both sizes explain them: only the
/// narrow one leaves filters that are not a multiple of the wide one, only the wide one pads by 8 channels or more.
std::optional<int64_t> provenBlock(const onnx::GraphProto &graph) {
  llvm::StringMap<int64_t> filters, channels;
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    filters[tensor.name()] = tensor.dims_size() ? tensor.dims(0) : 0;
  }
  for (const onnx::NodeProto &node : graph.node()) {
    if (node.input_size() == 0 || node.output_size() == 0 || node.op_type() == "Concat") {
      continue;
    }
    int64_t stored = channels.lookup(node.input(0));
    if (node.domain() == kDomain && node.op_type() == "Conv" && node.input_size() > 1) {
      stored = filters.lookup(node.input(1));
      if (stored % kWide != 0) {
        return kNarrow;
      }
    } else if (node.domain() == kDomain && node.op_type() == "ReorderOutput") {
      for (const onnx::AttributeProto &attribute : node.attribute()) {
        if (attribute.name() == "channels" && stored - attribute.i() >= kNarrow) {
          return kWide;
        }
      }
      stored = 0;
    }
    channels[node.output(0)] = stored;
  }
  return std::nullopt;
}

/// Returns the block size of the node's file. The file does not contain it. If the channel counts do not prove it, it
/// is that of this machine, because onnxruntime reads the file in this way, too.
int64_t blockOf(NodeImporter &n) {
  const OnnxModel &model = n.graph.model;
  std::optional<int64_t> &block = model.state->channelBlock;
  if (!block) {
    block = provenBlock(model.proto->graph());
  }
  if (!block) {
    block = llvm::sys::getHostCPUFeatures().lookup("avx512f") ? kWide : kNarrow;
    model.state->warnOnce(llvm::formatv(
        "'{0}' stores its convolutions in the layout of the machine that optimised it, and does not say in which: read "
        "with blocks of {1} channels, as onnxruntime does on this machine; save the model with ORT_ENABLE_EXTENDED to "
        "get a file for every machine",
        model.path, *block));
  }
  return *block;
}

/// Restores the order [O, I, H, W] of a filter, which is stored as [O / block, I / block, H, W, block, block], or as
/// [O / block, I, H, W, block] if the convolution reads an image in the usual order or is depthwise.
Value restoreFilter(NodeImporter &n, Value filter, int64_t block) {
  Ints dims(NodeImporter::shape(filter));
  if (!n.failed() && (dims.size() != 4 || !isConstant(filter) || dims[0] % block != 0)) {
    n.unsupported(llvm::formatv("its filter is not a constant of rank 4 with a multiple of {0} rows", block));
  }
  if (n.failed()) {
    return filter;
  }
  if (dims[1] < block) {
    filter = n.reshape(filter, {dims[0] / block, dims[1], dims[2], dims[3], block});
    return n.reshape(n.transpose(filter, {0, 4, 1, 2, 3}), dims);
  }
  if (dims[1] % block != 0) {
    n.fail(llvm::formatv("its filter reads {0} channels, which are not whole blocks of {1}", dims[1], block));
    return filter;
  }
  filter = n.reshape(filter, {dims[0] / block, dims[1] / block, dims[2], dims[3], block, block});
  return n.reshape(n.transpose(filter, {0, 5, 1, 4, 2, 3}), dims);
}

void conv(NodeImporter &n) {
  n.allowOnly({"activation", "activation_params", "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"},
              4);
  Value filter = restoreFilter(n, n.input(1), blockOf(n));
  Value y = makeConv(n, n.input(0), filter, n.optionalInput(2));
  if (n.hasInput(3)) {
    y = n.create<AddOp>(y, n.input(3));
  }
  n.setOutput(0, makeFusedActivation(n, y, n.floatsAttr("activation_params")));
}

/// Returns the dims of the image |x|, or an empty list after an error.
Ints imageDims(NodeImporter &n, Value x) {
  Ints dims(NodeImporter::shape(x));
  if (!n.failed() && (dims.size() != 4 || llvm::any_of(dims, mlir::ShapedType::isDynamic))) {
    n.unsupported("its input needs rank 4 and static dims: fix them with --input_shapes");
  }
  return n.failed() ? Ints() : dims;
}

void reorderInput(NodeImporter &n) {
  n.allowOnly({"channels_last"}, 1);
  Value x = n.input(0);
  if (imageDims(n, x).empty()) {
    return;
  }
  x = n.intAttr("channels_last", 0) != 0 ? n.transpose(x, {0, 3, 1, 2}) : x;
  int64_t block = blockOf(n), rest = NodeImporter::dim(x, 1) % block;
  Ints pads(8, 0);
  pads[5] = rest ? block - rest : 0;
  n.setOutput(0, rest ? n.create<PadOp>(x, pads, PadMode::constant, llvm::APFloat(0.0)) : x);
}

void reorderOutput(NodeImporter &n) {
  n.allowOnly({"channels", "channels_last"}, 1);
  Value x = n.input(0);
  Ints dims = imageDims(n, x);
  int64_t channels = n.requiredInt("channels");
  if (!n.failed() && (channels < 1 || channels > dims[1])) {
    n.fail(llvm::formatv("attribute 'channels' is {0}; its input has {1} channels", channels, dims[1]));
  }
  if (n.failed()) {
    return;
  }
  if (channels != dims[1]) {
    dims[1] = channels;
    x = n.create<SliceOp>(x, Ints(4, 0), dims, Ints(4, 1));
  }
  n.setOutput(0, n.intAttr("channels_last", 0) != 0 ? n.transpose(x, {0, 2, 3, 1}) : x);
}

constexpr HandlerEntry kHandlers[] = {
    {kDomain, "Conv", conv},
    {kDomain, "ReorderInput", reorderInput},
    {kDomain, "ReorderOutput", reorderOutput},
};

} // namespace

llvm::ArrayRef<HandlerEntry> blockedLayoutHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

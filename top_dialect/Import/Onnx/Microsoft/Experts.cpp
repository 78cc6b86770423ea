//===- Experts.cpp - Handlers of onnxruntime's mixtures of experts --------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/Microsoft/PackedWeights.h"
#include "top_dialect/Import/Onnx/Operators/OpBuilders.h"

#include "llvm/Support/FormatVariadic.h"

using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// A fully connected layer of each of E experts.
struct ExpertLayer {
  Value weights; ///< [E, out, in], or null
  Value bias;    ///< [E, out], or null
};

/// The experts that are computed for each token, and the factors of their results.
struct Route {
  Value indices; ///< i64 [T, k], or null if all experts are computed for all tokens
  Value factors; ///< [T, k, 1, 1], or [E, T, 1] for all experts
  int64_t axis;  ///< of the experts
};

class Mixture {
public:
  Mixture(NodeImporter &n) : n(n), k(n.intAttr("k", 1)), activation(n.stringAttr("activation_type", "relu")) {}

  /// Computes the mixture and sets the output. |third| may have no weights.
  void build(ExpertLayer first, const ExpertLayer &second, ExpertLayer third, bool normalises) {
    Value x = n.input(0), router = n.input(1);
    if (!check(x, router, first, second)) {
      return;
    }
    if (activation == "swiglu") {
      splitFused(first, third);
    }
    if (n.failed()) {
      return;
    }
    tokens = NodeImporter::dim(router, 0), hidden = NodeImporter::shape(x).back();
    Route route = makeRoute(router, normalises);
    auto element = NodeImporter::elementType(x);
    Value rows = n.reshape(x, route.indices ? Ints{tokens, 1, 1, hidden} : Ints{1, tokens, hidden});
    Value y = activate(apply(rows, first, route), third.weights ? apply(rows, third, route) : Value());
    y = n.create<MulOp>(apply(y, second, route), n.cast(route.factors, element));
    y = n.create<ReduceOp>(y, ReduceKind::sum, Ints{route.axis}, false);
    n.setOutput(0, n.reshape(y, NodeImporter::shape(x)));
  }

private:
  bool check(Value x, Value router, const ExpertLayer &first, const ExpertLayer &second) {
    if (n.intAttr("use_sparse_mixer", 0) != 0) {
      n.unsupported("attribute 'use_sparse_mixer' is not 0; supported is 0");
    }
    for (Value value : {x, router}) {
      if (llvm::any_of(NodeImporter::shape(value), mlir::ShapedType::isDynamic)) {
        n.unsupported("needs static dims: fix them with --input_shapes");
      }
    }
    int64_t experts = NodeImporter::dim(router, 1);
    bool hasShapes = NodeImporter::rank(x) >= 2 && NodeImporter::rank(router) == 2 &&
                     NodeImporter::rank(first.weights) == 3 && NodeImporter::rank(second.weights) == 3;
    if (!n.failed() && (!hasShapes || k < 1 || k > experts)) {
      n.fail(llvm::formatv("k is {0} for {1} experts, and router_probs, fc1 and fc2 have the ranks {2}, {3} and {4}; "
                           "expected are 1 <= k <= experts and the ranks 2, 3 and 3",
                           k, experts, NodeImporter::rank(router), NodeImporter::rank(first.weights),
                           NodeImporter::rank(second.weights)));
    }
    return !n.failed();
  }

  /// Returns the outputs |start|, |start| + |step|, .. of a layer with twice as many outputs.
  ExpertLayer half(const ExpertLayer &layer, int64_t start, int64_t step) {
    auto slice = [&](Value x) {
      Ints sizes(NodeImporter::shape(x)), starts(sizes.size(), 0), steps(sizes.size(), 1);
      sizes[1] /= 2, starts[1] = start, steps[1] = step;
      return n.create<SliceOp>(x, starts, sizes, steps);
    };
    return {slice(layer.weights), layer.bias ? slice(layer.bias) : Value()};
  }

  /// Splits |first| into the layer of the gates and the layer of the gated values, |third|, unless both are in the
  /// file.
  void splitFused(ExpertLayer &first, ExpertLayer &third) {
    int64_t fusion = n.intAttr("swiglu_fusion", 0), outputs = NodeImporter::dim(first.weights, 1);
    if (fusion < 0 || fusion > 2 || (fusion == 0) != (third.weights != Value()) || (fusion != 0 && outputs % 2 != 0)) {
      n.fail(llvm::formatv("attribute 'swiglu_fusion' is {0} with {1} outputs of fc1 and {2} fc3; expected is 0 with "
                           "fc3, or 1 or 2 with an even number of outputs and without fc3",
                           fusion, outputs, third.weights ? "an" : "no"));
    }
    if (n.failed() || fusion == 0) {
      return;
    }
    third = fusion == 1 ? half(first, 1, 2) : half(first, outputs / 2, 1);
    first = fusion == 1 ? half(first, 0, 2) : half(first, 0, 1);
  }

  /// Computes all experts for all tokens if that takes fewer weights than those of each token's experts.
  Route makeRoute(Value router, bool normalises) {
    int64_t experts = NodeImporter::dim(router, 1);
    router = n.cast(router, n.b.getF32Type());
    auto softmax = [&](Value x) { return n.create<SoftmaxOp>(x, 1, false); };
    auto top = n.createMulti<TopKOp>(2, normalises ? router : softmax(router), k, 1, true);
    Value factors = normalises ? softmax(top[0]) : top[0];
    if (tokens * k <= experts) {
      return {top[1], n.reshape(factors, {tokens, k, 1, 1}), 1};
    }
    Value none = n.floatConstant(n.b.getF32Type(), {tokens, experts}, llvm::SmallVector<double>(tokens * experts));
    Value all = n.create<ScatterElementsOp>(none, top[1], factors, 1, ScatterReduction::none);
    return {Value(), n.reshape(n.transpose(all, {1, 0}), {experts, tokens, 1}), 0};
  }

  Value apply(Value x, const ExpertLayer &layer, const Route &route) {
    auto pick = [&](Value v) { return route.indices ? n.create<GatherOp>(v, route.indices, 0) : v; };
    Value y = makeNumpyMatMul(n, x, pick(n.transpose(layer.weights, {0, 2, 1})));
    if (!layer.bias) {
      return y;
    }
    return n.create<AddOp>(
        y, pick(n.reshape(layer.bias, {NodeImporter::dim(layer.bias, 0), 1, NodeImporter::dim(layer.bias, 1)})));
  }

  /// Applies the activation to |x|, the outputs of the first layer, and multiplies by |gated| if it is not null.
  Value activate(Value x, Value gated) {
    if (activation == "swiglu" && n.hasAttr("swiglu_limit")) {
      double limit = n.floatAttr("swiglu_limit", 0);
      x = n.create<ClipOp>(x, llvm::APFloat(-std::numeric_limits<double>::infinity()), llvm::APFloat(limit));
      gated = n.create<ClipOp>(gated, llvm::APFloat(-limit), llvm::APFloat(limit));
    }
    if (activation == "swiglu") {
      Value scaled = n.create<MulOp>(x, n.scalarLike(x, n.floatAttr("activation_alpha", 1.0)));
      x = n.create<MulOp>(x, n.create<SigmoidOp>(scaled));
      gated = n.create<AddOp>(gated, n.scalarLike(gated, n.floatAttr("activation_beta", 0.0)));
    } else if (activation == "relu") {
      x = n.create<ReluOp>(x);
    } else if (activation == "gelu") {
      x = n.create<GeluOp>(x, true);
    } else if (activation == "silu") {
      x = n.create<SiluOp>(x);
    } else if (activation != "identity") {
      n.unsupported(llvm::formatv(
          "attribute 'activation_type' is '{0}'; supported are relu, gelu, silu, swiglu and identity", activation));
    }
    return gated ? n.create<MulOp>(x, gated) : x;
  }

  NodeImporter &n;
  int64_t k;
  std::string activation;
  int64_t tokens = 0, hidden = 0;
};

void mixtureOfExperts(NodeImporter &n) {
  n.allowOnly({"activation_alpha", "activation_beta", "activation_type", "k", "normalize_routing_weights",
               "swiglu_fusion", "swiglu_limit", "use_sparse_mixer"},
              8);
  auto layer = [&](unsigned i) { return ExpertLayer{n.optionalInput(i), n.optionalInput(i + 1)}; };
  ExpertLayer first{n.input(2), n.optionalInput(3)}, second{n.input(4), n.optionalInput(5)};
  Mixture(n).build(first, second, layer(6), n.intAttr("normalize_routing_weights", 0) != 0);
}

/// Unpacks the weights [E, out, in], whose scales [E, out, blocks] and zero points count along the last dim.
Value unpackExperts(NodeImporter &n, Value packed, Value scales, Value zeros, int64_t bits) {
  if (n.failed() || NodeImporter::rank(packed) != 3) {
    n.fail(llvm::formatv("its quantised weights have rank {0}; expected 3", NodeImporter::rank(packed)));
    return packed;
  }
  int64_t experts = NodeImporter::dim(packed, 0), outputs = NodeImporter::dim(packed, 1),
          inputs = NodeImporter::dim(packed, 2) * 8 / bits, block = n.intAttr("block_size", 0);
  bool hasBlocks = block > 0;
  int64_t blocks = hasBlocks ? (inputs + block - 1) / block : 1;
  Value weights = unpackBits(n, packed, bits, inputs);
  auto spread = [&](Value x) {
    x = n.reshape(x, {experts, outputs, blocks});
    return hasBlocks ? repeatBlocks(n, x, 2, block, inputs) : x;
  };
  Value scale = spread(scales);
  if (!zeros) {
    return dequantise(n, weights, n.scalarLike(scale, static_cast<double>(1 << (bits - 1))), scale);
  }
  return dequantise(n, weights, spread(unpackBits(n, zeros, bits, hasBlocks ? blocks : outputs)), scale);
}

/// The factors are the softmax of the selected experts, whatever the attribute normalize_routing_weights says.
void quantisedMixtureOfExperts(NodeImporter &n) {
  n.allowOnly({"activation_alpha", "activation_beta", "activation_type", "block_size", "expert_weight_bits", "k",
               "normalize_routing_weights", "swiglu_fusion", "swiglu_interleaved", "swiglu_limit", "use_sparse_mixer"},
              14);
  int64_t bits = readBits(n, "expert_weight_bits");
  auto layer = [&](unsigned i, unsigned zeros) {
    Value weights = unpackExperts(n, n.input(i), n.input(i + 1), n.optionalInput(zeros), bits);
    return ExpertLayer{weights, n.optionalInput(i + 2)};
  };
  Mixture(n).build(layer(2, 11), layer(5, 12), n.hasInput(8) ? layer(8, 13) : ExpertLayer(), true);
}

constexpr llvm::StringLiteral kDomain = "com.microsoft";
constexpr HandlerEntry kHandlers[] = {
    {kDomain, "MoE", mixtureOfExperts},
    {kDomain, "QMoE", quantisedMixtureOfExperts},
};

} // namespace

llvm::ArrayRef<HandlerEntry> expertHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

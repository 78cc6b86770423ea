//===- OnnxRecurrent.cpp - Handlers of recurrent operators ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/Import/Onnx/NodeImporter.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// Activation functions of recurrent operators with the default values of their parameters.
struct Activation {
  StringRef name;
  double alpha;
  double beta;
};
constexpr double kNone = 0.0;
constexpr Activation kActivations[] = {
    {"Relu", kNone, kNone},     {"Tanh", kNone, kNone},     {"Sigmoid", kNone, kNone},
    {"LeakyRelu", 0.01, kNone}, {"Elu", 1.0, kNone},        {"HardSigmoid", 0.2, 0.5},
    {"Softsign", kNone, kNone}, {"Softplus", kNone, kNone}, {"ThresholdedRelu", 1.0, kNone},
    {"Affine", 1.0, 0.0},       {"ScaledTanh", 1.0, 1.0},
};

const Activation *findActivation(StringRef name) {
  for (const Activation &known : kActivations) {
    if (known.name.equals_insensitive(name)) {
      return &known;
    }
  }
  return nullptr;
}

bool hasAlpha(StringRef name) {
  return llvm::is_contained({"LeakyRelu", "Elu", "HardSigmoid", "ThresholdedRelu", "Affine", "ScaledTanh"}, name);
}

bool hasBeta(StringRef name) { return llvm::is_contained({"HardSigmoid", "Affine", "ScaledTanh"}, name); }

llvm::SmallVector<StringRef> defaultActivations(RnnKind kind) {
  switch (kind) {
  case RnnKind::rnn:
    return {"Tanh"};
  case RnnKind::gru:
    return {"Sigmoid", "Tanh"};
  case RnnKind::lstm:
    return {"Sigmoid", "Tanh", "Tanh"};
  }
  return {};
}

/// The lists alpha and beta contain one entry per activation that has this parameter, in order.
void checkParameters(NodeImporter &n, llvm::ArrayRef<StringRef> activations) {
  auto alphas = n.floatsAttr("activation_alpha");
  auto betas = n.floatsAttr("activation_beta");
  size_t alpha = 0;
  size_t beta = 0;
  auto check = [&](StringRef list, llvm::ArrayRef<double> values, size_t &next, StringRef name, double byDefault) {
    double value = next < values.size() ? values[next] : byDefault;
    ++next;
    if (std::abs(value - byDefault) > 1e-6) {
      n.unsupported(llvm::formatv("{0} gives {1} the parameter {2}; only its default {3} is supported", list, name,
                                  value, byDefault));
    }
  };
  for (StringRef name : activations) {
    const Activation *activation = findActivation(name);
    if (hasAlpha(name)) {
      check("activation_alpha", alphas, alpha, name, activation->alpha);
    }
    if (hasBeta(name)) {
      check("activation_beta", betas, beta, name, activation->beta);
    }
  }
}

mlir::ArrayAttr readActivations(NodeImporter &n, RnnKind kind, int64_t directions) {
  auto given = n.stringsAttr("activations");
  llvm::SmallVector<StringRef> perDirection = defaultActivations(kind);
  llvm::SmallVector<StringRef> names;
  for (int64_t d = 0; given.empty() && d < directions; ++d) {
    llvm::append_range(names, perDirection);
  }
  for (const std::string &name : given) {
    const Activation *activation = findActivation(name);
    if (!activation) {
      n.fail(llvm::formatv("activation '{0}' is unknown", name));
      return {};
    }
    names.push_back(activation->name);
  }
  checkParameters(n, names);
  return n.b.getStrArrayAttr(names);
}

RnnDirection readDirection(NodeImporter &n) {
  std::string text = n.stringAttr("direction", "forward");
  auto direction = symbolizeRnnDirection(text);
  if (!direction) {
    n.fail(llvm::formatv("direction '{0}' is unknown; allowed are forward, reverse and bidirectional", text));
  }
  return direction.value_or(RnnDirection::forward);
}

/// Converts batch-first tensors (layout = 1) to sequence-first and back.
Value swapFirst(NodeImporter &n, Value value) {
  if (!value || NodeImporter::rank(value) != 3) {
    return value; // another rank, which shape inference reports
  }
  return n.transpose(value, {1, 0, 2});
}

/// Creates a recurrent operator with the weights |w| and |r| and the other operands and attributes of the node.
void makeRecurrent(NodeImporter &n, RnnKind kind, Value w, Value r) {
  RnnDirection direction = readDirection(n);
  int64_t directions = direction == RnnDirection::bidirectional ? 2 : 1;
  bool batchFirst = n.intAttr("layout", 0) != 0;
  if (n.intAttr("input_forget", 0) != 0) {
    n.unsupported("input_forget = 1 (coupled gates) is not supported");
  }
  Value x = n.input(0);
  Value initialH = n.optionalInput(5);
  Value initialC = kind == RnnKind::lstm ? n.optionalInput(6) : Value();
  Value peephole = kind == RnnKind::lstm ? n.optionalInput(7) : Value();
  if (NodeImporter::rank(r) != 3) {
    n.fail(llvm::formatv("input 2 (R) has rank {0}; it must have rank 3", NodeImporter::rank(r)));
    return;
  }
  int64_t hidden = n.intAttr("hidden_size", NodeImporter::shape(r)[2]);
  mlir::ArrayAttr activations = readActivations(n, kind, directions);
  if (n.failed()) {
    return;
  }
  if (batchFirst) {
    x = swapFirst(n, x);
    initialH = swapFirst(n, initialH);
    initialC = swapFirst(n, initialC);
  }
  auto results = n.createMulti<RnnOp>(3, x, w, r, n.optionalInput(3), n.optionalInput(4), initialH, initialC, peephole,
                                      kind, direction, hidden, activations, llvm::APFloat(n.floatAttr("clip", 0.0)),
                                      n.intAttr("linear_before_reset", 0) != 0);
  if (batchFirst) {
    results[0] = n.wantsOutput(0) ? n.transpose(results[0], {2, 0, 1, 3}) : results[0];
    results[1] = n.wantsOutput(1) ? n.transpose(results[1], {1, 0, 2}) : results[1];
    results[2] = n.wantsOutput(2) ? n.transpose(results[2], {1, 0, 2}) : results[2];
  }
  for (unsigned i = 0; i < (kind == RnnKind::lstm ? 3u : 2u); ++i) {
    n.setOutput(i, results[i]);
  }
}

template <RnnKind kind>
void recurrent(NodeImporter &n) {
  makeRecurrent(n, kind, n.input(1), n.input(2));
}

/// Returns the 8-bit input |weights|, [D, K, 4 H], dequantised with the inputs |scale| and |zero|, [D] or [D, 4 H], as
/// floats [D, 4 H, K].
Value dequantisedGates(NodeImporter &n, unsigned weights, unsigned scale, unsigned zero) {
  Value w = n.input(weights);
  if (!n.failed() && (!NodeImporter::elementType(w).isInteger(8) || NodeImporter::rank(w) != 3)) {
    n.fail(llvm::formatv("input {0} is not an 8-bit tensor of rank 3", weights));
  }
  auto parameter = [&](unsigned i) {
    Value p = n.input(i);
    int64_t rank = NodeImporter::rank(p), gates = rank == 2 ? NodeImporter::dim(p, 1) : 1;
    if (!n.failed() && rank != 1 && rank != 2) {
      n.fail(llvm::formatv("input {0} has rank {1}; allowed are 1 and 2", i, rank));
    }
    return n.reshape(n.cast(p, n.b.getF32Type()), {NodeImporter::dim(p, 0), 1, gates});
  };
  Value centred = n.cast(w, n.b.getF32Type());
  centred = n.hasInput(zero) ? n.create<SubOp>(centred, parameter(zero)) : centred;
  return n.transpose(n.create<MulOp>(centred, parameter(scale)), {0, 2, 1});
}

/// DynamicQuantizeLSTM of com.microsoft: an LSTM with 8-bit weights. onnxruntime also rounds the activations to 8 bits
/// for its 8-bit products, which costs accuracy. Here they stay floats.
void dynamicQuantizeLstm(NodeImporter &n) {
  Value w = dequantisedGates(n, 1, 8, 9), r = dequantisedGates(n, 2, 10, 11);
  makeRecurrent(n, RnnKind::lstm, w, r);
}

constexpr HandlerEntry kHandlers[] = {
    {"", "RNN", recurrent<RnnKind::rnn>},
    {"", "GRU", recurrent<RnnKind::gru>},
    {"", "LSTM", recurrent<RnnKind::lstm>},
    {"com.microsoft", "DynamicQuantizeLSTM", dynamicQuantizeLstm},
};

} // namespace

llvm::ArrayRef<HandlerEntry> recurrentHandlers() { return kHandlers; }

} // namespace tessera::top::onnx_import

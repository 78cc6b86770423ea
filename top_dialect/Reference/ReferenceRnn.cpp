//===- ReferenceRnn.cpp - Vanilla RNN, GRU and LSTM ---===//
// SPDX-License-Identifier: Apache-2.0
//
// Follows the formulas and gate orders of the ONNX operators RNN, GRU and LSTM.
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Support.h"

#include <cmath>

using namespace tessera::top;
using namespace tessera::top::reference;
using llvm::failure;
using llvm::LogicalResult;
using llvm::success;

namespace {

using Activation = double (*)(double);
using Vector = std::vector<double>;

/// Returns the ONNX activation of a given name with its default parameters, or null.
Activation findActivation(llvm::StringRef name) {
  static const std::pair<llvm::StringRef, Activation> kActivations[] = {
      {"Affine", [](double x) { return x; }},
      {"Elu", [](double x) { return x < 0 ? std::expm1(x) : x; }},
      {"HardSigmoid", [](double x) { return std::fmin(std::fmax(0.2 * x + 0.5, 0), 1); }},
      {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }},
      {"Relu", [](double x) { return x < 0 ? 0 : x; }},
      {"ScaledTanh", [](double x) { return std::tanh(x); }},
      {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"Softplus", [](double x) { return std::log1p(std::exp(-std::fabs(x))) + std::fmax(x, 0); }},
      {"Softsign", [](double x) { return x / (1 + std::fabs(x)); }},
      {"Tanh", [](double x) { return std::tanh(x); }},
      {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }},
  };
  for (auto [known, function] : kActivations) {
    if (name.equals_insensitive(known)) {
      return function;
    }
  }
  return nullptr;
}

/// One direction of a recurrent op. Weights are as in top.rnn without the direction dim.
struct Cell {
  RnnKind kind;
  int64_t inputSize, hiddenSize;
  double clip;
  bool linearBeforeReset;
  Vector w, r, wBias, rBias, peephole;
  llvm::SmallVector<Activation, 3> activations;

  /// Computes one time step: updates the hidden state h and, in an LSTM, the cell state c.
  void step(const double *x, Vector &h, Vector &c) const {
    switch (kind) {
    case RnnKind::rnn:
      return stepRnn(x, h);
    case RnnKind::gru:
      return stepGru(x, h);
    case RnnKind::lstm:
      return stepLstm(x, h, c);
    }
  }

private:
  double clipped(double v) const { return clip > 0 ? std::fmin(std::fmax(v, -clip), clip) : v; }

  /// Returns row `unit` of a gate's input contribution, bias included.
  double fromInput(int64_t gate, int64_t unit, const double *x) const {
    int64_t row = gate * hiddenSize + unit;
    double sum = wBias[row];
    for (int64_t i = 0; i < inputSize; ++i) {
      sum += w[row * inputSize + i] * x[i];
    }
    return sum;
  }
  double fromHidden(int64_t gate, int64_t unit, const Vector &h) const {
    int64_t row = gate * hiddenSize + unit;
    double sum = rBias[row];
    for (int64_t i = 0; i < hiddenSize; ++i) {
      sum += r[row * hiddenSize + i] * h[i];
    }
    return sum;
  }

  void stepRnn(const double *x, Vector &h) const {
    Vector next(hiddenSize);
    for (int64_t u = 0; u < hiddenSize; ++u) {
      next[u] = activations[0](clipped(fromInput(0, u, x) + fromHidden(0, u, h)));
    }
    h = next;
  }

  void stepGru(const double *x, Vector &h) const {
    enum { kUpdate, kReset, kHidden };
    Vector z(hiddenSize), reset(hiddenSize), resetH(hiddenSize), next(hiddenSize);
    for (int64_t u = 0; u < hiddenSize; ++u) {
      z[u] = activations[0](clipped(fromInput(kUpdate, u, x) + fromHidden(kUpdate, u, h)));
      reset[u] = activations[0](clipped(fromInput(kReset, u, x) + fromHidden(kReset, u, h)));
      resetH[u] = reset[u] * h[u];
    }
    for (int64_t u = 0; u < hiddenSize; ++u) {
      double recurrent = linearBeforeReset ? reset[u] * fromHidden(kHidden, u, h) : fromHidden(kHidden, u, resetH);
      double candidate = activations[1](clipped(fromInput(kHidden, u, x) + recurrent));
      next[u] = (1 - z[u]) * candidate + z[u] * h[u];
    }
    h = next;
  }

  void stepLstm(const double *x, Vector &h, Vector &c) const {
    enum { kInput, kOutput, kForget, kCell };
    Vector nextH(hiddenSize), nextC(hiddenSize);
    for (int64_t u = 0; u < hiddenSize; ++u) {
      auto gate = [&](int64_t g) { return fromInput(g, u, x) + fromHidden(g, u, h); };
      auto peep = [&](int64_t g, double cell) { return peephole[g * hiddenSize + u] * cell; };
      double i = activations[0](clipped(gate(kInput) + peep(kInput, c[u])));
      double f = activations[0](clipped(gate(kForget) + peep(kForget, c[u])));
      nextC[u] = f * c[u] + i * activations[1](clipped(gate(kCell)));
      double o = activations[0](clipped(gate(kOutput) + peep(kOutput, nextC[u])));
      nextH[u] = o * activations[2](nextC[u]);
    }
    h = nextH;
    c = nextC;
  }
};

/// Returns slice `direction` of a tensor with a leading direction dim; zeros if the tensor is absent.
Vector directionOf(const HostTensor *tensor, int64_t direction, int64_t size) {
  Vector values(size, 0.0);
  if (tensor) {
    readRange(*tensor, direction * size, 1, size, values.data());
  }
  return values;
}

} // namespace

LogicalResult RnnOp::evaluate(Inputs inputs, Outputs outputs) {
  DimsRef shape = inputs[0]->getShape();
  int64_t steps = shape[0], batch = shape[1], inputSize = shape[2], hidden = getHiddenSize();
  int64_t directions = getDirection() == RnnDirection::bidirectional ? 2 : 1;
  int64_t gates = getKind() == RnnKind::lstm ? 4 : getKind() == RnnKind::gru ? 3 : 1;
  size_t functions = getKind() == RnnKind::lstm ? 3 : getKind() == RnnKind::gru ? 2 : 1;
  if (getActivations().size() != functions * directions) {
    return emitOpError("has ") << getActivations().size() << " activations, expected " << functions << " per direction";
  }
  const HostTensor *lens = operand(*this, inputs, 4);
  Vector x = read<double>(*inputs[0]);
  Vector y(outputs[0].getNumElements(), 0.0), yH(directions * batch * hidden), yC(yH.size());
  std::vector<int64_t> lengths = lens ? read<int64_t>(*lens) : std::vector<int64_t>(batch, steps);

  for (int64_t d = 0; d < directions; ++d) {
    Vector bias = directionOf(operand(*this, inputs, 3), d, 2 * gates * hidden);
    Cell cell{getKind(),
              inputSize,
              hidden,
              getClip().convertToDouble(),
              getLinearBeforeReset(),
              directionOf(inputs[1], d, gates * hidden * inputSize),
              directionOf(inputs[2], d, gates * hidden * hidden),
              Vector(bias.begin(), bias.begin() + gates * hidden),
              Vector(bias.begin() + gates * hidden, bias.end()),
              directionOf(operand(*this, inputs, 7), d, 3 * hidden),
              {}};
    for (auto name : llvm::drop_begin(getActivations().getAsValueRange<mlir::StringAttr>(), d * functions)) {
      cell.activations.push_back(findActivation(name));
      if (!cell.activations.back()) {
        return emitOpError("unknown activation '") << name << "'";
      }
    }
    Vector h0 = directionOf(operand(*this, inputs, 5), d, batch * hidden);
    Vector c0 = directionOf(operand(*this, inputs, 6), d, batch * hidden);
    bool reverse = d == 1 || getDirection() == RnnDirection::reverse;
    for (int64_t b = 0; b < batch; ++b) {
      Vector h(h0.begin() + b * hidden, h0.begin() + (b + 1) * hidden);
      Vector c(c0.begin() + b * hidden, c0.begin() + (b + 1) * hidden);
      int64_t length = std::min(lengths[b], steps);
      for (int64_t step = 0; step < length; ++step) {
        int64_t t = reverse ? length - 1 - step : step;
        cell.step(&x[(t * batch + b) * inputSize], h, c);
        llvm::copy(h, y.begin() + ((t * directions + d) * batch + b) * hidden);
      }
      llvm::copy(h, yH.begin() + (d * batch + b) * hidden);
      llvm::copy(getKind() == RnnKind::lstm ? c : h, yC.begin() + (d * batch + b) * hidden);
    }
  }
  write(y, outputs[0]);
  write(yH, outputs[1]);
  write(yC, outputs[2]);
  return success();
}

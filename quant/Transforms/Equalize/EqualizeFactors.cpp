//===- EqualizeFactors.cpp - Chooses factors with the least expected noise --===//
// SPDX-License-Identifier: Apache-2.0
#include "quant/Transforms/Equalize/Equalize.h"

#include "top_dialect/IR/Constants.h"
#include "top_dialect/IR/Names.h"
#include "top_dialect/IR/TopOps.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>

using namespace mlir;

namespace tessera::quant {
namespace {

/// Candidate exponents: a channel's factor is its share in the tensor's range to one of these powers. The largest one
/// is 1/2, so that narrow channels keep head room for values that the samples do not contain.
constexpr double kPowers[] = {0, 0.25, 0.5};
/// Narrower channels are treated as if they had this share of the widest channel's range.
constexpr double kNarrowest = 0.02;
/// Weight of the noise that int8 weights add, relative to that of activations. It counts more because it affects every
/// value and remains with 16-bit activations.
constexpr double kWeightNoise = 3;

/// A contraction that reads a tensor.
struct Reader {
  Operation *op;
  ContractionChannels contraction;
  top::TensorData weight;
  double power;               ///< power of the result, summed over all channels
  std::vector<double> energy; ///< sum of squared weights per input channel
};

/// A tensor that convolutions or matmuls read.
struct ReadTensor {
  const ChannelFlow::Channels *channels = nullptr;
  const ChannelStatistics *statistics = nullptr;
  std::vector<Reader> readers;

  double range(size_t channel) const {
    return std::max(statistics->high[channel], 0.0f) - std::min(statistics->low[channel], 0.0f);
  }
  double widest() const {
    double most = 0;
    for (size_t c = 0; c < channels->groups.size(); ++c) {
      most = std::max(most, range(c));
    }
    return most;
  }
};

Reader makeReader(Operation *op, const ContractionChannels &contraction, double power) {
  Reader reader{op, contraction, *top::getConstantData(op->getOperand(1)), power,
                std::vector<double>(contraction.inputs)};
  ArrayRef<float> weights = reader.weight.data<float>();
  contraction.forEachWeight(
      [&](int64_t i, int64_t input, int64_t) { reader.energy[input] += double(weights[i]) * weights[i]; });
  return reader;
}

/// Returns the noise that int8 adds to the results of all readers of `tensor`, relative to their power. It adds the
/// rounding noise of the tensor and that of the weights.
double noiseOf(const ReadTensor &tensor, ArrayRef<double> factors) {
  double low = 0, high = 0;
  for (auto [c, factor] : llvm::enumerate(factors)) {
    low = std::min(low, tensor.statistics->low[c] / factor);
    high = std::max(high, tensor.statistics->high[c] / factor);
  }
  double step = (high - low) / 255, noise = 0;
  for (const Reader &reader : tensor.readers) {
    const ContractionChannels &contraction = reader.contraction;
    double activations = 0, weights = 0;
    for (auto [c, factor] : llvm::enumerate(factors)) {
      activations += reader.energy[c] * factor * factor * step * step / 12;
    }
    std::vector<double> largest(contraction.outputs), power(contraction.groups);
    ArrayRef<float> values = reader.weight.data<float>();
    contraction.forEachWeight([&](int64_t i, int64_t input, int64_t output) {
      largest[output] = std::max(largest[output], std::abs(double(values[i])) * factors[input]);
    });
    for (auto [c, factor] : llvm::enumerate(factors)) {
      power[c / (contraction.inputs / contraction.groups)] +=
          tensor.statistics->power[c] / (factor * factor) * contraction.taps;
    }
    for (auto [o, most] : llvm::enumerate(largest)) {
      weights += (most / 127) * (most / 127) / 12 * power[o / (contraction.outputs / contraction.groups)];
    }
    noise += (activations + kWeightNoise * weights) / std::max(reader.power, 1e-20);
  }
  return noise;
}

/// Tensors connected by common channel groups. They share one exponent.
struct Component {
  SmallVector<const ReadTensor *> tensors;
  llvm::MapVector<int, double> share; ///< per group, the largest share in a tensor's range
};

class Chooser {
public:
  Chooser(func::FuncOp function, const ChannelFlow &flow, const llvm::StringMap<ChannelStatistics> &statistics,
          const EqualizedKinds &kinds)
      : flow(flow), factors(flow.groups(), 1.0) {
    for (Operation &op : function.getBody().front()) {
      collect(&op, statistics, kinds);
    }
  }

  Equalization choose() {
    for (Component &component : components()) {
      chooseFor(component);
    }
    for (Value origin : flow.origins()) {
      const ChannelFlow::Channels &channels = *flow.of(origin);
      std::vector<float> found;
      for (int group : channels.groups) {
        found.push_back(float(factors[group]));
      }
      if (StringRef name = top::getTensorName(origin);
          !name.empty() && llvm::any_of(found, [](float f) { return f != 1; })) {
        result.origins[name] = std::move(found);
      }
    }
    return std::move(result);
  }

private:
  void collect(Operation *op, const llvm::StringMap<ChannelStatistics> &statistics, const EqualizedKinds &kinds) {
    std::optional<ContractionChannels> contraction = contractionChannels(op);
    if (!contraction) {
      return;
    }
    Value x = op->getOperand(0);
    auto in = statistics.find(top::getTensorName(x)), out = statistics.find(top::getTensorName(op->getResult(0)));
    const ChannelFlow::Channels *channels = flow.of(x);
    bool wanted = isa<top::MatMulOp>(op) ? kinds.matmuls : kinds.convolutions;
    if (!wanted || !channels || in == statistics.end() || out == statistics.end() ||
        in->second.low.size() != channels->groups.size() || in->second.power.size() != channels->groups.size()) {
      left.insert_range(channels ? ArrayRef<int>(channels->groups) : ArrayRef<int>());
      return;
    }
    ReadTensor &tensor = tensors[x];
    tensor.channels = channels;
    tensor.statistics = &in->second;
    double power = 0;
    for (float p : out->second.power) {
      power += p;
    }
    tensor.readers.push_back(makeReader(op, *contraction, power));
  }

  std::vector<Component> components() {
    llvm::EquivalenceClasses<int> joined;
    for (auto &[value, tensor] : tensors) {
      for (int group : tensor.channels->groups) {
        if (group != 0) {
          joined.unionSets(first(tensor), group);
        }
      }
    }
    llvm::MapVector<int, Component> found;
    for (auto &[value, tensor] : tensors) {
      if (first(tensor) == 0 || tensor.widest() <= 0) {
        continue;
      }
      Component &component = found[joined.getLeaderValue(first(tensor))];
      component.tensors.push_back(&tensor);
      for (auto [c, group] : llvm::enumerate(tensor.channels->groups)) {
        if (group != 0) {
          double &share = component.share[group];
          share = std::max({share, tensor.range(c) / tensor.widest(), kNarrowest});
        }
      }
    }
    std::vector<Component> list;
    for (auto &[leader, component] : found) {
      if (llvm::none_of(component.share, [&](const auto &entry) { return left.contains(entry.first); })) {
        list.push_back(std::move(component));
      }
    }
    return list;
  }

  /// Returns a group of the tensor other than the fixed group 0; 0 if there is none.
  static int first(const ReadTensor &tensor) {
    auto it = llvm::find_if(tensor.channels->groups, [](int group) { return group != 0; });
    return it == tensor.channels->groups.end() ? 0 : *it;
  }

  void chooseFor(const Component &component) {
    double least = 0, chosen = 0;
    for (double power : kPowers) {
      double noise = 0;
      for (const ReadTensor *tensor : component.tensors) {
        SmallVector<double> own;
        for (int group : tensor->channels->groups) {
          own.push_back(group == 0 ? 1.0 : std::pow(component.share.find(group)->second, power));
        }
        noise += noiseOf(*tensor, own);
      }
      result.before += power == 0 ? noise : 0;
      if (power == 0 || noise < least) {
        least = noise, chosen = power;
      }
    }
    result.after += least;
    result.tensors += chosen == 0 ? 0 : component.tensors.size();
    for (auto [group, share] : component.share) {
      factors[group] = std::pow(share, chosen);
    }
  }

  const ChannelFlow &flow;
  std::vector<double> factors; ///< factor per group
  llvm::MapVector<Value, ReadTensor> tensors;
  llvm::DenseSet<int> left; ///< groups with a reader that lacks statistics; they are not scaled
  Equalization result;
};

} // namespace

Equalization chooseFactors(func::FuncOp function, const ChannelFlow &flow,
                           const llvm::StringMap<ChannelStatistics> &statistics, const EqualizedKinds &kinds) {
  return Chooser(function, flow, statistics, kinds).choose();
}

} // namespace tessera::quant

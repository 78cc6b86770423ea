//===- RandomNetwork.h - Random small Top functions -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_REGRESSION_NPU_RANDOMNETWORK_H
#define TESSERA_REGRESSION_NPU_RANDOMNETWORK_H

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace tessera::npu {

using Dims = std::vector<int64_t>;

/// A function @main of f32 values of ranks 1 to 6: computations, connected by slices, views, transposes and joins of
/// their results, most of which have several readers.
class RandomNetwork {
public:
  /// Stores a constant; returns the name of its top.weight.
  using Store = std::function<std::string(const Dims &dims, const std::vector<float> &numbers)>;

  /// The ops of a network: any; norms and softmax of long rows, followed by maps; or ops on indices and i64 masks.
  enum class Kind { any, longRows, indices };

  /// Draws the first |steps| steps of the network of a seed.
  RandomNetwork(uint64_t seed, unsigned steps, Kind kind, Store store);

  std::string text() const;
  /// Returns a short line for each op, for reports.
  const std::string &summary() const { return names; }

  static constexpr unsigned kMostSteps = 9;

private:
  struct Value {
    std::string name;
    Dims dims;
    bool isInput = false, storedDirectly = false; ///< storedDirectly: is a result although other ops read it
    bool isRead = false;
  };
  using Stage = bool (RandomNetwork::*)();

  int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(generator); }
  bool oneIn(int64_t count) { return between(1, count) == 1; }
  template <typename T>
  T pickOf(const std::vector<T> &all) {
    return all[size_t(between(0, int64_t(all.size()) - 1))];
  }
  int64_t drawDim();
  Dims drawDims(int64_t rank);
  Dims factorise(int64_t count, int64_t rank);
  /// Finds a value that |fits|; prefers recent ones.
  std::optional<size_t> find(const std::function<bool(const Dims &)> &fits);
  size_t pick();
  /// Picks a value of |rank|; reshapes it if necessary.
  size_t pickOfRank(int64_t rank);
  /// Picks a value for ops on rows; in networks of long rows, mostly reshaped to few long rows.
  size_t pickRows();
  size_t addInput(Dims dims);
  std::string constant(const Dims &dims, double low, double high);
  size_t add(const std::string &op, const std::vector<size_t> &operands, const std::string &constants,
             const std::string &attributes, Dims dims, const std::vector<Dims> &constantDims = {});
  size_t reshaped(size_t value, Dims dims);
  size_t sliced(size_t value, const Dims &starts, const Dims &sizes, const Dims &steps);

  bool reshape();
  bool slice();
  bool split();
  bool transpose();
  bool concat();
  bool expand();
  bool pad();
  bool conv();
  bool conv1d();
  bool matmul();
  bool products();
  bool gemv();
  bool pool();
  bool reduce();
  bool softmax();
  bool norm();
  bool unary();
  bool binary();
  bool scale();
  bool gather();
  bool runningSum();
  bool mask();
  bool writeRows();
  bool resize();
  bool attention();

  const Kind kind;
  Store store;
  std::mt19937_64 generator;
  std::vector<Value> values;
  std::vector<Dims> masks; ///< i64 arguments %m0, %m1 ...
  std::string body, names;
  unsigned constants = 0;
};

} // namespace tessera::npu

#endif // TESSERA_REGRESSION_NPU_RANDOMNETWORK_H

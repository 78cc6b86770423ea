// SPDX-License-Identifier: Apache-2.0
//===- FeedBack.h - GPTQ: rounding weights with error feedback --*- C++ -*-===//
#ifndef TESSERA_QUANT_CALIBRATION_FEEDBACK_H
#define TESSERA_QUANT_CALIBRATION_FEEDBACK_H

#include <cstdint>
#include <vector>

namespace tessera::quant {

/// Rounds rows of weights with error feedback (GPTQ, Frantar et al. 2022). The error e of a row is measured as its
/// inputs weight it: e H e', where H holds the second moments of the inputs. Weights are rounded one after the other,
/// those with the largest input power first; each compensates the errors of the weights before it. With the Cholesky
/// factor H = L L', e H e' = |e L|^2, and component j of e L is e_j L_jj plus terms of weights after j. So weight j is
/// rounded after all weights that follow it in the factor, and no inverse of H is needed.
class FeedBack {
public:
  /// |moments| is symmetric, [depth, depth]; |damping| is added to its diagonal. Throws std::invalid_argument unless
  /// all values are finite and the damping is positive.
  FeedBack(const float *moments, int64_t depth, float damping);

  /// The weights to round: weights [rows, depth], scales [rows, ceil(depth / run)], where each scale applies to `run`
  /// consecutive weights, and the range of the integers.
  struct Rows {
    const float *weights, *scales;
    int64_t rows, run;
    int lowest, highest;
    bool clipFirst; ///< clip the weights to the range first, so that the clipping error is not compensated
  };
  /// Computes the integers [rows, depth] and, per row, the remaining error e (H + damping) e'.
  void round(const Rows &rows, int8_t *integers, double *losses) const;

  /// Solves X (H + damping) = right for X, both [rows, depth]. X is the least-squares weights for the wanted outputs.
  void solve(const float *right, int64_t rows, float *solution) const;

private:
  void factorise(float damping);
  /// Computes causes[c] += sum over i in [begin, end) of factor[i][column + c] * errors[i], for c < columns.
  void addCauses(const std::vector<float> &errors, int64_t width, int64_t begin, int64_t end, int64_t column,
                 int64_t columns, float *causes) const;

  int64_t depth, stride;
  std::vector<int64_t> order; ///< order[i] is the index of the i-th weight of the factor; rounding starts with the last
                              ///< one
  std::vector<float> factor;  ///< [depth, stride]: L with each column divided by its diagonal element
  std::vector<float> pivots;  ///< diagonal of L
};

/// Weights [groups, rows, depth] to round with several sets of scales. Each group has its own moments [groups, depth,
/// depth]; the scales are [ways, groups, rows, ceil(depth / run)].
struct Groups {
  const float *weights, *moments, *damping, *scales;
  int64_t groups, rows, depth, ways, run;
  int lowest, highest;
  bool clipFirst;
};
/// Calls FeedBack::solve for each group.
void solveGroups(const float *moments, const float *damping, const float *right, int64_t groups, int64_t rows,
                 int64_t depth, float *solution);
/// Calls FeedBack::round for each group. Integers are [ways, groups, rows, depth], losses [ways, groups, rows].
void roundGroups(const Groups &groups, int8_t *integers, double *losses);

} // namespace tessera::quant

#endif // TESSERA_QUANT_CALIBRATION_FEEDBACK_H

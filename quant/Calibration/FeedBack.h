// SPDX-License-Identifier: Apache-2.0
//===- FeedBack.h - Rounding with regard to what is multiplied --*- C++ -*-===//
#ifndef QUANT_CALIBRATION_FEEDBACK_H
#define QUANT_CALIBRATION_FEEDBACK_H

#include <cstdint>
#include <vector>

namespace tessera::quant {

/// Rounds rows of weights so that the error e of each is small as its inputs see it: e H e', where H are the second
/// moments of the inputs. One weight after the other, those with the most input first; each makes up for what the
/// errors before it cause (GPTQ, Frantar et al. 2022). With H = L L', L lower triangular, e H e' = |e L|^2, and
/// column j of e L ends with e_j L_jj: so j is rounded once all after it are, no inverse is needed.
class FeedBack {
public:
  /// |moments| [depth, depth], symmetric; |damping| is added to its diagonal. Throws std::invalid_argument unless all
  /// are finite and damping is positive.
  FeedBack(const float *moments, int64_t depth, float damping);

  /// Rows to round: their weights [rows, depth]; the scales [rows, depth / run (rounded up)] of the integers, each for
  /// `run` weights that follow each other; the least and greatest integer.
  struct Rows {
    const float *weights, *scales;
    int64_t rows, run;
    int lowest, highest;
    bool clipFirst; ///< what the range clips is no error to make up for
  };
  /// Integers [rows, depth], and of each row what the errors come to, e (H + damping) e'.
  void round(const Rows &rows, int8_t *integers, double *losses) const;

  /// X of X (H + damping) = right, both [rows, depth]: weights of least squared error, of what the outputs are to be.
  void solve(const float *right, int64_t rows, float *solution) const;

private:
  void factorise(float damping);
  /// causes[c] += sum over i in [begin, end) of factor[i][column + c] * errors[i], for c below columns.
  void addCauses(const std::vector<float> &errors, int64_t width, int64_t begin, int64_t end, int64_t column,
                 int64_t columns, float *causes) const;

  int64_t depth, stride;
  std::vector<int64_t> order; ///< order[i]: which weight is the i-th in the factor; rounding goes from the last
  std::vector<float> factor;  ///< [depth, stride] L, each column divided by its diagonal
  std::vector<float> pivots;  ///< the diagonal
};

/// Weights [groups, rows, depth], each group with moments [groups, depth, depth] of its own, rounded in several ways
/// that differ in the scales [ways, groups, rows, depth / run (rounded up)].
struct Groups {
  const float *weights, *moments, *damping, *scales;
  int64_t groups, rows, depth, ways, run;
  int lowest, highest;
  bool clipFirst;
};
/// See FeedBack::solve, for each group.
void solveGroups(const float *moments, const float *damping, const float *right, int64_t groups, int64_t rows,
                 int64_t depth, float *solution);
/// See FeedBack::round. Integers [ways, groups, rows, depth], losses [ways, groups, rows].
void roundGroups(const Groups &groups, int8_t *integers, double *losses);

} // namespace tessera::quant

#endif // QUANT_CALIBRATION_FEEDBACK_H

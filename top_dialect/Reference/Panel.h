//===- Panel.h - Inner loop of convolution and matmul ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_TOP_DIALECT_REFERENCE_PANEL_H
#define TESSERA_TOP_DIALECT_REFERENCE_PANEL_H

#include <cstdint>

namespace tessera::top::reference {

/// Computes acc[p] += sum over k of row[k] * panel[k * width + p], for p < width. Integers wrap around.
void multiplyPanel(const double *row, const double *panel, int64_t depth, int64_t width, double *acc);
void multiplyPanel(const int64_t *row, const int64_t *panel, int64_t depth, int64_t width, int64_t *acc);
void multiplyPanel(const uint64_t *row, const uint64_t *panel, int64_t depth, int64_t width, uint64_t *acc);

/// Returns the number of columns per panel such that a panel of `depth` rows stays in the cache.
int64_t panelWidth(int64_t depth, int64_t columns);

} // namespace tessera::top::reference

#endif // TESSERA_TOP_DIALECT_REFERENCE_PANEL_H

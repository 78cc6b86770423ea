//===- CpuModel.cpp - Speed of a CPU --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/CpuModel.h"

#include "llvm/ADT/STLExtras.h"

namespace tessera::native {

static constexpr double kPerSecond = 1e9; ///< of a rate per nanosecond

double CpuModel::seconds(double macs, double otherOperations, double bytes) const {
  auto integers = llvm::find_if(rates.macs, [](const auto &rate) { return rate.first == "INT8"; });
  double computes = macs > 0 ? macs / (integers->second * kPerSecond) : otherOperations / (operations * kPerSecond);
  return launchSeconds + std::max(computes, bytes / (rates.bytes * kPerSecond));
}

CpuModel unknownHost() { return {.rates = {.macs = {{"INT8", 12}}, .bytes = 4}}; }

} // namespace tessera::native

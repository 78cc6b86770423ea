// SPDX-License-Identifier: Apache-2.0
//===- CpuFeatures.cpp - Names and requests of CPU features ---------------===//
#include "bmodel/cpu_features.h"

#include "CpuDetection.h"

#include <cstdio>

using namespace bmodel;

namespace {

const char *featureName(unsigned index) {
  switch (index) {
#define BM_CPU_FEATURE(bit, id, name)                                                                                  \
  case bit:                                                                                                            \
    return name;
#include "bmodel/cpu_features.inc"
#undef BM_CPU_FEATURE
  default:
    return nullptr;
  }
}

} // namespace

uint64_t bmodel::cpuFeatures() {
  static const uint64_t features = detectCpuFeatures();
  return features;
}

uint64_t bmodel::requestCpuFeatures(uint64_t wanted) { return permittedCpuFeatures(wanted & cpuFeatures()); }

const char *bmodel::cpuFeatureNames(uint64_t features, char *buffer, size_t size) {
  size_t used = 0;
  buffer[0] = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    if (!(features >> bit & 1)) {
      continue;
    }
    char unknown[16];
    const char *name = featureName(bit);
    if (!name) {
      snprintf(unknown, sizeof(unknown), "bit %u", bit);
      name = unknown;
    }
    const int written = snprintf(buffer + used, size - used, "%s%s", used ? ", " : "", name);
    if (written < 0 || size_t(written) >= size - used) {
      break;
    }
    used += size_t(written);
  }
  return buffer;
}

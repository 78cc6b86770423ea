// SPDX-License-Identifier: Apache-2.0
//===- CpuDetectionGeneric.cpp - CPU features of other machines -----------===//
#include "CpuDetection.h"

uint64_t bmodel::detectCpuFeatures() { return 0; }

uint64_t bmodel::permittedCpuFeatures(uint64_t features) { return features; }

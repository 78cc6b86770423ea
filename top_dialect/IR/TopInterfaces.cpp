//===- TopInterfaces.cpp - Generated interface definitions ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopInterfaces.h"

#include "top_dialect/IR/TopInterfaces.cpp.inc"

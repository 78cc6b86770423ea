// SPDX-License-Identifier: Apache-2.0
//===- DotProductsAvx2.cpp - sumPairs for AVX2 (see PairSums.h) -----------===//
#define PAIR_SUMS sumPairsAvx2
#include "DotProducts.h"
#include "PairSums.h"

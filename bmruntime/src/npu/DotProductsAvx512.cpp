// SPDX-License-Identifier: Apache-2.0
//===- DotProductsAvx512.cpp - sumPairs for AVX-512 with VNNI (see PairSums.h) -===//
#define PAIR_SUMS sumPairsAvx512
#include "DotProducts.h"
#include "PairSums.h"

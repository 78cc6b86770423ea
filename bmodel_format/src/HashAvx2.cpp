// SPDX-License-Identifier: Apache-2.0
//===- HashAvx2.cpp - XXH3 compiled for Avx2 (see HashVariant.h) ---===//
#define HASH_VARIANT hashAvx2
#include "HashVariant.h"

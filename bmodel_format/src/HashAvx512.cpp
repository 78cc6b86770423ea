// SPDX-License-Identifier: Apache-2.0
//===- HashAvx512.cpp - XXH3 compiled for Avx512 (see HashVariant.h) ---===//
#define HASH_VARIANT hashAvx512
#include "HashVariant.h"

//===- WideVectors.h - Loops compiled for wider vectors ---------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_QUANT_TRANSFORMS_WEIGHTS_WIDEVECTORS_H
#define TESSERA_QUANT_TRANSFORMS_WEIGHTS_WIDEVECTORS_H

/// Compiles a function a second time with wider vectors (AVX2, chosen at run time). FMA is not used: it rounds once
/// instead of twice, but the same weights must give the same integers on every machine.
#if defined(__x86_64__)
#define TESSERA_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define TESSERA_WIDE_VECTORS
#endif

#endif // TESSERA_QUANT_TRANSFORMS_WEIGHTS_WIDEVECTORS_H

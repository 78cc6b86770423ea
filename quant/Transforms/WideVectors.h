//===- WideVectors.h - Loops for the vectors that a machine has -*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Of a function that is compiled a second time with wider vectors. Not with fused multiply-adds, which round once
/// where two operations round twice: the same weights give the same integers on every machine.
#if defined(__x86_64__)
#define TESSERA_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define TESSERA_WIDE_VECTORS
#endif

//===- AbacusTarget.h - Target of the smallest family of chips --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The compiler's side of the example family in docs/adding-a-target.md: an Abacus computes maps and matmuls of f32 with
// plain loops, in its own memory. The runtime's side is bmruntime/cts/abacus.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_TEST_ABACUS_ABACUSTARGET_H
#define TESSERA_CODEGEN_TEST_ABACUS_ABACUSTARGET_H

#include "codegen/Target/Registry.h"

namespace tessera::abacus {

/// The family that `tessera_family(abacus FOLDER .. LIB ..)` would register. A family in a test is not in the build's
/// list.
extern const codegen::Family kFamily;

} // namespace tessera::abacus

#endif // TESSERA_CODEGEN_TEST_ABACUS_ABACUSTARGET_H

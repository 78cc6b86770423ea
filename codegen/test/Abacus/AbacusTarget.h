//===- AbacusTarget.h - The smallest family of chips ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// The compiler's side of the family that docs/adding-a-target.md follows: an Abacus computes maps and matrix products
// of f32 by plain loops, in memory of its own. The runtime's side is bmruntime/cts/abacus.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_CODEGEN_TEST_ABACUS_ABACUSTARGET_H
#define TESSERA_CODEGEN_TEST_ABACUS_ABACUSTARGET_H

#include "codegen/Target/Registry.h"

namespace tessera::abacus {

/// What `tessera_family(abacus FOLDER .. LIB ..)` would find: a family in a test is in no build's list.
extern const codegen::Family kFamily;

} // namespace tessera::abacus

#endif // TESSERA_CODEGEN_TEST_ABACUS_ABACUSTARGET_H

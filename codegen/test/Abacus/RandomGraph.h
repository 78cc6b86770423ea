//===- RandomGraph.h - Small networks of a seed -----------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TEST_ABACUS_RANDOMGRAPH_H
#define TESSERA_CODEGEN_TEST_ABACUS_RANDOMGRAPH_H

#include <cstdint>
#include <string>

namespace tessera::abacus {

/// A module of Top ops as text, the same one for a seed: elementwise functions and matrix products, which an Abacus
/// can, among ops that it cannot, on tensors of 0 to 7 dims. Values have several readers; any of them may be a result,
/// twice too; so may inputs and constants.
std::string randomGraph(uint32_t seed);

} // namespace tessera::abacus

#endif // TESSERA_CODEGEN_TEST_ABACUS_RANDOMGRAPH_H

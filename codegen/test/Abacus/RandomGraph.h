//===- RandomGraph.h - Random small networks --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TEST_ABACUS_RANDOMGRAPH_H
#define TESSERA_CODEGEN_TEST_ABACUS_RANDOMGRAPH_H

#include <cstdint>
#include <string>

namespace tessera::abacus {

/// Returns a module of Top ops as text, the same for the same seed. It mixes elementwise functions and matmuls, which
/// an Abacus supports, with ops that it does not, on tensors of 0 to 7 dims. Values have several readers. Any value may
/// be a result, even twice; so may inputs and constants.
std::string randomGraph(uint32_t seed);

} // namespace tessera::abacus

#endif // TESSERA_CODEGEN_TEST_ABACUS_RANDOMGRAPH_H

// SPDX-License-Identifier: Apache-2.0
//===- sha256.h - Incremental SHA-256 -------------------------------------===//
#ifndef BMODEL_SHA256_H
#define BMODEL_SHA256_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace bmodel {

/// SHA-256 (FIPS 180-4). Uses the SHA instructions of CPUs that have them.
class Sha256 {
public:
  void update(const void *data, size_t size);
  std::array<uint8_t, 32> finish();

private:
  uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t pending[64];
  size_t pendingBytes = 0;
  uint64_t totalBytes = 0;
};

} // namespace bmodel

#endif // BMODEL_SHA256_H

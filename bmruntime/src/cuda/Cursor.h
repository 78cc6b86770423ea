// SPDX-License-Identifier: Apache-2.0
//===- Cursor.h - Bounded reader of untrusted bytes -----------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CUDA_CURSOR_H
#define TESSERA_BMRUNTIME_SRC_CUDA_CURSOR_H

#include <cstdint>
#include <cstring>

namespace bmrt::cuda {

/// Reads values one after another; never reads beyond the end.
class Cursor {
public:
  Cursor(const unsigned char *begin, uint64_t bytes) : at(begin), rest(bytes) {}

  template <typename T>
  bool read(T &value) {
    if (rest < sizeof value) {
      return false;
    }
    memcpy(&value, at, sizeof value);
    return skip(sizeof value);
  }
  /// Skips |bytes|; returns false if fewer are left.
  bool skip(uint64_t bytes) {
    if (rest < bytes) {
      return false;
    }
    at += bytes, rest -= bytes;
    return true;
  }
  const unsigned char *position() const { return at; }
  bool isAtEnd() const { return rest == 0; }

private:
  const unsigned char *at;
  uint64_t rest;
};

} // namespace bmrt::cuda

#endif // TESSERA_BMRUNTIME_SRC_CUDA_CURSOR_H

// SPDX-License-Identifier: Apache-2.0
//===- TestChip.h - The built-in chips, for tests ---------------------------===//
#ifndef TESSERA_BMODEL_FORMAT_TEST_TESTCHIP_H
#define TESSERA_BMODEL_FORMAT_TEST_TESTCHIP_H

#include "bmodel/npu/chip.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <string>

namespace bmodel::npu {

inline std::string chipText(const std::string &name) {
  std::ifstream file(std::string(NPU_CHIPS) + "/" + name + ".json");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Chip chipOf(const std::string &text) {
  Chip chip;
  std::string error;
  if (!parseChip(text, "chip", chip, error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    std::abort();
  }
  return chip;
}

inline Chip chipNamed(const std::string &name) { return chipOf(chipText(name)); }

/// Returns npu-edge with some fields changed, e.g. "lanes=12".
inline Chip changedEdge(std::initializer_list<const char *> assignments) {
  std::string text = chipText("npu-edge"), error;
  for (const char *assignment : assignments) {
    if (!setField(text, assignment, error)) {
      std::fprintf(stderr, "%s\n", error.c_str());
      std::abort();
    }
  }
  return chipOf(text);
}

/// Returns a chip that differs from the built-in ones in what they share: its lanes and banks are not powers of two,
/// its DMA does not convert types, and it requantises with integers.
inline Chip oddChip() {
  return changedEdge({"name=odd", "lanes=12", "local_memory.banks=5", "local_memory.port_bytes=8",
                      "local_memory.bytes_per_lane=40000", "matrix_unit.reduction=5", "matrix_unit.pixels=3",
                      "matrix_unit.depthwise_divisor=3", "dma.casts=[]", "requantise=fixed"});
}

} // namespace bmodel::npu

#endif // TESSERA_BMODEL_FORMAT_TEST_TESTCHIP_H

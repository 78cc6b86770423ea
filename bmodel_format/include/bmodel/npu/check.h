// SPDX-License-Identifier: Apache-2.0
//===- check.h - Safety checks of command streams ---------------------------===//
//
// Commands contain all addresses, so every check can be made before anything runs. The compiler checks its output; the
// runtime checks the streams of the files that it loads.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NPU_CHECK_H
#define BMODEL_NPU_CHECK_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

#include <vector>

namespace bmodel::npu {

/// Sizes in bytes of the regions outside the chip. `io` lists the caller's buffers: inputs first, then outputs.
struct RegionSizes {
  uint64_t constants = 0, workspace = 0;
  std::vector<uint64_t> io;
  uint32_t inputs = 0; ///< number of inputs in `io`
};

/// Checks the structure (verifyStream), the constraints of each command on this chip, and every operand: it lies inside
/// its region, is aligned, and uses only lanes and types that the chip has.
bool checkOperands(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes,
                   Status &status);

/// Checks that the map programs among the constants are valid and have the instruction counts that their commands
/// state. The stream must have passed checkOperands.
bool checkPrograms(const Descriptor *commands, size_t count, const unsigned char *constants, Status &status);

/// Checks for faults that depend on timing or show up only later: two commands that may run at the same time access the
/// same bytes and one of them writes; a command reads bytes that no command has written; bytes of an output are never
/// written. The stream must have passed checkOperands. Takes time and memory in proportion to the bytes that the
/// commands touch.
bool checkOrder(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes, Status &status);

/// Runs all of the checks above. A stream must pass them before it runs.
bool checkStream(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes,
                 const unsigned char *constants, Status &status);

/// Numbers the commands and gives each the smallest sufficient `wait`: for every timing, the result is the same as if
/// the commands ran one after another in the given order.
void assignWaits(std::vector<Descriptor> &commands, const Chip &chip);

/// Returns one of the orders in which the commands of a verified stream may run: each queue runs in order, and no
/// command runs before the command that it waits for. The same seed yields the same order.
std::vector<size_t> legalOrder(const Descriptor *commands, size_t count, uint64_t seed);

} // namespace bmodel::npu

#endif // BMODEL_NPU_CHECK_H

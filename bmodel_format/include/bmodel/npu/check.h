// SPDX-License-Identifier: Apache-2.0
//===- check.h - Whether a stream is safe to run on a chip ------------------===//
//
// Addresses are in the commands, so all of this is known before anything runs: the compiler checks what it has made,
// the runtime what it is given.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_NPU_CHECK_H
#define BMODEL_NPU_CHECK_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

#include <vector>

namespace bmodel::npu {

/// Sizes in bytes of what lies outside the chip. io: inputs first, then outputs.
struct RegionSizes {
  uint64_t constants = 0, workspace = 0;
  std::vector<uint64_t> io;
  uint32_t inputs = 0; ///< how many of io are inputs
};

/// Structure (verifyStream), what each command asks of the chip, and every operand: inside its region and aligned, in
/// lanes and of types that the chip has.
bool checkOperands(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes,
                   Status &status);

/// The programs of map commands among the constants: valid, of as many instructions as the commands say. For streams
/// that checkOperands has passed.
bool checkPrograms(const Descriptor *commands, size_t count, const unsigned char *constants, Status &status);

/// What goes wrong only for some timings, or only later: two commands that may run at the same time touch the same
/// bytes and one of them writes; bytes are read that nobody has written; bytes of an output are never written. For
/// streams that checkOperands has passed. Takes time and memory in proportion to what the commands touch.
bool checkOrder(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes, Status &status);

/// All of these: what a stream must pass before it runs.
bool checkStream(const Descriptor *commands, size_t count, const Chip &chip, const RegionSizes &sizes,
                 const unsigned char *constants, Status &status);

/// Numbers the commands and lets each wait for as little as needed: whatever the timing, the result is that of running
/// them one after another in the order given.
void assignWaits(std::vector<Descriptor> &commands, const Chip &chip);

/// One of the orders in which the commands of a verified stream may run: those of a queue one after another, none
/// before what it waits for. The same seed gives the same order.
std::vector<size_t> legalOrder(const Descriptor *commands, size_t count, uint64_t seed);

} // namespace bmodel::npu

#endif // BMODEL_NPU_CHECK_H

// SPDX-License-Identifier: Apache-2.0
//===- CheckCommands.h - Constraints of commands on a chip ------------------===//
#ifndef BMODEL_NPU_CHECK_COMMANDS_H
#define BMODEL_NPU_CHECK_COMMANDS_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

namespace bmodel::npu {

/// Returns null, or what is wrong with the command apart from its operands, as "field: fault". Requires that all
/// mandatory operands are present.
const char *faultOf(const Descriptor &command, const Chip &chip);

} // namespace bmodel::npu

#endif // BMODEL_NPU_CHECK_COMMANDS_H

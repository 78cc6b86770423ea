// SPDX-License-Identifier: Apache-2.0
//===- CheckCommands.h - What a command may ask of a chip -------------------===//
#ifndef BMODEL_NPU_CHECK_COMMANDS_H
#define BMODEL_NPU_CHECK_COMMANDS_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

namespace bmodel::npu {

/// Null, or what is wrong with the command by itself: "field: what". Its operands are known to be there.
const char *faultOf(const Descriptor &command, const Chip &chip);

} // namespace bmodel::npu

#endif // BMODEL_NPU_CHECK_COMMANDS_H

// SPDX-License-Identifier: Apache-2.0
//===- CheckCommands.h - Constraints of commands on a chip ------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_NPU_CHECKCOMMANDS_H
#define TESSERA_BMODEL_FORMAT_SRC_NPU_CHECKCOMMANDS_H

#include "bmodel/npu/chip.h"
#include "bmodel/npu/isa.h"

namespace bmodel::npu {

/// Returns null, or what is wrong with the command apart from its operands, as "field: fault". Requires that all
/// mandatory operands are present.
const char *faultOf(const Descriptor &command, const Chip &chip);

} // namespace bmodel::npu

#endif // TESSERA_BMODEL_FORMAT_SRC_NPU_CHECKCOMMANDS_H

// SPDX-License-Identifier: Apache-2.0
//===- Contract.h - Whether launches are what their code relies on --------===//
#ifndef BMRT_CORE_CONTRACT_H
#define BMRT_CORE_CONTRACT_H

#include "Status.h"
#include "bmodel/kernel_contract.h"

#include <cstring>

namespace bmodel {
struct StageDef;
}

namespace bmrt::core {

struct StageProgram;
struct SubnetProgram;

/// What the code of a kernel relies on, as the code itself says.
struct KernelContract {
  KernelContract() = default;
  /// |note| as a back end gives it; null: the code says nothing, as that of older compilers.
  explicit KernelContract(const void *note) : isKnown(note) {
    if (note) {
      memcpy(&head, note, sizeof(head));
      args = static_cast<const unsigned char *>(note) + sizeof(head);
    }
  }

  bm_kernel_arg arg(uint32_t index) const {
    bm_kernel_arg result;
    memcpy(&result, args + index * sizeof(result), sizeof(result));
    return result;
  }

  uint32_t alignment(uint32_t index) const {
    const uint32_t asked = arg(index).alignment;
    return asked ? asked : head.alignment;
  }

  bool isKnown = false;
  bm_kernel_contract head = {};
  const unsigned char *args = nullptr; ///< head.arg_count times bm_kernel_arg, of any alignment, in the image
};

/// Reads the contracts of the kernels of |subnet| and compares every launch with them: tiles, scratch, the bytes of
/// each tensor, what is written. Afterwards no call of unaltered code touches a byte outside of its tensors,
/// whatever the tables of the file say. Code without contracts is taken as it is. |stage| and |subnet| have been
/// validated.
bmrt_code_t checkContracts(const bmodel::StageDef &stage, SubnetProgram &subnet, bmrt_status_t *status);

/// Finds what the steps of |stage| need of the address of each tensor in the caller's memory: what contracts say where
/// launches alone use it, else BMRT_ALIGNMENT. The contracts have been checked.
bmrt_code_t findAlignments(StageProgram &stage, bmrt_status_t *status);

} // namespace bmrt::core

#endif // BMRT_CORE_CONTRACT_H

// SPDX-License-Identifier: Apache-2.0
//===- Contract.h - Checks launches against kernel contracts --------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_CONTRACT_H
#define TESSERA_BMRUNTIME_SRC_CORE_CONTRACT_H

#include "Status.h"
#include "bmodel/kernel_contract.h"

#include <cstring>

namespace bmodel {
struct StageDef;
}

namespace bmrt::core {

struct StageProgram;
struct SubnetProgram;

/// The requirements of a kernel's code, as stored in the code (bmodel/kernel_contract.h).
struct KernelContract {
  KernelContract() = default;
  /// |note| is the result of a back end's find_contract; null if the code has no contract (older compilers).
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
  const unsigned char *args = nullptr; ///< head.arg_count times bm_kernel_arg, of any alignment, in the code segment
};

/// Reads the contracts of the kernels of |subnet| and compares every launch with them: tiles, scratch, the bytes of
/// each tensor, and accesses. Afterwards no call of unaltered code accesses a byte outside its tensors, whatever the
/// tables of the file contain. Code without contracts is accepted as is. |stage| and |subnet| must have been validated.
bmrt_code_t checkContracts(const bmodel::StageDef &stage, SubnetProgram &subnet, bmrt_status_t *status);

/// Computes the alignment that the steps of |stage| require of each tensor in the caller's memory: if only launches use
/// the tensor, the alignment in their contracts, otherwise BMRT_ALIGNMENT. Requires checked contracts.
bmrt_code_t findAlignments(StageProgram &stage, bmrt_status_t *status);

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_CONTRACT_H

// SPDX-License-Identifier: Apache-2.0
//===- KernelContract.h - The requirements of a kernel --------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_KERNELCONTRACT_H
#define TESSERA_BMRUNTIME_SRC_CORE_KERNELCONTRACT_H

#include "bmodel/kernel_contract.h"

#include <cstdint>
#include <cstring>

namespace bmrt::core {

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

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_KERNELCONTRACT_H

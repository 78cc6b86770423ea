// SPDX-License-Identifier: Apache-2.0
//===- KernelContract.h - The requirements of a kernel --------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_KERNELCONTRACT_H
#define TESSERA_BMRUNTIME_SRC_CORE_KERNELCONTRACT_H

#include "bmodel/dim_terms.h"
#include "bmodel/kernel_contract.h"

#include <cstdint>
#include <cstring>

namespace bmrt::core {

/// The requirements of a kernel's code, as stored in the code (bmodel/kernel_contract.h). Its parts have any alignment.
class KernelContract {
public:
  /// Finds the parts of the contract at |note|, which has |bytes| bytes. Returns false if they do not fit or the
  /// version is unknown.
  bool read(const void *note, uint64_t bytes);

  bm_kernel_arg arg(uint32_t index) const { return load<bm_kernel_arg>(args, index); }
  uint32_t alignment(uint32_t index) const {
    const uint32_t asked = arg(index).alignment;
    return asked ? asked : head.alignment;
  }

  bool takesDims() const { return head.version == BM_CONTRACT_VERSION_DIMS; }
  bm_kernel_param param(uint32_t index) const { return load<bm_kernel_param>(params, index); }
  /// Returns the expression for the tiles (0) or for the bytes of argument |index| - 1; it is empty for a constant.
  bmodel::DimExpression expression(uint32_t index) const;

  bool isKnown = false; ///< false if the code has no contract (older compilers)
  bm_kernel_contract head = {};
  uint32_t paramCount = 0;
  const char *symbol = nullptr;

private:
  template <typename T>
  static T load(const unsigned char *array, uint64_t index) {
    T result;
    memcpy(&result, array + index * sizeof(T), sizeof(T));
    return result;
  }

  const unsigned char *args = nullptr, *params = nullptr, *lengths = nullptr, *terms = nullptr;
};

} // namespace bmrt::core

#endif // TESSERA_BMRUNTIME_SRC_CORE_KERNELCONTRACT_H

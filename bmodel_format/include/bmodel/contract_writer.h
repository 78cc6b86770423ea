// SPDX-License-Identifier: Apache-2.0
//===- contract_writer.h - Bytes of a kernel contract ---------------------===//
//
// Writes the contents of the note that kernel_contract.h defines. Not part of the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef BMODEL_CONTRACT_WRITER_H
#define BMODEL_CONTRACT_WRITER_H

#include "bmodel/dim_terms.h"
#include "bmodel/kernel_contract.h"

#include <cstdint>
#include <string>
#include <vector>

namespace bmodel {

/// A number, or a postfix expression over the parameters of a kernel if |terms| is not empty.
struct ContractSize {
  uint64_t value = 0;
  std::vector<DimTerm> terms; ///< a term with DimOp::Slot refers to the parameter with that index
};

struct ContractArgument {
  ContractSize bytes;
  uint32_t access = BM_ARG_READ; ///< bits BM_ARG_READ and BM_ARG_WRITE
  uint32_t alignment = 0;
};

/// The requirements of a kernel; see kernel_contract.h.
struct ContractWriter {
  std::string symbol;
  ContractSize tiles;
  uint64_t scratchBytes = 0;
  uint64_t cpuFeatures = 0;
  uint32_t alignment = 0;
  std::vector<ContractArgument> arguments;
  std::vector<DimRange> params; ///< by index in LaunchDef.dims

  /// Returns the contents of the note, from bm_kernel_contract to the symbol's terminating 0. The version is
  /// BM_CONTRACT_VERSION if the kernel has no parameters.
  std::string bytes() const;
};

} // namespace bmodel

#endif // BMODEL_CONTRACT_WRITER_H

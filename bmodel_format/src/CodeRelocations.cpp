// SPDX-License-Identifier: Apache-2.0
//===- CodeRelocations.cpp - Families with constant addresses in code -----===//
#include "CodeRelocation.h"

namespace bmodel {
namespace npu {
const CodeRelocation &codeRelocation();
} // namespace npu

const CodeRelocation *findCodeRelocation(std::string_view family) {
  return family == "npu" ? &npu::codeRelocation() : nullptr;
}

} // namespace bmodel

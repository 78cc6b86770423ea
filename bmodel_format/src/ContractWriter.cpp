// SPDX-License-Identifier: Apache-2.0
//===- ContractWriter.cpp - Bytes of a kernel contract --------------------===//
#include "bmodel/contract_writer.h"

using namespace bmodel;

namespace {

template <typename T>
void append(std::string &bytes, const T &value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(value));
}

void appendTerms(std::string &bytes, const ContractSize &size) {
  for (const DimTerm &term : size.terms) {
    append(bytes, bm_dim_term{term.value(), uint8_t(term.op()), {}});
  }
}

} // namespace

std::string ContractWriter::bytes() const {
  std::string result;
  bm_kernel_contract head = {};
  head.version = params.empty() ? BM_CONTRACT_VERSION : BM_CONTRACT_VERSION_DIMS;
  head.arg_count = uint32_t(arguments.size());
  head.tiles = tiles.value, head.scratch_bytes = scratchBytes;
  head.cpu_features = cpuFeatures;
  head.alignment = alignment;
  head.symbol_bytes = uint32_t(symbol.size() + 1);
  append(result, head);
  for (const ContractArgument &argument : arguments) {
    append(result, bm_kernel_arg{argument.bytes.value, argument.access, argument.alignment});
  }
  if (!params.empty()) {
    append(result, uint32_t(params.size()));
    for (const DimRange &range : params) {
      append(result, bm_kernel_param{range.min, range.max});
    }
    append(result, uint32_t(tiles.terms.size()));
    for (const ContractArgument &argument : arguments) {
      append(result, uint32_t(argument.bytes.terms.size()));
    }
    appendTerms(result, tiles);
    for (const ContractArgument &argument : arguments) {
      appendTerms(result, argument.bytes);
    }
  }
  return result.append(symbol.c_str(), symbol.size() + 1);
}

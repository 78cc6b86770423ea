// SPDX-License-Identifier: Apache-2.0
//===- KernelContract.cpp - The requirements of a kernel ------------------===//
#include "KernelContract.h"

using namespace bmrt::core;

bool KernelContract::read(const void *note, uint64_t bytes) {
  const unsigned char *at = static_cast<const unsigned char *>(note);
  auto take = [&](uint64_t count, uint64_t size) -> const unsigned char * {
    if (count > bytes / size) {
      return nullptr;
    }
    bytes -= count * size;
    at += count * size;
    return at - count * size;
  };
  const unsigned char *first = take(1, sizeof(head));
  if (!first) {
    return false;
  }
  head = load<bm_kernel_contract>(first, 0);
  args = take(head.arg_count, sizeof(bm_kernel_arg));
  if (head.version == 0 || head.version > BM_CONTRACT_VERSION_DIMS || !args) {
    return false;
  }
  if (takesDims()) {
    const unsigned char *counted = take(1, sizeof(paramCount));
    paramCount = counted ? load<uint32_t>(counted, 0) : 0;
    params = counted ? take(paramCount, sizeof(bm_kernel_param)) : nullptr;
    lengths = params ? take(uint64_t(head.arg_count) + 1, sizeof(uint32_t)) : nullptr;
    uint64_t total = 0;
    for (uint32_t i = 0; lengths && i <= head.arg_count; ++i) {
      total += load<uint32_t>(lengths, i);
    }
    terms = lengths ? take(total, sizeof(bm_dim_term)) : nullptr;
    if (!terms) {
      return false;
    }
  }
  symbol = reinterpret_cast<const char *>(take(head.symbol_bytes, 1));
  isKnown = symbol && head.symbol_bytes > 0 && symbol[head.symbol_bytes - 1] == 0;
  return isKnown;
}

bmodel::DimExpression KernelContract::expression(uint32_t index) const {
  uint64_t before = 0;
  for (uint32_t i = 0; takesDims() && i < index; ++i) {
    before += load<uint32_t>(lengths, i);
  }
  return takesDims() ? bmodel::DimExpression(terms + before * sizeof(bm_dim_term), load<uint32_t>(lengths, index))
                     : bmodel::DimExpression();
}

// SPDX-License-Identifier: Apache-2.0
//===- StreamSizes.cpp - Sizes that a stream computes at run time ---------===//
#include "codegen/Cuda/Stream/StreamSizes.h"

#include "bmodel/cuda/program.h"

namespace tessera::cuda {

std::vector<char> StreamSizes::table() const {
  std::vector<char> bytes;
  auto append = [&](const auto &value) {
    const char *first = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), first, first + sizeof value);
  };
  append(bmodel::cuda::SizeTable{uint32_t(symbols.size()), uint32_t(numbers.size())});
  for (top::SizeSymbolAttr symbol : symbols) {
    append(bm_kernel_param{symbol.getMin(), symbol.getMax()});
  }
  std::vector<kernels::SizeTerms> sizes;
  for (const auto &[expression, number] : numbers) {
    sizes.push_back(kernels::termsOf(Dim(expression), symbols));
    append(uint32_t(sizes.back().size()));
  }
  for (const kernels::SizeTerms &terms : sizes) {
    llvm::for_each(terms, append);
  }
  return bytes;
}

} // namespace tessera::cuda

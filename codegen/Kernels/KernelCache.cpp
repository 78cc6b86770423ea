//===- KernelCache.cpp - Cache of compiled kernels on disk ----------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Kernels/KernelCache.h"

using namespace llvm;

namespace tessera::kernels {

namespace {
/// Header of a cache file: the frame's numbers. The symbol, the terms of the tile count and the code follow.
struct EntryHeader {
  int64_t tiles, scratchBytes, sharedBytes, counters;
  uint64_t blockThreads, symbolBytes, tileTermBytes;
};
} // namespace

std::string KernelCache::nameOf(StringRef key) const { return (key + "-" + build).str(); }

std::optional<Kernel> KernelCache::lookup(StringRef key) {
  std::optional<std::string> contents = files.lookup(nameOf(key));
  EntryHeader header;
  if (!contents || contents->size() < sizeof(header)) {
    return std::nullopt;
  }
  memcpy(&header, contents->data(), sizeof(header));
  StringRef rest = StringRef(*contents).drop_front(sizeof(header));
  if (header.symbolBytes > rest.size() || header.tileTermBytes > rest.size() - header.symbolBytes) {
    return std::nullopt;
  }
  StringRef terms = rest.drop_front(header.symbolBytes).take_front(header.tileTermBytes);
  StringRef code = rest.drop_front(header.symbolBytes + header.tileTermBytes);
  SizeTerms tileTerms(terms.size() / sizeof(bm_dim_term));
  memcpy(tileTerms.data(), terms.data(), tileTerms.size() * sizeof(bm_dim_term));
  KernelFrame frame = {rest.take_front(header.symbolBytes).str(),
                       header.tiles,
                       header.scratchBytes,
                       unsigned(header.blockThreads),
                       header.sharedBytes,
                       header.counters,
                       std::move(tileTerms)};
  return Kernel{std::move(frame), {code.begin(), code.end()}};
}

void KernelCache::insert(StringRef key, const Kernel &kernel) {
  if (files.isOff()) {
    return;
  }
  const KernelFrame &frame = kernel.frame;
  EntryHeader header = {frame.tiles,
                        frame.scratchBytes,
                        frame.sharedBytes,
                        frame.counters,
                        frame.blockThreads,
                        frame.symbol.size(),
                        frame.tileTerms.size() * sizeof(bm_dim_term)};
  std::string contents(reinterpret_cast<const char *>(&header), sizeof(header));
  contents += kernel.frame.symbol;
  contents.append(reinterpret_cast<const char *>(frame.tileTerms.data()), header.tileTermBytes);
  contents.append(kernel.code.begin(), kernel.code.end());
  files.insert(nameOf(key), contents);
}

} // namespace tessera::kernels

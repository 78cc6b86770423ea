//===- KernelCache.cpp - Compiled kernels kept between runs ---------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/KernelCache.h"

using namespace llvm;

namespace tessera::x86 {

namespace {
/// Start of a cache file's contents; then the symbol, then the object.
struct EntryHeader {
  int64_t tiles;
  int64_t scratchBytes;
  uint64_t symbolBytes;
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
  if (header.symbolBytes > rest.size()) {
    return std::nullopt;
  }
  StringRef object = rest.drop_front(header.symbolBytes);
  return Kernel{{rest.take_front(header.symbolBytes).str(), header.tiles, header.scratchBytes},
                {object.begin(), object.end()}};
}

void KernelCache::insert(StringRef key, const Kernel &kernel) {
  if (files.isOff()) {
    return;
  }
  EntryHeader header = {kernel.frame.tiles, kernel.frame.scratchBytes, kernel.frame.symbol.size()};
  std::string contents(reinterpret_cast<const char *>(&header), sizeof(header));
  contents += kernel.frame.symbol;
  contents.append(kernel.object.begin(), kernel.object.end());
  files.insert(nameOf(key), contents);
}

} // namespace tessera::x86

//===- Counts.cpp - Costs of kernels --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmruntime/ptx_machine/Execution/Counts.h"

#include <sstream>

namespace ptx {
namespace {

const char *const kKinds[] = {"integer",      "float",       "convert",      "move",   "control",    "global_load",
                              "global_store", "shared_load", "shared_store", "local",  "param_load", "atomic",
                              "async_copy",   "warp",        "tensor",       "barrier"};
static_assert(sizeof kKinds / sizeof *kKinds == size_t(Kind::Count));

/// Returns the opcode of an instruction's text, e.g. of "@%p1 ld.global.b32 %r1, [%rd1]".
std::string opcodeOf(const std::string &text) {
  size_t begin = text[0] == '@' ? text.find(' ') + 1 : 0;
  return text.substr(begin, text.find(' ', begin) - begin);
}

} // namespace

void Counts::add(const Counts &other) {
  launches += other.launches;
  blocks += other.blocks;
  warps += other.warps;
  executed.resize(std::max(executed.size(), other.executed.size()));
  for (size_t i = 0; i < other.executed.size(); ++i) {
    executed[i] += other.executed[i];
  }
  tensorProducts += other.tensorProducts;
  loadSectors += other.loadSectors;
  storeSectors += other.storeSectors;
  dramSectors += other.dramSectors;
  sharedPasses += other.sharedPasses;
  bankConflicts += other.bankConflicts;
  barriers += other.barriers;
}

void CountTable::add(const Kernel &kernel, const Counts &counts) {
  std::lock_guard lock(mutex);
  Entry &entry = entries[kernel.name];
  for (size_t i = 0; i + 1 < counts.executed.size(); ++i) { // the last instruction is an exit that the decoder added
    if (counts.executed[i] != 0) {
      entry.kinds[size_t(kernel.code[i].kind)] += counts.executed[i];
      entry.opcodes[opcodeOf(kernel.sources[i].text)] += counts.executed[i];
    }
  }
  Counts sums = counts;
  sums.executed.clear();
  entry.counts.add(sums);
  entry.registers = kernel.registers;
  entry.sharedBytes = kernel.sharedBytes;
  entry.localBytes = kernel.localBytes;
}

std::string CountTable::json() const {
  std::lock_guard lock(mutex);
  std::ostringstream out;
  out << "{";
  const char *separator = "\n";
  for (auto &[name, entry] : entries) {
    const Counts &counts = entry.counts;
    out << separator << "  \"" << name << "\": {\"launches\": " << counts.launches << ", \"blocks\": " << counts.blocks
        << ", \"warps\": " << counts.warps << ", \"tensor_products\": " << counts.tensorProducts
        << ", \"load_sectors\": " << counts.loadSectors << ", \"store_sectors\": " << counts.storeSectors
        << ", \"dram_sectors\": " << counts.dramSectors << ", \"shared_passes\": " << counts.sharedPasses
        << ", \"bank_conflicts\": " << counts.bankConflicts << ", \"barriers\": " << counts.barriers
        << ", \"static_shared_bytes\": " << entry.sharedBytes << ", \"local_bytes\": " << entry.localBytes
        << ",\n    \"kinds\": {";
    for (size_t i = 0; i < size_t(Kind::Count); ++i) {
      out << (i == 0 ? "" : ", ") << '"' << kKinds[i] << "\": " << entry.kinds[i];
    }
    out << "},\n    \"instructions\": {";
    const char *comma = "";
    for (auto &[opcode, count] : entry.opcodes) {
      out << comma << '"' << opcode << "\": " << count;
      comma = ", ";
    }
    out << "}}";
    separator = ",\n";
  }
  out << "\n}\n";
  return out.str();
}

void CountTable::clear() {
  std::lock_guard lock(mutex);
  entries.clear();
}

} // namespace ptx

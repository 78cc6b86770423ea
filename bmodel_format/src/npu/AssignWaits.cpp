// SPDX-License-Identifier: Apache-2.0
//===- AssignWaits.cpp - Assigns the waits between commands ----------------===//
#include "bmodel/npu/check.h"

#include "Footprint.h"

#include <algorithm>

namespace bmodel::npu {
namespace {

/// A command whose end the other queue may not have waited for.
struct Recent {
  uint32_t id;
  std::vector<Footprint> footprints;
};

} // namespace

void assignWaits(std::vector<Descriptor> &commands, const Chip &chip) {
  uint32_t last[2] = {0, 0}, known[2] = {0, 0}; // by queue: its last id, and the id of the other queue's last command
                                                // that it has waited for
  std::vector<Recent> recent[2];
  for (Descriptor &command : commands) {
    int own = int(findCommand(command.header.opcode)->queue), other = 1 - own;
    command.header.id = ++last[own];
    std::vector<Footprint> footprints = footprintsOf(command, chip);
    std::erase_if(recent[other], [&](const Recent &each) { return each.id <= known[own]; });
    // Waiting for the latest conflicting command is sufficient, because its queue runs in order.
    auto latest = std::find_if(recent[other].rbegin(), recent[other].rend(),
                               [&](const Recent &each) { return conflict(footprints, each.footprints); });
    command.header.wait = latest == recent[other].rend() ? 0 : latest->id;
    known[own] = std::max(known[own], command.header.wait);
    recent[own].push_back({command.header.id, std::move(footprints)});
  }
}

} // namespace bmodel::npu

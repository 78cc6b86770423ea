// SPDX-License-Identifier: Apache-2.0
//===- AbacusModel.h - The suite's models on an Abacus --------------------===//
#ifndef TESSERA_BMRUNTIME_CTS_ABACUSMODEL_H
#define TESSERA_BMRUNTIME_CTS_ABACUSMODEL_H

#include "Fixture.h"
#include "bmodel/abacus/program.h"

#include <algorithm>
#include <deque>
#include <optional>

namespace bmrt::cts {

/// Returns the command y = op(x, z) over |elements| floats, or y = op(x, value) if z is negative. Tensors have the
/// step's numbers.
inline bmodel::abacus::Command mapCommand(bmodel::abacus::Op op, uint32_t y, uint32_t x, int32_t z, uint64_t elements,
                                          float value = 0) {
  using namespace bmodel::abacus;
  Command made = {};
  std::fill(std::begin(made.sizes), std::end(made.sizes), 1);
  made.sizes[kLoops - 1] = elements;
  made.result.tensor = y, made.operands[0].tensor = x, made.operands[1].tensor = uint32_t(std::max(z, 0));
  made.result.strides[kLoops - 1] = made.operands[0].strides[kLoops - 1] = made.operands[1].strides[kLoops - 1] = 1;
  made.operandCount = z < 0 ? 1 : 2;
  made.steps[0] = {Op::constant, 0, 0, value};
  made.steps[z < 0] = {op, 0, 1, 0};
  made.stepCount = z < 0 ? 2 : 1;
  return made;
}

/// Returns the command y = x * w for square matrices of |n| rows, executed |times| times so that it takes some time.
inline bmodel::abacus::Command productCommand(uint32_t y, uint32_t x, uint32_t w, uint64_t n, uint64_t times = 1) {
  using namespace bmodel::abacus;
  Command made = {Kind::sum, 2, 0, 0, {1, 1, times, n, n, n}, {}, {}, {}};
  made.result = {y, 0, 0, {0, 0, 0, n, 1, 0}};
  made.operands[0] = {x, 0, 0, {0, 0, 0, n, 0, 1}};
  made.operands[1] = {w, 0, 0, {0, 0, 0, 0, 1, n}};
  return made;
}

/// Helpers that build models on a chip with its own memory.
struct AbacusParts {
  AbacusParts(bmodel::ModelDefT &model, std::vector<bmodel::SegmentContents> &segments, const std::string &family)
      : model(model), segments(segments), codeSegment(uint32_t(segments.size())), chip(uint32_t(model.chips.size())) {
    segments.emplace_back(bmodel::SegmentKind::Code);
    model.chips.push_back(std::make_unique<bmodel::ChipDefT>());
    model.chips[chip]->name = family, model.chips[chip]->family = family;
    model.chips[chip]->memory = bmodel::MemoryKind::Device;
  }

  /// Adds a workspace of |bytes| in the chip's memory; returns its index.
  uint32_t addWorkspace(bmodel::StageDefT &stage, uint64_t bytes) {
    stage.workspaces.push_back(std::make_unique<bmodel::WorkspaceDefT>());
    stage.workspaces.back()->memory = bmodel::MemoryKind::Device, stage.workspaces.back()->chip = chip;
    stage.workspaces.back()->bytes = bytes;
    return uint32_t(stage.workspaces.size() - 1);
  }

  bmodel::SubnetDefT &addSubnet(bmodel::StageDefT &stage, const std::string &name) {
    stage.subnets.push_back(std::make_unique<bmodel::SubnetDefT>());
    bmodel::SubnetDefT &made = *stage.subnets.back();
    made.name = name, made.kind = bmodel::SubnetKind::Device, made.chip = chip, made.workspace = -1;
    made.kernel_abi = bmodel::abacus::kVersion, made.code_segment = int32_t(codeSegment);
    return made;
  }

  void addStream(bmodel::SubnetDefT &subnet, std::vector<bmodel::abacus::Command> commands,
                 std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
    programs.push_back(std::move(commands));
    const auto &kept = programs.back();
    bmodel::RunStreamOnDefT stream;
    stream.bytes = kept.size() * sizeof(kept[0]);
    stream.offset = segments[codeSegment].append({reinterpret_cast<const char *>(kept.data()), stream.bytes});
    stream.inputs = std::move(inputs), stream.outputs = outputs;
    addStep(subnet, std::move(stream), std::move(outputs));
  }

  template <typename OpT>
  static bmodel::StepDefT &addStep(bmodel::SubnetDefT &subnet, OpT op, std::vector<uint32_t> writes = {}) {
    subnet.plan.push_back(std::make_unique<bmodel::StepDefT>());
    subnet.plan.back()->op.Set(std::move(op));
    subnet.plan.back()->writes = std::move(writes);
    return *subnet.plan.back();
  }
  static void addCopy(bmodel::SubnetDefT &subnet, uint32_t from, uint32_t to) {
    bmodel::CopyDefT copy;
    copy.from = from, copy.to = to;
    addStep(subnet, copy, {to});
  }
  static void addCall(bmodel::SubnetDefT &subnet, uint32_t callee) {
    bmodel::CallSubnetDefT call;
    call.subnet = callee;
    addStep(subnet, call);
  }

  bmodel::ModelDefT &model;
  std::vector<bmodel::SegmentContents> &segments;
  uint32_t codeSegment, chip;
  std::deque<std::vector<bmodel::abacus::Command>> programs;
};

/// AddRelu on a chip of |family|. On x86 it is unchanged; otherwise x is copied to the chip, w and "sum" are in the
/// chip's memory, and the result is copied back.
struct AddReluOn : bmodel::test::AddRelu {
  explicit AddReluOn(const std::string &family, int64_t elements = 1024)
      : AddRelu(family == "x86" ? kernelCode() : contractCode(), elements) {
    if (family != "x86") {
      parts.emplace(model, segments, family);
      move(stage());
    }
  }

  void move(bmodel::StageDefT &stage) {
    using namespace bmodel;
    const uint64_t bytes = stage.tensors[x]->bytes, room = (bytes + 63) / 64 * 64;
    const uint32_t workspace = parts->addWorkspace(stage, 3 * room);
    auto addThere = [&](const char *name, uint64_t offset) {
      stage.tensors.push_back(std::make_unique<TensorDefT>(*stage.tensors[sum]));
      stage.tensors.back()->name = name, stage.tensors.back()->onnx_names.clear();
      stage.tensors.back()->place_index = workspace, stage.tensors.back()->offset = offset;
      return uint32_t(stage.tensors.size() - 1);
    };
    xThere = addThere("x there", room), yThere = addThere("y there", 2 * room);
    stage.tensors[yThere]->onnx_names = {"y"};
    stage.tensors[sum]->place_index = workspace, stage.tensors[w]->chip = int32_t(parts->chip);
    SubnetDefT &main = *stage.subnets[0];
    main.plan.clear(), main.kernels.clear();
    main.kind = SubnetKind::Control, main.code_segment = -1;
    SubnetDefT &device = parts->addSubnet(stage, "device");
    const uint64_t elements = bytes / sizeof(float);
    parts->addStream(device, {mapCommand(abacus::Op::add, 2, 0, 1, elements)}, {xThere, w}, {sum});
    describe(device, "Add_0");
    parts->addStream(device, {mapCommand(abacus::Op::max, 1, 0, -1, elements)}, {sum}, {yThere});
    describe(device, "Relu_0");
    AbacusParts::addCopy(main, x, xThere);
    AbacusParts::addCall(main, 1);
    AbacusParts::addCopy(main, yThere, y);
  }

  static void describe(bmodel::SubnetDefT &subnet, const char *node) {
    subnet.plan.back()->debug = std::make_unique<bmodel::StepDebugDefT>();
    subnet.plan.back()->debug->onnx_nodes = {node};
  }

  std::optional<AbacusParts> parts;
  uint32_t xThere = 0, yThere = 0;
};

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_ABACUSMODEL_H

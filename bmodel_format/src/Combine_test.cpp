// SPDX-License-Identifier: Apache-2.0
//===- Combine_test.cpp - Tests of combining files ------------------------===//
#include "bmodel/combine.h"

#include "bmodel/npu/check.h"
#include "bmodel_format/test/TestChip.h"
#include "bmodel_format/test/TestModel.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>

using namespace bmodel;
using namespace bmodel::test;

namespace {

/// A written file, read into memory and opened.
struct Opened {
  explicit Opened(const std::string &path) : bytes(readBytes(path)), storage(bytes.size() + 64) {
    data = storage.data() + (64 - reinterpret_cast<uintptr_t>(storage.data()) % 64) % 64;
    std::copy(bytes.begin(), bytes.end(), data);
    EXPECT_TRUE(openModel(data, bytes.size(), view, status)) << status.message;
    EXPECT_TRUE(checkSegments(view, ~0u, status)) << status.message;
  }

  const StageDef &stage(uint32_t index) const { return *view.model->nets()->Get(0)->stages()->Get(index); }
  std::string constant(uint32_t stageIndex, uint32_t slot) const {
    const TensorDef &tensor = *stage(stageIndex).tensors()->Get(slot);
    return {reinterpret_cast<const char *>(view.segment(tensor.place_index()) + tensor.offset()), tensor.bytes()};
  }

  std::vector<char> bytes, storage;
  char *data;
  ModelView view;
  Status status;
};

/// add_relu on [rows, 1024 / rows]: the weights have the same bytes but another shape.
struct Shaped : AddRelu {
  explicit Shaped(int64_t rows, char letter = 'c') : AddRelu(std::vector<char>(100, letter)) {
    for (uint32_t slot : {x, y}) {
      tensor(slot).shape = {constantDim(rows), constantDim(1024 / rows)};
    }
  }
};

std::string combine(const std::vector<std::string> &paths, const std::string &out, CombineResult *result = nullptr) {
  std::vector<std::unique_ptr<Opened>> opened;
  std::vector<NamedModel> files;
  for (size_t i = 0; i < paths.size(); ++i) {
    opened.push_back(std::make_unique<Opened>(paths[i]));
    files.push_back({std::string(1, char('a' + i)), opened.back()->view});
  }
  CombineResult made = combineModels(files, out);
  if (result) {
    *result = made;
  }
  return made.message;
}

TEST(Combine, SharesConstantsAndKeepsCode) {
  const std::string a = temporaryPath("ca.bmodel"), b = temporaryPath("cb.bmodel"), out = temporaryPath("c.bmodel");
  Shaped first(1), second(4, 'd');
  ASSERT_EQ(first.write(a) + second.write(b), "");
  CombineResult result;
  ASSERT_EQ(combine({a, b}, out, &result), "");
  EXPECT_EQ(result.files[0].newBytes, 4096u);
  EXPECT_EQ(result.files[1].constantBytes, 4096u);
  EXPECT_EQ(result.files[1].newBytes, 0u);
  EXPECT_TRUE(result.files[1].hasKnownChip);
  Opened file(out);
  ASSERT_EQ(file.view.model->nets()->Get(0)->stages()->size(), 2u);
  EXPECT_EQ(file.view.model->chips()->size(), 1u);
  EXPECT_EQ(file.stage(0).name()->str(), "1x1024");
  EXPECT_EQ(file.stage(1).name()->str(), "4x256");
  EXPECT_EQ(file.stage(0).tensors()->Get(first.w)->offset(), file.stage(1).tensors()->Get(second.w)->offset());
  EXPECT_EQ(file.constant(1, second.w), Opened(b).constant(0, second.w));
  for (uint32_t i : {0u, 1u}) {
    const auto segment = uint32_t(file.stage(i).subnets()->Get(0)->code_segment());
    EXPECT_EQ(file.view.segment(segment)[0], i ? 'd' : 'c');
    EXPECT_EQ(file.view.model->segments()->Get(segment)->bytes(), 100u);
  }
}

TEST(Combine, CombinesWhatWasCombined) {
  const std::string a = temporaryPath("d1.bmodel"), b = temporaryPath("d2.bmodel"), c = temporaryPath("d3.bmodel");
  const std::string ab = temporaryPath("d12.bmodel"), all = temporaryPath("d123.bmodel"),
                    once = temporaryPath("d.bmodel");
  Shaped first(1), second(4), third(8);
  third.weights[0] = 77; // differs from the other files' weights, as in another network or a layer that depends on the
                         // shape
  ASSERT_EQ(first.write(a) + second.write(b) + third.write(c), "");
  ASSERT_EQ(combine({a, b}, ab) + combine({ab, c}, all) + combine({a, b, c}, once), "");
  EXPECT_EQ(readBytes(all), readBytes(once));
  Opened file(all);
  EXPECT_EQ(file.view.model->segments()->size(), 2u) << "equal code is stored once too";
  EXPECT_EQ(file.view.model->segments()->Get(1)->bytes(), 8192u);
  EXPECT_EQ(file.constant(2, third.w), Opened(c).constant(0, third.w));
}

TEST(Combine, KeepsInWhichMemoryTensorsAre) {
  const std::string a = temporaryPath("ma.bmodel"), b = temporaryPath("mb.bmodel"), out = temporaryPath("m.bmodel");
  Shaped first(1), second(4);
  // The second file has a chip with its own memory in front of the first file's chip, with a constant and a workspace
  // there.
  auto chip = std::make_unique<ChipDefT>();
  chip->name = chip->family = "gpu", chip->memory = MemoryKind::Device;
  second.model.chips.insert(second.model.chips.begin(), std::move(chip));
  second.stage().chip = second.subnet().chip = 1;
  second.stage().tensors.push_back(std::make_unique<TensorDefT>(second.tensor(second.w)));
  second.stage().tensors.back()->chip = 0;
  second.stage().workspaces.push_back(std::make_unique<WorkspaceDefT>());
  second.stage().workspaces.back()->memory = MemoryKind::Device;
  ASSERT_EQ(first.write(a) + second.write(b), "");
  ASSERT_EQ(combine({a, b}, out), "");
  Opened file(out);
  EXPECT_EQ(file.view.model->chips()->size(), 2u);
  EXPECT_EQ(file.stage(1).chip(), 0u);
  EXPECT_EQ(file.stage(1).workspaces()->Get(1)->chip(), 1u);
  const TensorDef &there = *file.stage(1).tensors()->Get(file.stage(1).tensors()->size() - 1);
  EXPECT_EQ(memoryOf(file.stage(1), there), 1);
  EXPECT_EQ(memoryOf(file.stage(1), *file.stage(1).tensors()->Get(second.w)), kHostMemory);
  EXPECT_EQ(there.offset(), file.stage(0).tensors()->Get(first.w)->offset()) << "the same bytes are stored once";
}

TEST(Combine, RejectsWhatDoesNotGoTogether) {
  auto rejection = [](const std::function<void(Shaped &)> &change) {
    const std::string a = temporaryPath("ra.bmodel"), b = temporaryPath("rb.bmodel"), out = temporaryPath("r.bmodel");
    Shaped first(1), second(4);
    change(second);
    EXPECT_EQ(first.write(a) + second.write(b), "");
    const std::string message = combine({a, b}, out);
    EXPECT_TRUE(readBytes(out).empty()) << "a file was written";
    return message;
  };
  EXPECT_NE(rejection([](Shaped &m) {
              m.model.nets[0]->name = "other";
            }).find("'b' holds network 'other', 'a' 'main': only files of one network can be combined"),
            std::string::npos);
  EXPECT_NE(
      rejection([](Shaped &m) { m.tensor(m.x).name = "z"; }).find("'b' has the inputs z (f32, 2 dims); 'a' has x"),
      std::string::npos);
  EXPECT_NE(rejection([](Shaped &m) { m.tensor(m.y).dtype = DType::I32; }).find("'b' has the outputs y (i32, 2 dims)"),
            std::string::npos);
  EXPECT_NE(rejection([](Shaped &m) {
              m.tensor(m.x).shape = {constantDim(1), constantDim(1024)};
            }).find("'b' has a stage for x86 and inputs of 1x1024, like an earlier file"),
            std::string::npos);
  EXPECT_NE(rejection([](Shaped &m) {
              m.model.chips[0]->fingerprint = "77";
            }).find("chip 'x86' has the fingerprint 77 in 'b'"),
            std::string::npos);
}

//===- Command streams ----------------------------------------------------===//

/// A stream that copies y = constants[at, at + 64), one of several tables.
struct Reads {
  Reads(int64_t rows, std::vector<std::string> tables, size_t wanted, uint32_t version = npu::kIsaVersion)
      : tables(std::move(tables)) {
    segments.emplace_back(SegmentKind::Code);
    segments.emplace_back(SegmentKind::Constants);
    uint64_t at = 0;
    for (size_t i = 0; i < this->tables.size(); ++i) {
      const uint64_t offset = segments[1].append(this->tables[i]);
      at = i == wanted ? offset : at;
    }
    const npu::Shape shape{{1, 1, 1, 64}};
    npu::Tensor local{.strides = {0, 64, 64, 1}, .region = npu::Region::local}, constant = local, output = local;
    constant.region = npu::Region::constants, constant.offset = at;
    output.region = npu::Region(int(npu::Region::io) + 1);
    commands.push_back(npu::encode(npu::copy_command{.y = local, .x = constant, .shape = shape}));
    commands.push_back(npu::encode(npu::copy_command{.y = output, .x = local, .shape = shape}));
    npu::assignWaits(commands, chip);
    segments[0].append({reinterpret_cast<const char *>(commands.data()), commands.size() * npu::kDescriptorBytes});
    describe(rows, version);
  }

  void describe(int64_t rows, uint32_t version) {
    model.chips.push_back(std::make_unique<ChipDefT>());
    model.chips[0]->name = chip.name, model.chips[0]->description = npu::chipText("npu-edge");
    model.chips[0]->fingerprint = npu::fingerprint(chip);
    model.nets.push_back(std::make_unique<NetDefT>());
    model.nets[0]->name = "reads";
    model.nets[0]->stages.push_back(std::make_unique<StageDefT>());
    StageDefT &stage = *model.nets[0]->stages[0];
    const int64_t sizes[] = {rows}, bytes[] = {64};
    stage.inputs = {addTensor(stage, "x", DType::I8, sizes)}, stage.outputs = {addTensor(stage, "y", DType::I8, bytes)};
    stage.tensors[0]->role = TensorRole::Input, stage.tensors[1]->role = TensorRole::Output;
    stage.tensors[0]->place = stage.tensors[1]->place = Place::Caller;
    stage.subnets.push_back(std::make_unique<SubnetDefT>());
    SubnetDefT &subnet = *stage.subnets[0];
    subnet.name = "main", subnet.kind = SubnetKind::Npu, subnet.kernel_abi = version, subnet.code_segment = 0;
    RunStreamDefT stream;
    stream.bytes = commands.size() * npu::kDescriptorBytes;
    subnet.plan.push_back(std::make_unique<StepDefT>());
    subnet.plan[0]->op.Set(stream);
    subnet.plan[0]->writes = {1};
  }

  const npu::Chip chip = npu::chipNamed("npu-edge");
  std::vector<std::string> tables;
  std::vector<npu::Descriptor> commands;
  std::vector<SegmentContents> segments;
  ModelDefT model;
};

/// Returns the bytes that the first command of a stage copies.
std::string readBy(const Opened &file, uint32_t stage) {
  const SubnetDef &subnet = *file.stage(stage).subnets()->Get(0);
  npu::Descriptor command;
  std::memcpy(&command, file.view.segment(uint32_t(subnet.code_segment())), sizeof command);
  const auto copy = command.as<npu::copy_command>();
  for (uint32_t i = 0; i < file.view.model->segments()->size(); ++i) {
    if (file.view.model->segments()->Get(i)->kind() == SegmentKind::Constants) {
      return {reinterpret_cast<const char *>(file.view.segment(i)) + copy.x.offset, 64};
    }
  }
  return "";
}

TEST(Combine, MovesWhatCommandsRead) {
  const std::string a = temporaryPath("sa.bmodel"), b = temporaryPath("sb.bmodel"), c = temporaryPath("sc.bmodel"),
                    k = temporaryPath("sk.bmodel"), out = temporaryPath("s.bmodel");
  const std::string p(64, 'p'), q(64, 'q'), r(64, 'r');
  Reads first(1, {p, q}, 1), second(2, {r, p, q}, 2), third(3, {q, r}, 1);
  EXPECT_EQ(writeModel(first.model, first.segments, a) + writeModel(second.model, second.segments, b) +
                writeModel(third.model, third.segments, c),
            "");
  CombineResult result;
  ASSERT_EQ(combine({a, b, c}, out, &result), "");
  Opened file(out);
  EXPECT_EQ(readBy(file, 0), q);
  EXPECT_EQ(readBy(file, 1), q);
  EXPECT_EQ(readBy(file, 2), r);
  EXPECT_EQ(file.view.model->segments()->Get(2)->bytes(), 128u) << "q and r; nobody reads p";
  EXPECT_EQ(result.files[1].newBytes, 0u);
  EXPECT_EQ(result.files[2].newBytes, 64u);
  Reads newer(4, {p}, 0, npu::kIsaVersion + 1);
  EXPECT_EQ(writeModel(newer.model, newer.segments, k), "");
  EXPECT_NE(combine({a, k}, out, &result).find("'b' has commands of version"), std::string::npos);
  EXPECT_EQ(result.fault, Fault::Unsupported);
}

/// Commands read backwards, from the middle of a 64-byte line, and the same bytes twice: the constants stay contiguous.
TEST(Combine, MovesWhatIsReadTwiceOrBackwards) {
  const std::string a = temporaryPath("ta.bmodel"), b = temporaryPath("tb.bmodel"), out = temporaryPath("t.bmodel");
  std::string table(256, '\0');
  for (size_t i = 0; i < table.size(); ++i) {
    table[i] = char(i);
  }
  Reads first(1, {std::string(64, 'p')}, 0), second(2, {table}, 0);
  const uint64_t begins[] = {100, 90};
  for (size_t i = 0; i < 2; ++i) {
    const npu::Header header = second.commands[i].header;
    auto copy = second.commands[i].as<npu::copy_command>();
    copy.x.region = npu::Region::constants, copy.x.offset = begins[i], copy.x.strides[3] = i ? 1 : -1;
    second.commands[i] = npu::encode(copy), second.commands[i].header = header;
  }
  EXPECT_EQ(writeModel(first.model, first.segments, a) + writeModel(second.model, second.segments, b), "");
  ASSERT_EQ(combine({a, b}, out), "");
  Opened file(out);
  const auto code = uint32_t(file.stage(1).subnets()->Get(0)->code_segment());
  for (size_t i = 0; i < 2; ++i) {
    npu::Descriptor command;
    std::memcpy(&command, file.view.segment(code) + i * sizeof command, sizeof command);
    const auto copy = command.as<npu::copy_command>();
    EXPECT_EQ(copy.x.offset % kTensorAlignment, begins[i] % kTensorAlignment) << "bursts begin elsewhere";
    for (int64_t k = 0; k < 64; ++k) {
      const int64_t way = k * copy.x.strides[3];
      ASSERT_EQ(char(file.view.segment(2)[int64_t(copy.x.offset) + way]), table[size_t(int64_t(begins[i]) + way)]);
    }
  }
}

/// A runtime passes the first constants segment of a file to streams; other constants and blobs follow it.
TEST(Combine, KeepsWhatStandsBesideStreams) {
  const std::string paths[] = {temporaryPath("ma.bmodel"), temporaryPath("mb.bmodel")}, out = temporaryPath("m.bmodel");
  const std::string p(64, 'p'), own[] = {std::string(64, 'k'), std::string(64, 'l')};
  uint32_t slot = 0;
  for (int i : {0, 1}) {
    Reads result(i + 1, {p}, 0);
    result.segments.emplace_back(SegmentKind::Constants);
    result.segments.emplace_back(SegmentKind::Blob);
    result.segments[3].append(own[i]);
    StageDefT &stage = *result.model.nets[0]->stages[0];
    const int64_t bytes[] = {64};
    slot = addTensor(stage, "host", DType::I8, bytes);
    TensorDefT &tensor = *stage.tensors[slot];
    tensor.role = TensorRole::Constant, tensor.place = Place::Segment, tensor.place_index = 2;
    tensor.offset = result.segments[2].append(own[i]);
    result.model.blobs.push_back(std::make_unique<BlobDefT>());
    result.model.blobs[0]->name = "ir", result.model.blobs[0]->segment = 3;
    ASSERT_EQ(writeModel(result.model, result.segments, paths[i]), "");
  }
  ASSERT_EQ(combine({paths[0], paths[1]}, out), "");
  Opened file(out);
  ASSERT_EQ(file.view.model->blobs()->size(), 2u);
  for (uint32_t i : {0u, 1u}) {
    EXPECT_EQ(readBy(file, i), p);
    EXPECT_EQ(file.constant(i, slot), own[i]);
    EXPECT_EQ(file.view.segment(file.view.model->blobs()->Get(i)->segment())[0], own[i][0]);
  }
}

TEST(Combine, RejectsStreamsThatReadElsewhere) {
  const std::string a = temporaryPath("ea.bmodel"), b = temporaryPath("eb.bmodel"), out = temporaryPath("e.bmodel");
  Reads first(1, {std::string(64, 'p')}, 0), second(2, {std::string(64, 'p')}, 0);
  auto copy = second.commands[0].as<npu::copy_command>();
  copy.x.offset = uint64_t(1) << 62;
  const npu::Header header = second.commands[0].header;
  second.commands[0] = npu::encode(copy), second.commands[0].header = header;
  EXPECT_EQ(writeModel(first.model, first.segments, a) + writeModel(second.model, second.segments, b), "");
  EXPECT_NE(combine({a, b}, out).find("'b': "), std::string::npos);
  EXPECT_TRUE(readBytes(out).empty());
}

} // namespace

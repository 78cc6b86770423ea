// SPDX-License-Identifier: Apache-2.0
//===- TestModel.h - A small model for tests of writer, reader and runtime ===//
#ifndef TESSERA_BMODEL_FORMAT_TEST_TESTMODEL_H
#define TESSERA_BMODEL_FORMAT_TEST_TESTMODEL_H

#include "bmodel/cpu_features.h"
#include "bmodel/kernel_abi.h"
#include "bmodel/writer.h"

#include <fstream>
#include <iterator>
#include <string>
#include <unistd.h>
#include <vector>

namespace bmodel::test {

/// Returns a path in the folder for temporary files that is unique to this process; a file there is removed at exit.
inline std::string temporaryPath(const std::string &name) {
  static struct Paths {
    ~Paths() {
      for (const std::string &path : list) {
        unlink(path.c_str());
      }
    }
    std::vector<std::string> list;
  } paths;
  const char *folder = getenv("TMPDIR");
  paths.list.push_back(std::string(folder ? folder : "/tmp") + "/tessera-test-" + std::to_string(getpid()) + "-" +
                       name);
  return paths.list.back();
}

inline std::vector<char> readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::vector<float> iota(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = float(i) - 3;
  }
  return values;
}

/// A model that computes y = relu(x + w) over |elements| floats in tiles of 16, as two launches ("add" to a workspace
/// tensor, "relu" to the output), with code and weights in two segments.
struct AddRelu {
  explicit AddRelu(std::vector<char> codeBytes = std::vector<char>(100, 'c'), int64_t elements = 1024)
      : code(std::move(codeBytes)), weights(iota(size_t(elements))) {
    segments.emplace_back(SegmentKind::Code);
    segments.emplace_back(SegmentKind::Constants);
    segments[0].append(code);
    const std::span<const char> weightBytes(reinterpret_cast<const char *>(weights.data()),
                                            weights.size() * sizeof(float));
    model.name = "add_relu";
    model.producer = "test";
    model.chips.push_back(std::make_unique<ChipDefT>());
    model.chips[0]->name = "x86";
    model.chips[0]->family = "x86";
    model.nets.push_back(std::make_unique<NetDefT>());
    model.nets[0]->name = "main";
    model.nets[0]->stages.push_back(std::make_unique<StageDefT>());
    stage().workspaces.push_back(std::make_unique<WorkspaceDefT>());
    stage().workspaces[0]->bytes = uint64_t(elements) * sizeof(float);
    const int64_t shape[] = {1, elements};
    x = addTensor(stage(), "x", DType::F32, shape);
    w = addTensor(stage(), "w", DType::F32, shape);
    sum = addTensor(stage(), "sum", DType::F32, shape);
    y = addTensor(stage(), "y", DType::F32, shape);
    tensor(x).role = TensorRole::Input;
    tensor(x).place = Place::Caller;
    tensor(w).role = TensorRole::Constant;
    tensor(w).place = Place::Segment;
    tensor(w).place_index = 1;
    tensor(w).offset = segments[1].append(weightBytes);
    tensor(y).role = TensorRole::Output;
    tensor(y).place = Place::Caller;
    tensor(sum).onnx_names = {"sum"};
    tensor(y).onnx_names = {"y"};
    stage().inputs = {x};
    stage().outputs = {y};
    stage().subnets.push_back(std::make_unique<SubnetDefT>());
    subnet().name = "main";
    subnet().kind = SubnetKind::X86;
    subnet().isa = "x86-64";
    subnet().cpu_features = BM_CPU_SSE2;
    subnet().kernel_abi = BM_KERNEL_ABI_VERSION;
    subnet().code_segment = 0;
    addLaunch(subnet(), addKernel(subnet(), "add", 3), {x, w, sum}, elements / 16, {sum});
    describe("Add_0", "top.add", "device.map");
    addLaunch(subnet(), addKernel(subnet(), "relu", 2), {sum, y}, elements / 16, {y});
    describe("Relu_0", "top.relu", "device.map");
  }

  StageDefT &stage() { return *model.nets[0]->stages[0]; }
  SubnetDefT &subnet() { return *stage().subnets[0]; }
  TensorDefT &tensor(uint32_t slot) { return *stage().tensors[slot]; }

  /// Adds debug information to the last step.
  void describe(const char *node, const char *topOp, const char *deviceOp) {
    auto debug = std::make_unique<StepDebugDefT>();
    debug->onnx_nodes = {node};
    debug->top_op = topOp;
    debug->device_op = deviceOp;
    subnet().plan.back()->debug = std::move(debug);
  }

  std::string write(const std::string &path) { return writeModel(model, segments, path); }

  std::vector<char> code;
  std::vector<float> weights;
  std::vector<SegmentContents> segments;
  ModelDefT model;
  uint32_t x, w, sum, y;
};

} // namespace bmodel::test

#endif // TESSERA_BMODEL_FORMAT_TEST_TESTMODEL_H

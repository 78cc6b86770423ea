// SPDX-License-Identifier: Apache-2.0
//===- MakeTestModels.cpp - Writes small models for tests outside of C++ --===//
//
// Usage: bmrt_make_test_models FOLDER
// add_relu.bmodel   y = relu(x + w), x and y f32 1x1024, w[i] = i - 3
// blocked.bmodel    the same with the sum "sum" as f32 1x5x2x2 in blocks of 16 channels (x:
// 1x1x2x2x16) dynamic.bmodel    y[i] = x[i] + N, x and y f32 [N], N in 1..64
//
//===----------------------------------------------------------------------===//
#include "Fixture.h"

#include <cstdio>

using namespace bmodel;
using namespace bmrt::cts;

namespace {

/// x is given in blocks already, so that "sum" shows the way back to row-major.
void makeBlocked(bmodel::test::AddRelu &model) {
  const int64_t stored[] = {1, 1, 2, 2, 16}, logical[] = {1, 5, 2, 2};
  auto setShape = [&](uint32_t slot, std::span<const int64_t> shape) {
    model.tensor(slot).shape.clear();
    for (int64_t size : shape) {
      model.tensor(slot).shape.push_back(constantDim(size));
    }
  };
  for (uint32_t slot : {model.x, model.w, model.y}) {
    setShape(slot, stored);
  }
  setShape(model.sum, logical);
  model.tensor(model.sum).layout = LayoutKind::ChannelBlocked;
  model.tensor(model.sum).block = 16;
  model.tensor(model.sum).block_axis = 1;
}

void makeDynamic(bmodel::test::AddRelu &model) {
  auto n = std::make_unique<DimSlotDefT>();
  n->name = "N";
  n->min = 1;
  n->max = 64;
  model.stage().dims.push_back(std::move(n));
  for (uint32_t slot : {model.x, model.y}) {
    model.tensor(slot).shape = {Dim(64, 0)};
  }
  model.subnet().plan.clear();
  StepDefT &step = addLaunch(model.subnet(), addKernel(model.subnet(), "add_dim", 2), {model.x, model.y}, 0, {model.y});
  step.op.AsLaunchDef()->dims = {0};
  step.op.AsLaunchDef()->tile_count_slot = 0;
}

int write(bmodel::test::AddRelu &model, const std::string &path) {
  const std::string error = model.write(path);
  if (!error.empty()) {
    fprintf(stderr, "%s\n", error.c_str());
  }
  return !error.empty();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: bmrt_make_test_models FOLDER\n");
    return 2;
  }
  const std::string folder = argv[1];
  bmodel::test::AddRelu addRelu(kernelCode(), 1024), blocked(kernelCode(), 64), dynamic(kernelCode(), 64);
  makeBlocked(blocked);
  makeDynamic(dynamic);
  return write(addRelu, folder + "/add_relu.bmodel") || write(blocked, folder + "/blocked.bmodel") ||
         write(dynamic, folder + "/dynamic.bmodel");
}

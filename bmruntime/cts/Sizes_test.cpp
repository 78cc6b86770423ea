// SPDX-License-Identifier: Apache-2.0
//===- Sizes_test.cpp - Runs at sizes that are known at run time ----------===//
#include "SizedModel.h"

#include <fstream>
#include <map>
#include <random>

using namespace bmodel;
using namespace bmrt;
using namespace bmrt::cts;

namespace {

/// Sets the shapes of x and t for the given n and w; |total| is the size of t. Returns the message of an error.
std::string setSizes(Net &net, int64_t n, int64_t w, int64_t total) {
  const int64_t x[] = {n, w}, *shapes[] = {x, &total};
  const uint32_t ranks[] = {2, 1};
  bmrt_status_t status;
  return bmrt_context_set_input_shapes(net.get(), shapes, ranks, 2, &status) == BMRT_OK ? "" : status.message;
}
std::string setSizes(Net &net, int64_t n, int64_t w) { return setSizes(net, n, w, n + w / 3); }

std::vector<int64_t> shapeOf(const bmrt_tensor_info_t &info) { return {info.shape, info.shape + info.rank}; }

struct Inputs {
  Inputs(int64_t n, int64_t w) : x(someInput(size_t(n * w))), t(someInput(size_t(n + w / 3))) {}
  std::vector<float> x, t;
};

/// Runs at the current sizes with buffers of exactly these sizes and compares both outputs.
void expectResult(Net &net, int64_t n, int64_t w) {
  const Inputs in(n, w);
  const std::vector<float> expected = sizedResult(in.x, in.t, n, w);
  net.setInput("x", in.x.data(), in.x.size() * 4);
  net.setInput("t", in.t.data(), in.t.size() * 4);
  std::vector<float> y(expected.size(), -1), z(expected.size() + 1, -1);
  net.setOutput("y", y.data(), y.size() * 4);
  net.setOutput("z", z.data(), expected.size() * 4);
  net.run();
  EXPECT_EQ(y, expected) << n << " x " << w;
  EXPECT_EQ(z.back(), -1) << "the copy exceeds the actual size";
  z.pop_back();
  EXPECT_EQ(z, expected) << n << " x " << w;
}

TEST(Sizes, AnySizeInTheRangeRuns) {
  SizedModel model;
  for (uint32_t threads : {1, 2}) {
    Net net(openWritten(model, "sizes.bmodel"), {.threads = threads});
    EXPECT_EQ(shapeOf(net.outputs()[0]), (std::vector<int64_t>{-1, -1}));
    EXPECT_EQ(net.outputs()[0].max_shape[1], 17);
    for (int64_t n : {0, 1, 2, 3, 7, 13, 17, 1}) {
      for (int64_t w : {33, 0, 3, 21, 9}) {
        ASSERT_EQ(setSizes(net, n, w), "");
        EXPECT_EQ(shapeOf(net.outputs()[0]), (std::vector<int64_t>{n, (w + 1) / 2})) << "known before the run";
        EXPECT_EQ(net.outputs()[1].bytes, uint64_t(n * ((w + 1) / 2) * 4));
        expectResult(net, n, w);
      }
    }
  }
}

TEST(Sizes, BuffersOfTheContextAreUsedAtAnySize) {
  SizedModel model;
  Net net(openWritten(model, "sizes-own.bmodel"));
  for (int64_t n : {17, 2, 5}) {
    const Inputs in(n, 9);
    ASSERT_EQ(setSizes(net, n, 9), "");
    for (uint32_t i : {0u, 1u}) {
      void *data = nullptr;
      check(bmrt_context_input_buffer, net.get(), i, &data);
      const std::vector<float> &values = i == 0 ? in.x : in.t;
      memcpy(data, values.data(), values.size() * 4);
    }
    net.launch(); // on a thread of the context
    net.wait();
    const std::vector<float> expected = sizedResult(in.x, in.t, n, 9);
    const float *z = net.output<float>("z");
    EXPECT_EQ(std::vector<float>(z, z + expected.size()), expected) << n;
  }
}

TEST(Sizes, AnOutputBufferForTheLargestSizeStaysBound) {
  SizedModel model;
  Net net(openWritten(model, "sizes-bound.bmodel"));
  ASSERT_EQ(setSizes(net, 2, 3), "");
  std::vector<float> y(17 * 17, -1), z(4, -1);
  net.setOutput("y", y.data(), y.size() * 4);
  net.setOutput("z", z.data(), z.size() * 4);
  EXPECT_THROW(net.setOutput("z", z.data(), z.size() * 4 - 4), Error);
  ASSERT_EQ(setSizes(net, 17, 33), "");
  const Inputs in(17, 33);
  net.setInput("x", in.x.data(), in.x.size() * 4);
  net.setInput("t", in.t.data(), in.t.size() * 4);
  net.run();
  EXPECT_EQ(y, sizedResult(in.x, in.t, 17, 33));
  EXPECT_EQ(z, std::vector<float>(4, -1)) << "unbound: it is too small";
}

TEST(Sizes, AnUnboundBufferCannotBeReadAtOtherSizes) {
  SizedModel model;
  Net net(openWritten(model, "sizes-unbound.bmodel"));
  ASSERT_EQ(setSizes(net, 2, 3), "");
  AlignedFloats y(4); // used in place
  net.setOutput("y", y.data(), y.bytes());
  net.run();
  ASSERT_EQ(net.output<float>("y"), y.data());
  ASSERT_EQ(setSizes(net, 17, 33), "");
  const void *data = nullptr;
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_output_data(net.get(), 0, &data, &status), BMRT_FAILED_PRECONDITION);
  bmrt_step_info_t step;
  check(bmrt_context_step_info, net.get(), 1u, &step);
  bmrt_tensor_view_t view;
  EXPECT_EQ(bmrt_context_step_write(net.get(), &step, 0, &view, &status), BMRT_FAILED_PRECONDITION);
  EXPECT_EQ(bmrt_context_run_steps(net.get(), 0, 1, &status), BMRT_FAILED_PRECONDITION);
}

TEST(Sizes, WrongSizesLeaveTheContextAsItWas) {
  SizedModel model;
  Net net(openWritten(model, "sizes-wrong.bmodel"));
  ASSERT_EQ(setSizes(net, 5, 9), "");
  EXPECT_EQ(setSizes(net, 18, 9), "dimension 0 ('n') of input 'x' is 18, allowed are multiples of 1 from 0 to 17");
  EXPECT_EQ(setSizes(net, 5, 10), "dimension 1 ('w') of input 'x' is 10, allowed are multiples of 3 from 0 to 33");
  EXPECT_EQ(setSizes(net, 5, 12, 8), "dimension 0 ('n+m') of input 't' is 8, the shapes of the other inputs require 9 "
                                     "(bmrt_context_set_input_shapes sets all shapes at once)");
  EXPECT_EQ(shapeOf(net.inputs()[0]), (std::vector<int64_t>{5, 9}));
  expectResult(net, 5, 9);
}

TEST(Sizes, DerivedDimsStayInTheirRange) {
  SizedModel model;
  model.stage().dims[model.half]->max = 10;
  for (uint32_t slot : {model.y, model.z}) {
    model.tensor(slot).shape[1] = slotDim(model.stage(), model.half);
    model.tensor(slot).bytes = 17 * 10 * 4;
  }
  Net net(openWritten(model, "sizes-derived.bmodel"));
  ASSERT_EQ(setSizes(net, 9, 18), "");
  EXPECT_EQ(setSizes(net, 9, 21),
            "dimension 'w/2' of the net becomes 11, allowed are multiples of 1 from 0 to 10: give "
            "other inputs");
  expectResult(net, 9, 18);
}

TEST(Sizes, ShapesOfSingleInputsMustFitTheOthers) {
  SizedModel model;
  Net net(openWritten(model, "sizes-single.bmodel"));
  bmrt_status_t status;
  const int64_t five = 5;
  EXPECT_EQ(bmrt_context_set_input_shape(net.get(), 1, &five, 1, &status), BMRT_FAILED_PRECONDITION);
  EXPECT_NE(std::string(status.message).find("'t' follows from the shapes of other inputs"), std::string::npos)
      << status.message;
  EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_FAILED_PRECONDITION);
  net.setShape("x", {4, 3});
  net.setShape("t", {5});
  EXPECT_THROW(net.setShape("t", {6}), Error);
  expectResult(net, 4, 3);
}

TEST(Sizes, FixedSizesNeedNoShapes) {
  SizedModel model;
  model.stage().dims[model.n]->min = model.stage().dims[model.n]->max = 2;
  model.stage().dims[model.w]->min = model.stage().dims[model.w]->max = 9;
  for (uint32_t dim : {model.n, model.w}) {
    model.stage().dims[dim]->likely = -1;
  }
  Net net(openWritten(model, "sizes-fixed.bmodel"));
  EXPECT_EQ(shapeOf(net.outputs()[0]), (std::vector<int64_t>{2, 5}));
  expectResult(net, 2, 9);
}

void remember(void *user, const bmrt_context_t *context, const bmrt_step_info_t *step) {
  auto &seen = *static_cast<std::map<std::string, std::vector<int64_t>> *>(user);
  for (uint32_t i = 0; i < step->write_count; ++i) {
    bmrt_tensor_view_t view;
    check(bmrt_context_step_write, context, step, i, &view);
    seen[view.info.name] = shapeOf(view.info);
    seen[view.info.name].push_back(int64_t(view.info.bytes));
    seen[view.info.name].push_back(step->tile_count);
  }
}

TEST(Sizes, HooksSeeActualSizes) {
  SizedModel model;
  Net net(openWritten(model, "sizes-hook.bmodel"));
  std::map<std::string, std::vector<int64_t>> seen;
  bmrt_context_set_step_hook(net.get(), remember, &seen);
  bmrt_step_info_t info;
  check(bmrt_context_step_info, net.get(), 0u, &info);
  EXPECT_EQ(info.tile_count, -1);
  ASSERT_EQ(setSizes(net, 4, 9), "");
  net.run();
  EXPECT_EQ(seen["s"], (std::vector<int64_t>{4, 9, 144, 4}));
  EXPECT_EQ(seen["y"], (std::vector<int64_t>{4, 5, 80, 20}));
}

/// Returns the resident memory of this process in KiB.
long residentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      long kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}

TEST(Sizes, AThousandSizesTakeNoMoreMemory) {
  SizedModel model(sizedCode(), 5000);
  Net net(openWritten(model, "sizes-many.bmodel"));
  std::mt19937 random(3);
  long before = 0;
  for (int i = 0; i < 1100; ++i) {
    ASSERT_EQ(setSizes(net, i < 100 ? 5000 - i : int64_t(random() % 5001), int64_t(random() % 12 * 3)), "");
    net.run();
    before = i == 100 ? residentKib() : before;
  }
  EXPECT_LT(residentKib() - before, 1024);
}

/// Memory is laid out for the largest sizes, of which this machine has too little; a run at small sizes is possible.
TEST(Sizes, ALayoutLargerThanTheMachine) {
  constexpr int64_t kRows = int64_t(1) << 34;
  SizedModel model(sizedCode(), kRows);
  Net net(openWritten(model, "sizes-large.bmodel"));
  ASSERT_EQ(setSizes(net, 3, 9), "");
  net.run();
  const std::string error = setSizes(net, kRows, 33);
  EXPECT_NE(error.find("which is more than this machine has"), std::string::npos) << error;
  expectResult(net, 3, 9);
}

/// A step sets the dim k = n / 2, a multiple of 2, which the shape of the output p uses.
struct SetByStep : SizedModel {
  SetByStep() {
    k = addDim(stage(), "k", {0, 8}, 2);
    EvalDimDefT eval;
    eval.slot = k;
    eval.terms = {slotTerm(n), constantTerm(2), opTerm(DimOp::FloorDiv)};
    subnet().plan.push_back(std::make_unique<StepDefT>());
    subnet().plan.back()->op.Set(eval);
    p = add("p", {k}, TensorRole::Output, Place::Caller);
    stage().outputs.push_back(p);
  }
  uint32_t k, p;
};

TEST(Sizes, DimsThatStepsSetAreMultiplesAndEndWithTheRun) {
  SetByStep model;
  Net net(openWritten(model, "sizes-step.bmodel"));
  ASSERT_EQ(setSizes(net, 4, 9), "");
  EXPECT_EQ(net.outputs()[2].shape[0], -1);
  net.run();
  EXPECT_EQ(net.outputs()[2].shape[0], 2);
  ASSERT_EQ(setSizes(net, 6, 9), "");
  EXPECT_EQ(net.outputs()[2].shape[0], -1) << "not yet known for these sizes";
  bmrt_status_t status;
  EXPECT_EQ(bmrt_context_run(net.get(), &status), BMRT_INVALID_ARGUMENT);
  EXPECT_NE(std::string(status.message).find("'k' of the net becomes 3, allowed are multiples of 2 from 0 to 8"),
            std::string::npos)
      << status.message;
  ASSERT_EQ(setSizes(net, 4, 9), "");
  EXPECT_EQ(net.outputs()[2].shape[0], -1);
  net.run();
}

} // namespace

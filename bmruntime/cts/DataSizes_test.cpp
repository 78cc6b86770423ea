// SPDX-License-Identifier: Apache-2.0
//===- DataSizes_test.cpp - Sizes that a run reads from its data ----------===//
#include "DataSizedModel.h"

#include <functional>

using namespace bmodel;
using namespace bmrt;
using namespace bmrt::cts;

namespace {

constexpr int64_t kRows = 5, kColumns = 9;

struct RunResult {
  bmrt_code_t code;
  std::string message;
};

/// Runs at 5 x 9 with |c| rows.
RunResult runWith(Net &net, int64_t c, std::vector<float> &x, std::vector<float> &t) {
  const int64_t xShape[] = {kRows, kColumns}, tShape = kRows + kColumns / 3, two = 2,
                *shapes[] = {xShape, &tShape, &two};
  const uint32_t ranks[] = {2, 1, 1};
  check(bmrt_context_set_input_shapes, net.get(), shapes, ranks, 3u);
  x = someInput(size_t(kRows * kColumns)), t = someInput(size_t(tShape));
  const int64_t counts[] = {-5, c};
  net.setInput("x", x.data(), x.size() * 4);
  net.setInput("t", t.data(), t.size() * 4);
  net.setInput("count", counts, sizeof(counts));
  bmrt_status_t status = {};
  const bmrt_code_t code = bmrt_context_run(net.get(), &status);
  return {code, status.message};
}

void expectRows(Net &net, int64_t c) {
  std::vector<float> x, t;
  const RunResult run = runWith(net, c, x, t);
  ASSERT_EQ(run.code, BMRT_OK) << run.message;
  x.resize(size_t(c * kColumns)), t.resize(size_t(c + kColumns / 3));
  const std::vector<float> wanted = sizedResult(x, t, c, kColumns);
  for (uint32_t output : {2, 3}) {
    const bmrt_tensor_info_t info = net.outputs()[output];
    EXPECT_EQ(std::vector<int64_t>(info.shape, info.shape + info.rank), (std::vector<int64_t>{c, 5}));
    EXPECT_EQ(info.bytes, wanted.size() * 4);
    const float *data = net.output<float>(info.name);
    EXPECT_EQ(std::vector<float>(data, data + wanted.size()), wanted);
  }
  EXPECT_EQ(net.output<int64_t>("written")[0], c);
  EXPECT_EQ(net.output<int64_t>("written")[1], c * 5);
}

TEST(DataSizes, OutputsHaveTheirTrueSize) {
  DataSizedModel model;
  Net net(openWritten(model, "data-sizes.bmodel"));
  for (int64_t c : {3, 5, 0, 1, 4}) {
    expectRows(net, c);
  }
}

TEST(DataSizes, ValuesOutsideTheRangeEndTheRun) {
  DataSizedModel model;
  Net net(openWritten(model, "data-sizes.bmodel"));
  std::vector<float> x, t;
  for (int64_t c : {int64_t(-1), int64_t(18), INT64_MAX, INT64_MIN}) {
    const RunResult run = runWith(net, c, x, t);
    EXPECT_EQ(run.code, BMRT_INVALID_ARGUMENT);
    EXPECT_NE(run.message.find("dimension 'c' of the net becomes " + std::to_string(c)), std::string::npos)
        << run.message;
    expectRows(net, 2);
  }
}

TEST(DataSizes, ViewsStayInsideTheirTensors) {
  DataSizedModel model;
  Net net(openWritten(model, "data-sizes.bmodel"));
  std::vector<float> x, t;
  const RunResult run = runWith(net, kRows + 1, x, t);
  EXPECT_EQ(run.code, BMRT_CORRUPT);
  EXPECT_NE(run.message.find("tensor 'front' of 216 bytes at 0 exceeds the 180 bytes of 's'"), std::string::npos)
      << run.message;
  expectRows(net, kRows);
}

/// The next run may produce more rows than the last one.
TEST(DataSizes, BuffersOfTheCallerHaveTheLargestSize) {
  DataSizedModel model;
  Net net(openWritten(model, "data-sizes.bmodel"));
  expectRows(net, 2);
  std::vector<float> p(17 * 17, -1);
  EXPECT_THROW(net.setOutput("p", p.data(), 2 * 5 * 4), Error);
  net.setOutput("p", p.data(), p.size() * 4);
  expectRows(net, 3);
  EXPECT_EQ(p[14 + 1], -1);
  expectRows(net, 5);
  EXPECT_NE(p[14 + 1], -1);
}

/// Callers allocate outputs between these calls; the shape of the last run says nothing about the next one.
TEST(DataSizes, SettingShapesForgetsTheLastRun) {
  DataSizedModel model;
  Net net(openWritten(model, "data-sizes.bmodel"));
  expectRows(net, 2);
  const int64_t two = 2;
  check(bmrt_context_set_input_shape, net.get(), 2u, &two, 1u);
  EXPECT_EQ(net.outputs()[2].shape[0], -1);
  EXPECT_EQ(net.outputs()[2].bytes, 17u * 17 * 4);
}

struct DataSizesCase {
  const char *name;
  std::function<void(DataSizedModel &)> alter;
  const char *message;
};

void PrintTo(const DataSizesCase &c, std::ostream *out) { *out << c.name; }

const DataSizesCase dataSizesCases[] = {
    {"Tiles", [](DataSizedModel &m) { m.dataLaunch().tile_count_slot = int32_t(m.tiles); },
     "step 4: kernel 'add_pairs' is launched in 25 tiles, its code has 15 at these sizes"},
    {"Rows", [](DataSizedModel &m) { m.dataLaunch().dims[0] = m.n; },
     "step 4: kernel 'add_pairs' is launched in 15 tiles, its code has 25 at these sizes"},
    {"Argument", [](DataSizedModel &m) { m.dataLaunch().args[1] = m.b; },
     "step 4: argument 1 of kernel 'add_pairs' is tensor 'b' of 12 bytes, its code takes one of 24 at these sizes"},
    {"Copy", [](DataSizedModel &m) { m.tensor(m.q).shape = {slotDim(m.stage(), m.n), slotDim(m.stage(), m.half)}; },
     "step 5: a copy of the 60 bytes of 'p' to the 100 bytes of 'q'"},
    {"TooEarly", [](DataSizedModel &m) { std::swap(m.subnet().plan[3], m.subnet().plan[4]); },
     "dimension 'c' of the net is not known when a step needs it"},
    {"ReadsBeyondTheEnd", [](DataSizedModel &m) { m.read().index = 2; }, "element 2 of source of a dim 'count'"},
    {"ReadsFloats", [](DataSizedModel &m) { m.read().from = m.b; }, "'b' is not an I64 tensor of constant size"},
    {"ReadsNoTensor", [](DataSizedModel &m) { m.read().from = 99; }, "source of a dim is tensor 99"},
    {"SetsNoDim", [](DataSizedModel &m) { m.read().slot = 99; }, "target is dim slot 99"},
    {"SetsADimOfAnInput", [](DataSizedModel &m) { m.read().slot = m.n; }, "a step changes dimension 0 of input 'x'"},
    {"SetsADerivedDim", [](DataSizedModel &m) { m.read().slot = m.areaOfP; },
     "a step sets dim 'c*w/2', which follows from other dims"},
    {"WritesBeyondTheEnd", [](DataSizedModel &m) { m.lastWrite().index = uint64_t(1) << 61; },
     "of target of a dim 'written', which has 2"},
    {"WritesAnInput", [](DataSizedModel &m) { m.lastWrite().to = m.count; }, "target of a dim 'count' is an input"},
    {"WritesNoDim", [](DataSizedModel &m) { m.lastWrite().slot = 99; }, "source is dim slot 99"},
};

class DataSizeContract : public testing::TestWithParam<DataSizesCase> {};

TEST_P(DataSizeContract, IsHeld) {
  DataSizedModel model;
  GetParam().alter(model);
  const std::string path = bmodel::test::temporaryPath("data-size-contract.bmodel");
  std::string message = model.write(path);
  if (message.empty()) {
    Net net{Model(path)};
    std::vector<float> x, t;
    message = runWith(net, 3, x, t).message;
  }
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(DataSizeContract, DataSizeContract, testing::ValuesIn(dataSizesCases),
                         [](const auto &info) { return info.param.name; });

} // namespace

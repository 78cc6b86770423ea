// SPDX-License-Identifier: Apache-2.0
//===- Contract_test.cpp - Launches that violate kernel contracts ---------===//
//
// Each case alters the tables of a model, as an attacker could, and writes it with valid hashes. The runtime must
// reject the file as corrupt, because the contracts of the unaltered kernel code state how each kernel must be called.
//
//===----------------------------------------------------------------------===//
#include "Fixture.h"

#include "bmodel/kernel_contract.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>

using namespace bmodel;
using namespace bmrt;
using namespace bmrt::cts;

namespace {

struct ContractCase {
  const char *name;
  std::function<void(bmodel::test::AddRelu &)> alter;
  const char *message;
};

void PrintTo(const ContractCase &c, std::ostream *out) { *out << c.name; }

LaunchDefT &launch(bmodel::test::AddRelu &m, size_t step = 0) { return *m.subnet().plan[step]->op.AsLaunchDef(); }

/// Adds a tensor of |floats| floats to the workspace, which is enlarged to hold it.
uint32_t addFloats(bmodel::test::AddRelu &m, int64_t floats) {
  const uint32_t slot = addTensor(m.stage(), "other", DType::F32, std::vector<int64_t>{floats});
  m.stage().workspaces[0]->bytes = 1 << 16;
  return slot;
}

const ContractCase contractCases[] = {
    {"MoreTiles", [](auto &m) { launch(m).tile_count = 65; },
     "step 0: kernel 'add' is launched in 65 tiles, its code has 64"},
    {"FewerTiles", [](auto &m) { launch(m, 1).tile_count = 63; }, "step 1: kernel 'relu' is launched in 63 tiles"},
    {"Scratch", [](auto &m) { launch(m).scratch_bytes = 64; }, "given 64 bytes of scratch, its code uses 0"},
    {"NoScratch", [](auto &m) { m.subnet().kernels[1]->symbol = "copy_by_scratch"; },
     "given 0 bytes of scratch, its code uses 64"},
    {"SmallerTensor", [](auto &m) { launch(m).args[1] = addFloats(m, 512); },
     "argument 1 of kernel 'add' is tensor 'other' of 2048 bytes, its code takes one of 4096"},
    {"LargerTensor", [](auto &m) { launch(m).args[2] = addFloats(m, 2048); }, "of 8192 bytes"},
    {"WritesAnInput", [](auto &m) { launch(m).args[2] = m.x; },
     "argument 2 of kernel 'add' is tensor 'x', an input or a constant; its code writes it"},
    {"WritesAConstant", [](auto &m) { launch(m).args[2] = m.w; }, "tensor 'w', an input or a constant"},
    {"OtherKernel", [](auto &m) { m.subnet().kernels[1]->symbol = "make_denormal"; },
     "kernel 'make_denormal' has 0 contracts in its code, must have one"},
    {"Arguments",
     [](auto &m) {
       m.subnet().kernels[1]->arg_count = 3;
       launch(m, 1).args.push_back(m.y);
     },
     "given 3 arguments, its code takes 2"},
    {"Dims",
     [](auto &m) {
       m.stage().dims.push_back(std::make_unique<DimSlotDefT>());
       m.stage().dims[0]->name = "N", m.stage().dims[0]->max = 64;
       launch(m).dims = {0};
     },
     "is launched with dims, its code takes none"},
    {"TileSlot",
     [](auto &m) {
       m.stage().dims.push_back(std::make_unique<DimSlotDefT>());
       m.stage().dims[0]->name = "N", m.stage().dims[0]->min = m.stage().dims[0]->max = 65;
       launch(m).tile_count_slot = 0;
     },
     "is launched with dims"},
};

class Contract : public testing::TestWithParam<ContractCase> {};

TEST_P(Contract, IsHeld) {
  bmodel::test::AddRelu model(contractCode(), 1024);
  GetParam().alter(model);
  const std::string path = bmodel::test::temporaryPath("contract.bmodel");
  ASSERT_EQ(model.write(path), "");
  bmrt_model_t *opened = nullptr;
  bmrt_status_t status;
  EXPECT_EQ(bmrt_model_open(path.c_str(), nullptr, &opened, &status), BMRT_CORRUPT);
  EXPECT_NE(std::string(status.message).find(GetParam().message), std::string::npos) << status.message;
}

INSTANTIATE_TEST_SUITE_P(Contract, Contract, testing::ValuesIn(contractCases),
                         [](const auto &info) { return info.param.name; });

TEST(Contracts, AModelThatKeepsThemRuns) {
  bmodel::test::AddRelu model(contractCode(), 1024);
  Net net(openWritten(model, "keeps.bmodel"), {.threads = 2});
  const std::vector<float> x = someInput(1024);
  net.setInput("x", x.data(), 4096);
  net.run();
  const float *y = net.output<float>("y");
  EXPECT_EQ(std::vector<float>(y, y + 1024), addRelu(x, bmodel::test::iota(1024)));
}

TEST(Contracts, BuffersOfAnyAddressAreUsedWhereTheyAllowIt) {
  bmodel::test::AddRelu model(contractCode(), 1024);
  Net net(openWritten(model, "anywhere.bmodel"));
  AlignedFloats x(1025), y(1025);
  net.setInput("x", x.data() + 1, 4096);
  net.setOutput("y", y.data() + 1, 4096);
  net.run();
  EXPECT_EQ(net.output<float>("y"), y.data() + 1);
  // Steps that run again see the current contents of the tensors: there is no copy between them and the caller's
  // buffer.
  x[1] = 1000;
  check(bmrt_context_run_steps, net.get(), 0u, 2u);
  EXPECT_EQ(y[1], 1000 + bmodel::test::iota(1024)[0]);
}

TEST(Contracts, BuffersNeedTheirElementsAlignment) {
  bmodel::test::AddRelu model(contractCode(), 1024);
  Net net(openWritten(model, "odd.bmodel"));
  AlignedFloats storage(1025);
  char *x = reinterpret_cast<char *>(storage.data()) + 2;
  net.setInput("x", x, 4096);
  net.run();
  const float number = 1000;
  memcpy(x, &number, sizeof number);
  check(bmrt_context_run_steps, net.get(), 0u, 2u);
  EXPECT_EQ(net.output<float>("y")[0], 0) << "the steps have a copy of x";
}

/// A single argument that requires a larger alignment decides.
TEST(Contracts, TheStrictestArgumentDecides) {
  bmodel::test::AddRelu model(contractCode(), 1024);
  std::swap(launch(model).args[0], launch(model).args[1]);
  Net net(openWritten(model, "strict.bmodel"));
  AlignedFloats x(1025);
  net.setInput("x", x.data() + 1, 4096);
  net.run();
  x[1] = 1000;
  check(bmrt_context_run_steps, net.get(), 0u, 2u);
  EXPECT_EQ(net.output<float>("y")[0], 0) << "the steps have a copy of x";
}

/// Overwrites a field in all contracts; returns the message of the loader.
std::string withAlteredNote(size_t field, uint32_t value) {
  std::vector<char> code = contractCode();
  const std::string owner(BM_CONTRACT_OWNER, sizeof(BM_CONTRACT_OWNER));
  auto note = code.begin();
  while ((note = std::search(note, code.end(), owner.begin(), owner.end())) != code.end()) {
    note += ptrdiff_t(owner.size());
    memcpy(&*note + field, &value, sizeof value);
  }
  bmodel::test::AddRelu model(code, 1024);
  const std::string path = bmodel::test::temporaryPath("note.bmodel");
  EXPECT_EQ(model.write(path), "");
  bmrt_model_t *opened = nullptr;
  bmrt_status_t status;
  EXPECT_NE(bmrt_model_open(path.c_str(), nullptr, &opened, &status), BMRT_OK);
  return status.message;
}

TEST(Contracts, MalformedOnesAreRejected) {
  EXPECT_NE(withAlteredNote(offsetof(bm_kernel_contract, version), 3).find("contracts of version 3"),
            std::string::npos);
  EXPECT_NE(withAlteredNote(offsetof(bm_kernel_contract, version), 2).find("malformed"), std::string::npos);
  EXPECT_NE(withAlteredNote(offsetof(bm_kernel_contract, version), 0).find("malformed"), std::string::npos);
  EXPECT_NE(withAlteredNote(offsetof(bm_kernel_contract, arg_count), 1u << 31).find("malformed"), std::string::npos);
  EXPECT_NE(withAlteredNote(offsetof(bm_kernel_contract, symbol_bytes), 0).find("malformed"), std::string::npos);
  EXPECT_NE(withAlteredNote(offsetof(bm_kernel_contract, cpu_features) + 4, 1u << 31).find("needs"), std::string::npos);
  EXPECT_NE(withAlteredNote(offsetof(bm_kernel_contract, alignment), 128).find("aligned to 128"), std::string::npos);
  const size_t ofFirst = sizeof(bm_kernel_contract) + offsetof(bm_kernel_arg, alignment);
  EXPECT_NE(withAlteredNote(ofFirst, 128).find("aligned to 128 bytes, which is not a power of two up to 64"),
            std::string::npos);
  EXPECT_NE(withAlteredNote(ofFirst, 12).find("aligned to 12 bytes, which is not a power of two"), std::string::npos);
}

} // namespace

// SPDX-License-Identifier: Apache-2.0
//===- SizeContract_test.cpp - Contracts of kernels with dims -------------===//
//
// Each case alters the tables of a model, as an attacker could. The runtime must reject the file, or the sizes at which
// a kernel would access bytes outside its tensors.
//
//===----------------------------------------------------------------------===//
#include "SizedModel.h"

#include "bmodel/contract_writer.h"

#include <algorithm>
#include <cstddef>
#include <functional>

using namespace bmodel;
using namespace bmrt;
using namespace bmrt::cts;

namespace {

/// Opens a model and sets the sizes n = 3 and w = 9; returns the message of the first error.
template <typename TestModel>
std::string errorOf(TestModel &model) {
  const std::string path = bmodel::test::temporaryPath("size-contract.bmodel");
  EXPECT_EQ(model.write(path), "");
  try {
    Net net{Model(path)};
    const int64_t x[] = {3, 9}, t = 6, *shapes[] = {x, &t};
    const uint32_t ranks[] = {2, 1};
    check(bmrt_context_set_input_shapes, net.get(), shapes, ranks, 2u);
    net.run();
    return "";
  } catch (const Error &error) {
    EXPECT_EQ(error.code(), BMRT_CORRUPT);
    return error.what();
  }
}

struct SizeContractCase {
  const char *name;
  std::function<void(SizedModel &)> alter;
  const char *message;
};

void PrintTo(const SizeContractCase &c, std::ostream *out) { *out << c.name; }

const SizeContractCase sizeContractCases[] = {
    {"Valid", [](SizedModel &) {}, ""},
    // Rejected when the file is loaded.
    {"RangeOfASlot", [](SizedModel &m) { m.stage().dims[m.m]->max = 12; },
     "kernel 'add_bias' is given the dim 'm' from 0 to 12, its code takes 0 to 11"},
    {"OrderOfDims", [](SizedModel &m) { m.launch(1).dims = {m.m, m.n}; },
     "step 1: kernel 'add_pairs' is given the dim 'n' from 0 to 17, its code takes 0 to 11"},
    {"FewDims", [](SizedModel &m) { m.launch(0).dims = {m.n}; }, "kernel 'add_bias' is given 1 dims, its code takes 2"},
    {"NoDims", [](SizedModel &m) { m.launch(0).dims.clear(); }, "is given 0 dims, its code takes 2"},
    {"Scratch", [](SizedModel &m) { m.launch(0).scratch_bytes = 64; }, "given 64 bytes of scratch, its code uses 0"},
    {"WritesAnInput", [](SizedModel &m) { m.launch(0).args[2] = m.x; }, "its code writes it"},
    {"Arguments",
     [](SizedModel &m) {
       m.subnet().kernels[1]->arg_count = 4;
       m.launch(1).args.push_back(m.z);
     },
     "given 4 arguments, its code takes 3"},
    // Rejected when sizes are set.
    {"ConstantTiles",
     [](SizedModel &m) {
       m.launch(0).tile_count_slot = -1;
       m.launch(0).tile_count = 17;
     },
     "subnet 'main' step 0: kernel 'add_bias' is launched in 17 tiles, its code has 3 at these sizes"},
    {"OtherTiles", [](SizedModel &m) { m.launch(1).tile_count_slot = int32_t(m.total); },
     "kernel 'add_pairs' is launched in 6 tiles, its code has 15 at these sizes"},
    {"SmallerInput", [](SizedModel &m) { std::swap(m.launch(1).args[0], m.launch(1).args[1]); },
     "argument 0 of kernel 'add_pairs' is tensor 't' of 24 bytes, its code takes one of 108 at these sizes"},
    {"SmallerConstant",
     [](SizedModel &m) {
       m.tensor(m.b).shape = {constantDim(2)};
       m.tensor(m.b).bytes = 8;
     },
     "argument 1 of kernel 'add_bias' is tensor 'b' of 8 bytes, its code takes one of 12"},
    {"SmallerResult",
     [](SizedModel &m) {
       m.tensor(m.y).shape = m.tensor(m.z).shape = {slotDim(m.stage(), m.n), slotDim(m.stage(), m.m)};
       m.tensor(m.y).bytes = m.tensor(m.z).bytes = 17 * 11 * 4;
     },
     "argument 2 of kernel 'add_pairs' is tensor 'y' of 36 bytes, its code takes one of 60 at these sizes"},
    {"Copy",
     [](SizedModel &m) {
       const uint32_t other =
           addDerivedDim(m.stage(), "min(w, 17)", {slotTerm(m.w), constantTerm(17), opTerm(DimOp::Min)}, {0, 17});
       m.tensor(m.z).shape[1] = slotDim(m.stage(), other);
     },
     "step 2: a copy of the 60 bytes of 'y' to the 108 bytes of 'z'"},
    {"View",
     [](SizedModel &m) {
       const uint32_t view = m.add("view", {m.n}, TensorRole::Workspace, Place::Workspace);
       m.tensor(view).view_of = int32_t(m.s);
       m.tensor(view).offset = 128;
     },
     "tensor 'view' of 12 bytes at 128 exceeds the 108 bytes of 's' at these sizes"},
};

class SizeContract : public testing::TestWithParam<SizeContractCase> {};

TEST_P(SizeContract, IsHeld) {
  SizedModel model;
  GetParam().alter(model);
  const std::string error = errorOf(model);
  if (!*GetParam().message) {
    EXPECT_EQ(error, "");
  }
  EXPECT_NE(error.find(GetParam().message), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(SizeContract, SizeContract, testing::ValuesIn(sizeContractCases),
                         [](const auto &info) { return info.param.name; });

/// A kernel without dims accesses the largest size of its tensors, whatever their actual size.
TEST(SizeContracts, AKernelWithoutDimsNeedsTheLargestSize) {
  SizedModel model(sizedCode(), 16);
  model.stage().inputs.pop_back();
  model.stage().outputs = {model.y};
  const std::vector<Dim> line = {slotDim(model.stage(), model.n)};
  for (uint32_t slot : {model.x, model.y}) {
    model.tensor(slot).shape = line, model.tensor(slot).bytes = 64;
  }
  model.stage().tensors.pop_back(); // z
  model.tensor(model.t).role = TensorRole::Workspace, model.tensor(model.t).place = Place::Workspace;
  model.subnet().plan.clear();
  addLaunch(model.subnet(), addKernel(model.subnet(), "copy_line", 2), {model.x, model.y}, 1, {model.y});
  Net net(openWritten(model, "sizes-line.bmodel"));
  net.setShape("x", {16});
  const std::vector<float> x = someInput(16);
  net.setInput("x", x.data(), 64);
  net.run();
  EXPECT_EQ(std::vector<float>(net.output<float>("y"), net.output<float>("y") + 16), x);
  bmrt_status_t status;
  const int64_t fifteen = 15;
  EXPECT_EQ(bmrt_context_set_input_shape(net.get(), 0, &fifteen, 1, &status), BMRT_CORRUPT);
  EXPECT_NE(std::string(status.message).find("tensor 'x' of 60 bytes, its code takes one of 64"), std::string::npos)
      << status.message;
}

/// The position in the code of the contract of add_bias, and of its parts.
constexpr size_t kArgs = sizeof(bm_kernel_contract), kParamCount = kArgs + 3 * sizeof(bm_kernel_arg),
                 kParams = kParamCount + 4, kLengths = kParams + 2 * sizeof(bm_kernel_param), kTerms = kLengths + 16;

ContractWriter contractOfAddBias() {
  const std::vector<DimTerm> matrix = {constantTerm(12), slotTerm(0), opTerm(DimOp::Mul), slotTerm(1),
                                       opTerm(DimOp::Mul)};
  ContractWriter writer;
  writer.symbol = "add_bias";
  writer.tiles.terms = {slotTerm(0)};
  writer.cpuFeatures = 1, writer.alignment = 64;
  const uint32_t both = BM_ARG_READ | BM_ARG_WRITE;
  writer.arguments = {{{0, matrix}, BM_ARG_READ, 4}, {{12, {}}, BM_ARG_READ, 4}, {{0, matrix}, both, 4}};
  writer.params = {{0, int64_t(1) << 40}, {0, 11}};
  return writer;
}

std::vector<char>::iterator findContract(std::vector<char> &code) {
  const std::string contract = contractOfAddBias().bytes();
  return std::search(code.begin(), code.end(), contract.begin(), contract.end());
}

TEST(SizeContracts, TheWriterAndPlainCAgree) {
  std::vector<char> code = sizedCode();
  EXPECT_NE(findContract(code), code.end());
}

/// Overwrites a field of the contract of add_bias; returns the message of the loader.
template <typename T>
std::string withAlteredContract(size_t field, T value) {
  std::vector<char> code = sizedCode();
  memcpy(&*findContract(code) + field, &value, sizeof value);
  SizedModel model(code);
  return errorOf(model);
}

TEST(SizeContracts, MalformedOnesAreRejected) {
  const std::string malformed = "a contract is malformed";
  EXPECT_NE(withAlteredContract(kParamCount, UINT32_MAX).find(malformed), std::string::npos);
  EXPECT_NE(withAlteredContract(kLengths, UINT32_MAX).find(malformed), std::string::npos);
  EXPECT_NE(withAlteredContract(kLengths + 12, uint32_t(7)).find(malformed), std::string::npos);
  EXPECT_NE(withAlteredContract(kLengths, uint32_t(2)).find(malformed), std::string::npos);
  EXPECT_NE(withAlteredContract(kLengths + 4, uint32_t(4)).find(malformed), std::string::npos);
  EXPECT_NE(withAlteredContract(kParams, int64_t(-1)).find("dim 0 of kernel 'add_bias' ranges from -1"),
            std::string::npos);
  EXPECT_NE(withAlteredContract(kParams + 8, int64_t(-1)).find("dim 0 of kernel 'add_bias' ranges from 0 to -1"),
            std::string::npos);
  EXPECT_NE(withAlteredContract(kTerms, int64_t(2)).find("expression 0 of kernel 'add_bias' refers to a dim"),
            std::string::npos);
  EXPECT_NE(withAlteredContract(kTerms + 8, uint8_t(10)).find("has an unknown operation"), std::string::npos);
  EXPECT_NE(withAlteredContract(kTerms + 8, uint8_t(BM_DIM_ADD)).find("lacks operands"), std::string::npos);
  EXPECT_NE(withAlteredContract(kTerms + 16, INT64_MAX / 2).find("may overflow or divide by zero"), std::string::npos);
}

} // namespace

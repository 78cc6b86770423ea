//===- CudaChip_test.cpp --------------------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/CudaChip.h"

#include <gtest/gtest.h>

namespace tessera::cuda {
namespace {

CudaChip chipOf(llvm::StringRef name) {
  llvm::Expected<CudaChip> chip = parseChip(*findBuiltinChip(name), name);
  EXPECT_TRUE(bool(chip)) << llvm::toString(chip.takeError());
  return chip ? *chip : CudaChip();
}

/// Returns the error for cuda-sm80 with |changes|, or "".
std::string errorOf(std::vector<std::string> changes) {
  std::string json = *findBuiltinChip("cuda-sm80"), error;
  for (const std::string &change : changes) {
    if (!bmodel::setChipField(json, change, chipFields(), error)) {
      return error;
    }
  }
  llvm::Expected<CudaChip> chip = parseChip(json, "here");
  return chip ? "" : llvm::toString(chip.takeError());
}

/// Published peaks, in 10^12 operations per second (a multiply-add counts as two) and 10^9 bytes per second.
TEST(CudaChip, MultipliesToPublishedPeaks) {
  struct Peaks {
    const char *name;
    double int8, f16, f32, gbps;
  };
  for (const Peaks &want : {Peaks{"cuda-sm80", 624, 312, 19.5, 1555}, Peaks{"cuda-sm86", 284, 71, 35.6, 936},
                            Peaks{"cuda-sm89", 242, 121, 30.3, 300}, Peaks{"cuda-sm90", 1979, 989, 61.8, 3352}}) {
    CudaChip chip = chipOf(want.name);
    EXPECT_NEAR(2e-12 * chip.perSecond(chip.tensorInt8), want.int8, 0.005 * want.int8) << want.name;
    EXPECT_NEAR(2e-12 * chip.perSecond(chip.tensorF16), want.f16, 0.005 * want.f16) << want.name;
    EXPECT_NEAR(2e-12 * chip.perSecond(chip.f32), want.f32, 0.005 * want.f32) << want.name;
    EXPECT_EQ(chip.dramGbps, want.gbps) << want.name;
  }
}

TEST(CudaChip, NamesEveryBuiltinOneAndItsSources) {
  EXPECT_EQ(builtinChips(), (std::vector<std::string>{"cuda", "cuda-sm80", "cuda-sm86", "cuda-sm89", "cuda-sm90"}));
  for (const std::string &name : builtinChips()) {
    CudaChip chip = chipOf(name);
    EXPECT_EQ(chip.name, name);
    EXPECT_EQ(chip.sources.size(), chipFields().size());
    EXPECT_EQ(chip.machineCode, name != "cuda");
  }
  EXPECT_FALSE(findBuiltinChip("cuda-sm10"));
}

TEST(CudaChip, PricesPtxByTheLeastOfTheCards) {
  CudaChip any = chipOf("cuda");
  for (const char *name : {"cuda-sm80", "cuda-sm86", "cuda-sm89", "cuda-sm90"}) {
    CudaChip card = chipOf(name);
#define CUDA_CHIP_NUMBER(path, type, member, low, high, validity, meaning) EXPECT_LE(any.member, card.member) << path;
#include "codegen/Cuda/CudaChip.inc"
  }
}

TEST(CudaChip, ReportsWhatIsWrong) {
  EXPECT_EQ(errorOf({"dram.gbps=100", "sms=54"}), "");
  EXPECT_EQ(errorOf({"sms=0"}), "here: sms is 0, allowed are 1 to 1024");
  EXPECT_EQ(errorOf({"sms=1.5"}), "here: sms is 1.5, expected a whole number");
  EXPECT_EQ(errorOf({"dram.gbps=fast"}), "here: dram.gbps is \"fast\", expected a number");
  EXPECT_EQ(errorOf({"compute_capability=75"}), "here: compute_capability is 75, allowed are 80 to 129");
  EXPECT_EQ(errorOf({"family=npu"}), "here: family is \"npu\", allowed are cuda");
  EXPECT_NE(errorOf({"lanes=8"}).find("'lanes' is not a field of the chip; the fields are compute_capability, "),
            std::string::npos);
  EXPECT_EQ(errorOf({"sm.shared_bytes=65536"}),
            "here: sm.shared_bytes_per_block is 166912, more than sm.shared_bytes = 65536");
}

} // namespace
} // namespace tessera::cuda

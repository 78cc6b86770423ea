// SPDX-License-Identifier: Apache-2.0
//===- Writer_test.cpp - Writing, reading back, and damaging files --------===//
#include "bmodel/writer.h"

#include "AtomicFile.h"
#include "bmodel/file_header.h"
#include "bmodel/reader.h"
#include "bmodel_format/test/TestModel.h"

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

using namespace bmodel;
using namespace bmodel::test;

namespace {

/// The bytes of a file at a multiple of 64, like a mapping.
struct AlignedBytes {
  explicit AlignedBytes(const std::vector<char> &from)
      : bytes(static_cast<char *>(aligned_alloc(64, (from.size() / 64 + 1) * 64))), size(from.size()) {
    std::copy(from.begin(), from.end(), bytes);
  }
  ~AlignedBytes() { free(bytes); }
  char *bytes;
  size_t size;
};

bool readable(const char *bytes, size_t size, Status &status) {
  ModelView view;
  return openModel(bytes, size, view, status) && checkSegments(view, ~0u, status) && checkDigests(view, status);
}

TEST(Writer, RoundTrip) {
  const std::string path = temporaryPath("roundtrip.bmodel");
  AddRelu test;
  ASSERT_EQ(test.write(path), "");
  AlignedBytes file(readBytes(path));
  ModelView view;
  Status status;
  ASSERT_TRUE(openModel(file.bytes, file.size, view, status)) << status.message;
  ASSERT_TRUE(checkSegments(view, ~0u, status)) << status.message;
  ASSERT_TRUE(checkDigests(view, status)) << status.message;
  const StageDef *stage = view.model->nets()->Get(0)->stages()->Get(0);
  EXPECT_EQ(stage->tensors()->size(), 4u);
  const TensorDef *w = stage->tensors()->Get(test.w);
  EXPECT_EQ(0, memcmp(view.segment(w->place_index()) + w->offset(), test.weights.data(),
                      test.weights.size() * sizeof(float)));
  EXPECT_EQ(stage->subnets()->Get(0)->plan()->Get(1)->debug()->onnx_nodes()->Get(0)->str(), "Relu_0");
}

TEST(Writer, SameInputSameBytes) {
  const std::string a = temporaryPath("a.bmodel"), b = temporaryPath("b.bmodel");
  AddRelu first, second;
  ASSERT_EQ(first.write(a), "");
  ASSERT_EQ(second.write(b), "");
  EXPECT_EQ(readBytes(a), readBytes(b));
  ASSERT_EQ(first.write(b), "") << "writing the same ModelDefT again";
  EXPECT_EQ(readBytes(a), readBytes(b));
}

TEST(Writer, GapsBetweenPiecesAreZero) {
  AddRelu test;
  const std::vector<char> five(5, 'x'), big(5 << 20, 'y');
  const uint64_t first = test.segments[1].append(five);
  const uint64_t second = test.segments[1].append(big, 8192);
  EXPECT_EQ(first % 64, 0u);
  EXPECT_EQ(second % 8192, 0u);
  const std::string path = temporaryPath("gaps.bmodel");
  ASSERT_EQ(test.write(path), "");
  AlignedBytes file(readBytes(path));
  ModelView view;
  Status status;
  ASSERT_TRUE(readable(file.bytes, file.size, status)) << status.message;
  ASSERT_TRUE(openModel(file.bytes, file.size, view, status));
  EXPECT_EQ(view.segment(1)[first + 4], 'x');
  EXPECT_EQ(view.segment(1)[first + 5], 0);
  EXPECT_EQ(view.segment(1)[second + big.size() - 1], 'y');
}

TEST(Writer, RejectsWhatTheLoaderWouldReject) {
  AddRelu test;
  test.tensor(test.sum).offset = 64;
  const std::string path = temporaryPath("refused.bmodel");
  const std::string error = test.write(path);
  EXPECT_NE(error.find("tensor 'sum'"), std::string::npos) << error;
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

TEST(Writer, SaysWhyItCannotWrite) {
  AddRelu test;
  const std::string error = test.write("/proc/no-such-folder/m.bmodel");
  EXPECT_NE(error.find("/proc/no-such-folder/m.bmodel"), std::string::npos) << error;
  EXPECT_NE(error.find("No such file or directory"), std::string::npos) << error;
  EXPECT_NE(test.write("/dev/full").find("not a regular file"), std::string::npos);
}

TEST(Writer, AFullDiskLeavesNothing) {
  const std::string folder = temporaryPath("full");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  const std::string path = folder + "/m.bmodel";
  // A file size limit fails like a full disk, at the same place.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit size = {4096, 4096};
    AddRelu test;
    _exit(setrlimit(RLIMIT_FSIZE, &size) == 0 && !test.write(path).empty() ? 0 : 1);
  }
  int result = 0;
  waitpid(child, &result, 0);
  EXPECT_EQ(result, 0);
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "the folder is not empty";
}

TEST(Writer, ASignalLeavesNothing) {
  const std::string folder = temporaryPath("signal");
  ASSERT_EQ(mkdir(folder.c_str(), 0755), 0);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGINT, SIG_DFL);
    AtomicFile file(folder + "/m.bmodel");
    file.append(std::vector<char>(10000, 'x'));
    raise(SIGINT);
    _exit(1);
  }
  int result = 0;
  waitpid(child, &result, 0);
  EXPECT_TRUE(WIFSIGNALED(result) && WTERMSIG(result) == SIGINT) << result;
  EXPECT_EQ(rmdir(folder.c_str()), 0) << "the folder is not empty";
}

/// A change of any byte of the file is rejected.
TEST(Reader, RejectsEveryAlteredByte) {
  const std::string path = temporaryPath("altered.bmodel");
  AddRelu test;
  ASSERT_EQ(test.write(path), "");
  AlignedBytes file(readBytes(path));
  Status status;
  ASSERT_TRUE(readable(file.bytes, file.size, status)) << status.message;
  for (size_t i = 0; i < file.size; ++i) {
    file.bytes[i] ^= char(1 << (i % 8));
    Status rejected;
    ASSERT_FALSE(readable(file.bytes, file.size, rejected)) << "byte " << i;
    ASSERT_STRNE(rejected.message, "");
    file.bytes[i] ^= char(1 << (i % 8));
  }
}

TEST(Reader, RejectsEveryTruncation) {
  const std::string path = temporaryPath("truncated.bmodel");
  AddRelu test;
  ASSERT_EQ(test.write(path), "");
  const std::vector<char> whole = readBytes(path);
  for (size_t size = 0; size < whole.size(); size += size < 4096 ? 1 : 61) {
    // An allocation of the exact size lets the sanitizer detect reads past the end.
    AlignedBytes file(std::vector<char>(whole.begin(), whole.begin() + ptrdiff_t(size)));
    Status status;
    ASSERT_FALSE(readable(file.bytes, file.size, status)) << size;
  }
}

TEST(Reader, NamesTheAlteredTensor) {
  const std::string path = temporaryPath("named.bmodel");
  AddRelu test;
  ASSERT_EQ(test.write(path), "");
  AlignedBytes file(readBytes(path));
  ModelView view;
  Status status;
  ASSERT_TRUE(openModel(file.bytes, file.size, view, status));
  file.bytes[view.model->segments()->Get(1)->offset() + 8] ^= 1;
  EXPECT_FALSE(checkSegments(view, ~0u, status));
  EXPECT_NE(std::string(status.message).find("tensor 'w'"), std::string::npos) << status.message;
}

/// Moves the offset |field| of a table, which refers to a vector of 8-byte elements, by 4 bytes, and checks that the
/// model is rejected. The vector remains plausible: its length is now the low half of its first element, |first|.
bool isRejectedWhenMoved(AlignedBytes &file, const void *table, flatbuffers::voffset_t field, uint32_t first) {
  auto *at = reinterpret_cast<const flatbuffers::Table *>(table)->GetAddressOf(field);
  auto *offset =
      reinterpret_cast<flatbuffers::uoffset_t *>(file.bytes + (reinterpret_cast<const char *>(at) - file.bytes));
  auto *length = reinterpret_cast<flatbuffers::uoffset_t *>(reinterpret_cast<char *>(offset) + *offset);
  const flatbuffers::uoffset_t count = *length, saved = length[1];
  length[1] = first;
  *offset += 4;
  FileHeader header;
  memcpy(&header, file.bytes, sizeof(header));
  const uint64_t tableEnd = header.tableOffset + header.tableBytes;
  flatbuffers::Verifier verifier(reinterpret_cast<uint8_t *>(file.bytes) + header.tableOffset,
                                 size_t(header.tableBytes));
  EXPECT_TRUE(VerifyModelDefBuffer(verifier)) << "flatbuffers' own check sees it: then ours is not needed";
  Status status;
  const bool rejected = !validateModel(*GetModelDef(file.bytes + header.tableOffset), tableEnd, file.size, status) &&
                        std::string(status.message).find("misaligned") != std::string::npos;
  *offset -= 4;
  length[1] = saved;
  EXPECT_EQ(*length, count);
  return rejected;
}

TEST(Reader, RejectsMisalignedElements) {
  const std::string path = temporaryPath("misaligned.bmodel");
  AddRelu test;
  auto dim = std::make_unique<DimSlotDefT>();
  dim->name = "N", dim->min = 1, dim->max = 1;
  test.stage().dims.push_back(std::move(dim));
  test.tensor(test.sum).quant = std::make_unique<QuantDefT>();
  test.tensor(test.sum).quant->scales = {1}, test.tensor(test.sum).quant->zero_points = {1};
  EvalDimDefT eval;
  eval.terms = {DimTerm(1, DimOp::Const)};
  test.subnet().plan.push_back(std::make_unique<StepDefT>());
  test.subnet().plan.back()->op.Set(std::move(eval));
  ASSERT_EQ(test.write(path), "");
  AlignedBytes file(readBytes(path));
  ModelView view;
  Status status;
  ASSERT_TRUE(openModel(file.bytes, file.size, view, status)) << status.message;
  const StageDef *stage = view.model->nets()->Get(0)->stages()->Get(0);
  const TensorDef *sum = stage->tensors()->Get(test.sum);
  EXPECT_TRUE(isRejectedWhenMoved(file, sum, TensorDef::VT_SHAPE, 1));
  EXPECT_TRUE(isRejectedWhenMoved(file, sum->quant(), QuantDef::VT_ZERO_POINTS, 1));
  EXPECT_TRUE(isRejectedWhenMoved(file, view.model->segments()->Get(1), SegmentDef::VT_CHUNK_XXH3, 1));
  const auto *plan = stage->subnets()->Get(0)->plan();
  const auto *term = plan->Get(plan->size() - 1)->op_as_EvalDimDef();
  ASSERT_NE(term, nullptr);
  EXPECT_TRUE(isRejectedWhenMoved(file, term, EvalDimDef::VT_TERMS, 1));
  EXPECT_TRUE(readable(file.bytes, file.size, status)) << "nothing is left changed";
}

TEST(Reader, RejectsOtherVersions) {
  const std::string path = temporaryPath("version.bmodel");
  AddRelu test;
  ASSERT_EQ(test.write(path), "");
  AlignedBytes file(readBytes(path));
  file.bytes[8] = 2;
  ModelView view;
  Status status;
  EXPECT_FALSE(openModel(file.bytes, file.size, view, status));
  EXPECT_EQ(status.fault, Fault::Unsupported);
}

} // namespace

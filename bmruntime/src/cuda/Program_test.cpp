// SPDX-License-Identifier: Apache-2.0
//===- Program_test.cpp - Programs rejected before they reach a GPU -------===//
#include "Program.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>

using namespace bmrt::cuda;
using namespace bmodel::cuda;

namespace {

/// A code segment with one image and one kernel of two arguments.
struct Segment {
  Directory directory{kMagic, kVersion, 1, 1};
  Image image{80, 0, 64, 6};
  Kernel kernel{48, 2};
  char name[16] = "kernel";
  char ptx[6] = "// ..";
};
static_assert(sizeof(Segment) == 72);

/// A launch of that kernel on one input of 64 bytes and a workspace of 32 bytes.
struct Stream {
  Launch launch{0, 2, {1, 1, 1}, {128, 1, 1}, 0, 0};
  Argument arguments[2] = {{ArgumentKind::pointer, 0, 0, 64}, {ArgumentKind::pointer, 1, 16, 16}};
};

bmrt_code_t read(const Segment &segment, uint64_t bytes = sizeof(Segment)) {
  Tables tables;
  bmrt_status_t status = {};
  return readTables(reinterpret_cast<const unsigned char *>(&segment), bytes, tables, &status);
}

std::string verify(const Stream &launches, uint64_t bytes = sizeof(Stream)) {
  Segment segment;
  Tables tables;
  bmrt_status_t status = {};
  EXPECT_EQ(readTables(reinterpret_cast<const unsigned char *>(&segment), sizeof segment, tables, &status), BMRT_OK);
  const uint64_t sizes[] = {64};
  const char *layers[] = {"Conv_0"};
  bmrt_stream_t stream = {};
  stream.code = reinterpret_cast<const unsigned char *>(&launches), stream.bytes = bytes;
  stream.tensor_bytes = sizes, stream.input_count = 1, stream.workspace_bytes = 32;
  stream.layers = layers, stream.layer_count = 1;
  return verifyStream(tables, stream, &status) == BMRT_OK ? "" : status.message;
}

std::string verifyWith(const std::function<void(Stream &)> &change) {
  Stream stream;
  change(stream);
  return verify(stream);
}

TEST(CudaProgram, TablesAreRead) { EXPECT_EQ(read({}), BMRT_OK); }

TEST(CudaProgram, TablesThatAreCutOffAreRejected) {
  for (uint64_t bytes = 0; bytes < sizeof(Segment) - 2; ++bytes) {
    EXPECT_EQ(read({}, bytes), BMRT_CORRUPT) << bytes;
  }
}

TEST(CudaProgram, WrongTablesAreRejected) {
  auto with = [](const std::function<void(Segment &)> &change) {
    Segment segment;
    change(segment);
    return read(segment);
  };
  EXPECT_EQ(with([](Segment &s) { s.directory.magic = 0; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](Segment &s) { s.directory.version = 2; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](Segment &s) { s.directory.imageCount = 0; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](Segment &s) { s.directory.kernelCount = ~0U; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](Segment &s) { s.image.offset = ~uint64_t(0); }), BMRT_CORRUPT);
  EXPECT_EQ(with([](Segment &s) { s.image.bytes = ~uint64_t(0); }), BMRT_CORRUPT);
  EXPECT_EQ(with([](Segment &s) { s.image.bytes = 5; }), BMRT_CORRUPT); // PTX without the terminating zero
  EXPECT_EQ(with([](Segment &s) { s.kernel.nameOffset = sizeof(Segment); }), BMRT_CORRUPT);
  EXPECT_EQ(with([](Segment &s) { s.kernel.argumentCount = 1 << 30; }), BMRT_CORRUPT);
}

TEST(CudaProgram, StreamsAreVerified) {
  EXPECT_EQ(verify({}), "");
  for (uint64_t bytes = 1; bytes < sizeof(Stream); ++bytes) {
    EXPECT_NE(verify({}, bytes), "") << bytes;
  }
  EXPECT_NE(verifyWith([](Stream &s) { s.launch.kernel = 1; }).find("Conv_0: the kernel is not in the code"),
            std::string::npos);
  EXPECT_NE(verifyWith([](Stream &s) { s.launch.argumentCount = 1; }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.launch.grid[0] = 0; }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.launch.grid[1] = 65536; }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.launch.block[0] = 1025; }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.launch.block[1] = 1U << 31, s.launch.block[2] = 2; }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.arguments[0].index = 2; }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.arguments[0].value = 1; }).find("past its tensor"), std::string::npos);
  EXPECT_NE(verifyWith([](Stream &s) { s.arguments[1].reach = ~uint64_t(0); }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.arguments[1].kind = ArgumentKind::dim; }), "");
  EXPECT_NE(verifyWith([](Stream &s) { s.arguments[1].kind = ArgumentKind(4); }), "");
}

} // namespace

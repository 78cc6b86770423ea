// SPDX-License-Identifier: Apache-2.0
//===- Program_test.cpp - Programs rejected before they reach a GPU -------===//
#include "Program.h"

#include "bmodel/kernel_contract.h"

#include <cstddef>
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
  std::vector<Command> commands;
  return verifyStream(tables, stream, commands, &status) == BMRT_OK ? "" : status.message;
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
  EXPECT_EQ(with([](Segment &s) { s.directory.version = 3; }), BMRT_CORRUPT);
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
  EXPECT_NE(verifyWith([](Stream &s) { s.arguments[1].kind = ArgumentKind(6); }), "");
}

//===----------------------------------------------------------------------===//
// Version 2: sizes known at run time
//===----------------------------------------------------------------------===//

/// A stream of one dim n from 0 to 8. Size 0 is n tiles of 4 per block, size 1 the 8 n bytes of the input.
struct SizedStream {
  SizeTable table{1, 2};
  bm_kernel_param param{0, 8};
  uint32_t lengths[2] = {1, 3};
  bm_dim_term terms[4] = {{0, BM_DIM_PARAM, {}}, {0, BM_DIM_PARAM, {}}, {8, BM_DIM_CONST, {}}, {0, BM_DIM_MUL, {}}};
  Launch launch{0, 2, {1, 1, 1}, {128, 1, 1}, 0, 0};
  Grid grid{0, 4};
  Argument arguments[2] = {{ArgumentKind::sized, 0, 0, 1}, {ArgumentKind::size, 0, 0, 0}};
};

struct Sized {
  Tables tables;
  bmrt_stream_t stream = {};
  bmrt_status_t status = {};
  std::vector<Command> commands;

  /// The input has |inputBytes|.
  bmrt_code_t verify(const SizedStream &bytes, const uint64_t &inputBytes, uint64_t length = sizeof(SizedStream)) {
    tables.version = kVersionSizes, tables.kernels = {{0, 2}};
    stream.code = reinterpret_cast<const unsigned char *>(&bytes), stream.bytes = length;
    stream.tensor_bytes = &inputBytes, stream.input_count = 1, stream.dim_count = 1;
    commands.clear();
    return verifyStream(tables, stream, commands, &status);
  }
  /// Reads the launches for |n|.
  bmrt_code_t readAt(int64_t n) {
    stream.dims = &n, commands.clear();
    return readCommands(tables, stream, commands, &status);
  }
};

TEST(CudaProgram, SizesFollowTheDims) {
  SizedStream bytes;
  Sized sized;
  const uint64_t inputBytes = 64;
  ASSERT_EQ(sized.verify(bytes, inputBytes), BMRT_OK) << sized.status.message;
  for (int64_t n = 1; n <= 8; ++n) {
    ASSERT_EQ(sized.readAt(n), BMRT_OK) << sized.status.message;
    ASSERT_EQ(sized.commands.size(), 1U);
    const Command &command = sized.commands[0];
    EXPECT_EQ(command.launch.grid[0], uint32_t(n + 3) / 4);
    EXPECT_EQ(command.arguments[0].kind, ArgumentKind::pointer);
    EXPECT_EQ(command.arguments[0].reach, uint64_t(8 * n));
    EXPECT_EQ(command.arguments[1].kind, ArgumentKind::value64);
    EXPECT_EQ(command.arguments[1].value, uint64_t(n));
  }
  ASSERT_EQ(sized.readAt(0), BMRT_OK);
  EXPECT_TRUE(sized.commands.empty()) << "a launch without tiles";
}

TEST(CudaProgram, SizesOutsideTheCodeAreRejected) {
  SizedStream bytes;
  Sized sized;
  const uint64_t inputBytes = 48;
  ASSERT_EQ(sized.verify(bytes, inputBytes), BMRT_OK) << sized.status.message;
  EXPECT_EQ(sized.readAt(6), BMRT_OK);
  EXPECT_EQ(sized.readAt(7), BMRT_CORRUPT);
  EXPECT_NE(std::string(sized.status.message).find("past its tensor"), std::string::npos);
  for (int64_t n : {int64_t(-1), int64_t(9), INT64_MAX}) {
    EXPECT_EQ(sized.readAt(n), BMRT_CORRUPT);
    EXPECT_NE(std::string(sized.status.message).find("compiled for 0 to 8"), std::string::npos);
  }
}

TEST(CudaProgram, WrongSizeTablesAreRejected) {
  const uint64_t inputBytes = 64;
  for (uint64_t length = 1; length < sizeof(SizedStream); ++length) {
    // Without a launch the stream is whole.
    const bool isTable = length == offsetof(SizedStream, launch);
    EXPECT_EQ(Sized().verify({}, inputBytes, length), isTable ? BMRT_OK : BMRT_CORRUPT) << length;
  }
  auto with = [&](const std::function<void(SizedStream &)> &change) {
    SizedStream bytes;
    change(bytes);
    return Sized().verify(bytes, inputBytes);
  };
  EXPECT_EQ(with([](SizedStream &s) { s.table.paramCount = 2; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](SizedStream &s) { s.table.sizeCount = ~0U; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](SizedStream &s) { s.lengths[0] = ~0U; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](SizedStream &s) { s.terms[0].value = 1; }), BMRT_CORRUPT); // no such dim
  EXPECT_EQ(with([](SizedStream &s) { s.terms[3].op = 10; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](SizedStream &s) { s.terms[3].op = BM_DIM_CONST; }), BMRT_CORRUPT); // leaves three values
  EXPECT_EQ(with([](SizedStream &s) { s.grid.tiles = 2; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](SizedStream &s) { s.grid.tilesPerBlock = 0; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](SizedStream &s) { s.arguments[0].reach = 2; }), BMRT_CORRUPT);
  EXPECT_EQ(with([](SizedStream &s) { s.arguments[1].index = 2; }), BMRT_CORRUPT);
}

} // namespace

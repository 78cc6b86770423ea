// SPDX-License-Identifier: Apache-2.0
//===- CudaFuzzer.cpp - libFuzzer target: code and streams of family cuda -===//
//
// The first bytes are a code segment, the rest is a stream. Neither may be read past its end, whatever it contains.
//
//===----------------------------------------------------------------------===//
#include "bmruntime/src/cuda/Program.h"

#include <cstdlib>
#include <cstring>
#include <fuzzer/FuzzedDataProvider.h>

using namespace bmrt::cuda;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *input, size_t bytes) {
  FuzzedDataProvider data(input, bytes);
  const uint64_t sizes[] = {data.ConsumeIntegral<uint16_t>(), data.ConsumeIntegral<uint16_t>()};
  bool hasHead = data.ConsumeBool();
  auto code = data.ConsumeBytes<uint8_t>(data.ConsumeIntegralInRange<size_t>(0, 256));
  const int64_t dims[] = {data.ConsumeIntegral<int64_t>()};
  const uint32_t version = data.ConsumeBool() ? bmodel::cuda::kVersionSizes : bmodel::cuda::kVersion;
  const bmodel::cuda::Directory head{bmodel::cuda::kMagic, version, 1, 2};
  if (hasHead && code.size() >= sizeof head) { // which random bytes hardly ever are
    memcpy(code.data(), &head, sizeof head);
  }
  auto launches = data.ConsumeRemainingBytes<uint8_t>();
  bmrt_status_t status = {};
  Tables tables;
  if (readTables(code.data(), code.size(), tables, &status) != BMRT_OK) {
    tables.kernels.assign(2, {0, 1}), tables.version = version;
  }
  const char *layers[] = {"a layer"};
  bmrt_stream_t stream = {};
  stream.code = launches.data(), stream.bytes = launches.size();
  stream.tensor_bytes = sizes, stream.input_count = stream.output_count = 1;
  stream.workspace_bytes = 64, stream.layers = layers, stream.layer_count = 1, stream.dims = dims, stream.dim_count = 1;
  std::vector<Command> parsed, commands;
  if (verifyStream(tables, stream, parsed, &status) != BMRT_OK) {
    return 0;
  }
  if (readCommands(tables, stream, commands, &status) != BMRT_OK) {
    if (tables.version == bmodel::cuda::kVersion) {
      abort(); // verified, but not readable
    }
    return 0; // not at these sizes
  }
  for (const Command &command : commands) {
    for (const bmodel::cuda::Argument &argument : command.arguments) {
      bool isPointer = argument.kind == bmodel::cuda::ArgumentKind::pointer;
      uint64_t size = argument.index < 2 ? sizes[argument.index] : stream.workspace_bytes;
      if (isPointer && (argument.index > 2 || argument.value > size || argument.reach > size - argument.value)) {
        abort();
      }
    }
  }
  return 0;
}

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
  const bmodel::cuda::Directory head{bmodel::cuda::kMagic, bmodel::cuda::kVersion, 1, 2};
  if (hasHead && code.size() >= sizeof head) { // which random bytes hardly ever are
    memcpy(code.data(), &head, sizeof head);
  }
  auto launches = data.ConsumeRemainingBytes<uint8_t>();
  bmrt_status_t status = {};
  Tables tables;
  if (readTables(code.data(), code.size(), tables, &status) != BMRT_OK) {
    tables.kernels.assign(2, {0, 1});
  }
  const char *layers[] = {"a layer"};
  bmrt_stream_t stream = {};
  stream.code = launches.data(), stream.bytes = launches.size();
  stream.tensor_bytes = sizes, stream.input_count = stream.output_count = 1;
  stream.workspace_bytes = 64, stream.layers = layers, stream.layer_count = 1, stream.dim_count = 1;
  if (verifyStream(tables, stream, &status) != BMRT_OK) {
    return 0;
  }
  std::vector<Command> commands;
  if (readCommands(stream, commands, &status) != BMRT_OK) {
    abort(); // verified, but not readable
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

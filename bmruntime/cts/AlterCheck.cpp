// SPDX-License-Identifier: Apache-2.0
//===- AlterCheck.cpp - Alters a .bmodel byte by byte and loads it --------===//
//
// bmrt_alter_check MODEL [STEP]: flips bits of every STEP-th byte (default 64), one at a time, and loads the result.
// With all checks, the file must be rejected or produce bit-identical results. With the trust flag, it must be rejected
// or run (constants are then unchecked, so the results may differ). Prints the counts; exit code 1 if an alteration
// changed a checked result. Also meant for the asan preset: the loader must handle such a file cleanly.
//
//===----------------------------------------------------------------------===//
#include "bmrt/bmrt.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

/// The bytes of a file, aligned to 64 as bmrt_model_open_memory requires.
class AlignedFile {
public:
  explicit AlignedFile(const char *path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    storage.resize(bytes.size() + 64);
    start = reinterpret_cast<char *>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
    count = bytes.size();
    memcpy(start, bytes.data(), count);
  }
  char *data() { return start; }
  size_t size() const { return count; }

private:
  std::vector<char> storage;
  char *start;
  size_t count;
};

/// Loads the file, runs it on a fixed input and appends all outputs to |answer|; returns false if the file is rejected.
bool runModel(AlignedFile &file, bool trust, std::string &answer) {
  bmrt_open_options_t options = {};
  options.struct_size = sizeof(options);
  options.trust_constants = trust;
  bmrt_model_t *raw = nullptr;
  bmrt_status_t status = {};
  if (bmrt_model_open_memory(file.data(), file.size(), &options, &raw, &status) != BMRT_OK) {
    if (!status.message[0]) {
      fprintf(stderr, "error: refused without a message\n");
      exit(1);
    }
    return false;
  }
  bmrt_context_t *context = nullptr;
  bool ran = bmrt_context_create(raw, nullptr, &context, &status) == BMRT_OK;
  for (uint32_t i = 0; ran && i < bmrt_context_input_count(context); ++i) {
    void *data = nullptr;
    bmrt_tensor_info_t info;
    ran = bmrt_context_input_info(context, i, &info, &status) == BMRT_OK &&
          bmrt_context_input_buffer(context, i, &data, &status) == BMRT_OK;
    for (uint64_t b = 0; ran && info.dtype == BMRT_F32 && b < info.bytes / sizeof(float); ++b) {
      static_cast<float *>(data)[b] = float(int(b * 37 % 101) - 50) * 0.02f;
    }
  }
  ran = ran && bmrt_context_run(context, &status) == BMRT_OK;
  for (uint32_t i = 0; ran && i < bmrt_context_output_count(context); ++i) {
    const void *data = nullptr;
    bmrt_tensor_info_t info;
    ran = bmrt_context_output_info(context, i, &info, &status) == BMRT_OK &&
          bmrt_context_output_data(context, i, &data, &status) == BMRT_OK;
    if (ran) {
      answer.append(static_cast<const char *>(data), info.bytes);
    }
  }
  bmrt_context_destroy(context);
  bmrt_model_release(raw);
  return ran;
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: bmrt_alter_check MODEL [STEP]\n");
    return 2;
  }
  const size_t step = argc == 3 ? std::max(1, atoi(argv[2])) : 64;
  AlignedFile file(argv[1]);
  std::string good;
  if (!runModel(file, false, good) || good.empty()) {
    fprintf(stderr, "error: '%s' does not run even unaltered\n", argv[1]);
    return 1;
  }
  size_t flips = 0, rejected = 0, same = 0, trustRejected = 0, trustRan = 0;
  for (size_t at = 0; at < file.size(); at += step, ++flips) {
    const char mask = char(1 << (at / step % 8));
    file.data()[at] ^= mask;
    std::string answer;
    if (!runModel(file, false, answer)) {
      ++rejected;
    } else if (answer == good) {
      ++same;
    } else {
      fprintf(stderr, "error: another answer after a flip at byte %zu\n", at);
      return 1;
    }
    ++(runModel(file, true, answer) ? trustRan : trustRejected);
    file.data()[at] ^= mask;
  }
  printf("%zu flips: %zu refused, %zu with the same answer; with the trust flag: %zu refused, %zu "
         "ran\n",
         flips, rejected, same, trustRejected, trustRan);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
//===- LoaderFuzzer.cpp - libFuzzer target: arbitrary bytes as a model ----===//
//
// The input is the flatbuffer and the segments of a file. The target prepends the header, whose hash a fuzzer would
// never guess. If the input passes all checks, the target opens it, creates a context and reads its infos. It runs
// nothing, because code is not checked.
//
//===----------------------------------------------------------------------===//
#include "bmodel/file_header.h"
#include "bmodel/hash.h"
#include "bmrt/backend.h"

#include <cstdlib>
#include <cstring>

namespace {

/// Memory that is aligned to 64 and ends with the model's last byte, so that the sanitizer detects reads past the end.
struct Image {
  explicit Image(size_t size) : bytes(static_cast<char *>(aligned_alloc(64, (size + 63) / 64 * 64))) {}
  ~Image() { free(bytes); }
  char *bytes;
};

void readInfos(bmrt_context_t *context) {
  bmrt_tensor_info_t tensor;
  for (uint32_t i = 0; i < bmrt_context_input_count(context); ++i) {
    bmrt_context_input_info(context, i, &tensor, nullptr);
    for (uint32_t n = 0; n < tensor.onnx_name_count; ++n) {
      (void)strlen(bmrt_tensor_onnx_name(&tensor, n));
    }
  }
  for (uint32_t i = 0; i < bmrt_context_output_count(context); ++i) {
    bmrt_context_output_info(context, i, &tensor, nullptr);
    if (const char *op = bmrt_tensor_computed_by(&tensor)) {
      (void)strlen(op);
    }
  }
  for (uint32_t i = 0; i < bmrt_context_step_count(context); ++i) {
    bmrt_step_info_t step;
    bmrt_context_step_info(context, i, &step, nullptr);
    for (uint32_t n = 0; n < step.onnx_node_count; ++n) {
      (void)strlen(bmrt_step_onnx_node(&step, n));
    }
  }
}

} // namespace

extern "C" const bmrt_backend_t bmrt_backend; // the Abacus

extern "C" int LLVMFuzzerInitialize(int *, char ***) { return bmrt_register_backend(&bmrt_backend, nullptr); }

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 8) {
    return 0;
  }
  // The first four bytes determine the size of the flatbuffer.
  uint32_t tableBytes;
  memcpy(&tableBytes, data, sizeof(tableBytes));
  data += sizeof(tableBytes);
  size -= sizeof(tableBytes);

  const size_t fileBytes = sizeof(bmodel::FileHeader) + size;
  Image image(fileBytes);
  bmodel::FileHeader header = {};
  memcpy(header.magic, bmodel::kMagic, sizeof(header.magic));
  header.formatVersion = bmodel::kFormatVersion;
  header.headerBytes = sizeof(header);
  header.fileBytes = fileBytes;
  header.tableOffset = sizeof(header);
  header.tableBytes = tableBytes <= size ? tableBytes : size;
  header.hash = bmodel::hashBytes(data, header.tableBytes, bmodel::hashBytes(&header, sizeof(header)));
  memcpy(image.bytes, &header, sizeof(header));
  memcpy(image.bytes + sizeof(header), data, size);

  // The hash of the code is always checked, and a fuzzer would not guess it, so most inputs end here. ElfImage_test
  // covers the code after this point.
  const bmrt_open_options_t options = {sizeof(options), /*trust_constants=*/true, /*device=*/nullptr};
  bmrt_model_t *model = nullptr;
  bmrt_status_t status;
  if (bmrt_model_open_memory(image.bytes, fileBytes, &options, &model, &status) == BMRT_OK) {
    bmrt_context_t *context = nullptr;
    if (bmrt_context_create(model, nullptr, &context, &status) == BMRT_OK) {
      for (uint32_t stage = 0; stage < bmrt_model_stage_count(model, 0) && stage < 4; ++stage) {
        (void)bmrt_context_set_stage(context, stage, &status);
        readInfos(context);
      }
      const int64_t shape[BMRT_MAX_RANK] = {2, 512};
      for (uint32_t i = 0; i < bmrt_context_input_count(context); ++i) {
        (void)bmrt_context_set_input_shape(context, i, shape, 2, &status);
      }
      bmrt_context_destroy(context);
    }
    bmrt_model_release(model);
  }
  return 0;
}

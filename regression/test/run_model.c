/* SPDX-License-Identifier: Apache-2.0 */
/* run_model MODEL: runs a model of fixed sizes once. Reads all inputs, in order, from standard input, and writes all
   outputs to standard output. */
#include <bmrt/bmrt.h>
#include <stdio.h>

static int failed(const bmrt_status_t *status) {
  fprintf(stderr, "%s\n", status->message);
  return 1;
}

int main(int argc, char **argv) {
  bmrt_status_t status;
  bmrt_model_t *model = NULL;
  bmrt_context_t *context = NULL;
  bmrt_tensor_info_t info;
  if (argc != 2) {
    return 2;
  }
  if (bmrt_model_open(argv[1], NULL, &model, &status) || bmrt_context_create(model, NULL, &context, &status)) {
    return failed(&status);
  }
  for (uint32_t i = 0; i < bmrt_context_input_count(context); ++i) {
    void *data;
    if (bmrt_context_input_info(context, i, &info, &status) || bmrt_context_input_buffer(context, i, &data, &status)) {
      return failed(&status);
    }
    if (fread(data, 1, info.bytes, stdin) != info.bytes) {
      fprintf(stderr, "standard input is too short\n");
      return 1;
    }
  }
  if (bmrt_context_run(context, &status)) {
    return failed(&status);
  }
  for (uint32_t i = 0; i < bmrt_context_output_count(context); ++i) {
    const void *data;
    if (bmrt_context_output_info(context, i, &info, &status) || bmrt_context_output_data(context, i, &data, &status)) {
      return failed(&status);
    }
    fwrite(data, 1, info.bytes, stdout);
  }
  bmrt_context_destroy(context);
  bmrt_model_release(model);
  return 0;
}

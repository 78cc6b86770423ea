/* SPDX-License-Identifier: Apache-2.0 */
/*===- c_api_test.c - Uses bmrt.h from plain C ------------------------------===*/
#include "bmrt/bmrt.h"

#include <stdio.h>

static int check(bmrt_code_t code, const bmrt_status_t *status) {
  if (code != BMRT_OK) {
    fprintf(stderr, "%s (%s): %s\n", status->file, bmrt_code_name(code), status->message);
  }
  return code == BMRT_OK;
}

int main(int argc, char **argv) {
  bmrt_status_t status;
  bmrt_model_t *model = NULL;
  bmrt_context_t *context = NULL;
  void *x = NULL;
  const void *y = NULL;
  int result = 1;
  if (argc != 2) {
    return 2;
  }
  if (check(bmrt_model_open(argv[1], NULL, &model, &status), &status) &&
      check(bmrt_context_create(model, NULL, &context, &status), &status) &&
      check(bmrt_context_input_buffer(context, 0, &x, &status), &status)) {
    ((float *)x)[5] = 40;
    if (check(bmrt_context_run(context, &status), &status) &&
        check(bmrt_context_output_data(context, 0, &y, &status), &status)) {
      result = ((const float *)y)[5] != 42; /* w[5] = 2 */
    }
  }
  bmrt_context_destroy(context);
  bmrt_model_release(model);
  printf("%s, library %s\n", result ? "wrong" : "right", bmrt_version());
  return result;
}

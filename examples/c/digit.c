/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a handwritten digit, 28x28 floats, and prints which one it is. A C program that needs only libbmrt. */
#include <bmrt/bmrt.h>
#include <stdio.h>

enum { SIDE = 28, DIGITS = 10 };

static int failed(const bmrt_status_t *status) {
  fprintf(stderr, "digit: %s\n", status->message);
  return 1;
}

static void draw(const float *pixels) {
  for (int y = 0; y < SIDE; y += 2) {
    for (int x = 0; x < SIDE; ++x) {
      putchar(".:-+#"[(int)(pixels[y * SIDE + x] / 256 * 5)]);
    }
    putchar('\n');
  }
}

int main(int argc, char **argv) {
  bmrt_status_t status;
  bmrt_model_t *model = NULL;     /* the file; any number of contexts can share it */
  bmrt_context_t *context = NULL; /* an execution context: memory, and by default one thread */
  if (argc != 2 || bmrt_model_open(argv[1], NULL, &model, &status) ||
      bmrt_context_create(model, NULL, &context, &status)) {
    return argc == 2 ? failed(&status) : 2;
  }

  void *input; /* the context's own input buffer, to be filled */
  if (bmrt_context_input_buffer(context, 0, &input, &status)) {
    return failed(&status);
  }
  if (fread(input, sizeof(float), SIDE * SIDE, stdin) != SIDE * SIDE) {
    fprintf(stderr, "digit: expected 784 floats on standard input\n");
    return 1;
  }
  draw(input);

  const void *output;
  if (bmrt_context_run(context, &status) || bmrt_context_output_data(context, 0, &output, &status)) {
    return failed(&status);
  }
  const float *scores = output;
  int best = 0;
  for (int digit = 1; digit < DIGITS; ++digit) {
    best = scores[digit] > scores[best] ? digit : best;
  }
  printf("a %d\n", best);

  bmrt_context_destroy(context);
  bmrt_model_release(model);
  return 0;
}

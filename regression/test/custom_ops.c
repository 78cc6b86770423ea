/* SPDX-License-Identifier: Apache-2.0 */
/* Operators for test_custom_ops.py. ABI: the version that the library states. COUNTS: the type of the sizes that
 * Positives finds, normally i64. RANK: the rank that Describe gives its
 * second output, normally 1. ODD: a length of x for which the shape rule of Frames disagrees with itself. BY_HAND: how
 * its rule computes with an open size as if it were a number, e.g. + 1. */
#include <stdio.h>
#include <tessera_custom_op.h>

#ifndef ABI
#define ABI TESSERA_CUSTOM_OP_ABI
#endif
#ifndef COUNTS
#define COUNTS TESSERA_I64
#endif
#ifndef RANK
#define RANK 1
#endif

/* Describe: x of type `dtype` -> a copy of x, and the shape of x in i64. */
static int infer(void *user, tessera_custom_call_t *call) {
  (void)user;
  if (call->input_count != 1 || call->output_count != 2 ||
      call->inputs[0].dtype != (uint32_t)tessera_number_attribute(call, "dtype", TESSERA_F32)) {
    snprintf(call->message, call->message_size, "x has type %u", (unsigned)call->inputs[0].dtype);
    return 1;
  }
  call->outputs[0] = call->inputs[0];
  call->outputs[1].dtype = TESSERA_I64;
  call->outputs[1].rank = RANK;
  call->outputs[1].shape[0] = call->inputs[0].rank;
  call->outputs[1].shape[1] = 1;
  return 0;
}

static int run(void *user, tessera_custom_call_t *call) {
  (void)user;
  if (tessera_find_attribute(call, "fails")) {
    snprintf(call->message, call->message_size, "the node asks for it");
    return 5;
  }
  memcpy(call->outputs[0].data, call->inputs[0].data, call->inputs[0].bytes);
  memcpy(call->outputs[1].data, call->inputs[0].shape, call->outputs[1].bytes);
  return 0;
}

static const tessera_custom_op_t describe = {.abi = ABI,
                                             .struct_size = sizeof(tessera_custom_op_t),
                                             .domain = "test",
                                             .name = "Describe",
                                             .infer = infer,
                                             .run = run,
                                             .flags = TESSERA_CUSTOM_OP_SERIAL};

/* Frames: f32 x [b, n] -> f32 [b, f, width], the f windows of x that begin at multiples of `step`, and i64 [b * f], the
 * numbers of their first elements. */
static int infer_frames(void *user, tessera_custom_call_t *call) {
  (void)user;
  const tessera_tensor_t *x = &call->inputs[0];
  const int64_t width = (int64_t)tessera_number_attribute(call, "width", 4);
  const int64_t step = (int64_t)tessera_number_attribute(call, "step", 3);
  if (call->input_count != 1 || call->output_count != 2 || x->dtype != TESSERA_F32 || x->rank != 2) {
    snprintf(call->message, call->message_size, "x is not an f32 matrix");
    return 1;
  }
#ifdef BY_HAND
  const int64_t frames = x->shape[1] BY_HAND;
  (void)width, (void)step;
#else
  int64_t frames = tessera_size_floor_div(call, tessera_size_sub(call, x->shape[1], width), step);
  frames = tessera_size_max(call, tessera_size_add(call, frames, 1), 0);
#endif
#ifdef ODD
  frames += x->shape[1] == ODD;
#endif
  call->outputs[0].dtype = TESSERA_F32;
  call->outputs[0].rank = 3;
  call->outputs[0].shape[0] = x->shape[0];
  call->outputs[0].shape[1] = frames;
  call->outputs[0].shape[2] = width;
  call->outputs[1].dtype = TESSERA_I64;
  call->outputs[1].rank = 1;
  call->outputs[1].shape[0] = tessera_size_mul(call, x->shape[0], frames);
  return 0;
}

static int run_frames(void *user, tessera_custom_call_t *call) {
  (void)user;
  const tessera_tensor_t *x = &call->inputs[0], *y = &call->outputs[0];
  const int64_t step = (int64_t)tessera_number_attribute(call, "step", 3);
  const int64_t n = x->shape[1], frames = y->shape[1], width = y->shape[2];
  if (x->bytes != (uint64_t)(x->shape[0] * n) * 4 || y->bytes != (uint64_t)(y->shape[0] * frames * width) * 4) {
    snprintf(call->message, call->message_size, "the bytes are not those of the shape");
    return 1;
  }
  for (int64_t i = 0; i < x->shape[0] * frames; ++i) {
    const int64_t first = i / frames * n + i % frames * step;
    memcpy((float *)y->data + i * width, (const float *)x->data + first, (size_t)width * 4);
    ((int64_t *)call->outputs[1].data)[i] = first;
  }
  return 0;
}

static const tessera_custom_op_t frames = {.abi = ABI,
                                           .struct_size = sizeof(tessera_custom_op_t),
                                           .domain = "test",
                                           .name = "Frames",
                                           .infer = infer_frames,
                                           .run = run_frames,
                                           .flags = TESSERA_CUSTOM_OP_OPEN_SIZES};

/* Positives: f32 x [b, n] -> f32 [b, c], the columns of x whose first element is positive, i64 [c], their numbers, and
 * i64 [2 * c], these twice. c and 2 * c are found by the run; `more` is added to c. */
static int infer_positives(void *user, tessera_custom_call_t *call) {
  (void)user;
  const tessera_tensor_t *x = &call->inputs[0];
  if (call->input_count != 1 || call->output_count != 4 || x->dtype != TESSERA_F32 || x->rank != 2) {
    snprintf(call->message, call->message_size, "x is not an f32 matrix");
    return 1;
  }
  const int64_t found = tessera_size_found(call, 1, x->shape[1]);
  call->outputs[0] = *x;
  call->outputs[0].shape[1] = found;
  call->outputs[1] = (tessera_tensor_t){.dtype = TESSERA_I64, .rank = 1, .shape = {found}};
  const int64_t twice = tessera_size_mul(call, x->shape[1], 2);
  call->outputs[2] = (tessera_tensor_t){.dtype = TESSERA_I64, .rank = 1, .shape = {tessera_size_found(call, 0, twice)}};
  call->outputs[3] = (tessera_tensor_t){.dtype = COUNTS, .rank = 1, .shape = {2}};
  return 0;
}

static int run_positives(void *user, tessera_custom_call_t *call) {
  (void)user;
  const tessera_tensor_t *x = &call->inputs[0];
  const int64_t rows = x->shape[0], columns = x->shape[1];
  int64_t *numbers = call->outputs[1].data, *twice = call->outputs[2].data, *counts = call->outputs[3].data;
  int64_t found = 0;
  for (int64_t k = 0; k < columns; ++k) {
    if (rows && ((const float *)x->data)[k] > 0) {
      for (int64_t i = 0; i < rows; ++i) {
        ((float *)call->outputs[0].data)[i * columns + found] = ((const float *)x->data)[i * columns + k];
      }
      numbers[found] = twice[2 * found] = twice[2 * found + 1] = k;
      ++found;
    }
  }
  counts[0] = 2 * found;
  counts[1] = found + (int64_t)tessera_number_attribute(call, "more", 0);
  return 0;
}

static const tessera_custom_op_t positives = {.abi = ABI,
                                              .struct_size = sizeof(tessera_custom_op_t),
                                              .domain = "test",
                                              .name = "Positives",
                                              .infer = infer_positives,
                                              .run = run_positives,
                                              .flags = TESSERA_CUSTOM_OP_OPEN_SIZES | TESSERA_CUSTOM_OP_FINDS_SIZES};

TESSERA_CUSTOM_OP_EXPORT const tessera_custom_op_t *const *tessera_custom_ops(void) {
  static const tessera_custom_op_t *const list[] = {&describe, &frames, &positives, NULL};
  return list;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The operator com.example::Bilateral: smooths the planes of a picture and keeps its edges.
 *
 *   x: f32 [N, C, H, W] -> y: the same. Attributes: radius (default 1), sigma_space, sigma_value (default 1).
 *
 * Each element of y is a mean of x around it; near elements and those of similar value count most. */
#include <math.h>
#include <stdio.h>
#include <tessera_custom_op.h>

static int infer(void *user, tessera_custom_call_t *call) {
  (void)user;
  if (call->input_count != 1 || call->output_count != 1 || call->inputs[0].dtype != TESSERA_F32 ||
      call->inputs[0].rank != 4) {
    snprintf(call->message, call->message_size, "it takes one f32 tensor of rank 4, and has one output");
    return 1;
  }
  call->outputs[0] = call->inputs[0]; /* dtype, rank and shape */
  return 0;
}

static float mean_around(const float *plane, long height, long width, long y, long x, long radius, float space,
                         float value) {
  float sum = 0, weights = 0;
  for (long v = y - radius; v <= y + radius; ++v) {
    for (long u = x - radius; u <= x + radius; ++u) {
      if (v >= 0 && v < height && u >= 0 && u < width) {
        const float other = plane[v * width + u], difference = other - plane[y * width + x];
        const float distance = (float)((v - y) * (v - y) + (u - x) * (u - x));
        const float weight = expf(-distance / (2 * space * space) - difference * difference / (2 * value * value));
        sum += weight * other;
        weights += weight;
      }
    }
  }
  return sum / weights; /* the element itself has weight 1 */
}

static int run(void *user, tessera_custom_call_t *call) {
  (void)user;
  const tessera_tensor_t *x = &call->inputs[0];
  const long radius = (long)tessera_number_attribute(call, "radius", 1);
  const float space = (float)tessera_number_attribute(call, "sigma_space", 1);
  const float value = (float)tessera_number_attribute(call, "sigma_value", 1);
  if (radius < 0 || !(space > 0) || !(value > 0)) {
    snprintf(call->message, call->message_size, "radius must not be negative, and both sigmas must be positive");
    return 1;
  }
  const long planes = (long)(x->shape[0] * x->shape[1]), height = (long)x->shape[2], width = (long)x->shape[3];
  for (long p = 0; p < planes; ++p) {
    const float *from = (const float *)x->data + p * height * width;
    float *to = (float *)call->outputs[0].data + p * height * width;
    for (long i = 0; i < height * width; ++i) {
      to[i] = mean_around(from, height, width, i / width, i % width, radius, space, value);
    }
  }
  return 0;
}

static const tessera_custom_op_t bilateral = {
    .abi = TESSERA_CUSTOM_OP_ABI,
    .struct_size = sizeof(tessera_custom_op_t),
    .domain = "com.example",
    .name = "Bilateral",
    .infer = infer,
    .run = run,
    .flags = TESSERA_CUSTOM_OP_OPEN_SIZES, /* |infer| only copies sizes */
};

TESSERA_CUSTOM_OP_EXPORT const tessera_custom_op_t *const *tessera_custom_ops(void) {
  static const tessera_custom_op_t *const list[] = {&bilateral, NULL};
  return list;
}

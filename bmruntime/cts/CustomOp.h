// SPDX-License-Identifier: Apache-2.0
//===- CustomOp.h - A custom operator for tests ---------------------------===//
#ifndef TESSERA_BMRUNTIME_CTS_CUSTOMOP_H
#define TESSERA_BMRUNTIME_CTS_CUSTOMOP_H

#include "tessera_custom_op.h"

#include <cstdio>

namespace bmrt::cts {

inline int inferBlend(void *, tessera_custom_call_t *call) {
  if (call->input_count != 2 || call->output_count != 1 || call->inputs[0].dtype != TESSERA_F32 ||
      call->inputs[1].dtype != TESSERA_F32 || call->inputs[0].rank != call->inputs[1].rank ||
      memcmp(call->inputs[0].shape, call->inputs[1].shape, sizeof call->inputs[0].shape) != 0) {
    snprintf(call->message, call->message_size, "it blends two f32 tensors of one shape");
    return 1;
  }
  call->outputs[0] = call->inputs[0];
  return 0;
}

/// Computes x + scale * w; fails if the first element of x is -1000.
inline int runBlend(void *, tessera_custom_call_t *call) {
  const float *x = static_cast<const float *>(call->inputs[0].data), *w = static_cast<float *>(call->inputs[1].data);
  float *y = static_cast<float *>(call->outputs[0].data);
  const float scale = float(tessera_number_attribute(call, "scale", 1));
  const uint64_t count = call->outputs[0].bytes / sizeof(float);
  if (count > 0 && x[0] == -1000) {
    snprintf(call->message, call->message_size, "x begins with -1000");
    return 7;
  }
  for (uint64_t i = 0; i < count; ++i) {
    y[i] = x[i] + scale * w[i];
  }
  return 0;
}

/// Returns the operator test::Blend.
inline tessera_custom_op_t blendOp() {
  tessera_custom_op_t op = {};
  op.abi = TESSERA_CUSTOM_OP_ABI, op.struct_size = sizeof op;
  op.domain = "test", op.name = "Blend", op.infer = inferBlend, op.run = runBlend;
  return op;
}

} // namespace bmrt::cts

#endif // TESSERA_BMRUNTIME_CTS_CUSTOMOP_H

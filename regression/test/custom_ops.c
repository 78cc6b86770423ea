/* SPDX-License-Identifier: Apache-2.0 */
/* Operators for test_custom_ops.py. ABI: the version that the library states. RANK: the rank that Describe gives its
 * second output, normally 1. */
#include <stdio.h>
#include <tessera_custom_op.h>

#ifndef ABI
#define ABI TESSERA_CUSTOM_OP_ABI
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

TESSERA_CUSTOM_OP_EXPORT const tessera_custom_op_t *const *tessera_custom_ops(void) {
  static const tessera_custom_op_t *const list[] = {&describe, NULL};
  return list;
}

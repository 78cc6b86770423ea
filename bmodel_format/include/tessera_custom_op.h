/* SPDX-License-Identifier: Apache-2.0 */
/*===- tessera_custom_op.h - Operators of your own --------------------------===*/
/*
 * Binds an ONNX operator that Tessera does not know to C functions: a shape rule and a computation. The compiler uses
 * both, the runtime calls the computation on the host, between the parts of the model that Tessera compiled.
 * docs/custom-operators.md explains how.
 *
 * A library of operators is a shared library that exports
 *
 *   TESSERA_CUSTOM_OP_EXPORT const tessera_custom_op_t *const *tessera_custom_ops(void);
 *
 * which returns a list that ends with NULL. A program can also pass an operator to bmrt_register_custom_op.
 *
 * Both functions must compute the same results from the same arguments each time, because the compiler may remove
 * equal calls and compute calls on constants in advance. They must not throw C++ exceptions.
 */
#ifndef TESSERA_CUSTOM_OP_H
#define TESSERA_CUSTOM_OP_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TESSERA_CUSTOM_OP_EXPORT __attribute__((visibility("default")))

/* Version of the structs below. */
#define TESSERA_CUSTOM_OP_ABI 1
#define TESSERA_CUSTOM_OP_MAX_RANK 16

typedef enum tessera_dtype_t {
  TESSERA_F32,
  TESSERA_F16,
  TESSERA_BF16,
  TESSERA_F64,
  TESSERA_I8,
  TESSERA_I16,
  TESSERA_I32,
  TESSERA_I64,
  TESSERA_U8,
  TESSERA_U16,
  TESSERA_U32,
  TESSERA_U64,
  TESSERA_BOOL /* one byte, 0 or 1 */
} tessera_dtype_t;

/* A tensor in row-major order. A scalar has rank 0. */
typedef struct tessera_tensor_t {
  void *data;     /* aligned to 64 bytes; inputs must not be written. NULL in |infer| */
  uint32_t dtype; /* tessera_dtype_t */
  uint32_t rank;
  int64_t shape[TESSERA_CUSTOM_OP_MAX_RANK];
  uint64_t bytes; /* 0 in |infer| for outputs and for tensors with open sizes */
} tessera_tensor_t;

/* The operations on sizes that a shape rule can use (tessera_size_add, ...). */
typedef enum tessera_size_op_t {
  TESSERA_SIZE_ADD,
  TESSERA_SIZE_SUB,
  TESSERA_SIZE_MUL,
  TESSERA_SIZE_FLOOR_DIV, /* rounded down */
  TESSERA_SIZE_CEIL_DIV,  /* rounded up */
  TESSERA_SIZE_MOD,
  TESSERA_SIZE_MIN,
  TESSERA_SIZE_MAX,
  TESSERA_SIZE_FOUND /* see tessera_size_found */
} tessera_size_op_t;

/* The result of an operation on sizes that overflows, or divides by what may be 0. */
#define TESSERA_NO_SIZE INT64_MIN

/* One call of an operator. The memory of different tensors does not overlap. */
typedef struct tessera_custom_call_t {
  size_t struct_size;     /* size of this struct; members may be appended */
  int64_t version;        /* opset of the operator's domain in the model */
  const char *attributes; /* JSON object with the node's attributes, e.g. {"axis":1,"mode":"max","pads":[0,1]} */
  const tessera_tensor_t *inputs;
  tessera_tensor_t *outputs;
  uint32_t input_count;
  uint32_t output_count;
  char *message;       /* place for a sentence that says why the call failed; "" at first */
  size_t message_size; /* bytes of |message|, including the terminating 0 */
  /* In |infer|: called by tessera_size_add etc. with a tessera_size_op_t. */
  int64_t (*combine_sizes)(const struct tessera_custom_call_t *call, uint32_t op, int64_t a, int64_t b);
  void *sizes; /* belongs to the caller */
} tessera_custom_call_t;

enum {
  TESSERA_CUSTOM_OP_SERIAL = 1,     /* |run| is not thread-safe: the runtime calls it on one thread at a time */
  TESSERA_CUSTOM_OP_OPEN_SIZES = 2, /* |infer| accepts open sizes */
  /* |run| finds sizes of outputs. Each call has one more output, the last one: an i64 vector of the sizes found, of
   * which |infer| sets type and shape, and which |run| writes. */
  TESSERA_CUSTOM_OP_FINDS_SIZES = 4
};

/* An operator. The strings and functions must stay valid until the process ends. */
typedef struct tessera_custom_op_t {
  uint32_t abi;         /* TESSERA_CUSTOM_OP_ABI */
  uint32_t struct_size; /* sizeof(tessera_custom_op_t) */
  const char *domain;   /* of the ONNX operator, e.g. "com.example" */
  const char *name;     /* op_type of the ONNX operator */
  void *user;           /* passed to the functions */
  /* The shape rule: sets dtype, rank and shape of every output from those of the inputs. Returns 0, or another value if
   * the operator does not take these inputs. May be called by several threads at once.
   *
   * Sizes are numbers, unless |flags| has TESSERA_CUSTOM_OP_OPEN_SIZES. Then the compiler may also pass open sizes,
   * which are known at run time only. An open size has a value for which tessera_is_open returns 1. A rule can copy it,
   * compute with it by tessera_size_add etc., and compare it: equal values are equal sizes, different values may be
   * equal. The runtime calls the rule again with the numbers of each run; the results must be those of the expressions.
   */
  int (*infer)(void *user, tessera_custom_call_t *call);
  /* The computation: writes every byte of the outputs. Returns 0 on success. May be called by several threads at once
   * unless |flags| says otherwise. */
  int (*run)(void *user, tessera_custom_call_t *call);
  uint64_t flags; /* TESSERA_CUSTOM_OP_... */
} tessera_custom_op_t;

/* The type of the function that a library exports as "tessera_custom_ops". */
typedef const tessera_custom_op_t *const *(*tessera_custom_ops_t)(void);

/*===- Sizes ----------------------------------------------------------------===*/

/* Returns 1 if |size| is known at run time only, otherwise 0. */
static inline int tessera_is_open(int64_t size) { return size < -((int64_t)1 << 62); }

/* Combines two sizes, numbers (also negative ones) or open sizes. Returns a number if both are numbers. Shape rules
 * call the functions below. */
static inline int64_t tessera_combine_sizes(const tessera_custom_call_t *call, tessera_size_op_t op, int64_t a,
                                            int64_t b) {
  const int is_known = call->struct_size > offsetof(tessera_custom_call_t, sizes);
  return is_known && call->combine_sizes ? call->combine_sizes(call, (uint32_t)op, a, b) : TESSERA_NO_SIZE;
}

static inline int64_t tessera_size_add(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_ADD, a, b);
}
static inline int64_t tessera_size_sub(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_SUB, a, b);
}
static inline int64_t tessera_size_mul(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_MUL, a, b);
}
static inline int64_t tessera_size_floor_div(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_FLOOR_DIV, a, b);
}
static inline int64_t tessera_size_ceil_div(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_CEIL_DIV, a, b);
}
static inline int64_t tessera_size_mod(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_MOD, a, b);
}
static inline int64_t tessera_size_min(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_MIN, a, b);
}
static inline int64_t tessera_size_max(const tessera_custom_call_t *call, int64_t a, int64_t b) {
  return tessera_combine_sizes(call, TESSERA_SIZE_MAX, a, b);
}

/* Returns a size of an output that |run| finds and writes to element |index| of the last output. It is at most |most|.
 * |run| gets the output with the size |most|, and fills its front. The rule can only copy the returned size. */
static inline int64_t tessera_size_found(const tessera_custom_call_t *call, int64_t index, int64_t most) {
  return tessera_combine_sizes(call, TESSERA_SIZE_FOUND, index, most);
}

/*===- Helpers --------------------------------------------------------------===*/

/* Returns the end of the JSON value at |at|, which the compiler has written. */
static inline const char *tessera_skip_value(const char *at) {
  int depth = 0, quoted = 0;
  for (; *at; ++at) {
    if (quoted && *at == '\\' && at[1]) {
      ++at;
    } else if (*at == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      if (depth == 0 && (*at == ',' || *at == '}')) {
        break;
      }
      depth += (*at == '[' || *at == '{') - (*at == ']' || *at == '}');
    }
  }
  return at;
}

/* Returns the text of attribute |name|, e.g. for strtod, or NULL if the node does not have it. A string begins with a
 * quotation mark, a list with a bracket. */
static inline const char *tessera_find_attribute(const tessera_custom_call_t *call, const char *name) {
  const size_t length = strlen(name);
  const char *at = call->attributes;
  while (*at && *++at == '"') {
    const char *end = at + 1 + length;
    if (strncmp(at + 1, name, length) == 0 && end[0] == '"' && end[1] == ':') {
      return end + 2;
    }
    while (*at && *at != ':') {
      ++at;
    }
    at = tessera_skip_value(at);
  }
  return NULL;
}

/* Returns the attribute as a number, or |absent| if the node does not have it. */
static inline double tessera_number_attribute(const tessera_custom_call_t *call, const char *name, double absent) {
  const char *text = tessera_find_attribute(call, name);
  return text ? strtod(text, NULL) : absent;
}

#ifdef __cplusplus
}
#endif

#endif /* TESSERA_CUSTOM_OP_H */

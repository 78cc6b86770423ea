/* SPDX-License-Identifier: Apache-2.0 */
/*===- bmrt.h - C interface of the Tessera runtime -------------------------===*/
/*
 * Loads a .bmodel and runs it.
 *
 *   bmrt_model_t    an opened file: immutable, shared by any number of contexts and threads.
 *   bmrt_context_t  one place to run a net: its memory, its threads, its bound buffers. A context
 *                   is used by one thread at a time; different contexts are independent.
 *
 * Errors. Every function that can fail returns a code and fills |out_status| unless that is NULL.
 * Nothing aborts, prints or throws. After an error the handles remain usable. A NULL handle or output parameter is
 * BMRT_INVALID_ARGUMENT; functions that return no code return 0 or NULL for a NULL handle, or do nothing.
 *
 * Ownership. Strings and infos point into the model and live as long as it does. Output
 * parameters come last and are written on success only, unless stated otherwise.
 */
#ifndef BMRT_BMRT_H
#define BMRT_BMRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BMRT_API __attribute__((visibility("default")))

#define BMRT_VERSION_MAJOR 0
#define BMRT_VERSION_MINOR 1

/* Buffers with this alignment in bytes are used in place; others where the model's kernels take them, else through a
 * copy. */
#define BMRT_ALIGNMENT 64
#define BMRT_MAX_RANK 16

typedef struct bmrt_model_t bmrt_model_t;
typedef struct bmrt_context_t bmrt_context_t;

/*===- Status ---------------------------------------------------------------===*/

/* What the caller may do about it. */
typedef enum bmrt_code_t {
  BMRT_OK = 0,
  BMRT_INVALID_ARGUMENT = 1,    /* an argument is wrong: correct the call */
  BMRT_NOT_FOUND = 2,           /* no such net, stage or name: the message lists what there is */
  BMRT_IO = 3,                  /* the operating system or a driver refused: see the message */
  BMRT_CORRUPT = 4,             /* not a model, truncated or altered: get a fresh copy */
  BMRT_UNSUPPORTED = 5,         /* made for another machine or a newer runtime: compile again */
  BMRT_NO_MEMORY = 6,           /* try again with less */
  BMRT_FAILED_PRECONDITION = 7, /* not now: e.g. a run is still in flight */
  BMRT_CANCELLED = 8            /* bmrt_context_cancel ended the run: the context may run again */
} bmrt_code_t;

typedef struct bmrt_status_t {
  bmrt_code_t code;
  int32_t line; /* place in the runtime's source that found the error */
  const char *file;
  char message[496]; /* what, where, actual and allowed; always terminated */
} bmrt_status_t;

/* "ok", "invalid argument", ...; never NULL. */
BMRT_API const char *bmrt_code_name(bmrt_code_t code);

/* "0.1"; of the library, to compare with the header's macros. */
BMRT_API const char *bmrt_version(void);

/*===- Tensors --------------------------------------------------------------===*/

typedef enum bmrt_dtype_t {
  BMRT_F32,
  BMRT_F16,
  BMRT_BF16,
  BMRT_F64,
  BMRT_I8,
  BMRT_I16,
  BMRT_I32,
  BMRT_I64,
  BMRT_U8,
  BMRT_U16,
  BMRT_U32,
  BMRT_U64,
  BMRT_BOOL
} bmrt_dtype_t;

typedef enum bmrt_layout_t {
  BMRT_ROW_MAJOR,
  BMRT_CHANNEL_BLOCKED, /* [d0 .., ceil(d[block_axis]/block), .., block], lanes beyond are zero */
  BMRT_PACKED           /* known to the kernels only */
} bmrt_layout_t;

typedef struct bmrt_tensor_info_t {
  const char *name; /* for inputs and outputs the ONNX name */
  bmrt_dtype_t dtype;
  bmrt_layout_t layout;
  uint32_t block;
  uint32_t block_axis;
  uint32_t rank;
  int64_t shape[BMRT_MAX_RANK];     /* logical, ONNX order; -1 = symbolic and not yet known */
  int64_t max_shape[BMRT_MAX_RANK]; /* the same where static */
  uint64_t bytes;                   /* stored size for |shape|, or for |max_shape| while that is unknown */
  uint32_t onnx_name_count;         /* see bmrt_tensor_onnx_name */
  uint32_t scale_count;             /* 0: not quantised; real = scale * (stored - zero_point) */
  int32_t quant_axis;               /* -1: one scale for all */
  const float *scales;
  const int64_t *zero_points;
  const char *preprocess; /* JSON of the model's pre-processing, or NULL */
  const void *def;        /* internal */
} bmrt_tensor_info_t;

/* A tensor's info and its bytes. */
typedef struct bmrt_tensor_view_t {
  bmrt_tensor_info_t info;
  const void *data;
} bmrt_tensor_view_t;

/* Bytes of one element; 0 for an unknown value. */
BMRT_API uint32_t bmrt_dtype_bytes(bmrt_dtype_t dtype);
/* "f32", "i8", ...; never NULL. */
BMRT_API const char *bmrt_dtype_name(bmrt_dtype_t dtype);

/* The |index|-th ONNX tensor whose values |info| describes; NULL beyond onnx_name_count. */
BMRT_API const char *bmrt_tensor_onnx_name(const bmrt_tensor_info_t *info, uint32_t index);

/* Bytes of the tensor in row-major order: prod(shape) elements. */
BMRT_API uint64_t bmrt_tensor_row_major_bytes(const bmrt_tensor_info_t *info);

/* Writes the elements of |view| to |out| in row-major order, whatever its layout. |out_bytes| must
 * be bmrt_tensor_row_major_bytes. Packed tensors have no such form: BMRT_UNSUPPORTED. */
BMRT_API bmrt_code_t bmrt_tensor_to_row_major(const bmrt_tensor_view_t *view, void *out, uint64_t out_bytes,
                                              bmrt_status_t *out_status);

/*===- Model ----------------------------------------------------------------===*/

typedef struct bmrt_open_options_t {
  size_t struct_size;   /* sizeof(bmrt_open_options_t) */
  bool trust_constants; /* skip the hashes of the constants; structure and code are checked always */
  const char *device;   /* "family:n": chips of that family are the n-th of this machine, from 0; "family"
                           or NULL: as the back end likes. Read while the model is opened only */
} bmrt_open_options_t;

/* Opens, verifies and maps |path|; weights are not copied. The file must not be changed in place
 * while the model is open (replacing it by rename is fine). |options| may be NULL. The model starts
 * with one reference. */
BMRT_API bmrt_code_t bmrt_model_open(const char *path, const bmrt_open_options_t *options, bmrt_model_t **out_model,
                                     bmrt_status_t *out_status);

/* The same from memory, which must be aligned to BMRT_ALIGNMENT, and stay unchanged until the last
 * reference to the model is gone. */
BMRT_API bmrt_code_t bmrt_model_open_memory(const void *data, uint64_t bytes, const bmrt_open_options_t *options,
                                            bmrt_model_t **out_model, bmrt_status_t *out_status);

/* Contexts keep a reference of their own. Both are thread-safe; NULL is ignored by release. */
BMRT_API void bmrt_model_retain(bmrt_model_t *model);
BMRT_API void bmrt_model_release(bmrt_model_t *model);

BMRT_API uint32_t bmrt_model_net_count(const bmrt_model_t *model);
/* NULL if |net| is out of range. */
BMRT_API const char *bmrt_model_net_name(const bmrt_model_t *model, uint32_t net);
/* 0 if |net| is out of range. */
BMRT_API uint32_t bmrt_model_stage_count(const bmrt_model_t *model, uint32_t net);

/* A stage: the program of a net for one chip and one set of input shapes. */
typedef struct bmrt_stage_info_t {
  const char *name; /* may be "" */
  const char *chip;
  uint32_t input_count, output_count;
  uint64_t constant_bytes;  /* mapped from the file */
  uint64_t workspace_bytes; /* allocated by each context */
  uint64_t workspace_lower_bound;
  uint64_t state_bytes;
  bool runnable; /* whether this machine and this library can run it */
} bmrt_stage_info_t;

BMRT_API bmrt_code_t bmrt_model_stage_info(const bmrt_model_t *model, uint32_t net, uint32_t stage,
                                           bmrt_stage_info_t *out_info, bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_model_input_info(const bmrt_model_t *model, uint32_t net, uint32_t stage, uint32_t input,
                                           bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_model_output_info(const bmrt_model_t *model, uint32_t net, uint32_t stage, uint32_t output,
                                            bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);

/*===- Context --------------------------------------------------------------===*/

/* The first stage that can run here, and then the one that the shapes of the inputs ask for. */
#define BMRT_FIRST_RUNNABLE_STAGE UINT32_MAX

typedef struct bmrt_context_options_t {
  size_t struct_size;       /* sizeof(bmrt_context_options_t) */
  const char *net;          /* NULL: the first */
  uint32_t stage;           /* the only one; or BMRT_FIRST_RUNNABLE_STAGE */
  uint32_t threads;         /* including the caller's; 0 = 1; at most as many run as the process may use processors */
  void *workspace;          /* NULL: allocated; else BMRT_ALIGNMENT-aligned, the context's until */
  uint64_t workspace_bytes; /* it is destroyed, at least bmrt_stage_info_t.workspace_bytes of each stage used */
  const char *chip;         /* NULL: any; else only stages for this chip: a name or a family, as ChipDef has them */
} bmrt_context_options_t;

/* |options| may be NULL: first net, first runnable stage, one thread. */
BMRT_API bmrt_code_t bmrt_context_create(bmrt_model_t *model, const bmrt_context_options_t *options,
                                         bmrt_context_t **out_context, bmrt_status_t *out_status);
/* Waits for a run in flight. NULL is ignored. */
BMRT_API void bmrt_context_destroy(bmrt_context_t *context);

BMRT_API uint32_t bmrt_context_input_count(const bmrt_context_t *context);
BMRT_API uint32_t bmrt_context_output_count(const bmrt_context_t *context);
BMRT_API bmrt_code_t bmrt_context_input_info(const bmrt_context_t *context, uint32_t input,
                                             bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);
/* Symbolic dims of an output are known after a run. */
BMRT_API bmrt_code_t bmrt_context_output_info(const bmrt_context_t *context, uint32_t output,
                                              bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);
/* Index by ONNX name; BMRT_NOT_FOUND lists the names there are. */
BMRT_API bmrt_code_t bmrt_context_find_input(const bmrt_context_t *context, const char *name, uint32_t *out_input,
                                             bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_context_find_output(const bmrt_context_t *context, const char *name, uint32_t *out_output,
                                              bmrt_status_t *out_status);

/* Checks |shape| against the model and gives symbolic dims their value. Needed only for inputs with
 * symbolic dims, and for nets of several stages; else a static shape is merely compared.
 *
 * A context that was made with BMRT_FIRST_RUNNABLE_STAGE goes to the first stage that can run here, of the
 * chip that was asked for, and takes this shape: one that keeps the shapes of the other inputs if there is
 * one. Functions that name inputs, outputs or steps are about the stage that the context is at: buffers are
 * bound, hooks see and profiles have the steps, and states are kept, stage by stage. Stages share threads,
 * workspace and constants. BMRT_INVALID_ARGUMENT lists the shapes that there are. */
BMRT_API bmrt_code_t bmrt_context_set_input_shape(bmrt_context_t *context, uint32_t input, const int64_t *shape,
                                                  uint32_t rank, bmrt_status_t *out_status);

/* The same with the shapes of all inputs, in their order, so that no stage in between is looked for. */
BMRT_API bmrt_code_t bmrt_context_set_input_shapes(bmrt_context_t *context, const int64_t *const *shapes,
                                                   const uint32_t *ranks, uint32_t count, bmrt_status_t *out_status);

/* The stage that the context is at, and another one by its number. */
BMRT_API uint32_t bmrt_context_stage(const bmrt_context_t *context);
BMRT_API bmrt_code_t bmrt_context_set_stage(bmrt_context_t *context, uint32_t stage, bmrt_status_t *out_status);

/* Uses |data| (row-major, |bytes| = info.bytes) as the input of later runs. It is read during runs:
 * in place if aligned to BMRT_ALIGNMENT, or to its elements' size if no step needs more, else through a copy at the
 * start of each run. NULL returns to the context's own buffer. */
BMRT_API bmrt_code_t bmrt_context_bind_input(bmrt_context_t *context, uint32_t input, const void *data, uint64_t bytes,
                                             bmrt_status_t *out_status);
/* Likewise for results. |bytes| must be info.bytes (for max_shape if symbolic). Bound buffers must
 * not overlap each other. */
BMRT_API bmrt_code_t bmrt_context_bind_output(bmrt_context_t *context, uint32_t output, void *data, uint64_t bytes,
                                              bmrt_status_t *out_status);

/* The context's own buffer of an input, to be filled before a run; unbinds caller memory. */
BMRT_API bmrt_code_t bmrt_context_input_buffer(bmrt_context_t *context, uint32_t input, void **out_data,
                                               bmrt_status_t *out_status);
/* Where the last run left an output; valid until the next run or bind. */
BMRT_API bmrt_code_t bmrt_context_output_data(bmrt_context_t *context, uint32_t output, const void **out_data,
                                              bmrt_status_t *out_status);

/*===- Memory and streams of a chip -----------------------------------------===*/
/*
 * For callers who have their data where the chip has its own, as in a GPU's memory. A tensor can be there if all that
 * the stage does with it is one copy to or from the chip; else BMRT_UNSUPPORTED.
 */

/* Uses |data|, |bytes| = info.bytes in the memory of the chip, as the input of later runs. The chip reads it in place
 * if it is aligned to BMRT_ALIGNMENT, else through a copy of its own. It is not checked that it is of that chip. NULL
 * returns to the context's own buffer, and so does bmrt_context_set_input_shape with another shape. */
BMRT_API bmrt_code_t bmrt_context_bind_chip_input(bmrt_context_t *context, uint32_t input, const void *data,
                                                  uint64_t bytes, bmrt_status_t *out_status);
/* Likewise for results; bmrt_context_output_data then tells that address. Step hooks cannot look at either. */
BMRT_API bmrt_code_t bmrt_context_bind_chip_output(bmrt_context_t *context, uint32_t output, void *data, uint64_t bytes,
                                                   bmrt_status_t *out_status);

/* Runs of the context do their chips' work in |stream| (a handle of their driver's), behind what it
 * has been given; they still return when they are done. NULL: in streams of the context's own, which nothing else waits
 * for. BMRT_UNSUPPORTED if a chip of the stage has no streams. */
BMRT_API bmrt_code_t bmrt_context_set_stream(bmrt_context_t *context, void *stream, bmrt_status_t *out_status);

/* Bytes in a chip's memory. It keeps the model. */
typedef struct bmrt_chip_buffer_t bmrt_chip_buffer_t;

/* Room for output |output| in the memory of its chip, of undefined contents: for bmrt_context_bind_chip_output. */
BMRT_API bmrt_code_t bmrt_context_allocate_chip_output(bmrt_context_t *context, uint32_t output,
                                                       bmrt_chip_buffer_t **out_buffer, bmrt_status_t *out_status);
BMRT_API void *bmrt_chip_buffer_data(const bmrt_chip_buffer_t *buffer);
/* From any thread, once no run uses it. NULL is ignored. */
BMRT_API void bmrt_chip_buffer_release(bmrt_chip_buffer_t *buffer);

/*===- Runs -----------------------------------------------------------------===*/

/* Runs the net once and returns when it is done. */
BMRT_API bmrt_code_t bmrt_context_run(bmrt_context_t *context, bmrt_status_t *out_status);
/* Starts a run and returns. Until bmrt_context_wait no other function may be called with the context, and bound buffers
 * are in use. Where all steps are commands of one chip that works by itself, as of a model that a GPU runs whole, this
 * thread gives them to the chip, in the stream of bmrt_context_set_stream if there is one; else, and while steps are
 * watched (a hook, a profile), a thread of the context runs them. */
BMRT_API bmrt_code_t bmrt_context_launch(bmrt_context_t *context, bmrt_status_t *out_status);
/* Whether the launched run is done, so that bmrt_context_wait returns at once; true without one. */
BMRT_API bool bmrt_context_is_done(bmrt_context_t *context);
/* Waits for the launched run and returns its result. */
BMRT_API bmrt_code_t bmrt_context_wait(bmrt_context_t *context, bmrt_status_t *out_status);

/* Ends the run that is in flight, bmrt_context_run's or a launched one: it returns BMRT_CANCELLED as soon as the steps,
 * tiles and commands that are at work have ended. From any thread and from signal handlers. A run that has ended, or
 * has not begun, is not affected: who cancels out of a signal handler keeps a flag of their own and looks at it before
 * a run, or repeats the cancel. Afterwards the outputs are undefined, states are as far as the run has come
 * (bmrt_context_reset_state), and the context may run again. */
BMRT_API void bmrt_context_cancel(bmrt_context_t *context);

/* Called every 30 to 60 ms of a run, between steps or tiles, on the thread that runs; true ends the run as
 * bmrt_context_cancel does. For what cannot be done elsewhere, as asking an interpreter for its signals. NULL removes
 * it. Not while a run is in flight. */
typedef bool (*bmrt_poll_t)(void *user);
BMRT_API void bmrt_context_set_poll(bmrt_context_t *context, bmrt_poll_t poll, void *user);

/* States return to their initial values, as in a new context. */
BMRT_API bmrt_code_t bmrt_context_reset_state(bmrt_context_t *context, bmrt_status_t *out_status);

/*===- Steps: names, hooks, times -------------------------------------------===*/

/* One step of the plan; all strings may be "". Estimates are the compiler's. */
typedef struct bmrt_step_info_t {
  uint32_t index;     /* among all steps of the stage */
  const char *kind;   /* "launch", "copy", ... */
  const char *symbol; /* of the kernel */
  const char *top_op;
  const char *device_op;
  const char *bound;        /* what limits it: "compute", "ddr", ... */
  uint32_t onnx_node_count; /* see bmrt_step_onnx_node */
  uint32_t write_count;     /* see bmrt_context_step_write */
  int64_t tile_count;
  uint64_t flops, bytes;
  double estimated_ns;
  const void *def; /* internal */
} bmrt_step_info_t;

BMRT_API uint32_t bmrt_context_step_count(const bmrt_context_t *context);
BMRT_API bmrt_code_t bmrt_context_step_info(const bmrt_context_t *context, uint32_t step, bmrt_step_info_t *out_info,
                                            bmrt_status_t *out_status);
/* The |index|-th ONNX node this step computes (a part of); NULL beyond onnx_node_count. */
BMRT_API const char *bmrt_step_onnx_node(const bmrt_step_info_t *step, uint32_t index);
/* The |index|-th tensor the step wrote. Its data are those of this step only until a later step
 * reuses the memory: look at them in the hook. */
BMRT_API bmrt_code_t bmrt_context_step_write(const bmrt_context_t *context, const bmrt_step_info_t *step,
                                             uint32_t index, bmrt_tensor_view_t *out_view, bmrt_status_t *out_status);

/* The same tensor's bytes to be changed, info.bytes of them, for later steps to read: between runs of
 * steps, or in the hook. */
BMRT_API bmrt_code_t bmrt_context_step_data(bmrt_context_t *context, const bmrt_step_info_t *step, uint32_t index,
                                            void **out_data, bmrt_status_t *out_status);
/* Runs steps [begin, end) of the first subnet again, on the tensors as they are in memory; then the
 * bound outputs are written. The context must have run since buffers were bound. Meaningful only if
 * the tensors these steps read still hold what should be read: in models compiled for observation
 * every tensor has memory of its own. */
BMRT_API bmrt_code_t bmrt_context_run_steps(bmrt_context_t *context, uint32_t begin, uint32_t end,
                                            bmrt_status_t *out_status);

/* Called after every step, on the thread that runs the context; may read tensors, must not run or
 * change the context. */
typedef void (*bmrt_step_hook_t)(void *user, const bmrt_context_t *context, const bmrt_step_info_t *step);
/* NULL removes it. */
BMRT_API void bmrt_context_set_step_hook(bmrt_context_t *context, bmrt_step_hook_t hook, void *user);

typedef struct bmrt_step_time_t {
  uint64_t runs; /* how often the step ran since profiling was switched on */
  uint64_t last_ns, min_ns, total_ns;
} bmrt_step_time_t;

/* Switching on starts from zero; what was told stays when it is switched off. Costs two clock reads a step (about 50
 * ns), and a wait for each step of a chip that works by itself. */
BMRT_API bmrt_code_t bmrt_context_set_profiling(bmrt_context_t *context, bool enabled, bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_context_step_time(const bmrt_context_t *context, uint32_t step, bmrt_step_time_t *out_time,
                                            bmrt_status_t *out_status);
/* The parts of a step that its chip times each by itself, as a GPU the launches of a stream; 0 of other steps, and
 * before a profiled run. They are then done one by one, so that their sum is more than the stream takes otherwise. */
BMRT_API uint32_t bmrt_context_step_part_count(const bmrt_context_t *context, uint32_t step);
/* |out_node|: the ONNX nodes that the part computes, "" if they are unknown. */
BMRT_API bmrt_code_t bmrt_context_step_part_time(const bmrt_context_t *context, uint32_t step, uint32_t part,
                                                 const char **out_node, bmrt_step_time_t *out_time,
                                                 bmrt_status_t *out_status);
/* Writes the steps of the last profiled run in Chrome's trace format (chrome://tracing, Perfetto).
 */
BMRT_API bmrt_code_t bmrt_context_write_trace(const bmrt_context_t *context, const char *path,
                                              bmrt_status_t *out_status);

#ifdef __cplusplus
}
#endif

#endif /* BMRT_BMRT_H */

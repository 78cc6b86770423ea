/* SPDX-License-Identifier: Apache-2.0 */
/*===- bmrt.h - C interface of the Tessera runtime -------------------------===*/
/*
 * Loads a .bmodel and runs it.
 *
 *   bmrt_model_t    an opened file: immutable, shared by any number of contexts and threads.
 *   bmrt_context_t  an execution context of a net: its memory, its threads, its bound buffers. A context
 *                   is used by one thread at a time; different contexts are independent.
 *
 * Errors. Every function that can fail returns a code and fills |out_status| unless that is NULL. No function aborts,
 * prints or throws. After an error the handles remain usable. A NULL handle or output parameter is
 * BMRT_INVALID_ARGUMENT; functions that do not return a code return 0 or NULL for a NULL handle, or do nothing.
 *
 * Ownership. Strings and infos point into the model and live as long as the model. Output parameters come last and are
 * written on success only, unless stated otherwise.
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

/* Alignment in bytes of buffers that are always used in place. Buffers with a smaller alignment are used in place if
 * the model's kernels accept it, and copied otherwise. */
#define BMRT_ALIGNMENT 64
#define BMRT_MAX_RANK 16

typedef struct bmrt_model_t bmrt_model_t;
typedef struct bmrt_context_t bmrt_context_t;

/*===- Status ---------------------------------------------------------------===*/

/* The kind of an error, by what the caller can do about it. */
typedef enum bmrt_code_t {
  BMRT_OK = 0,
  BMRT_INVALID_ARGUMENT = 1,    /* an argument is wrong: correct the call */
  BMRT_NOT_FOUND = 2,           /* no such net, stage or name: the message lists the existing ones */
  BMRT_IO = 3,                  /* the operating system or a driver reported an error: see the message */
  BMRT_CORRUPT = 4,             /* not a model, truncated or altered: get a fresh copy */
  BMRT_UNSUPPORTED = 5,         /* made for another machine or a newer runtime: compile again */
  BMRT_NO_MEMORY = 6,           /* try again with less */
  BMRT_FAILED_PRECONDITION = 7, /* not possible in the current state, e.g. a run is still in flight */
  BMRT_CANCELLED = 8            /* bmrt_context_cancel ended the run; the context may run again */
} bmrt_code_t;

typedef struct bmrt_status_t {
  bmrt_code_t code;
  int32_t line; /* position in the runtime's source that detected the error */
  const char *file;
  char message[496]; /* what, where, actual and allowed value; always terminated */
} bmrt_status_t;

/* Returns "ok", "invalid argument", ...; never NULL. */
BMRT_API const char *bmrt_code_name(bmrt_code_t code);

/* Returns the version of the library, e.g. "0.1", for comparison with the header's macros. */
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
  BMRT_CHANNEL_BLOCKED, /* [d0 .., ceil(d[block_axis]/block), .., block]; padding lanes are zero */
  BMRT_PACKED           /* an order that only the kernels know */
} bmrt_layout_t;

typedef struct bmrt_tensor_info_t {
  const char *name; /* for inputs and outputs the ONNX name */
  bmrt_dtype_t dtype;
  bmrt_layout_t layout;
  uint32_t block;
  uint32_t block_axis;
  uint32_t rank;
  int64_t shape[BMRT_MAX_RANK];     /* logical, ONNX order; -1 = symbolic and not yet known */
  int64_t max_shape[BMRT_MAX_RANK]; /* equal to |shape| if static */
  uint64_t bytes;                   /* stored size for |shape|, or for |max_shape| while |shape| is unknown */
  uint32_t onnx_name_count;         /* see bmrt_tensor_onnx_name */
  uint32_t scale_count;             /* 0: not quantised; real = scale * (stored - zero_point) */
  int32_t quant_axis;               /* -1: one scale for the whole tensor */
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

/* Returns the bytes of one element; 0 for an unknown value. */
BMRT_API uint32_t bmrt_dtype_bytes(bmrt_dtype_t dtype);
/* Returns "f32", "i8", ...; never NULL. */
BMRT_API const char *bmrt_dtype_name(bmrt_dtype_t dtype);

/* Returns the |index|-th ONNX tensor whose values |info| describes; NULL beyond onnx_name_count. */
BMRT_API const char *bmrt_tensor_onnx_name(const bmrt_tensor_info_t *info, uint32_t index);

/* Returns "sigmoid" or "softmax" if that op computes all elements of the output that |info| describes, "none" if no op
 * does (a constant, or an input), and NULL if other ops do, or the file does not say. */
BMRT_API const char *bmrt_tensor_computed_by(const bmrt_tensor_info_t *info);

/* Returns the bytes of the tensor in row-major order, i.e. of prod(shape) elements. */
BMRT_API uint64_t bmrt_tensor_row_major_bytes(const bmrt_tensor_info_t *info);

/* Writes the elements of |view| to |out| in row-major order, whatever the tensor's layout. |out_bytes| must be
 * bmrt_tensor_row_major_bytes. Packed tensors are BMRT_UNSUPPORTED. */
BMRT_API bmrt_code_t bmrt_tensor_to_row_major(const bmrt_tensor_view_t *view, void *out, uint64_t out_bytes,
                                              bmrt_status_t *out_status);

/*===- Custom operators -----------------------------------------------------===*/

struct tessera_custom_op_t; /* see tessera_custom_op.h */

/* Registers an operator that models name, for this process. Models that call it must be opened afterwards. The strings
 * and functions of |op| must stay valid; the struct itself is copied. */
BMRT_API bmrt_code_t bmrt_register_custom_op(const struct tessera_custom_op_t *op, bmrt_status_t *out_status);

/* Loads a shared library of operators and registers them. Its code runs in this process: load only libraries that you
 * trust. A model file cannot cause this; only the caller names libraries. */
BMRT_API bmrt_code_t bmrt_load_custom_ops(const char *path, bmrt_status_t *out_status);

/*===- Model ----------------------------------------------------------------===*/

typedef struct bmrt_open_options_t {
  size_t struct_size;   /* sizeof(bmrt_open_options_t) */
  bool trust_constants; /* skip the hashes of the constants; structure and code are always checked */
  const char *device;   /* "family:n": chips of that family are the n-th of this machine, from 0; "family"
                           or NULL: the back end chooses. Read only while the model is opened */
} bmrt_open_options_t;

/* Opens, verifies and maps |path|; weights are not copied. The file must not be changed in place while the model is
 * open (replacing it by rename is allowed). |options| may be NULL. The model starts with one reference. */
BMRT_API bmrt_code_t bmrt_model_open(const char *path, const bmrt_open_options_t *options, bmrt_model_t **out_model,
                                     bmrt_status_t *out_status);

/* Opens a model from memory, which must be aligned to BMRT_ALIGNMENT and stay unchanged until the last reference to
 * the model is released. */
BMRT_API bmrt_code_t bmrt_model_open_memory(const void *data, uint64_t bytes, const bmrt_open_options_t *options,
                                            bmrt_model_t **out_model, bmrt_status_t *out_status);

/* Add and drop a reference; contexts hold their own reference. Both are thread-safe; bmrt_model_release ignores
 * NULL. */
BMRT_API void bmrt_model_retain(bmrt_model_t *model);
BMRT_API void bmrt_model_release(bmrt_model_t *model);

BMRT_API uint32_t bmrt_model_net_count(const bmrt_model_t *model);
/* Returns NULL if |net| is out of range. */
BMRT_API const char *bmrt_model_net_name(const bmrt_model_t *model, uint32_t net);
/* Returns 0 if |net| is out of range. */
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
  bool runnable; /* true if this machine and this library can run the stage */
} bmrt_stage_info_t;

BMRT_API bmrt_code_t bmrt_model_stage_info(const bmrt_model_t *model, uint32_t net, uint32_t stage,
                                           bmrt_stage_info_t *out_info, bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_model_input_info(const bmrt_model_t *model, uint32_t net, uint32_t stage, uint32_t input,
                                           bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_model_output_info(const bmrt_model_t *model, uint32_t net, uint32_t stage, uint32_t output,
                                            bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);

/*===- Context --------------------------------------------------------------===*/

/* Selects the first stage that can run here, and later the stage that fits the shapes of the inputs. */
#define BMRT_FIRST_RUNNABLE_STAGE UINT32_MAX

typedef struct bmrt_context_options_t {
  size_t struct_size;       /* sizeof(bmrt_context_options_t) */
  const char *net;          /* NULL: the first net */
  uint32_t stage;           /* the only stage to use, or BMRT_FIRST_RUNNABLE_STAGE */
  uint32_t threads;         /* including the caller's; 0 = 1; limited to the processors that the process may use */
  void *workspace;          /* NULL: allocated; else BMRT_ALIGNMENT-aligned, used by the context until it is */
  uint64_t workspace_bytes; /* destroyed; at least bmrt_stage_info_t.workspace_bytes of each stage used */
  const char *chip;         /* NULL: any; else only stages for this chip: a name or a family as in ChipDef */
} bmrt_context_options_t;

/* Creates a context. |options| may be NULL: first net, first runnable stage, one thread. */
BMRT_API bmrt_code_t bmrt_context_create(bmrt_model_t *model, const bmrt_context_options_t *options,
                                         bmrt_context_t **out_context, bmrt_status_t *out_status);
/* Waits for a run in flight and destroys the context. NULL is ignored. */
BMRT_API void bmrt_context_destroy(bmrt_context_t *context);

BMRT_API uint32_t bmrt_context_input_count(const bmrt_context_t *context);
BMRT_API uint32_t bmrt_context_output_count(const bmrt_context_t *context);
BMRT_API bmrt_code_t bmrt_context_input_info(const bmrt_context_t *context, uint32_t input,
                                             bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);
/* Symbolic dims of an output are known as soon as the shapes of all inputs are set, or after a run if the model
 * computes them during the run. */
BMRT_API bmrt_code_t bmrt_context_output_info(const bmrt_context_t *context, uint32_t output,
                                              bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);
/* Finds an index by ONNX name; the message of BMRT_NOT_FOUND lists the existing names. */
BMRT_API bmrt_code_t bmrt_context_find_input(const bmrt_context_t *context, const char *name, uint32_t *out_input,
                                             bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_context_find_output(const bmrt_context_t *context, const char *name, uint32_t *out_output,
                                              bmrt_status_t *out_status);

/* Checks |shape| against the model and sets symbolic dims. Needed only for inputs with symbolic dims and for nets
 * with several stages; otherwise the shape is only compared with the static one.
 *
 * Once the shapes of all inputs are known, the sizes of all tensors follow from them, and every step is checked for
 * these sizes: BMRT_CORRUPT if a kernel would access bytes outside a tensor. The context remembers the last eight
 * vectors of sizes, to which it returns without checks. If the function fails, the context keeps its former sizes. A
 * change of sizes unbinds inputs with symbolic dims, and outputs unless their buffer is for max_shape. A dim that
 * follows from the dims of other inputs is compared with them; use bmrt_context_set_input_shapes to change both.
 *
 * A context created with BMRT_FIRST_RUNNABLE_STAGE switches to the first stage that can run here, is for the
 * requested chip, and accepts this shape; a stage that keeps the shapes of the other inputs is preferred. Functions
 * that name inputs, outputs or steps refer to the current stage: each stage has its own bound buffers, steps in
 * hooks and profiles, and states. Stages share threads, workspace and constants. The message of
 * BMRT_INVALID_ARGUMENT lists the possible shapes. */
BMRT_API bmrt_code_t bmrt_context_set_input_shape(bmrt_context_t *context, uint32_t input, const int64_t *shape,
                                                  uint32_t rank, bmrt_status_t *out_status);

/* Sets the shapes of all inputs, in their order, at once. Unlike a sequence of single calls, this never searches for
 * a stage with a mix of old and new shapes. */
BMRT_API bmrt_code_t bmrt_context_set_input_shapes(bmrt_context_t *context, const int64_t *const *shapes,
                                                   const uint32_t *ranks, uint32_t count, bmrt_status_t *out_status);

/* Return and set the current stage of the context. */
BMRT_API uint32_t bmrt_context_stage(const bmrt_context_t *context);
BMRT_API bmrt_code_t bmrt_context_set_stage(bmrt_context_t *context, uint32_t stage, bmrt_status_t *out_status);

/* Uses |data| (row-major, |bytes| = info.bytes) as the input of later runs, which read it. They read it in place if
 * it is aligned to BMRT_ALIGNMENT, or to the size of its elements if no step requires more; otherwise each run
 * starts with a copy. NULL returns to the context's own buffer. */
BMRT_API bmrt_code_t bmrt_context_bind_input(bmrt_context_t *context, uint32_t input, const void *data, uint64_t bytes,
                                             bmrt_status_t *out_status);
/* Uses |data| for an output of later runs, likewise. |bytes| must be info.bytes, or the bytes for max_shape, which fit
 * all sizes. Bound buffers must not overlap each other. */
BMRT_API bmrt_code_t bmrt_context_bind_output(bmrt_context_t *context, uint32_t output, void *data, uint64_t bytes,
                                              bmrt_status_t *out_status);

/* Returns the context's own buffer of an input, to be filled before a run; unbinds caller memory. */
BMRT_API bmrt_code_t bmrt_context_input_buffer(bmrt_context_t *context, uint32_t input, void **out_data,
                                               bmrt_status_t *out_status);
/* Returns the address of an output of the last run; valid until the next run or bind. */
BMRT_API bmrt_code_t bmrt_context_output_data(bmrt_context_t *context, uint32_t output, const void **out_data,
                                              bmrt_status_t *out_status);

/*===- Memory and streams of a chip -----------------------------------------===*/
/*
 * For callers whose data is in a chip's own memory, e.g. in the memory of a GPU. A tensor can be there if the stage
 * uses it only in one copy to or from the chip; otherwise the functions return BMRT_UNSUPPORTED.
 */

/* Uses |data|, |bytes| = info.bytes in the memory of the chip, as the input of later runs. The chip reads it in
 * place if it is aligned to BMRT_ALIGNMENT, otherwise through its own copy. The runtime does not check that the
 * address belongs to that chip. NULL returns to the context's own buffer, and so does bmrt_context_set_input_shape
 * with another shape. */
BMRT_API bmrt_code_t bmrt_context_bind_chip_input(bmrt_context_t *context, uint32_t input, const void *data,
                                                  uint64_t bytes, bmrt_status_t *out_status);
/* Uses |data| for an output, likewise; bmrt_context_output_data then returns that address. Step hooks cannot read
 * either. */
BMRT_API bmrt_code_t bmrt_context_bind_chip_output(bmrt_context_t *context, uint32_t output, void *data, uint64_t bytes,
                                                   bmrt_status_t *out_status);

/* Makes runs of the context execute their chips' work in |stream| (a handle of the chip's driver), after the work
 * that the stream already contains. Runs still return only when they are done. NULL: uses the context's own streams,
 * which do not synchronise with other streams. BMRT_UNSUPPORTED if a chip of the stage does not support streams. */
BMRT_API bmrt_code_t bmrt_context_set_stream(bmrt_context_t *context, void *stream, bmrt_status_t *out_status);

/* A buffer in a chip's memory. It holds a reference to the model. */
typedef struct bmrt_chip_buffer_t bmrt_chip_buffer_t;

/* Allocates memory for output |output| on its chip, with undefined contents, for bmrt_context_bind_chip_output. */
BMRT_API bmrt_code_t bmrt_context_allocate_chip_output(bmrt_context_t *context, uint32_t output,
                                                       bmrt_chip_buffer_t **out_buffer, bmrt_status_t *out_status);
BMRT_API void *bmrt_chip_buffer_data(const bmrt_chip_buffer_t *buffer);
/* May be called from any thread, once no run uses the buffer. NULL is ignored. */
BMRT_API void bmrt_chip_buffer_release(bmrt_chip_buffer_t *buffer);

/*===- Runs -----------------------------------------------------------------===*/

/* Runs the net once and returns when it is done. */
BMRT_API bmrt_code_t bmrt_context_run(bmrt_context_t *context, bmrt_status_t *out_status);
/* Starts a run and returns. Until bmrt_context_wait, no other function may be called with the context (except
 * bmrt_context_is_done and bmrt_context_cancel), and bound buffers are in use. If all steps are commands of one chip
 * that works asynchronously, e.g. of a model that runs completely on a GPU, the calling thread submits them to the
 * chip, in the stream of bmrt_context_set_stream if it is set. Otherwise, and if a hook or a profile observes the
 * steps, a thread of the context runs them. */
BMRT_API bmrt_code_t bmrt_context_launch(bmrt_context_t *context, bmrt_status_t *out_status);
/* Returns true if the launched run is done, so that bmrt_context_wait returns at once, or if no run was launched. */
BMRT_API bool bmrt_context_is_done(bmrt_context_t *context);
/* Waits for the launched run and returns its result. */
BMRT_API bmrt_code_t bmrt_context_wait(bmrt_context_t *context, bmrt_status_t *out_status);

/* Cancels the run in flight, of bmrt_context_run or bmrt_context_launch: the run returns BMRT_CANCELLED as soon as
 * the current steps, tiles and commands have ended. May be called from any thread and from signal handlers. A run
 * that has already ended or has not begun is not affected: a program that cancels from a signal handler should set
 * its own flag and check it before each run, or repeat the cancel. Afterwards the outputs are undefined, states are
 * as of the point of cancellation (see bmrt_context_reset_state), and the context may run again. */
BMRT_API void bmrt_context_cancel(bmrt_context_t *context);

/* A function that the running thread calls every 30 to 60 ms of a run, between steps or tiles; a result of true ends
 * the run like bmrt_context_cancel. For work that only this thread can do, e.g. checking an interpreter for signals.
 * NULL removes it. Must not be set while a run is in flight. */
typedef bool (*bmrt_poll_t)(void *user);
BMRT_API void bmrt_context_set_poll(bmrt_context_t *context, bmrt_poll_t poll, void *user);

/*===- States ---------------------------------------------------------------===*/
/*
 * A state is a tensor that a run reads and changes, and that the next run of the same context and stage finds as the
 * last one left it, e.g. the hidden values of a recurrent net. States are neither inputs nor outputs. After a run that
 * failed or was cancelled they are undefined until they are reset or loaded.
 */

BMRT_API uint32_t bmrt_context_state_count(const bmrt_context_t *context);
/* The name is that of the ONNX input that the state replaces, the first ONNX name that of the output. Shape and bytes
 * of a growing state are those in use, its max_shape is its capacity. */
BMRT_API bmrt_code_t bmrt_context_state_info(const bmrt_context_t *context, uint32_t state,
                                             bmrt_tensor_info_t *out_info, bmrt_status_t *out_status);

/* A growing state, e.g. a cache of keys and values, has |length| indices along dim |axis|. A run that succeeds appends
 * to it; states that grow together have the same length. A run that would exceed the capacity fails before it changes
 * anything. After a run that failed or was cancelled, a growing state is as before the run. */
typedef struct bmrt_state_growth_t {
  int32_t axis; /* -1: the state does not grow */
  int64_t length, capacity;
} bmrt_state_growth_t;
BMRT_API bmrt_code_t bmrt_context_state_growth(const bmrt_context_t *context, uint32_t state,
                                               bmrt_state_growth_t *out_growth, bmrt_status_t *out_status);
/* Shortens a growing state to |length| indices, and all states that grow with it, e.g. to forget rejected tokens or to
 * use a common beginning again. A larger length, up to the capacity, appends zeros. */
BMRT_API bmrt_code_t bmrt_context_set_state_length(bmrt_context_t *context, uint32_t state, int64_t length,
                                                   bmrt_status_t *out_status);

/* Resets states to their initial values, as in a new context; growing states become empty. */
BMRT_API bmrt_code_t bmrt_context_reset_state(bmrt_context_t *context, bmrt_status_t *out_status);

/* Writes the states of the current stage, of growing ones what is in use, to |out|, for bmrt_context_load_state of any
 * context of the same file. Sets |out_bytes| to the number of bytes; if |out| is NULL, writes nothing else. The last
 * bytes are those of the states, in the order of bmrt_context_state_info; the bytes before them identify the model and
 * the stage. */
BMRT_API bmrt_code_t bmrt_context_save_state(bmrt_context_t *context, void *out, uint64_t capacity, uint64_t *out_bytes,
                                             bmrt_status_t *out_status);
/* Sets the states of the current stage to saved ones. BMRT_INVALID_ARGUMENT, without a change, if |saved| is not of
 * this model and stage. */
BMRT_API bmrt_code_t bmrt_context_load_state(bmrt_context_t *context, const void *saved, uint64_t bytes,
                                             bmrt_status_t *out_status);

/*===- Steps: names, hooks, times -------------------------------------------===*/

/* One step of the plan; any string may be "". Estimates are the compiler's. */
typedef struct bmrt_step_info_t {
  uint32_t index;     /* index among all steps of the stage */
  const char *kind;   /* "launch", "copy", ... */
  const char *symbol; /* name of the kernel */
  const char *top_op;
  const char *device_op;
  const char *bound;        /* the limiting resource: "compute", "ddr", ... */
  uint32_t onnx_node_count; /* see bmrt_step_onnx_node */
  uint32_t write_count;     /* see bmrt_context_step_write */
  int64_t tile_count;       /* -1 = depends on sizes that are not yet known */
  uint64_t flops, bytes;
  double estimated_ns;
  const void *def; /* internal */
} bmrt_step_info_t;

BMRT_API uint32_t bmrt_context_step_count(const bmrt_context_t *context);
BMRT_API bmrt_code_t bmrt_context_step_info(const bmrt_context_t *context, uint32_t step, bmrt_step_info_t *out_info,
                                            bmrt_status_t *out_status);
/* Returns the |index|-th ONNX node that this step computes, wholly or partly; NULL beyond onnx_node_count. */
BMRT_API const char *bmrt_step_onnx_node(const bmrt_step_info_t *step, uint32_t index);
/* Returns the |index|-th tensor that the step wrote. The data is valid only until a later step reuses the memory:
 * read it in the hook. */
BMRT_API bmrt_code_t bmrt_context_step_write(const bmrt_context_t *context, const bmrt_step_info_t *step,
                                             uint32_t index, bmrt_tensor_view_t *out_view, bmrt_status_t *out_status);

/* Returns the same tensor's bytes (info.bytes) for modification, to be read by later steps; between calls of
 * bmrt_context_run_steps, or in the hook. */
BMRT_API bmrt_code_t bmrt_context_step_data(bmrt_context_t *context, const bmrt_step_info_t *step, uint32_t index,
                                            void **out_data, bmrt_status_t *out_status);
/* Runs steps [begin, end) of the first subnet, or all from begin if end is UINT32_MAX, again on the current contents
 * of the tensors, then writes the bound outputs. The context must have run since buffers were bound. Meaningful only if
 * the tensors that these steps read still hold their values; in models made for inspection each has its own memory. */
BMRT_API bmrt_code_t bmrt_context_run_steps(bmrt_context_t *context, uint32_t begin, uint32_t end,
                                            bmrt_status_t *out_status);

/* A function that is called after every step, on the thread that runs the context; it may read tensors, but must not
 * run or change the context. */
typedef void (*bmrt_step_hook_t)(void *user, const bmrt_context_t *context, const bmrt_step_info_t *step);
/* NULL removes the hook. */
BMRT_API void bmrt_context_set_step_hook(bmrt_context_t *context, bmrt_step_hook_t hook, void *user);

typedef struct bmrt_step_time_t {
  uint64_t runs; /* number of times that the step ran since profiling was enabled */
  uint64_t last_ns, min_ns, total_ns;
} bmrt_step_time_t;

/* Enables or disables profiling. Enabling resets the times; disabling keeps them. Costs two clock reads per step
 * (about 50 ns), and a wait for each step of a chip that works asynchronously. */
BMRT_API bmrt_code_t bmrt_context_set_profiling(bmrt_context_t *context, bool enabled, bmrt_status_t *out_status);
BMRT_API bmrt_code_t bmrt_context_step_time(const bmrt_context_t *context, uint32_t step, bmrt_step_time_t *out_time,
                                            bmrt_status_t *out_status);
/* Returns the number of parts of a step that its chip times separately, e.g. the kernel launches of a GPU stream; 0
 * for other steps and before a profiled run. Profiled parts run one by one, so their sum exceeds the usual time of
 * the stream. */
BMRT_API uint32_t bmrt_context_step_part_count(const bmrt_context_t *context, uint32_t step);
/* Returns the times of a part. |out_node| lists the ONNX nodes that the part computes, "" if unknown. */
BMRT_API bmrt_code_t bmrt_context_step_part_time(const bmrt_context_t *context, uint32_t step, uint32_t part,
                                                 const char **out_node, bmrt_step_time_t *out_time,
                                                 bmrt_status_t *out_status);
/* Writes the steps of the last profiled run in Chrome's trace format (chrome://tracing, Perfetto). */
BMRT_API bmrt_code_t bmrt_context_write_trace(const bmrt_context_t *context, const char *path,
                                              bmrt_status_t *out_status);

#ifdef __cplusplus
}
#endif

#endif /* BMRT_BMRT_H */

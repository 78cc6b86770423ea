/* SPDX-License-Identifier: Apache-2.0 */
/*===- backend.h - Interface that a vendor implements for a chip family -----===*/
/*
 * A back end runs the code of one family of chips. A model states the family of each of its chips (ChipDef.family). The
 * runtime looks for a back end of that name among those built in (src/Backends.cpp) and those that the program has
 * registered (bmrt_register_backend). If there is none, it looks for a library libbmrt_<family>.so in its own folder.
 * That library exports `const bmrt_backend_t bmrt_backend`; it is loaded when the first model needs it and is never
 * unloaded.
 *
 * Opening a model. The runtime opens the chip once per model; it checks and loads the model's code for the chip once,
 * for all contexts.
 *
 * Creating a context. The runtime allocates memory on the chip for the context, copies the constants there (once per
 * model), and creates a queue.
 *
 * Running. The runtime submits copies, streams and launches to the queue and waits for the queue.
 *
 * A family whose chips work on the host's memory sets a flag and needs neither memory nor copies.
 *
 * Threads. Functions that take a device or a program are called from any thread, possibly concurrently. Functions that
 * take a queue are called by one thread at a time, but not always the same thread. That thread is the caller of
 * bmrt_context_run, or a thread of the runtime if other chips have work in the meantime. A function that takes a queue
 * may therefore block until the work is done.
 *
 * Order. A queue executes its commands in the order of submission. The runtime orders commands of different queues: it
 * submits a command only after waiting for everything that the command reads.
 *
 * Addresses. Memory of a chip is identified by addresses, like the host's memory, and the runtime adds offsets to them.
 * The runtime never reads or writes at these addresses, unless the family works on the host's memory.
 *
 * Errors. A function that fails returns a code and fills |status|, which is never NULL here: what is wrong, in which
 * layer, and what to do. It neither prints nor ends the process. Output parameters are written on success only.
 *
 * Versions. BMRT_BACKEND_ABI is raised when something changes its meaning; a back end of another version is rejected
 * with a message that names both versions. New members are appended to the structs. Each struct states its size;
 * members that an older side lacks are read as 0.
 */
#ifndef BMRT_BACKEND_H
#define BMRT_BACKEND_H

#include "bmrt/bmrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BMRT_BACKEND_ABI 1

/* Types that the back end defines; the runtime only keeps pointers to them. */
typedef struct bmrt_device_t bmrt_device_t;   /* an opened chip */
typedef struct bmrt_program_t bmrt_program_t; /* loaded code of a chip */
typedef struct bmrt_queue_t bmrt_queue_t;

/* A chip as a model describes it; no string is NULL. */
typedef struct bmrt_chip_t {
  size_t struct_size;
  const char *name, *family;
  const char *description; /* the chip's JSON */
  const char *fingerprint; /* of the chip's properties that its code relies on */
  uint32_t ordinal;        /* which of this machine's chips, counted from 1; 0: the back end chooses */
} bmrt_chip_t;

/* The requirements of a part of a model (a subnet); no string is NULL. */
typedef struct bmrt_subnet_t {
  size_t struct_size;
  const char *name;
  const char *isa;       /* for display */
  uint64_t cpu_features; /* features of the host CPU: bits of bmodel/cpu_features.inc */
  uint32_t code_version; /* version in the family's own numbering (SubnetDef.kernel_abi) */
  uint32_t kernel_count; /* number of kernels that the subnet launches by name */
} bmrt_subnet_t;

/* A query for cancellation. Long-running work calls |is_requested| from time to time, on the thread that called the
 * function with this argument. If it returns true, the work ends early and the function returns BMRT_CANCELLED. */
typedef struct bmrt_interrupt_t {
  bool (*is_requested)(void *user);
  void *user;
} bmrt_interrupt_t;

/* A stream, i.e. bytes written by the family's compiler, and its operands. During verification only sizes are known;
 * |tensors|, |workspace| and |dims| are NULL. */
typedef struct bmrt_stream_t {
  size_t struct_size;
  const unsigned char *code;    /* the subnet's code segment, in the host's memory */
  uint64_t offset, bytes;       /* position of the stream in |code| */
  void *const *tensors;         /* addresses of inputs, then outputs, in the order of the step's lists */
  const uint64_t *tensor_bytes; /* their sizes; at the sizes of the run if the stream has dims, else the largest */
  uint32_t input_count, output_count;
  const int64_t *dims; /* sizes that are known at run time, in the order of the step's list */
  uint32_t dim_count;
  uint32_t layer_count;
  const char *const *layers; /* ONNX nodes, for messages */
  void *workspace;           /* reserved for streams (SubnetDef.workspace); contents undefined */
  uint64_t workspace_bytes;
  /* The model's first segment of constants, in the host's memory. Only for families that work on the host's memory;
   * other families get their constants as tensors. */
  const unsigned char *constants;
  uint64_t constant_bytes;
  const bmrt_interrupt_t *interrupt;
} bmrt_stream_t;

/* A launch of a kernel on its tiles. */
typedef struct bmrt_launch_t {
  size_t struct_size;
  void *kernel; /* result of find_kernel */
  void *const *args;
  uint32_t arg_count, dim_count;
  const int64_t *dims;
  int64_t tile_count;
  int64_t grain;          /* tiles to claim at once; 0: the back end chooses */
  uint64_t scratch_bytes; /* per thread */
  const bmrt_interrupt_t *interrupt;
} bmrt_launch_t;

typedef enum bmrt_copy_t {
  BMRT_COPY_TO_CHIP,   /* from the host's memory */
  BMRT_COPY_FROM_CHIP, /* to the host's memory */
  BMRT_COPY_ON_CHIP    /* the ranges may overlap */
} bmrt_copy_t;

/* The family's chips work on memory that the host reads and writes: there are no copies, and allocate, release and
 * copy may be NULL. */
#define BMRT_BACKEND_HOST_MEMORY 1u
/* The family's kernels are functions of this process (bm_kernel_fn of bmodel/kernel_abi.h), which the runtime calls
 * on the threads of a context: there are no queues. Requires BMRT_BACKEND_HOST_MEMORY. */
#define BMRT_BACKEND_HOST_KERNELS 2u
/* The chip works asynchronously: |run|, |launch| and |copy| return before their work is done. If a run consists only
 * of such commands, the runtime needs no host thread for it. */
#define BMRT_BACKEND_RETURNS_EARLY 4u

/* Receives the times of a stream's parts, e.g. kernel launches, which the chip times separately, in their order. */
typedef struct bmrt_part_sink_t {
  void (*tell)(void *user, uint32_t layer, uint64_t ns); /* |layer|: index into the stream's layers; UINT32_MAX: none */
  void *user;
} bmrt_part_sink_t;

typedef struct bmrt_backend_t {
  uint32_t abi; /* BMRT_BACKEND_ABI */
  uint32_t flags;
  size_t struct_size; /* sizeof(bmrt_backend_t) */
  const char *family; /* lower-case letters, digits and _ */

  /* Opens a chip. NULL: nothing has to be opened, and |device| is NULL everywhere. Returns BMRT_UNSUPPORTED if this
   * machine does not have the chip; another stage of the model may then run. The runtime destroys everything created
   * from a device before it calls |close|. */
  bmrt_code_t (*open)(const bmrt_chip_t *chip, bmrt_device_t **out, bmrt_status_t *status);
  void (*close)(bmrt_device_t *device);

  /* Allocates memory with undefined contents, aligned to BMRT_ALIGNMENT. Returns BMRT_NO_MEMORY if there is not
   * enough. */
  bmrt_code_t (*allocate)(bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status);
  void (*release)(bmrt_device_t *device, void *address);

  /* Programs. |check| returns an error if a subnet cannot run here; NULL: every subnet can. |load| gets a whole code
   * segment, which stays valid and unmoved until |unload|; it must not execute any of the code yet. */
  bmrt_code_t (*check)(bmrt_device_t *device, const bmrt_subnet_t *subnet, bmrt_status_t *status);
  bmrt_code_t (*load)(bmrt_device_t *device, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                      bmrt_status_t *status);
  void (*unload)(bmrt_program_t *program);
  /* Returns the kernel of that name, or NULL if the program does not contain it. NULL: the family does not have
   * kernels. */
  void *(*find_kernel)(bmrt_program_t *program, const char *symbol);
  /* Sets |out| to the contract of a kernel: the contents of its note (bmodel/kernel_contract.h), of any alignment,
   * which stay valid until |unload|; or to NULL if the code does not have a contract. Returns an error if parts of the
   * contract lie outside the code, or if this machine does not meet the contract. NULL: no code of this family has
   * contracts. */
  bmrt_code_t (*find_contract)(bmrt_program_t *program, const char *symbol, const void **out, bmrt_status_t *status);
  /* Checks that a stream accesses only its tensors and its workspace, whatever their contents. Called once per
   * stream, when the model is opened. NULL: the family does not have streams. */
  bmrt_code_t (*verify)(bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status);

  /* Queues. A command may execute before its function returns, or later. What |stream| and |launch| point to may
   * change after the function has returned; tensors may change only after the queue has been waited for. */
  bmrt_code_t (*make_queue)(bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *status);
  void (*destroy_queue)(bmrt_queue_t *queue);
  bmrt_code_t (*copy)(bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                      bmrt_status_t *status);
  bmrt_code_t (*run)(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status);
  bmrt_code_t (*launch)(bmrt_queue_t *queue, const bmrt_launch_t *launch, bmrt_status_t *status);
  /* Waits for all commands submitted so far and returns the first error among them; the queue then accepts new
   * commands. |interrupt| may be NULL. NULL: commands are complete when their functions return. */
  bmrt_code_t (*wait)(bmrt_queue_t *queue, const bmrt_interrupt_t *interrupt, bmrt_status_t *status);

  /* From now on, executes commands in |stream|, a driver handle of the caller, after the work that it already
   * contains; NULL: in the queue's own stream again. Called only while no command is in flight. NULL: the family
   * does not support such streams. */
  bmrt_code_t (*use_stream)(bmrt_queue_t *queue, void *stream, bmrt_status_t *status);

  /* Like |run|, but returns when the stream is done, and reports the times of its parts. NULL: the family cannot
   * time parts. */
  bmrt_code_t (*run_timed)(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream,
                           const bmrt_part_sink_t *sink, bmrt_status_t *status);
  /* Returns true if |wait| would return at once, possibly with an error. NULL: unknown until |wait| returns. */
  bool (*is_done)(bmrt_queue_t *queue);
} bmrt_backend_t;

/* Registers a back end in this process for models that are opened later; |backend| must stay valid forever. Fails if
 * the back end has another version or is incomplete, or if its family already has a back end. May be called from any
 * thread. */
BMRT_API bmrt_code_t bmrt_register_backend(const bmrt_backend_t *backend, bmrt_status_t *out_status);

#ifdef __cplusplus
}
#endif

#endif /* BMRT_BACKEND_H */

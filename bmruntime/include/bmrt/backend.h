/* SPDX-License-Identifier: Apache-2.0 */
/*===- backend.h - What a vendor implements to run a family of chips --------===*/
/*
 * A back end runs the code of one family of chips. A model says of each chip which family it is of (ChipDef.family),
 * and the runtime looks for the back end of that name among those that the program has given it
 * (bmrt_register_backend), then among those built in (src/Backends.cpp), then for a library libbmrt_<family>.so beside
 * its own. That one exports `const bmrt_backend_t bmrt_backend`, is loaded when the first model asks for it, and stays.
 *
 * Opening a model. The chip is opened, once for each model; the model's code for it is checked and loaded, once for all
 * contexts.
 *
 * Making a context. Memory of the chip is allocated for it, and the constants are copied there for the first one. It is
 * given a queue.
 *
 * Running. The queue is given copies, streams and launches, and waited for.
 *
 * A family whose chips work on the host's memory says so by a flag and needs neither memory nor copies.
 *
 * Threads. Functions that take a device or a program are called from any thread, also at the same time. Those that take
 * a queue are called by one thread at a time, not always the same one. The thread is the caller's of bmrt_context_run,
 * or one of the runtime's where other chips have work meanwhile: so a function that takes a queue may take as long as
 * the work does.
 *
 * Order. A queue does its commands in the order in which it was given them. Between two queues the runtime sees to the
 * order: it gives a command to a queue when all that the command reads has been waited for.
 *
 * Addresses. Memory of a chip is named by addresses as the host's is, and the runtime adds offsets to them. It reads or
 * writes nothing there, unless the family works on the host's memory.
 *
 * Errors. A function that fails returns a code and fills |status|, which is never NULL here: what is wrong, with which
 * layer, what to do. It neither prints nor ends the process. Output parameters are written on success only.
 *
 * Versions. BMRT_BACKEND_ABI rises when something changes its meaning; a back end of another version is refused by both
 * numbers. What is new stands at the end of the structs, each of which tells its size: what an older side lacks is 0.
 */
#ifndef BMRT_BACKEND_H
#define BMRT_BACKEND_H

#include "bmrt/bmrt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BMRT_BACKEND_ABI 1

/* The back end's own; the runtime keeps pointers to them. */
typedef struct bmrt_device_t bmrt_device_t;   /* a chip, opened */
typedef struct bmrt_program_t bmrt_program_t; /* code of a chip, loaded */
typedef struct bmrt_queue_t bmrt_queue_t;

/* A chip as a model describes it; no string is NULL. */
typedef struct bmrt_chip_t {
  size_t struct_size;
  const char *name, *family;
  const char *description; /* the chip's JSON */
  const char *fingerprint; /* of what its code relies on */
  uint32_t ordinal;        /* which one of those that this machine has, from 1; 0: as the back end likes */
} bmrt_chip_t;

/* What a part of a model asks of those who run it; no string is NULL. */
typedef struct bmrt_subnet_t {
  size_t struct_size;
  const char *name;
  const char *isa;       /* for people */
  uint64_t cpu_features; /* of the host: bits of bmodel/cpu_features.inc */
  uint32_t code_version; /* the family's own count (SubnetDef.kernel_abi) */
  uint32_t kernel_count; /* that it launches by name */
} bmrt_subnet_t;

/* Whether a run is to end: asked from time to time by work that takes long, in the thread by which the function was
 * called that is given this. If it is, the work ends as it can and the function returns BMRT_CANCELLED. */
typedef struct bmrt_interrupt_t {
  bool (*is_requested)(void *user);
  void *user;
} bmrt_interrupt_t;

/* A stream: bytes that the family's compiler wrote, and what they work on. When it is verified only sizes are known,
 * and addresses and dims are NULL. */
typedef struct bmrt_stream_t {
  size_t struct_size;
  const unsigned char *code; /* the subnet's segment of code, in the host's memory */
  uint64_t offset, bytes;    /* the stream in there */
  void *const *tensors;      /* what it reads, then what it writes, as the step lists them */
  const uint64_t *tensor_bytes;
  uint32_t input_count, output_count;
  const int64_t *dims; /* sizes that are known at run time, as the step lists them */
  uint32_t dim_count;
  uint32_t layer_count;
  const char *const *layers; /* ONNX nodes, for messages */
  void *workspace;           /* the streams' own (SubnetDef.workspace); contents undefined */
  uint64_t workspace_bytes;
  const unsigned char
      *constants;          /* the model's first segment of constants, in the host's memory; of families that work */
  uint64_t constant_bytes; /* there; others are given their constants as tensors */
  const bmrt_interrupt_t *interrupt;
} bmrt_stream_t;

/* A kernel on its tiles. */
typedef struct bmrt_launch_t {
  size_t struct_size;
  void *kernel; /* find_kernel's */
  void *const *args;
  uint32_t arg_count, dim_count;
  const int64_t *dims;
  int64_t tile_count;
  int64_t grain;          /* tiles to be taken at once; 0: as the back end likes */
  uint64_t scratch_bytes; /* for each thread */
  const bmrt_interrupt_t *interrupt;
} bmrt_launch_t;

typedef enum bmrt_copy_t {
  BMRT_COPY_TO_CHIP,   /* from the host's memory */
  BMRT_COPY_FROM_CHIP, /* to the host's memory */
  BMRT_COPY_ON_CHIP    /* the ranges may overlap */
} bmrt_copy_t;

/* Its chips work on memory that the host reads and writes: no copies, and allocate, release and copy may be NULL. */
#define BMRT_BACKEND_HOST_MEMORY 1u
/* Its kernels are functions of this process (bm_kernel_fn of bmodel/kernel_abi.h), which the runtime calls on the
 * threads of a context: no queues. Only with BMRT_BACKEND_HOST_MEMORY. */
#define BMRT_BACKEND_HOST_KERNELS 2u
/* Commands are given to a chip that works by itself: |run|, |launch| and |copy| return before they are done. So no
 * thread of the host is needed where a run is nothing but such commands. */
#define BMRT_BACKEND_RETURNS_EARLY 4u

/* Told the parts of a stream that a chip times each by itself, as launches of kernels, in their order. */
typedef struct bmrt_part_sink_t {
  void (*tell)(void *user, uint32_t layer, uint64_t ns); /* |layer|: of the stream's; UINT32_MAX: none */
  void *user;
} bmrt_part_sink_t;

typedef struct bmrt_backend_t {
  uint32_t abi; /* BMRT_BACKEND_ABI */
  uint32_t flags;
  size_t struct_size; /* sizeof(bmrt_backend_t) */
  const char *family; /* small letters, digits and _ */

  /* Chips. NULL: there is nothing to open, and |device| is NULL everywhere. BMRT_UNSUPPORTED where there is no such
   * chip here: then another stage of the model may run. Everything made of a device is ended before it is closed. */
  bmrt_code_t (*open)(const bmrt_chip_t *chip, bmrt_device_t **out, bmrt_status_t *status);
  void (*close)(bmrt_device_t *device);

  /* Memory, of any contents, at a multiple of BMRT_ALIGNMENT. BMRT_NO_MEMORY where there is not so much. */
  bmrt_code_t (*allocate)(bmrt_device_t *device, uint64_t bytes, void **out, bmrt_status_t *status);
  void (*release)(bmrt_device_t *device, void *address);

  /* Programs. |check| says whether a subnet can run here; NULL: any can. |load| is given a whole segment of code, which
   * stays where it is as long as the program lives; nothing of it may run yet. */
  bmrt_code_t (*check)(bmrt_device_t *device, const bmrt_subnet_t *subnet, bmrt_status_t *status);
  bmrt_code_t (*load)(bmrt_device_t *device, const unsigned char *code, uint64_t bytes, bmrt_program_t **out,
                      bmrt_status_t *status);
  void (*unload)(bmrt_program_t *program);
  /* The kernel of that name; returns NULL if there is none. NULL: the family has no kernels. */
  void *(*find_kernel)(bmrt_program_t *program, const char *symbol);
  /* What a kernel relies on, as its code says, if this machine has that: a bm_kernel_contract with its arguments
   * (bmodel/kernel_contract.h), of any alignment, which live as long as the program; NULL if it says nothing. NULL: no
   * code says anything. */
  bmrt_code_t (*find_contract)(bmrt_program_t *program, const char *symbol, const void **out, bmrt_status_t *status);
  /* Whether a stream touches nothing but its tensors and its workspace, whatever their contents. Called once for each
   * stream, when the model is opened. NULL: the family has no streams. */
  bmrt_code_t (*verify)(bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status);

  /* Queues. Commands may be done when their function returns, or begin then; what |stream| and |launch| point to may
   * change afterwards, tensors may not until the queue has been waited for. */
  bmrt_code_t (*make_queue)(bmrt_device_t *device, bmrt_queue_t **out, bmrt_status_t *status);
  void (*destroy_queue)(bmrt_queue_t *queue);
  bmrt_code_t (*copy)(bmrt_queue_t *queue, bmrt_copy_t direction, void *to, const void *from, uint64_t bytes,
                      bmrt_status_t *status);
  bmrt_code_t (*run)(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream, bmrt_status_t *status);
  bmrt_code_t (*launch)(bmrt_queue_t *queue, const bmrt_launch_t *launch, bmrt_status_t *status);
  /* Returns when all commands given so far are done, with the first error among them; then the queue takes new ones.
   * |interrupt| may be NULL. NULL: commands are done when their functions return. */
  bmrt_code_t (*wait)(bmrt_queue_t *queue, const bmrt_interrupt_t *interrupt, bmrt_status_t *status);

  /* From now on commands are done in a stream of the caller's, a handle of the driver's, behind what it has been given;
   * NULL: in the queue's own again. No command is in flight. NULL: the family has no such streams. */
  bmrt_code_t (*use_stream)(bmrt_queue_t *queue, void *stream, bmrt_status_t *status);

  /* As |run|, but returns when it is done, and tells the times of its parts. NULL: the family knows none. */
  bmrt_code_t (*run_timed)(bmrt_queue_t *queue, bmrt_program_t *program, const bmrt_stream_t *stream,
                           const bmrt_part_sink_t *sink, bmrt_status_t *status);
  /* Whether |wait| would return at once, be it with an error. NULL: unknown before it has returned. */
  bool (*is_done)(bmrt_queue_t *queue);
} bmrt_backend_t;

/* Makes a back end known to this process, for models that are opened from now on; |backend| stays where it is. An error
 * if it is of another version, incomplete, or if its family has one already. From any thread. */
BMRT_API bmrt_code_t bmrt_register_backend(const bmrt_backend_t *backend, bmrt_status_t *out_status);

#ifdef __cplusplus
}
#endif

#endif /* BMRT_BACKEND_H */

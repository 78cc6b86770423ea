// SPDX-License-Identifier: Apache-2.0
//===- Backend.h - What a back end of the runtime provides ----------------===//
#ifndef BMRT_CORE_BACKEND_H
#define BMRT_CORE_BACKEND_H

#include "Status.h"
#include "bmodel/bmodel_generated.h"
#include "bmodel/kernel_abi.h"

#include <cstdint>

namespace bmrt::core {

/// The code of one segment, ready to run; immutable and shared by all contexts.
class CodeImage {
public:
  /// Ends and frees the image.
  virtual void destroy() = 0;

  /// The kernel of that name, or null.
  virtual bm_kernel_fn findKernel(const char *symbol) const = 0;

protected:
  ~CodeImage() = default;
};

/// What the regions of a command stream are. Before a run only the sizes are known.
struct StreamMemory {
  const unsigned char *constants = nullptr;
  uint64_t constantBytes = 0;
  char *workspace = nullptr;
  uint64_t workspaceBytes = 0;
  char *const *io = nullptr; ///< inputs of the stage, then outputs
  const uint64_t *ioBytes = nullptr;
  uint32_t ioCount = 0, inputs = 0;
};

/// A subnet of command streams.
struct StreamProgram {
  const bmodel::ChipDef *chip = nullptr;
  const bmodel::SubnetDef *subnet = nullptr;
  const unsigned char *code = nullptr; ///< the subnet's code segment
  StreamMemory memory;
};

/// One chip at work for one context.
class StreamRunner {
public:
  /// Ends and frees it.
  virtual void destroy() = 0;

  virtual bmrt_code_t run(const unsigned char *code, const bmodel::RunStreamDef &stream, const StreamMemory &memory,
                          bmrt_status_t *status) = 0;

protected:
  ~StreamRunner() = default;
};

/// One family of chips.
struct Backend {
  bmodel::SubnetKind kind;

  /// Whether this machine can run |subnet|; if not, the status says what is missing.
  bmrt_code_t (*check)(const bmodel::SubnetDef &subnet, bmrt_status_t *status);

  /// Makes |bytes| of a code segment runnable. Nothing of it is executed here. The bytes stay
  /// mapped as long as the image lives.
  bmrt_code_t (*load)(const unsigned char *data, uint64_t bytes, CodeImage **out, bmrt_status_t *status);

  // Of chips that run command streams; null for others.

  /// Checks all streams of a subnet, once when the model is opened.
  bmrt_code_t (*verify)(const StreamProgram &program, bmrt_status_t *status) = nullptr;
  bmrt_code_t (*makeRunner)(const StreamProgram &program, StreamRunner **out, bmrt_status_t *status) = nullptr;
};

/// The back end for |kind|, or null if this library has none. Control subnets need none.
const Backend *findBackend(bmodel::SubnetKind kind);

} // namespace bmrt::core

#endif // BMRT_CORE_BACKEND_H

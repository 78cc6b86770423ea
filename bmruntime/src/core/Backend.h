// SPDX-License-Identifier: Apache-2.0
//===- Backend.h - What a back end of the runtime provides ----------------===//
#ifndef BMRT_CORE_BACKEND_H
#define BMRT_CORE_BACKEND_H

#include "Interrupt.h"
#include "Status.h"
#include "bmodel/bmodel_generated.h"
#include "bmodel/kernel_abi.h"
#include "bmodel/kernel_contract.h"

#include <cstdint>
#include <cstring>

namespace bmrt::core {

/// What the code of a kernel relies on, as the code itself says.
struct KernelContract {
  bool isKnown = false; ///< false: code of an older compiler, which says nothing
  bm_kernel_contract head = {};
  const unsigned char *args = nullptr; ///< head.arg_count times bm_kernel_arg, of any alignment, in the image

  bm_kernel_arg arg(uint32_t index) const {
    bm_kernel_arg result;
    memcpy(&result, args + index * sizeof(result), sizeof(result));
    return result;
  }
};

/// The code of one segment, ready to run; immutable and shared by all contexts.
class CodeImage {
public:
  /// Ends and frees the image.
  virtual void destroy() = 0;

  /// The kernel of that name, or null.
  virtual bm_kernel_fn findKernel(const char *symbol) const = 0;

  /// What it relies on; unknown where no kernel of this code says so. Code that says it of others only is refused.
  virtual bmrt_code_t findContract(const char *symbol, KernelContract &out, bmrt_status_t *status) const = 0;

protected:
  ~CodeImage() = default;
};

/// What a step that runs a command stream runs, and what its regions are. Before a run only the sizes are known.
struct StreamRun {
  const bmodel::StepDef *step = nullptr;
  const unsigned char *code = nullptr; ///< the subnet's code segment
  uint64_t offset = 0, bytes = 0;      ///< of the commands, in there
  const unsigned char *constants = nullptr;
  uint64_t constantBytes = 0;
  char *workspace = nullptr;
  uint64_t workspaceBytes = 0;
  char *const *io = nullptr; ///< what the stream reads, then what it writes
  const uint64_t *ioBytes = nullptr;
  uint32_t ioCount = 0, inputs = 0;
  Interrupt *interrupt = nullptr; ///< asked between commands; the run then returns BMRT_CANCELLED
};

/// What the streams of a subnet are for.
struct StreamProgram {
  const bmodel::ChipDef *chip = nullptr;
  const bmodel::SubnetDef *subnet = nullptr;
};

/// One chip at work for one context.
class StreamRunner {
public:
  /// Ends and frees it.
  virtual void destroy() = 0;

  virtual bmrt_code_t run(const StreamRun &stream, bmrt_status_t *status) = 0;

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

  /// Checks a stream of a subnet, once when the model is opened.
  bmrt_code_t (*verify)(const StreamProgram &program, const StreamRun &stream, bmrt_status_t *status) = nullptr;
  /// One for all subnets of a chip.
  bmrt_code_t (*makeRunner)(const StreamProgram &program, StreamRunner **out, bmrt_status_t *status) = nullptr;
};

/// The back end for |kind|; control subnets need none. One that is a library of its own is loaded when it is first
/// asked for, from the folder that this library lies in; the status says what is missing. From any thread.
bmrt_code_t findBackend(bmodel::SubnetKind kind, const Backend **out, bmrt_status_t *status);

/// What a back end in a library of its own exports, as `bmrt_plugin`. Both libraries must be of one release: what they
/// say to each other is this folder's headers.
struct Plugin {
  const char *release; ///< kPluginRelease
  const Backend *backend;
};
#define BMRT_RELEASE_TEXT2(x) #x
#define BMRT_RELEASE_TEXT(x) BMRT_RELEASE_TEXT2(x)
/// The number behind the release counts changes of this folder's interface in between.
inline constexpr const char *kPluginRelease =
    BMRT_RELEASE_TEXT(BMRT_VERSION_MAJOR) "." BMRT_RELEASE_TEXT(BMRT_VERSION_MINOR) "-3";

} // namespace bmrt::core

#endif // BMRT_CORE_BACKEND_H

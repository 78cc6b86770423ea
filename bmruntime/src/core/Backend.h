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

/// One family of chips.
struct Backend {
  bmodel::SubnetKind kind;

  /// Whether this machine can run |subnet|; if not, the status says what is missing.
  bmrt_code_t (*check)(const bmodel::SubnetDef &subnet, bmrt_status_t *status);

  /// Makes |bytes| of a code segment runnable. Nothing of it is executed here. The bytes stay
  /// mapped as long as the image lives.
  bmrt_code_t (*load)(const unsigned char *data, uint64_t bytes, CodeImage **out, bmrt_status_t *status);
};

/// The back end for |kind|, or null if this library has none. Control subnets need none.
const Backend *findBackend(bmodel::SubnetKind kind);

} // namespace bmrt::core

#endif // BMRT_CORE_BACKEND_H

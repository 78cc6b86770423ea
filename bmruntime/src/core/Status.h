// SPDX-License-Identifier: Apache-2.0
//===- Status.h - Error reporting of the runtime --------------------------===//
//
// Functions return a bmrt_code_t and fill a bmrt_status_t, which may be null. They use neither exceptions nor
// allocation, so that an error can be reported when memory has run out.
//
//===----------------------------------------------------------------------===//
#ifndef TESSERA_BMRUNTIME_SRC_CORE_STATUS_H
#define TESSERA_BMRUNTIME_SRC_CORE_STATUS_H

#include "bmodel/status.h"
#include "bmrt/bmrt.h"

namespace bmrt::core {

/// Fills |status| unless it is null; returns |code|.
[[gnu::format(printf, 5, 6)]] bmrt_code_t fail(bmrt_status_t *status, bmrt_code_t code, const char *file, int line,
                                               const char *format, ...);

/// Converts an error of bmodel_format; with a |name|, the reader found it in the file of that name.
bmrt_code_t fail(bmrt_status_t *status, const bmodel::Status &cause, const char *name = nullptr);

/// Reports that a run was cancelled.
inline bmrt_code_t failCancelled(bmrt_status_t *status) {
  return fail(status, BMRT_CANCELLED, __FILE_NAME__, __LINE__, "the run was cancelled");
}

/// Marks |status| as successful; returns BMRT_OK.
inline bmrt_code_t succeed(bmrt_status_t *status) {
  if (status) {
    status->code = BMRT_OK;
    status->line = 0;
    status->file = "";
    status->message[0] = 0;
  }
  return BMRT_OK;
}

} // namespace bmrt::core

#define BMRT_FAIL(status, code, ...) ::bmrt::core::fail(status, BMRT_##code, __FILE_NAME__, __LINE__, __VA_ARGS__)

#define BMRT_RETURN_IF_ERROR(expression)                                                                               \
  do {                                                                                                                 \
    if (bmrt_code_t code_ = (expression); code_ != BMRT_OK) {                                                          \
      return code_;                                                                                                    \
    }                                                                                                                  \
  } while (false)

/// Reports a NULL argument of a function of the C interface; |condition| is the conjunction of the required pointers.
#define BMRT_REQUIRE(condition)                                                                                        \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      return BMRT_FAIL(out_status, INVALID_ARGUMENT, "%s: an argument is NULL; it requires %s", __func__, #condition); \
    }                                                                                                                  \
  } while (false)

#endif // TESSERA_BMRUNTIME_SRC_CORE_STATUS_H

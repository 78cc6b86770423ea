// SPDX-License-Identifier: Apache-2.0
//===- Status.cpp - Error reporting of the runtime ------------------------===//
#include "Status.h"

#include "bmodel/utf8.h"

#include <cstdarg>
#include <cstdio>

bmrt_code_t bmrt::core::fail(bmrt_status_t *status, bmrt_code_t code, const char *file, int line, const char *format,
                             ...) {
  if (status) {
    status->code = code;
    status->file = file;
    status->line = line;
    va_list args;
    va_start(args, format);
    vsnprintf(status->message, sizeof(status->message), format, args);
    va_end(args);
    bmodel::replaceOtherThanUtf8(status->message);
  }
  return code;
}

bmrt_code_t bmrt::core::fail(bmrt_status_t *status, const bmodel::Status &cause, const char *name) {
  bmrt_code_t code = BMRT_CORRUPT;
  switch (cause.fault) {
  case bmodel::Fault::None:
    return succeed(status);
  case bmodel::Fault::Io:
    code = BMRT_IO;
    break;
  case bmodel::Fault::Corrupt:
    code = BMRT_CORRUPT;
    break;
  case bmodel::Fault::Unsupported:
    code = BMRT_UNSUPPORTED;
    break;
  case bmodel::Fault::NoMemory:
    code = BMRT_NO_MEMORY;
    break;
  }
  return name ? fail(status, code, cause.file, cause.line, "failed to load '%.200s': %s", name, cause.message)
              : fail(status, code, cause.file, cause.line, "%s", cause.message);
}

extern "C" const char *bmrt_code_name(bmrt_code_t code) {
  static const char *const names[] = {"ok",        "invalid argument",    "not found",
                                      "I/O error", "corrupt model",       "unsupported",
                                      "no memory", "failed precondition", "cancelled"};
  const unsigned index = unsigned(code);
  return index < sizeof(names) / sizeof(names[0]) ? names[index] : "unknown code";
}

extern "C" const char *bmrt_version(void) {
#define BMRT_TEXT2(x) #x
#define BMRT_TEXT(x) BMRT_TEXT2(x)
  return BMRT_TEXT(BMRT_VERSION_MAJOR) "." BMRT_TEXT(BMRT_VERSION_MINOR);
}

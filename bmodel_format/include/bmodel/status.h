// SPDX-License-Identifier: Apache-2.0
//===- status.h - What went wrong while reading or writing a model --------===//
#ifndef BMODEL_STATUS_H
#define BMODEL_STATUS_H

#include <cstdint>

namespace bmodel {

/// What the caller can do about it.
enum class Fault : uint8_t {
  None,
  Io,          ///< the file cannot be opened, read or written: see the message
  Corrupt,     ///< not a model, truncated, or altered since it was written: get a fresh copy
  Unsupported, ///< made for a newer reader or another machine
  NoMemory,
};

/// One error, held without allocating. Messages name the object, the actual and the allowed value.
struct Status {
  Fault fault = Fault::None;
  int line = 0; ///< source place that found the fault
  const char *file = "";
  char message[480] = {};
  /// Which commands of a stream it is about, counted from 0; -1: none.
  int64_t commands[2] = {-1, -1};

  bool ok() const { return fault == Fault::None; }

  /// Records a fault with a printf-style message; returns false, so that `return fail(...)` reads
  /// as it should in functions that return whether they succeeded.
  [[gnu::format(printf, 5, 6)]] bool fail(Fault fault, const char *file, int line, const char *format, ...);
};

} // namespace bmodel

/// status.fail with the place of the call, and with the command of a stream that it is about.
#define BMODEL_FAIL_AT(status, command, kind, ...)                                                                     \
  ((status).commands[0] = int64_t(command), BMODEL_FAIL(status, kind, __VA_ARGS__))

/// status.fail with the place of the call.
#define BMODEL_FAIL(status, kind, ...) (status).fail(::bmodel::Fault::kind, __FILE_NAME__, __LINE__, __VA_ARGS__)

#endif // BMODEL_STATUS_H

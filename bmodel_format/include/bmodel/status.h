// SPDX-License-Identifier: Apache-2.0
//===- status.h - Errors of reading and writing models --------------------===//
#ifndef BMODEL_STATUS_H
#define BMODEL_STATUS_H

#include <cstdint>

namespace bmodel {

/// The kind of an error, by what the caller can do about it.
enum class Fault : uint8_t {
  None,
  Io,          ///< the file cannot be opened, read or written: see the message
  Corrupt,     ///< not a model, truncated, or altered since it was written: get a fresh copy
  Unsupported, ///< made for a newer reader or another machine
  NoMemory,
};

/// One error, stored without allocating. Messages name the object, the actual and the allowed value.
struct Status {
  Fault fault = Fault::None;
  int line = 0; ///< source place that found the fault
  const char *file = "";
  char message[480] = {};
  /// Indices of the commands of a stream that the error is about; -1: none.
  int64_t commands[2] = {-1, -1};

  bool ok() const { return fault == Fault::None; }

  /// Records a fault with a printf-style message. Returns false, so that a function that reports success as bool can
  /// use `return fail(...)`.
  [[gnu::format(printf, 5, 6)]] bool fail(Fault fault, const char *file, int line, const char *format, ...);
};

} // namespace bmodel

/// Calls status.fail with the source place of the caller, and records the stream command that the error is about.
#define BMODEL_FAIL_AT(status, command, kind, ...)                                                                     \
  ((status).commands[0] = int64_t(command), BMODEL_FAIL(status, kind, __VA_ARGS__))

/// Calls status.fail with the source place of the caller.
#define BMODEL_FAIL(status, kind, ...) (status).fail(::bmodel::Fault::kind, __FILE_NAME__, __LINE__, __VA_ARGS__)

#endif // BMODEL_STATUS_H

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

  bool ok() const { return fault == Fault::None; }

  /// Records a fault with a printf-style message; returns false, so that `return fail(...)` reads
  /// as it should in functions that return whether they succeeded.
  [[gnu::format(printf, 5, 6)]] bool fail(Fault fault, const char *file, int line, const char *format, ...);
};

} // namespace bmodel

/// status.fail with the place of the call.
#define BMODEL_FAIL(status, kind, ...) (status).fail(::bmodel::Fault::kind, __FILE_NAME__, __LINE__, __VA_ARGS__)

#endif // BMODEL_STATUS_H

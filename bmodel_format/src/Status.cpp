// SPDX-License-Identifier: Apache-2.0
//===- Status.cpp - Formatting of errors ----------------------------------===//
#include "bmodel/status.h"

#include "bmodel/utf8.h"

#include <cstdarg>
#include <cstdio>

bool bmodel::Status::fail(Fault newFault, const char *newFile, int newLine, const char *format, ...) {
  fault = newFault;
  file = newFile;
  line = newLine;
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  replaceOtherThanUtf8(message);
  return false;
}

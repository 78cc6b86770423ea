//===- RegularFile.cpp - Reading regular files only -----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/RegularFile.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"

#include <sys/mman.h>
#include <unistd.h>

using namespace llvm;

static StringRef describe(sys::fs::file_type type) {
  switch (type) {
  case sys::fs::file_type::fifo_file:
    return "it is a pipe, not a regular file";
  case sys::fs::file_type::socket_file:
    return "it is a socket, not a regular file";
  case sys::fs::file_type::block_file:
  case sys::fs::file_type::character_file:
    return "it is a device, not a regular file";
  default:
    return "it is not a regular file";
  }
}

Expected<std::unique_ptr<MemoryBuffer>> tessera::top::readRegularFile(StringRef path) {
  sys::fs::file_status status;
  if (std::error_code error = sys::fs::status(path, status)) {
    return createStringError(error, error.message());
  }
  if (status.type() != sys::fs::file_type::regular_file && status.type() != sys::fs::file_type::directory_file) {
    return createStringError(inconvertibleErrorCode(), describe(status.type()));
  }
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer) {
    return createStringError(buffer.getError(), buffer.getError().message());
  }
  return std::move(*buffer);
}

bool tessera::top::isMapped(const MemoryBuffer &file) {
  return file.getBufferKind() == MemoryBuffer::MemoryBuffer_MMap;
}

void tessera::top::releasePages(ArrayRef<char> bytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  uintptr_t begin = alignTo(reinterpret_cast<uintptr_t>(bytes.begin()), page);
  uintptr_t end = alignDown(reinterpret_cast<uintptr_t>(bytes.end()), page);
  if (begin < end) {
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  }
}

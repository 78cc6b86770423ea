// SPDX-License-Identifier: Apache-2.0
//===- MappedFile.cpp - The bytes of a file, mapped read-only -------------===//
#include "MappedFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace bmrt::core;

MappedFile::~MappedFile() {
  if (owned) {
    munmap(const_cast<unsigned char *>(start), length);
  }
}

bmrt_code_t MappedFile::open(const char *path, MappedFile &out, bmrt_status_t *status) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return BMRT_FAIL(status, IO, "failed to open '%.300s': %s", path, strerror(errno));
  }
  struct stat info;
  const bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  if (!regular || info.st_size == 0) {
    close(fd);
    return BMRT_FAIL(status, CORRUPT, "failed to load '%.300s': it is %s", path,
                     regular ? "empty" : "not a regular file");
  }
  void *mapped = mmap(nullptr, size_t(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (mapped == MAP_FAILED) {
    return error == ENOMEM ? BMRT_FAIL(status, NO_MEMORY, "failed to map '%.300s': no memory", path)
                           : BMRT_FAIL(status, IO, "failed to map '%.300s': %s", path, strerror(error));
  }
  MappedFile file(mapped, uint64_t(info.st_size));
  file.owned = true;
  out = std::move(file);
  return BMRT_OK;
}

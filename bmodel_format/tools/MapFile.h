// SPDX-License-Identifier: Apache-2.0
//===- MapFile.h - Files as memory, for the tools ---------------------------===//
#ifndef TESSERA_BMODEL_FORMAT_TOOLS_MAPFILE_H
#define TESSERA_BMODEL_FORMAT_TOOLS_MAPFILE_H

#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/// Maps a file read-only. Returns null with errno set on failure, and null with bytes == 0 for an empty file.
inline const void *mapFile(const char *path, uint64_t &bytes) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    return nullptr;
  }
  struct stat info;
  void *data = nullptr;
  bytes = 0;
  if (fstat(descriptor, &info) == 0 && info.st_size > 0) {
    bytes = uint64_t(info.st_size);
    data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      data = nullptr;
    }
  }
  close(descriptor);
  return data;
}

#endif // TESSERA_BMODEL_FORMAT_TOOLS_MAPFILE_H

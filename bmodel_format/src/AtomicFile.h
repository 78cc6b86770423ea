// SPDX-License-Identifier: Apache-2.0
//===- AtomicFile.h - Atomic replacement of a file ------------------------===//
#ifndef TESSERA_BMODEL_FORMAT_SRC_ATOMICFILE_H
#define TESSERA_BMODEL_FORMAT_SRC_ATOMICFILE_H

#include <cstdint>
#include <span>
#include <string>

namespace bmodel {

/// Writes to a temporary file beside |path|; commit() flushes it and renames it to |path|. The temporary file is
/// removed if the object is destroyed without a commit, or if SIGINT, SIGTERM or SIGHUP end the process through their
/// default action (one file at a time per process).
class AtomicFile {
public:
  explicit AtomicFile(const std::string &path);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  AtomicFile &operator=(const AtomicFile &) = delete;

  bool isOpen() const { return fd >= 0; }
  bool append(std::span<const char> bytes);
  bool commit();
  uint64_t getOffset() const { return offset; }
  const std::string &getError() const { return error; }

private:
  bool fail(const char *verb);
  void discard();

  std::string path, temporary, error;
  int fd = -1;
  uint64_t offset = 0;
};

} // namespace bmodel

#endif // TESSERA_BMODEL_FORMAT_SRC_ATOMICFILE_H

// SPDX-License-Identifier: Apache-2.0
//===- AtomicFile.h - A file that appears complete or not at all ----------===//
#ifndef BMODEL_SRC_ATOMICFILE_H
#define BMODEL_SRC_ATOMICFILE_H

#include <cstdint>
#include <span>
#include <string>

namespace bmodel {

/// Bytes go to a temporary file beside |path|; commit() flushes it and renames it to |path|. If the
/// object goes without a commit, or SIGINT, SIGTERM or SIGHUP end the process with their default
/// action, the temporary is removed (signals: for one file at a time per process).
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

#endif // BMODEL_SRC_ATOMICFILE_H

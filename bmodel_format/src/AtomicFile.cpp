// SPDX-License-Identifier: Apache-2.0
//===- AtomicFile.cpp - Atomic replacement of a file ----------------------===//
#include "AtomicFile.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace bmodel;

namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// The temporary file that a signal handler removes. Only one is guarded: models are normally written one after
/// another, and a second concurrent writer merely is not cleaned up on signals.
char guardedPath[4096];
std::atomic<bool> guarded = false;
struct sigaction previousActions[3];

extern "C" void removeTemporary(int signal) {
  unlink(guardedPath);
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal);
}

/// Installs the handler for signals whose action is the default, i.e. termination; does not replace handlers of the
/// program. Returns false if another file is already guarded.
bool guard(const std::string &path) {
  bool expected = false;
  if (path.size() >= sizeof(guardedPath) || !guarded.compare_exchange_strong(expected, true)) {
    return false;
  }
  memcpy(guardedPath, path.c_str(), path.size() + 1);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    sigaction(kSignals[i], nullptr, &previousActions[i]);
    if (previousActions[i].sa_handler == SIG_DFL) {
      struct sigaction action = {};
      action.sa_handler = removeTemporary;
      sigaction(kSignals[i], &action, nullptr);
    }
  }
  return true;
}

void unguard(const std::string &path) {
  if (!guarded || path != guardedPath) {
    return;
  }
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (previousActions[i].sa_handler == SIG_DFL) {
      sigaction(kSignals[i], &previousActions[i], nullptr);
    }
  }
  guarded = false;
}

std::string folderOf(const std::string &path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

} // namespace

AtomicFile::AtomicFile(const std::string &path) : path(path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    error = "failed to write '" + path + "': it exists and is not a regular file";
    return;
  }
  temporary = path + ".tmp-" + std::to_string(getpid());
  guard(temporary);
  fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    fail("create a file in its folder");
  }
}

AtomicFile::~AtomicFile() { discard(); }

bool AtomicFile::append(std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return fail("write its contents");
    }
    offset += uint64_t(written);
    bytes = bytes.subspan(size_t(written));
  }
  return true;
}

bool AtomicFile::commit() {
  if (fsync(fd) != 0) {
    return fail("flush it to disk");
  }
  if (rename(temporary.c_str(), path.c_str()) != 0) {
    return fail("rename the temporary file to it");
  }
  close(fd);
  fd = -1;
  unguard(temporary);
  // The rename is durable only once the folder is on disk. Not every file system supports fsync of a folder.
  const int folder = open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
  return true;
}

bool AtomicFile::fail(const char *verb) {
  error = "failed to write '" + path + "': cannot " + verb + ": " + strerror(errno);
  discard();
  return false;
}

void AtomicFile::discard() {
  if (fd >= 0) {
    close(fd);
    unlink(temporary.c_str());
    fd = -1;
  }
  unguard(temporary);
}

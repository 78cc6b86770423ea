//===- Program.cpp - Common behaviour of Tessera's C++ programs ------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel_format/tools/Program.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>

namespace bmodel::program {
namespace {

constexpr size_t kReserveBytes = 1 << 20; ///< freed before the out-of-memory message is formatted
constexpr size_t kStackBytes = 512 << 10; ///< stack of the first thread that is touched in advance
constexpr unsigned long kMebibyte = 1 << 20;

void reportOnStderr(int, const char *message);

Reporter reporter = reportOnStderr;
char programName[64] = "Tessera";
char doing[256] = "";
void *reserve = nullptr;
std::atomic_flag isEnding = ATOMIC_FLAG_INIT;
thread_local bool isReporting = false; ///< this thread reports that memory ran out

/// Returns a value of /proc/self/status in KiB, or 0 if it is missing. Does not allocate.
unsigned long statusKib(const char *key) {
  FILE *file = fopen("/proc/self/status", "r");
  if (!file) {
    return 0;
  }
  char line[256];
  unsigned long value = 0;
  const size_t length = strlen(key);
  while (fgets(line, sizeof(line), file)) {
    if (strncmp(line, key, length) == 0 && line[length] == ':') {
      value = strtoul(line + length + 1, nullptr, 10);
    }
  }
  fclose(file);
  return value;
}

/// Describes the first memory limit that applies: address space, data, or physical memory.
void describeLimit(char *text, size_t bytes) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    snprintf(text, bytes, "the limit is %lu MiB (ulimit -v)", static_cast<unsigned long>(limit.rlim_cur) / kMebibyte);
  } else if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    snprintf(text, bytes, "the limit is %lu MiB of data (ulimit -d)",
             static_cast<unsigned long>(limit.rlim_cur) / kMebibyte);
  } else {
    const auto pages = static_cast<unsigned long>(sysconf(_SC_PHYS_PAGES));
    snprintf(text, bytes, "the machine has %lu MiB",
             pages / 1024 * static_cast<unsigned long>(sysconf(_SC_PAGESIZE)) / 1024);
  }
}

void describeMemory(char *text, size_t bytes) {
  char limit[96];
  describeLimit(limit, sizeof(limit));
  snprintf(text, bytes, "%lu MiB of address space, %lu MiB of them in memory; %s", statusKib("VmSize") / 1024,
           statusKib("VmRSS") / 1024, limit);
}

void reportOnStderr(int, const char *message) {
  // Do not use stdio: its lock may be held by the code that ran out of memory.
  for (const char *part : {static_cast<const char *>(programName), ": error: ", message, "\n"}) {
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, part, strlen(part));
  }
}

void onNewFailed() { endOutOfMemory(); }

/// Handles uncaught exceptions. A thread that cannot be started is treated as a lack of memory, too.
void onTerminate() {
  try {
    if (std::current_exception()) {
      throw;
    }
  } catch (const std::bad_alloc &) {
    endOutOfMemory();
  } catch (const std::system_error &error) {
    if (error.code().value() == EAGAIN || error.code().value() == ENOMEM) {
      endOutOfMemory("a thread");
    }
  } catch (...) {
  }
  abort();
}

/// Touches the stack of the first thread. It grows on demand; if it cannot, the process gets SIGSEGV, which does not
/// tell the user that memory ran out.
__attribute__((noinline)) void touchStack() {
  volatile char stack[kStackBytes];
  for (size_t at = 0; at < kStackBytes; at += 4096) {
    stack[at] = 0;
  }
}

std::string respelled(const char *argument, char spelling) {
  std::string word = argument;
  if (word.rfind("--", 0) != 0) {
    return word;
  }
  const size_t end = word.find('=');
  for (size_t at = 2; at < word.size() && at < end; ++at) {
    word[at] = word[at] == '-' || word[at] == '_' ? spelling : word[at];
  }
  return word;
}

void *checked(void *memory) {
  if (!memory && !isReporting) {
    endOutOfMemory();
  }
  return memory;
}

} // namespace

std::vector<std::string> begin(const char *name, int argc, char **argv, char spelling, Reporter report) {
  snprintf(programName, sizeof(programName), "%s", name);
  reporter = report ? report : reportOnStderr;
  if (const char *parent = getenv("TESSERA_PARENT")) {
    const int number = atoi(parent);
    unsetenv("TESSERA_PARENT"); // this process is not the parent of the processes that it starts
    endWithParent(number);
  }
  if (argc == 2 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
    printf("%s %s\n", name, TESSERA_VERSION);
    exit(fflush(stdout) == 0 ? 0 : 1);
  }
  // Ignore SIGXFSZ: a write beyond the file size limit then fails and is reported like a write to a full disk.
  signal(SIGXFSZ, SIG_IGN);
  reserve = malloc(kReserveBytes);
  touchStack();
  std::set_new_handler(onNewFailed);
  std::set_terminate(onTerminate);
  std::vector<std::string> arguments;
  bool flags = true;
  for (int i = 1; i < argc; ++i) {
    flags = flags && strcmp(argv[i], "--") != 0;
    arguments.push_back(flags ? respelled(argv[i], spelling) : argv[i]);
  }
  return arguments;
}

void endWithParent(int parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) { // the parent ended before the call of prctl
    _exit(128 + SIGKILL);
  }
}

void setDoing(const char *what) { snprintf(doing, sizeof(doing), "%s", what); }

void endOutOfMemory(const char *wanted) {
  if (isEnding.test_and_set()) {
    while (true) {
      pause(); // another thread reports the error and ends the process
    }
  }
  isReporting = true;
  std::set_new_handler(nullptr);
  char memory[256], message[768];
  describeMemory(memory, sizeof(memory));
  free(reserve);
  reserve = nullptr;
  snprintf(message, sizeof(message), "out of memory%s%s%s%s%s: the process has %s", *doing ? " in '" : "", doing,
           *doing ? "'" : "", *wanted ? ", for " : "", wanted, memory);
  reporter(kOutOfMemory, message);
  _exit(kOutOfMemory);
}

std::string describeMemory() {
  char text[256];
  describeMemory(text, sizeof(text));
  return text;
}

} // namespace bmodel::program

// MLIR does not check what malloc returns (mlir::Operation::create, for example), so lack of memory would end in
// SIGSEGV. These definitions replace those of glibc in the whole process. A sanitizer brings its own.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

[[gnu::visibility("default")]] void *malloc(size_t bytes) { return bmodel::program::checked(__libc_malloc(bytes)); }
[[gnu::visibility("default")]] void *calloc(size_t count, size_t bytes) {
  return bmodel::program::checked(__libc_calloc(count, bytes));
}
[[gnu::visibility("default")]] void *realloc(void *memory, size_t bytes) {
  void *moved = __libc_realloc(memory, bytes);
  return bytes > 0 ? bmodel::program::checked(moved) : moved; // glibc frees |memory| and returns null for 0 bytes
}
}
#endif

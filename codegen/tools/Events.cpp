//===- Events.cpp - Events that tessera-compile reports -------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Events.h"

#include "bmodel_format/tools/Program.h"

#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <unistd.h>

using namespace tessera::tool;

namespace {
using Clock = std::chrono::steady_clock;
constexpr auto kProgressEvery = std::chrono::milliseconds(100);

std::mutex mutex;             ///< guards everything below, and stdout
std::string phase;            ///< current phase
Clock::time_point reportedAt; ///< when its progress was last reported
} // namespace

static void print(llvm::json::Object event) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::outs() << llvm::json::Value(std::move(event)) << "\n";
  llvm::outs().flush();
}

// Names come from files and need not be UTF-8, but JSON must be.
void tessera::tool::reportWarning(llvm::StringRef message) {
  print(llvm::json::Object{{"event", "warning"}, {"message", llvm::json::fixUTF8(message)}});
}

void tessera::tool::reportError(int code, llvm::StringRef message) {
  print(llvm::json::Object{{"event", "error"}, {"code", code}, {"message", llvm::json::fixUTF8(message)}});
}

// Prints one line, built in place: names in |message| may contain quotes and bytes that are not UTF-8.
void tessera::tool::reportLastError(int code, const char *message) {
  static char line[1536];
  const char *hint = code == bmodel::program::kOutOfMemory
                         ? "raise the limit, make the model's inputs smaller, use fewer jobs or threads, or a machine "
                           "with more memory"
                         : "";
  int length =
      snprintf(line, sizeof(line), "\n{\"event\":\"error\",\"code\":%d,\"hint\":\"%s\",\"message\":\"", code, hint);
  for (const char *at = message; *at && length < int(sizeof(line)) - 8; ++at) {
    const bool isPlain = *at >= ' ' && *at < 127 && *at != '"' && *at != '\\';
    line[length++] = isPlain ? *at : *at == '"' ? '\'' : '?';
  }
  memcpy(line + length, "\"}\n", 3);
  [[maybe_unused]] ssize_t written = write(STDOUT_FILENO, line, size_t(length) + 3);
}

void tessera::tool::reportProgress(size_t done, size_t total, size_t part, size_t parts) {
  llvm::json::Object event{{"event", "progress"}, {"done", int64_t(done)}, {"total", int64_t(total)}};
  {
    std::lock_guard<std::mutex> lock(mutex);
    const Clock::time_point now = Clock::now();
    if (now - reportedAt < kProgressEvery) {
      return;
    }
    reportedAt = now;
    event["phase"] = phase;
  }
  if (parts > 1) {
    event["part"] = int64_t(part), event["parts"] = int64_t(parts);
  }
  print(std::move(event));
}

void tessera::tool::reportResult(llvm::json::Object fields) {
  fields["event"] = "result";
  print(std::move(fields));
}

void tessera::tool::reportPhase(llvm::StringRef name) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    phase = name.str();
    bmodel::program::setDoing(phase.c_str());
  }
  print(llvm::json::Object{{"event", "phase"}, {"name", name}});
}

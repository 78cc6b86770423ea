//===- Batch.cpp - Batches of command lines -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Batch.h"

#include "codegen/tools/Events.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/IR/Json.h"

#include "llvm/Support/raw_ostream.h"

#include <iostream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace tessera::tool;

/// Returns the strings of a JSON array, or nothing if |line| is not one.
static std::optional<std::vector<std::string>> parseArguments(const std::string &line) {
  auto json = tessera::top::parseJson(line);
  if (!json) {
    llvm::consumeError(json.takeError());
    return std::nullopt;
  }
  std::vector<std::string> arguments;
  llvm::json::Path::Root root;
  return fromJSON(*json, arguments, root) ? std::optional(arguments) : std::nullopt;
}

/// Runs one command line in a child process; returns its exit code, or 128 + the number of the signal that ended it.
static int runInChild(const char *program, const std::vector<std::string> &arguments,
                      int (*run)(int argc, const char *const *argv)) {
  std::vector<const char *> argv = {program};
  for (const std::string &argument : arguments) {
    argv.push_back(argument.c_str());
  }
  const pid_t self = getpid();
  pid_t child = fork();
  if (child == 0) {
    bmodel::program::endWithParent(self);
    int code = run(static_cast<int>(argv.size()), argv.data());
    llvm::outs().flush();
    // Skip destructors of globals: the parent runs them once.
    _exit(code);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    reportError(kInternal, "cannot start a child process");
    return kInternal;
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int tessera::tool::runBatch(const char *program, int (*run)(int argc, const char *const *argv)) {
  std::string line;
  while (std::getline(std::cin, line)) {
    auto arguments = parseArguments(line);
    if (!arguments) {
      reportError(kUsage, "a line of the batch is not a JSON array of strings");
    }
    int code = arguments ? runInChild(program, *arguments, run) : kUsage;
    llvm::outs() << llvm::json::Value(llvm::json::Object{{"event", "exit"}, {"code", code}}) << "\n";
    llvm::outs().flush();
  }
  return kOk;
}

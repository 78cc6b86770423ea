//===- tessera-compile.cpp - The compiler, by subcommand ------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel_format/tools/Program.h"
#include "codegen/tools/Batch.h"
#include "codegen/tools/CustomOps.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/Session.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/IR/Unsupported.h"

#include "CLI/CLI.hpp"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

using namespace tessera::tool;

char CodedError::ID = 0;

/// A new subcommand needs a file with an `add` function and an entry here.
static constexpr Subcommand kSubcommands[] = {
    addImport, addImportDecoder, addInfo, addReference, addDeploy, addSupportedOps, addTargets,
};

/// Returns true if a message reports that the system lacks memory, e.g. for a mapping or a thread.
static bool mentionsMemory(llvm::StringRef message) {
  return message.contains(std::strerror(ENOMEM)) || message.contains("pthread_create failed");
}

/// Handles LLVM's fatal errors: a thread that cannot be started means lack of memory; a stream to a file or stdout that
/// cannot be written (which only its destructor reports) is the user's error; anything else is a bug of Tessera.
static void onFatalError(void *, const char *reason, bool) {
  if (mentionsMemory(reason)) {
    bmodel::program::endOutOfMemory("a thread");
  }
  if (llvm::StringRef(reason).contains("IO failure on output stream")) {
    reportLastError(kError, ("failed to write: " + std::string(reason)).c_str());
    _exit(kError);
  }
  llvm::errs() << "fatal error: " << reason << "\n";
  std::abort();
}

/// Called if an allocation of LLVM's containers fails.
static void onBadAlloc(void *, const char *, bool) { bmodel::program::endOutOfMemory(); }

static int finish(llvm::Error error) {
  int code = kOk;
  llvm::handleAllErrors(
      std::move(error),
      [&](const CodedError &coded) {
        code = coded.getCode();
        reportError(code, coded.message());
      },
      [&](const tessera::top::UnsupportedError &unsupportedOp) {
        code = kUnsupported;
        reportError(code, unsupportedOp.message());
      },
      [&](const llvm::ErrorInfoBase &other) {
        code = mentionsMemory(other.message()) ? kOutOfMemory : kError;
        reportError(code, other.message());
      });
  return code;
}

static int runCommand(int argc, const char *const *argv) {
  CLI::App app("Tessera's compiler. Prints one JSON object per line on stdout; exit codes: 0 ok, 1 bad model or file, "
               "2 usage, 3 accuracy, 4 unsupported, 70 internal, 71 out of memory");
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App *, std::function<llvm::Error()>>> actions;
  for (Subcommand add : kSubcommands) {
    size_t before = app.get_subcommands(nullptr).size();
    auto run = add(app);
    actions.emplace_back(app.get_subcommands(nullptr)[before], std::move(run));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp &help) {
    return app.exit(help);
  } catch (const CLI::ParseError &error) {
    reportError(kUsage, error.what());
    return kUsage;
  }
  for (auto &[subcommand, run] : actions) {
    if (subcommand->parsed()) {
      return finish(run());
    }
  }
  return kUsage;
}

int main(int argc, char **argv) {
  const std::vector<std::string> arguments =
      bmodel::program::begin("tessera-compile", argc, argv, '-', reportLastError);
  llvm::install_bad_alloc_error_handler(onBadAlloc);
  llvm::install_fatal_error_handler(onFatalError);
  if (llvm::Error error = loadCustomOps()) {
    return finish(std::move(error));
  }
  std::vector<const char *> words = {argv[0]};
  for (const std::string &argument : arguments) {
    words.push_back(argument.c_str());
  }
  const std::string only = arguments.size() == 1 ? arguments[0] : "";
  return only == "batch"     ? runBatch(argv[0], runCommand)
         : only == "session" ? runSession(argv[0], runCommand)
                             : runCommand(int(words.size()), words.data());
}

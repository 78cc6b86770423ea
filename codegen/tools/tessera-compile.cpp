//===- tessera-compile.cpp - The compiler: importer and pipelines, by subcommand ---===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/tools/Batch.h"
#include "codegen/tools/Events.h"
#include "codegen/tools/Subcommand.h"
#include "top_dialect/IR/Unsupported.h"

#include "llvm/ADT/STLExtras.h"

#include <csignal>

using namespace tessera::tool;

char CodedError::ID = 0;

/// A new subcommand is a file with an `add` function and a line here.
static constexpr Subcommand kSubcommands[] = {
    addImport, addInfo, addReference, addDeploy, addSupportedOps,
};

static int finish(llvm::Error error) {
  int code = kOk;
  llvm::handleAllErrors(
      std::move(error),
      [&](const CodedError &coded) {
        code = coded.getCode();
        reportError(code, coded.message());
      },
      [&](const tessera::top::UnsupportedError &refusal) {
        code = kUnsupported;
        reportError(code, refusal.message());
      },
      [&](const llvm::ErrorInfoBase &other) {
        code = kError;
        reportError(code, other.message());
      });
  return code;
}

static int runCommand(int argc, const char *const *argv) {
  CLI::App app("Tessera's compiler. Reports one JSON object a line on stdout; exit codes: 0 ok, 1 bad model or file, "
               "2 usage, 3 accuracy, 4 unsupported, 70 internal");
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
  // A write beyond the file size limit then fails like one on a full disk, and is reported.
  std::signal(SIGXFSZ, SIG_IGN);
  const llvm::StringRef first = argc == 2 ? argv[1] : "";
  return first == "batch" ? runBatch(argv[0], runCommand) : runCommand(argc, argv);
}

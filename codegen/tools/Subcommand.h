//===- Subcommand.h - One subcommand of tessera-compile -------------------===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TOOLS_SUBCOMMAND_H
#define TESSERA_CODEGEN_TOOLS_SUBCOMMAND_H

#include "bmodel_format/tools/Program.h"

#include "llvm/Support/Error.h"

#include <functional>

namespace CLI {
class App;
} // namespace CLI

namespace tessera::tool {

/// Exit codes of the process (the Python tools use the same codes).
enum ExitCode : int {
  kOk = 0,
  kError = 1,       ///< the model or a file is bad
  kUsage = 2,       ///< the command line is bad
  kAccuracy = 3,    ///< a comparison is outside its tolerance
  kUnsupported = 4, ///< valid, but not supported
  kInternal = 70,   ///< a bug of Tessera
  kOutOfMemory = bmodel::program::kOutOfMemory,
};

/// An error with an exit code other than kError.
class CodedError : public llvm::ErrorInfo<CodedError> {
public:
  static char ID;
  CodedError(ExitCode code, std::string text) : code(code), text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override { return llvm::inconvertibleErrorCode(); }
  ExitCode getCode() const { return code; }

private:
  ExitCode code;
  std::string text;
};

/// Adds the subcommand with its options to `app`; returns the function that runs it after parsing.
using Subcommand = std::function<llvm::Error()> (*)(CLI::App &app);

std::function<llvm::Error()> addImport(CLI::App &app);
std::function<llvm::Error()> addImportDecoder(CLI::App &app);
std::function<llvm::Error()> addInfo(CLI::App &app);
std::function<llvm::Error()> addReference(CLI::App &app);
std::function<llvm::Error()> addDeploy(CLI::App &app);
std::function<llvm::Error()> addSupportedOps(CLI::App &app);
std::function<llvm::Error()> addTargets(CLI::App &app);

} // namespace tessera::tool

#endif // TESSERA_CODEGEN_TOOLS_SUBCOMMAND_H

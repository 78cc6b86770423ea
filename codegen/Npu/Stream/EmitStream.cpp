//===- EmitStream.cpp - Prints the commands of scheduled functions --------===//
// SPDX-License-Identifier: Apache-2.0
#include "bmodel/sha256.h"
#include "codegen/Npu/ChipPass.h"
#include "codegen/Npu/Npu.h"
#include "codegen/Npu/Stream/CommandStream.h"

#include "mlir/Support/FileUtilities.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ToolOutputFile.h"

namespace tessera::npu {
#define GEN_PASS_DEF_EMITSTREAMPASS
#include "codegen/Npu/Passes.h.inc"

using namespace mlir;

namespace {

std::string hashOf(llvm::ArrayRef<char> bytes) {
  bmodel::Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return llvm::toHex(hash.finish(), /*LowerCase=*/true);
}

struct EmitStream : ChipPass<impl::EmitStreamPassBase<EmitStream>> {
  using ChipPass::ChipPass;

  void runOnOperation() override {
    std::string error;
    std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(output, &error);
    if (!file) {
      getOperation().emitError() << error;
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      Constants constants;
      std::vector<UnsupportedOp> unsupportedOps;
      FailureOr<NpuProgram> program = emitScheduledProgram(function, chip(), constants, unsupportedOps);
      if (failed(program)) {
        report(function, unsupportedOps);
        return signalPassFailure();
      }
      file->os() << "// " << function.getName() << ": workspace " << program->sizes.workspace << ", constants "
                 << constants.bytes.size() << " " << hashOf(constants.bytes) << "\n";
      for (const bmodel::npu::Descriptor &command : program->commands) {
        file->os() << bmodel::npu::disassemble(command) << "\n";
      }
    }
    file->keep();
  }
};

} // namespace
} // namespace tessera::npu

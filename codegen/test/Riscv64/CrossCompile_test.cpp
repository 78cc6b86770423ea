//===- CrossCompile_test.cpp - Kernels for CPUs other than this machine -----===//
// SPDX-License-Identifier: Apache-2.0
//
// Compiles every operator of probes.mlir for 64-bit RISC-V and Arm and checks the shared objects. The building machine
// cannot execute them.
//===----------------------------------------------------------------------===//
#include "LoopChip.h"
#include "codegen/Pipelines/Deploy.h"
#include "codegen/Target/Registry.h"
#include "codegen/test/FamiliesContext.h"
#include "top_dialect/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Object/ELFObjectFile.h"

#include <gtest/gtest.h>
#include <set>

// Last, because the macros of <elf.h> would rename the constants of LLVM.
#include "bmruntime/src/native/ElfImage.h"

using namespace mlir;
using namespace tessera;

namespace {

/// The facts about a shared object that a loader depends on.
struct SharedObject {
  uint16_t machine = 0;
  std::set<std::string> defined, imported;
};

SharedObject inspect(ArrayRef<char> bytes) {
  auto object = llvm::cantFail(llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef(StringRef(bytes.data(), bytes.size()), "kernels")));
  auto *elf = cast<llvm::object::ELFObjectFileBase>(object.get());
  SharedObject result;
  result.machine = elf->getEMachine();
  for (const llvm::object::ELFSymbolRef symbol : elf->getDynamicSymbolIterators()) {
    bool isDefined = !(llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined);
    (isDefined ? result.defined : result.imported).insert(llvm::cantFail(symbol.getName()).str());
  }
  result.imported.erase(""); // the first symbol of every table
  return result;
}

/// Lowers |function|, the only one of |module|, in |precision| and compiles it for |chip| as a whole model.
llvm::Expected<codegen::TargetProgram> compile(ModuleOp module, const codegen::Target &chip,
                                               quant::Precision precision) {
  llvm::Expected<func::FuncOp> function = codegen::deployableFunction(module);
  if (!function) {
    return function.takeError();
  }
  std::optional<codegen::Quantization> quantization;
  PassManager passes(module.getContext());
  if (precision == quant::Precision::F32) {
    passes.addPass(top::createWidenFloatsPass());
  } else {
    quantization = codegen::madeUp(*function, precision);
  }
  if (auto report = codegen::prepareModel(*function, quantization, {}, {}); !report) {
    return report.takeError();
  }
  codegen::buildLowering(passes, chip, chip.requantisations().front(), /*instrument=*/false);
  codegen::CompileOptions options;
  options.cacheFolder = "";
  chip.buildPasses(passes, options);
  if (failed(passes.run(module))) {
    return llvm::createStringError("the passes failed");
  }
  std::vector<codegen::UnsupportedOp> unsupported = chip.survey(*function);
  auto program = chip.compile({{"main", *function, /*isWhole=*/true}}, options, {}, unsupported);
  if (!program) {
    return program.takeError();
  }
  if (!unsupported.empty()) {
    return llvm::createStringError(unsupported.front().reason);
  }
  return std::move(**program);
}

/// Checks that the runtime's loader accepts the shared object of |program| for |machine| alone and finds the kernels
/// that the steps launch and their contracts.
void checkLoader(const codegen::TargetProgram &program, const bmrt::native::ElfMachine &machine) {
  const auto *bytes = reinterpret_cast<const unsigned char *>(program.memory.front().data());
  bmrt_status_t status = {};
  bmrt::native::ElfImage image, other;
  ASSERT_EQ(image.load(machine, bytes, program.memory.front().size(), &status), BMRT_OK) << status.message;
  for (const auto &kernel : program.subnets.front().subnet.kernels) {
    const void *contract = nullptr;
    EXPECT_NE(image.findFunction(kernel->symbol.c_str()), nullptr) << kernel->symbol;
    EXPECT_EQ(image.findContract(kernel->symbol.c_str(), contract, &status), BMRT_OK) << status.message;
    EXPECT_NE(contract, nullptr) << kernel->symbol;
  }
  EXPECT_NE(other.load(bmrt::native::x86_64, bytes, program.memory.front().size(), &status), BMRT_OK);
}

/// Checks that the shared object of |program| is for |machine|, defines the kernels that the steps launch, and imports
/// only what the loader provides. Returns the number of kernels.
size_t check(const codegen::TargetProgram &program, const bmrt::native::ElfMachine &machine) {
  if (program.subnets.front().subnet.kernels.empty()) {
    return 0; // only views
  }
  SharedObject object = inspect(program.memory.front());
  EXPECT_EQ(object.machine, machine.number);
  for (const auto &kernel : program.subnets.front().subnet.kernels) {
    EXPECT_TRUE(object.defined.contains(kernel->symbol)) << kernel->symbol;
  }
  for (const std::string &name : object.imported) {
    EXPECT_TRUE(name == "memcpy" || name == "memset" || name == "memmove") << "imports " << name;
  }
  checkLoader(program, machine);
  return program.subnets.front().subnet.kernels.size();
}

void compileProbes(const codegen::Target &chip, const bmrt::native::ElfMachine &machine, quant::Precision precision) {
  auto context = codegen::createFamiliesContext();
  auto probes = parseSourceFile<ModuleOp>(SOURCE_ROOT "/codegen/Pipelines/probes.mlir", context.get());
  ASSERT_TRUE(probes);
  size_t kernels = 0;
  for (auto probe : probes->getOps<func::FuncOp>()) {
    SCOPED_TRACE(probe->getAttrOfType<StringAttr>("title").str());
    OwningOpRef<ModuleOp> module = ModuleOp::create(probe.getLoc());
    func::FuncOp copy = probe.clone();
    copy.setName("main");
    module->push_back(copy);
    llvm::Expected<codegen::TargetProgram> program = compile(*module, chip, precision);
    if (!program) {
      ADD_FAILURE() << llvm::toString(program.takeError());
      continue;
    }
    kernels += check(*program, machine);
  }
  EXPECT_GT(kernels, 100u);
}

constexpr quant::Precision kPrecisions[] = {quant::Precision::F32, quant::Precision::F16, quant::Precision::INT8};

TEST(CrossCompile, Riscv64) {
  for (quant::Precision precision : kPrecisions) {
    compileProbes(*test::createRiscv64(), bmrt::native::riscv64, precision);
  }
}

TEST(CrossCompile, Aarch64) {
  for (quant::Precision precision : kPrecisions) {
    compileProbes(*llvm::cantFail(codegen::createTarget({.name = "arm64"})), bmrt::native::aarch64, precision);
  }
}

} // namespace

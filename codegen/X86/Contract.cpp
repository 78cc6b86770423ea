//===- Contract.cpp - What a kernel's code says it relies on --------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/Contract.h"

#include "bmodel/kernel_abi.h"
#include "bmodel/kernel_contract.h"
#include "device_dialect/IR/Layout.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/IR/Constants.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;

namespace tessera::x86 {

namespace {
template <typename T>
void append(std::string &bytes, const T &value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

std::string contractOf(Operation *op, const X86Target &target, const KernelFrame &frame) {
  bm_kernel_contract head = {};
  head.version = BM_CONTRACT_VERSION;
  head.arg_count = op->getNumOperands() + op->getNumResults();
  head.tiles = frame.tiles, head.scratch_bytes = frame.scratchBytes;
  head.cpu_features = target.cpuFeatureBits();
  head.alignment = BM_ALIGNMENT;
  head.symbol_bytes = frame.symbol.size() + 1;
  std::string bytes;
  append(bytes, head);
  auto addArg = [&](Type type, uint32_t access) {
    append(bytes, bm_kernel_arg{uint64_t(device::physicalBytes(cast<RankedTensorType>(type))), access, 0});
  };
  for (Type type : op->getOperandTypes()) {
    addArg(type, BM_ARG_READ);
  }
  for (Type type : op->getResultTypes()) {
    addArg(type, BM_ARG_READ | BM_ARG_WRITE);
  }
  return bytes += frame.symbol;
}
} // namespace

void addContract(llvm::Module &module, Operation *op, const X86Target &target, const KernelFrame &frame) {
  const std::string contract = contractOf(op, target, frame);
  llvm::ELF::Elf64_Nhdr header = {};
  header.n_namesz = sizeof(BM_CONTRACT_OWNER);
  header.n_descsz = contract.size() + 1;
  header.n_type = BM_CONTRACT_NOTE;
  std::string note;
  append(note, header);
  append(note, BM_CONTRACT_OWNER);
  note += contract;
  note.resize(llvm::alignTo(note.size() + 1, 4));
  auto *bytes = llvm::ConstantDataArray::getString(module.getContext(), note, /*AddNull=*/false);
  auto *global = new llvm::GlobalVariable(module, bytes->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, bytes, "contract");
  global->setSection(BM_CONTRACT_SECTION);
  global->setAlignment(llvm::Align(4));
  llvm::appendToCompilerUsed(module, {global});
}

} // namespace tessera::x86

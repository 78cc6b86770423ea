//===- Contract.cpp - Kernel contract notes -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/Contract.h"

#include "bmodel/kernel_abi.h"
#include "bmodel/kernel_contract.h"
#include "device_dialect/IR/DeviceInterfaces.h"
#include "device_dialect/IR/DeviceOps.h"
#include "device_dialect/IR/Layout.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/IR/Constants.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;

namespace tessera::native {

namespace {
template <typename T>
void append(std::string &bytes, const T &value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof value);
}

RankedTensorType typeOfArgument(Operation *op, unsigned index) {
  unsigned operands = op->getNumOperands();
  return cast<RankedTensorType>(
      (index < operands ? op->getOperand(index) : Value(op->getResult(index - operands))).getType());
}

/// Returns true if argument |index| is a packed constant: the weights, or any operand of a packed recurrent op but its
/// input sequence.
bool isPacked(Operation *op, unsigned index) {
  bool isWeight = isa<device::RecurrentOp>(op) ? index >= 1 && index < op->getNumOperands() : index == 1;
  return isWeight && op->getAttrOfType<device::PackingInterface>("packing");
}

/// Returns true if operand |index| of a convolution or matmul holds one number per channel, e.g. a bias or an epilogue
/// operand.
bool isOfChannels(Operation *op, unsigned index) {
  constexpr unsigned kFactors = 2;
  if (!isa<device::ConvOp, device::MatMulOp>(op) || index < kFactors || index >= op->getNumOperands()) {
    return false;
  }
  RankedTensorType result = typeOfArgument(op, op->getNumOperands());
  int64_t numbers = typeOfArgument(op, index).getNumElements();
  return numbers < result.getNumElements() ||
         numbers <= result.getDimSize(isa<device::ConvOp>(op) ? 1 : result.getRank() - 1);
}

std::string contractOf(Operation *op, uint64_t cpuFeatures, const kernels::KernelFrame &frame) {
  bm_kernel_contract head = {};
  head.version = BM_CONTRACT_VERSION;
  head.arg_count = op->getNumOperands() + op->getNumResults();
  head.tiles = frame.tiles, head.scratch_bytes = frame.scratchBytes;
  head.cpu_features = cpuFeatures;
  head.alignment = BM_ALIGNMENT;
  head.symbol_bytes = frame.symbol.size() + 1;
  std::string bytes;
  append(bytes, head);
  for (unsigned i = 0; i < head.arg_count; ++i) {
    uint64_t size = device::physicalBytes(typeOfArgument(op, i));
    uint32_t access = i < op->getNumOperands() ? BM_ARG_READ : BM_ARG_READ | BM_ARG_WRITE;
    append(bytes, bm_kernel_arg{size, access, argumentAlignment(op, i)});
  }
  return bytes += frame.symbol;
}
} // namespace

uint32_t argumentAlignment(Operation *op, unsigned index) {
  RankedTensorType type = typeOfArgument(op, index);
  bool wholeLines = device::isBlocked(type) || isPacked(op, index) || isOfChannels(op, index);
  return wholeLines ? BM_ALIGNMENT : uint32_t(device::elementBytes(type.getElementType()));
}

void addContract(llvm::Module &module, Operation *op, uint64_t cpuFeatures, const kernels::KernelFrame &frame) {
  const std::string contract = contractOf(op, cpuFeatures, frame);
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

} // namespace tessera::native

//===- Contract.cpp - Kernel contract notes -------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Native/Contract.h"

#include "bmodel/contract_writer.h"
#include "bmodel/kernel_abi.h"
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

bmodel::ContractSize contractSize(const kernels::SizeTerms &terms, int64_t value) {
  bmodel::ContractSize size{uint64_t(value), {}};
  for (const bm_dim_term &term : terms) {
    size.terms.emplace_back(term.value, bmodel::DimOp(term.op));
  }
  return size;
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
  Dim channels = Shape(result)[isa<device::ConvOp>(op) ? 1 : result.getRank() - 1];
  std::optional<int64_t> numbers = knownNumElements(typeOfArgument(op, index));
  return numbers && (*numbers < minOf(countElements(result)) || *numbers <= minOf(channels));
}

std::string contractOf(Operation *op, uint64_t cpuFeatures, const kernels::KernelFrame &frame) {
  const kernels::SizeSymbols symbols = kernels::symbolsOf(op);
  bmodel::ContractWriter contract{.symbol = frame.symbol,
                                  .tiles = contractSize(frame.tileTerms, frame.tiles),
                                  .scratchBytes = uint64_t(frame.scratchBytes),
                                  .cpuFeatures = cpuFeatures,
                                  .alignment = BM_ALIGNMENT,
                                  .arguments = {},
                                  .params = {}};
  for (unsigned i = 0, e = op->getNumOperands() + op->getNumResults(); i < e; ++i) {
    Dim bytes = device::symbolicBytes(typeOfArgument(op, i));
    contract.arguments.push_back(
        {.bytes = bytes.isKnown() ? contractSize({}, bytes.value()) : contractSize(kernels::termsOf(bytes, symbols), 0),
         .access = i < op->getNumOperands() ? BM_ARG_READ : BM_ARG_READ | BM_ARG_WRITE,
         .alignment = argumentAlignment(op, i)});
  }
  for (top::SizeSymbolAttr symbol : symbols) {
    contract.params.push_back({symbol.getMin(), symbol.getMax()});
  }
  return contract.bytes();
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
  header.n_descsz = contract.size();
  header.n_type = BM_CONTRACT_NOTE;
  std::string note;
  append(note, header);
  append(note, BM_CONTRACT_OWNER);
  note += contract;
  note.resize(llvm::alignTo(note.size(), 4));
  auto *bytes = llvm::ConstantDataArray::getString(module.getContext(), note, /*AddNull=*/false);
  auto *global = new llvm::GlobalVariable(module, bytes->getType(), /*isConstant=*/true,
                                          llvm::GlobalValue::PrivateLinkage, bytes, "contract");
  global->setSection(BM_CONTRACT_SECTION);
  global->setAlignment(llvm::Align(4));
  llvm::appendToCompilerUsed(module, {global});
}

} // namespace tessera::native

//===- PtxKernels.cpp - Compiles the kernels of a program to PTX ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Stream/PtxKernels.h"

#include "codegen/Cuda/Contraction/TiledContraction.h"
#include "codegen/Cuda/IR/CudaDialect.h"
#include "codegen/Cuda/Kernels/Depthwise.h"
#include "codegen/Cuda/Kernels/Gemv.h"
#include "codegen/Cuda/Kernels/TensorAttention.h"
#include "codegen/Kernels/KernelInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsNVPTX.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;

namespace tessera::cuda {
namespace {

Value constant32(kernels::KernelBuilder &kb, int64_t number) {
  return LLVM::ConstantOp::create(kb.b, kb.b.getI32Type(), kb.b.getI32IntegerAttr(int32_t(number)));
}

/// Returns |value| of another thread of the row. The member mask names all threads of the warp, including those of its
/// other row, because for sm_80 to sm_89 ptxas emits a function call if the mask is not a constant. Threads that have
/// ended count as present.
Value exchange(kernels::KernelBuilder &kb, StringRef intrinsic, Value value, Value which) {
  Value bits = arith::BitcastOp::create(kb.b, kb.b.getI32Type(), value);
  constexpr int64_t kSegment = (32 - kernels::kRowThreads) << 8;
  Value got =
      LLVM::CallIntrinsicOp::create(kb.b, kb.b.getI32Type(), kb.b.getStringAttr(intrinsic),
                                    ValueRange{constant32(kb, -1), bits, which, constant32(kb, kSegment | 0x1f)})
          .getResult(0);
  return arith::BitcastOp::create(kb.b, value.getType(), got);
}

Value shuffle(kernels::KernelBuilder &kb, Value value, unsigned distance) {
  return exchange(kb, "llvm.nvvm.shfl.sync.down.i32", value, constant32(kb, distance));
}

Value broadcast(kernels::KernelBuilder &kb, Value value, Value thread) {
  return exchange(kb, "llvm.nvvm.shfl.sync.idx.i32", value, arith::TruncIOp::create(kb.b, kb.b.getI32Type(), thread));
}

static_assert(kBlock == kernels::kBlockRows * kernels::kRowThreads, "the rows of a block share its barrier");

void barrier(kernels::KernelBuilder &kb) {
  LLVM::CallIntrinsicOp::create(kb.b, kb.b.getStringAttr("llvm.nvvm.barrier.cta.sync.aligned.all"),
                                ValueRange{constant32(kb, 0)});
}

/// Returns the machine of kernels whose launch tiles are threads. Two registers of two f32 are the 16 bytes that a
/// thread loads at once.
kernels::VectorTarget threads() {
  return {.bytes = 8,
          .fma = true,
          .masks = false,
          .hasLrint = false,
          .tileIsThread = true,
          .shuffle = shuffle,
          .broadcast = broadcast,
          .barrier = barrier};
}

std::unique_ptr<llvm::TargetMachine> createTargetMachine(unsigned computeCapability) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict; // numerics_float.h specifies what is fused
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(triple, ("sm_" + llvm::Twine(computeCapability)).str(), "+ptx80", options,
                                  std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Default));
}

/// Returns the number of blocks per multiprocessor for which there must be enough registers. Without such a bound,
/// ptxas spills registers to let more blocks fit; with a larger one, it runs out of registers.
unsigned residentBlocks(const PtxKernel &kernel) {
  constexpr unsigned kOfThreads = 4; // leaves 128 registers per thread
  bool hoardsRegisters = kernel.frame.blockThreads || isa_and_nonnull<device::AttentionOp>(kernel.op);
  return hoardsRegisters ? 1 : kOfThreads;
}

/// Adds the entry of |kernel|, without a body.
llvm::Function *createEntry(llvm::Module &module, const PtxKernel &kernel) {
  llvm::IRBuilder<> b(module.getContext());
  SmallVector<llvm::Type *> types(kernel.pointerCount(), b.getPtrTy());
  types.append(kernel.argumentCount() - types.size(), b.getInt64Ty());
  auto *entry = llvm::Function::Create(llvm::FunctionType::get(b.getVoidTy(), types, false),
                                       llvm::GlobalValue::ExternalLinkage, kernel.frame.symbol, module);
  entry->setCallingConv(llvm::CallingConv::PTX_Kernel);
  entry->setDoesNotThrow();
  entry->addFnAttr("nvvm.maxntid", std::to_string(kernel.threads()));
  entry->addFnAttr("nvvm.minctasm", std::to_string(residentBlocks(kernel)));
  return entry;
}

/// Emits this thread's number in the launch (i64).
llvm::Value *threadNumber(llvm::IRBuilder<> &b) {
  auto special = [&](llvm::Intrinsic::ID id) {
    return b.CreateZExt(b.CreateIntrinsic(b.getInt32Ty(), id, {}), b.getInt64Ty());
  };
  return b.CreateAdd(b.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), b.getInt64(kBlock)),
                     special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
}

/// Adds the kernel that clears counters, one per thread.
void addClearing(llvm::Module &module, const PtxKernel &kernel) {
  llvm::Function *entry = createEntry(module, kernel);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(module.getContext(), "", entry));
  b.CreateStore(b.getInt32(0), b.CreateGEP(b.getInt32Ty(), entry->getArg(0), threadNumber(b)));
  b.CreateRetVoid();
}

/// Stores the dims of |entry| to an array, whose address goes to |slot|. Both vanish when the body is inlined.
void addDims(llvm::IRBuilder<> &b, const PtxKernel &kernel, llvm::Function &entry, llvm::Value *slot) {
  assert(!kernel.frame.counters && "counters and dims would share a slot");
  llvm::Value *dims = b.CreateAlloca(llvm::ArrayType::get(b.getInt64Ty(), kernel.dims));
  for (unsigned i = 0; i < kernel.dims; ++i) {
    b.CreateStore(entry.getArg(kernel.pointerCount() + i), b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), dims, i));
  }
  b.CreateStore(dims, slot);
}

/// Adds the entry of a kernel whose loops are |body| (KernelBuilder.h). The entry computes the tile of its thread or
/// block, the argument array and the scratch pointer, and calls |body|.
void addEntry(llvm::Function &body, const PtxKernel &kernel) {
  llvm::Module &module = *body.getParent();
  llvm::LLVMContext &context = module.getContext();
  body.setName(kernel.frame.symbol + ".body");
  body.setLinkage(llvm::GlobalValue::InternalLinkage);
  body.addFnAttr(llvm::Attribute::AlwaysInline);
  llvm::IRBuilder<> b(context);
  llvm::Type *pointer = b.getPtrTy();
  llvm::Function *entry = createEntry(module, kernel);
  auto *start = llvm::BasicBlock::Create(context, "", entry), *work = llvm::BasicBlock::Create(context, "", entry),
       *done = llvm::BasicBlock::Create(context, "", entry);
  b.SetInsertPoint(start);
  llvm::Intrinsic::ID block = llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x;
  llvm::Value *tile = kernel.frame.blockThreads
                          ? b.CreateZExt(b.CreateIntrinsic(b.getInt32Ty(), block, {}), b.getInt64Ty())
                          : threadNumber(b);
  const unsigned pointers = kernel.op->getNumOperands() + kernel.op->getNumResults();
  llvm::Value *arguments = b.CreateAlloca(llvm::ArrayType::get(pointer, pointers + 1));
  llvm::Value *tiles = entry->getArg(kernel.argumentCount() - 1);
  if (kernel.frame.tileTerms.empty()) {
    tiles = b.getInt64(kernel.frame.tiles);
  }
  b.CreateCondBr(b.CreateICmpSLT(tile, tiles), work, done);
  b.SetInsertPoint(work);
  for (unsigned i = 0; i < kernel.pointerCount(); ++i) {
    if (i != pointers) { // the scratch pointer is not in the array; counters take its place
      b.CreateStore(entry->getArg(i), b.CreateConstInBoundsGEP1_64(pointer, arguments, std::min(i, pointers)));
    }
  }
  if (kernel.dims) {
    addDims(b, kernel, *entry, b.CreateConstInBoundsGEP1_64(pointer, arguments, pointers));
  }
  llvm::Value *scratch =
      b.CreatePtrAdd(entry->getArg(pointers), b.CreateMul(tile, b.getInt64(kernel.frame.scratchBytes)));
  b.CreateCall(&body, {arguments, tile, b.CreateAdd(tile, b.getInt64(1)), scratch});
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopInterleaving = false;
  tuning.LoopUnrolling = false; // the emitters unroll where it pays
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O1).run(module, modules);
}

/// Returns the PTX of |module|. Prefixes the module's local symbols with the module's name, because the PTX of several
/// modules is concatenated.
llvm::Expected<std::string> textOf(llvm::Module &module, llvm::TargetMachine &machine) {
  optimize(module, machine);
  for (llvm::GlobalVariable &global : module.globals()) {
    if (global.hasLocalLinkage()) {
      global.setName(module.getName() + "_" + global.getName());
    }
  }
  SmallVector<char, 0> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, os, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    return llvm::createStringError("internal error: LLVM cannot emit PTX");
  }
  passes.run(module);
  return std::string(text.begin(), text.end());
}

void setTarget(llvm::Module &module, llvm::TargetMachine &machine) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
}

LogicalResult emit(kernels::KernelBuilder &kb) {
  PackingAttr packing = packingOf(kb.op());
  if (tileOf(kb.op())) {
    emitTiledContraction(kb);
  } else if (attentionTileOf(kb.op())) {
    emitTensorAttention(kb);
  } else if (gemvOf(kb.op())) {
    emitGemv(kb);
  } else if (packing && packing.getOrder() == PackedOrder::depthwise) {
    emitDepthwise(kb);
  } else {
    return kernels::emitLoops(kb);
  }
  return success();
}

FailureOr<kernels::Kernel> compileKernel(Operation *op, StringRef symbol, unsigned computeCapability) {
  kernels::KernelFrame frame;
  auto fail = [&](const llvm::Twine &how) {
    return op->emitError("internal error: the kernel of '") << op->getName() << "' " << how.str();
  };
  kernels::KernelBuilder kb(threads(), op, symbol);
  if (failed(emit(kb))) {
    return failure();
  }
  FailureOr<OwningOpRef<ModuleOp>> loops = kernels::takeKernel(kb, frame);
  if (failed(loops)) {
    return failure();
  }
  if (failed(kernels::lowerKernelModule(**loops))) {
    return fail("does not lower to LLVM");
  }
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = translateModuleToLLVMIR(**loops, context, symbol);
  if (!module) {
    return fail("does not translate to LLVM IR");
  }
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(computeCapability);
  setTarget(*module, *machine);
  addEntry(*module->getFunction(symbol), PtxKernel(op, frame));
  llvm::Expected<std::string> text = textOf(*module, *machine);
  if (!text) {
    return fail("has no code: " + llvm::toString(text.takeError()));
  }
  return kernels::Kernel{std::move(frame), {text->begin(), text->end()}};
}

/// Joins the PTX of single-kernel modules to one module. Lines before the entries (version, target, declarations) are
/// kept once.
llvm::Expected<std::string> join(ArrayRef<StringRef> texts) {
  std::string declarations, entries;
  llvm::StringSet<> seen;
  for (StringRef text : texts) {
    auto [head, entry] =
        std::pair(text.take_front(text.find(".visible .entry")), text.substr(text.find(".visible .entry")));
    if (head.contains('{') || entry.empty()) {
      return llvm::createStringError("internal error: the PTX of a kernel has functions before its entry");
    }
    for (StringRef line : llvm::split(head, '\n')) {
      if (!line.trim().empty() && !line.ltrim().starts_with("//") && seen.insert(line).second) {
        declarations += (line + "\n").str();
      }
    }
    entries += ("\n" + entry.rtrim() + "\n").str();
  }
  return declarations + entries;
}

} // namespace

std::string PtxKernels::machine() const { return "ptx-sm_" + std::to_string(computeCapability); }

void PtxKernels::add(Operation *op) {
  std::string decided = machine();
  llvm::raw_string_ostream os(decided);
  if (TileAttr tile = tileOf(op)) {
    os << ' ' << tile;
    clears |= tile.getSplitK() > 1;
  }
  if (AttentionTileAttr tile = attentionTileOf(op)) {
    os << ' ' << tile;
  }
  if (GemvAttr gemv = gemvOf(op)) {
    os << ' ' << gemv;
  }
  set.add(op, kernels::kernelKey(op, decided));
}

llvm::Expected<kernels::Kernel> PtxKernels::compileClearing(kernels::KernelCache &cache) {
  const PtxKernel kernel(nullptr, {.symbol = "clear_counters", .tiles = 1});
  const std::string key = "clear_counters-" + machine();
  if (std::optional<kernels::Kernel> known = cache.lookup(key)) {
    ++clearingHits;
    return std::move(*known);
  }
  llvm::LLVMContext context;
  llvm::Module module(kernel.frame.symbol, context);
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(computeCapability);
  setTarget(module, *machine);
  addClearing(module, kernel);
  llvm::Expected<std::string> text = textOf(module, *machine);
  if (!text) {
    return text.takeError();
  }
  kernels::Kernel result{kernel.frame, {text->begin(), text->end()}};
  cache.insert(key, result);
  return result;
}

llvm::Expected<std::string> PtxKernels::compile(kernels::KernelCache &cache,
                                                llvm::function_ref<void(const codegen::Progress &)> progress) {
  auto compileOne = [&](Operation *op, StringRef symbol) { return compileKernel(op, symbol, computeCapability); };
  if (failed(set.compile(cache, compileOne, progress))) {
    return llvm::createStringError("failed to compile kernels");
  }
  SmallVector<StringRef> texts;
  auto append = [&](Operation *op, const kernels::Kernel &kernel) {
    compiled.emplace_back(op, kernel.frame);
    texts.emplace_back(kernel.code.data(), kernel.code.size());
  };
  for (size_t i = 0; i < set.size(); ++i) {
    append(set.opOf(i), set[i]);
  }
  kernels::Kernel clear;
  if (clears) {
    llvm::Expected<kernels::Kernel> result = compileClearing(cache);
    if (!result) {
      return result.takeError();
    }
    clear = std::move(*result);
    append(nullptr, clear);
  }
  if (texts.empty()) {
    llvm::LLVMContext context;
    llvm::Module module("none", context);
    std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(computeCapability);
    setTarget(module, *machine);
    return textOf(module, *machine);
  }
  return join(texts);
}

} // namespace tessera::cuda

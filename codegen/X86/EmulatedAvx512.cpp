//===- EmulatedAvx512.cpp - Runs AVX-512 kernels on AVX2 machines ---------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/EmulatedAvx512.h"

#include "codegen/X86/KernelCompiler.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include <numeric>

using namespace llvm;

namespace tessera::x86 {
namespace {

/// Returns lanes |begin|, |begin| + |step|, ... of |vector|, |count| in total.
Value *lanes(IRBuilder<> &b, Value *vector, int begin, int count, int step = 1) {
  SmallVector<int> mask;
  for (int i = 0; i < count; ++i) {
    mask.push_back(begin + i * step);
  }
  return b.CreateShuffleVector(vector, mask);
}

int lanesOf(Value *vector) { return int(cast<VectorType>(vector->getType())->getElementCount().getFixedValue()); }

/// Applies |half|, which works within lanes of 128 bits like the 512-bit instruction that it replaces, to both halves
/// of |operands|.
Value *inHalves(IRBuilder<> &b, ArrayRef<Value *> operands, Intrinsic::ID half) {
  Value *results[2];
  for (int which = 0; which < 2; ++which) {
    auto halves = map_to_vector(operands, [&](Value *operand) {
      int count = lanesOf(operand) / 2;
      return lanes(b, operand, which * count, count);
    });
    results[which] = b.CreateIntrinsic(half, halves);
  }
  SmallVector<int> all(2 * lanesOf(results[0]));
  std::iota(all.begin(), all.end(), 0);
  return b.CreateShuffleVector(results[0], results[1], all);
}

/// vpdpbusd: adds the products of unsigned and signed bytes, four of each, to each i32. Multiplies even and odd bytes
/// as words, because a general multiplication of widened bytes becomes so much code that LLVM takes seconds for it.
Value *addByteProducts(IRBuilder<> &b, CallInst *call) {
  auto *words = FixedVectorType::get(b.getInt16Ty(), 2 * lanesOf(call->getArgOperand(0)));
  Value *x = b.CreateBitCast(call->getArgOperand(1), words), *w = b.CreateBitCast(call->getArgOperand(2), words);
  Value *even[] = {b.CreateAnd(x, 0xff), b.CreateAShr(b.CreateShl(w, 8), 8)};
  Value *odd[] = {b.CreateLShr(x, 8), b.CreateAShr(w, 8)};
  Value *products =
      b.CreateAdd(inHalves(b, even, Intrinsic::x86_avx2_pmadd_wd), inHalves(b, odd, Intrinsic::x86_avx2_pmadd_wd));
  return b.CreateAdd(call->getArgOperand(0), products);
}

/// vpermps: lane i of the result is the lane of the first operand that lane i of the second one names.
Value *permute(IRBuilder<> &b, CallInst *call) {
  Value *values = call->getArgOperand(0), *result = PoisonValue::get(values->getType());
  for (int i = 0; i < lanesOf(values); ++i) {
    Value *lane = b.CreateAnd(b.CreateExtractElement(call->getArgOperand(1), i), lanesOf(values) - 1);
    result = b.CreateInsertElement(result, b.CreateExtractElement(values, lane), i);
  }
  return result;
}

/// Inserts IR that computes the result of |call| and returns its value. Returns null for inline assembly and for the
/// intrinsics of rounded powers, because this file does not emulate them.
Value *replacementOf(CallInst *call) {
  if (call->isInlineAsm()) {
    return nullptr;
  }
  IRBuilder<> b(call);
  const SmallVector<Value *> operands(call->args());
  switch (call->getIntrinsicID()) {
  case Intrinsic::x86_avx512_vpdpbusd_512:
    return addByteProducts(b, call);
  case Intrinsic::x86_avx512_permvar_sf_512:
    return permute(b, call);
  case Intrinsic::x86_avx512_pmaddw_d_512:
    return inHalves(b, operands, Intrinsic::x86_avx2_pmadd_wd);
  case Intrinsic::x86_avx512_pmaddubs_w_512:
    return inHalves(b, operands, Intrinsic::x86_avx2_pmadd_ub_sw);
  case Intrinsic::x86_avx512_pshuf_b_512:
    return inHalves(b, operands, Intrinsic::x86_avx2_pshuf_b);
  case Intrinsic::x86_avx512_packssdw_512:
    return inHalves(b, operands, Intrinsic::x86_avx2_packssdw);
  case Intrinsic::x86_avx512_packsswb_512:
    return inHalves(b, operands, Intrinsic::x86_avx2_packsswb);
  case Intrinsic::x86_avx512_packuswb_512:
    return inHalves(b, operands, Intrinsic::x86_avx2_packuswb);
  case Intrinsic::x86_avx512_mask_reduce_ps_512:
  case Intrinsic::x86_avx512_mask_range_ps_512:
  case Intrinsic::x86_avx512_mask_scalef_ps_512:
    return nullptr;
  default:
    report_fatal_error("EmulatedAvx512.cpp has no replacement for " + call->getCalledFunction()->getName());
  }
}

bool isOnlyOfAvx512(const CallInst &call) {
  const Function *callee = call.getCalledFunction();
  return callee && callee->getName().starts_with("llvm.x86.avx512");
}

} // namespace

bool emulateAvx512(Module &kernel) {
  for (Function &function : kernel) {
    for (Instruction &instruction : make_early_inc_range(instructions(function))) {
      auto *call = dyn_cast<CallInst>(&instruction);
      if (!call || (!call->isInlineAsm() && !isOnlyOfAvx512(*call))) {
        continue;
      }
      Value *replacement = replacementOf(call);
      if (!replacement) {
        return false;
      }
      call->replaceAllUsesWith(replacement);
      call->eraseFromParent();
    }
  }
  return true;
}

native::Machine emulatedMachineOf(const X86Target &target) {
  const native::Machine avx2 = machineOf({Isa::Avx2});
  native::Machine machine = machineOf(target);
  machine.cpu = avx2.cpu, machine.features = avx2.features, machine.featureBits = avx2.featureBits;
  machine.key += " on " + avx2.key;
  machine.rewrite = emulateAvx512;
  return machine;
}

} // namespace tessera::x86

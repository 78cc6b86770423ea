//===- BlockBuilder.cpp - Emits operations of a block of threads ----------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/Cuda/Kernels/BlockBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace tessera::cuda {

namespace {
constexpr unsigned kGlobalSpace = 1, kSharedSpace = 3;
constexpr const char *kSharedName = "shared_memory";

Type pointerIn(OpBuilder &b, unsigned space) { return LLVM::LLVMPointerType::get(b.getContext(), space); }
} // namespace

Value BlockBuilder::constant(int64_t value) {
  return arith::ConstantOp::create(kb.b, kb.b.getI32IntegerAttr(static_cast<int32_t>(value)));
}
Value BlockBuilder::size(Dim size) { return size.isKnown() ? constant(size.value()) : fromIndex(kb.index(size)); }
Value BlockBuilder::add(Value x, Value y) { return kb.b.createOrFold<arith::AddIOp>(x, y); }
Value BlockBuilder::sub(Value x, Value y) { return kb.b.createOrFold<arith::SubIOp>(x, y); }
Value BlockBuilder::mul(Value x, Dim y) { return kb.b.createOrFold<arith::MulIOp>(x, size(y)); }
Value BlockBuilder::div(Value x, Dim y) { return y.is(1) ? x : kb.b.createOrFold<arith::DivUIOp>(x, size(y)); }
Value BlockBuilder::rem(Value x, Dim y) {
  return y.is(1) ? constant(0) : kb.b.createOrFold<arith::RemUIOp>(x, size(y));
}
Value BlockBuilder::exclusiveOr(Value x, Value y) { return kb.b.createOrFold<arith::XOrIOp>(x, y); }
Value BlockBuilder::less(Value x, Dim y) {
  return kb.b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, x, size(y));
}
Value BlockBuilder::equal(Value x, int64_t y) {
  return kb.b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, x, constant(y));
}
Value BlockBuilder::below(Value x, Dim limit) {
  return kb.b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::ult, x, size(limit));
}
Value BlockBuilder::both(Value x, Value y) { return !x ? y : !y ? x : kb.b.createOrFold<arith::AndIOp>(x, y); }
Value BlockBuilder::toIndex(Value x) { return kb.b.createOrFold<arith::ExtUIOp>(kb.b.getI64Type(), x); }
Value BlockBuilder::fromIndex(Value x) { return kb.b.createOrFold<arith::TruncIOp>(kb.b.getI32Type(), x); }

//===----------------------------------------------------------------------===//
// The block
//===----------------------------------------------------------------------===//

Value BlockBuilder::intrinsic(StringRef name, Type type, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(kb.b, type, kb.b.getStringAttr(name), operands).getResult(0);
}

void BlockBuilder::intrinsic(StringRef name, ValueRange operands) {
  LLVM::CallIntrinsicOp::create(kb.b, kb.b.getStringAttr(name), operands);
}

Value BlockBuilder::thread() {
  if (!threadNumber) {
    Value number = intrinsic("llvm.nvvm.read.ptx.sreg.tid.x", kb.b.getI32Type(), {});
    // The mask states the range of the number to LLVM; the launch guarantees it.
    threadNumber = arith::AndIOp::create(kb.b, number, constant(int64_t(llvm::PowerOf2Ceil(threads)) - 1));
  }
  return threadNumber;
}

Value BlockBuilder::tile() { return fromIndex(kb.tileBegin()); }

void BlockBuilder::barrier() { intrinsic("llvm.nvvm.barrier.cta.sync.aligned.all", constant(0)); }

Value BlockBuilder::arriveLast(Value counter, int64_t count) {
  constexpr const char *kDevice = "device";
  auto fence = [&] { LLVM::FenceOp::create(kb.b, LLVM::AtomicOrdering::acq_rel, kb.b.getStringAttr(kDevice)); };
  barrier();
  // A single thread's fence orders the stores of all threads, because the barrier puts them before it.
  Value isLast = kb.ifElse(
      less(thread(), 1),
      [&]() -> Value {
        fence();
        Value global = LLVM::AddrSpaceCastOp::create(kb.b, pointerIn(kb.b, kGlobalSpace), counter);
        Value arrived = LLVM::AtomicRMWOp::create(kb.b, LLVM::AtomicBinOp::add, global, constant(1),
                                                  LLVM::AtomicOrdering::monotonic, kDevice);
        fence();
        return arith::CmpIOp::create(kb.b, arith::CmpIPredicate::eq, arrived, constant(count - 1));
      },
      arith::ConstantOp::create(kb.b, kb.b.getBoolAttr(false)));
  return intrinsic("llvm.nvvm.barrier.cta.red.or.aligned.all", kb.b.getI1Type(), {constant(0), isLast});
}

Value BlockBuilder::sharedMemory(int64_t bytes) {
  kb.setSharedBytes(bytes);
  auto module = kb.b.getBlock()->getParentOp()->getParentOfType<ModuleOp>();
  Type array = LLVM::LLVMArrayType::get(kb.b.getI8Type(), 0);
  OpBuilder outside = OpBuilder::atBlockBegin(module.getBody());
  LLVM::GlobalOp::create(outside, kb.b.getLoc(), array, /*isConstant=*/false, LLVM::Linkage::External, kSharedName,
                         Attribute(), /*alignment=*/128, kSharedSpace);
  return LLVM::AddressOfOp::create(kb.b, pointerIn(kb.b, kSharedSpace), kSharedName);
}

Value BlockBuilder::at(Value shared, Value byte) {
  return LLVM::GEPOp::create(kb.b, shared.getType(), kb.b.getI8Type(), shared, ArrayRef<LLVM::GEPArg>{byte});
}

Value BlockBuilder::loadShared(Type type, Value address, int64_t alignment) {
  return LLVM::LoadOp::create(kb.b, type, address, alignment);
}

void BlockBuilder::storeShared(Value value, Value address, int64_t alignment) {
  LLVM::StoreOp::create(kb.b, value, address, alignment);
}

//===----------------------------------------------------------------------===//
// Copies and tensor cores
//===----------------------------------------------------------------------===//

void BlockBuilder::copyChunk(Value shared, Value global, Value valid, uint8_t fill) {
  Value from = LLVM::AddrSpaceCastOp::create(kb.b, pointerIn(kb.b, kGlobalSpace), global);
  if (!valid) {
    return intrinsic("llvm.nvvm.cp.async.cg.shared.global.16", {shared, from});
  }
  if (!fill) {
    Value bytes = arith::SelectOp::create(kb.b, valid, constant(kChunk), constant(0));
    return intrinsic("llvm.nvvm.cp.async.cg.shared.global.16.s", {shared, from, bytes});
  }
  // Predicates instead of branches keep the threads of a warp together for the tensor cores.
  Value filled = constant(static_cast<int32_t>(0x01010101u * fill));
  LLVM::InlineAsmOp::create(kb.b, kb.b.getLoc(), TypeRange(), {shared, from, filled, valid},
                            "@$3 cp.async.cg.shared.global [$0], [$1], 16;\n\t"
                            "@!$3 st.shared.v4.b32 [$0], {$2, $2, $2, $2};",
                            "l,l,r,b,~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
                            LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(), ArrayAttr());
}

void BlockBuilder::commitCopies() { intrinsic("llvm.nvvm.cp.async.commit.group", ValueRange()); }

void BlockBuilder::waitForCopies(int64_t groups) { intrinsic("llvm.nvvm.cp.async.wait.group", constant(groups)); }

static std::array<Value, 4> fieldsOf(kernels::KernelBuilder &kb, Value record) {
  std::array<Value, 4> fields;
  for (int64_t i = 0; i < 4; ++i) {
    fields[i] = LLVM::ExtractValueOp::create(kb.b, record, i);
  }
  return fields;
}

static Type fourOf(Type type) { return LLVM::LLVMStructType::getLiteral(type.getContext(), {type, type, type, type}); }

Value BlockBuilder::fromOther(Value value, int64_t distance) {
  constexpr int64_t kWholeWarp = 0x1f;
  Type word = kb.b.getI32Type();
  Value bits = arith::BitcastOp::create(kb.b, word, value);
  Value got =
      intrinsic("llvm.nvvm.shfl.sync.bfly.i32", word, {constant(-1), bits, constant(distance), constant(kWholeWarp)});
  return arith::BitcastOp::create(kb.b, value.getType(), got);
}

Value BlockBuilder::roundPair(Type element, Value low, Value high) {
  StringRef name = element.isF16() ? "llvm.nvvm.ff2f16x2.rn" : "llvm.nvvm.ff2bf16x2.rn";
  Value both = intrinsic(name, VectorType::get({2}, element), {high, low});
  return LLVM::BitcastOp::create(kb.b, kb.b.getI32Type(), both);
}

Value BlockBuilder::takeBytes(Value low, Value high, int64_t selector) {
  return intrinsic("llvm.nvvm.prmt", kb.b.getI32Type(), {low, high, constant(selector)});
}

/// A byte in the lowest bits of the float 2^23 adds its value to it.
std::array<Value, 4> BlockBuilder::bytesToFloats(Value word, int64_t bias) {
  constexpr int64_t kExponent = 0x4b000000;
  std::array<Value, 4> floats;
  for (int64_t i = 0; i < 4; ++i) {
    Value bits = takeBytes(word, constant(kExponent), 0x7650 + i);
    Value number = arith::BitcastOp::create(kb.b, kb.b.getF32Type(), bits);
    floats[i] = arith::SubFOp::create(kb.b, number, kb.floatConstant(kb.b.getF32Type(), 8388608.0 + double(bias)));
  }
  return floats;
}

Value BlockBuilder::roundToTf32(Value bits) {
  Value number = arith::BitcastOp::create(kb.b, kb.b.getF32Type(), bits);
  return intrinsic("llvm.nvvm.f2tf32.rna", kb.b.getI32Type(), number);
}

std::array<Value, 4> BlockBuilder::loadMatrices(Value address, bool transpose) {
  StringRef name =
      transpose ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16" : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16";
  return fieldsOf(kb, intrinsic(name, fourOf(kb.b.getI32Type()), address));
}

std::array<Value, 4> BlockBuilder::multiply(Type elementA, Type elementB, ArrayRef<Value> a, ArrayRef<Value> b,
                                            std::array<Value, 4> sums) {
  SmallVector<Value> operands(a.begin(), a.end());
  operands.append(b.begin(), b.end());
  if (elementA.isF16()) {
    Type pair = VectorType::get({2}, elementA);
    for (Value &operand : operands) {
      operand = LLVM::BitcastOp::create(kb.b, pair, operand);
    }
  }
  operands.append(sums.begin(), sums.end());
  auto depth = int64_t(b.size() * kChunk * 8 / elementA.getIntOrFloatBitWidth());
  std::string name = std::to_string(depth) + ".row.col.";
  if (elementA.isF16()) {
    name += "f32.f32";
  } else if (elementA.isBF16()) {
    name += "bf16";
  } else if (elementA.isF32()) {
    name += "tf32";
  } else {
    bool unsignedA = elementA.isUnsignedInteger(), unsignedB = elementB.isUnsignedInteger();
    name += unsignedA ? "u8" : "s8";
    name += unsignedA == unsignedB ? "" : unsignedB ? ".u8" : ".s8";
  }
  return fieldsOf(kb, intrinsic("llvm.nvvm.mma.m16n8k" + name, fourOf(sums[0].getType()), operands));
}

} // namespace tessera::cuda

//===- RequantiseBytes.cpp - Converts four registers of f32 to bytes ------===//
// SPDX-License-Identifier: Apache-2.0
#include "codegen/X86/RequantiseBytes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tessera::x86 {

Value emitRequantise4(KernelBuilder &kb, const Requantise &end, ArrayRef<Value> values) {
  SmallVector<Value> integers;
  for (Value value : values) {
    // Packing saturates, so the low bound is applied only if it is not the type's lowest value. The high bound is
    // always applied, because a conversion that overflows yields the smallest integer.
    integers.push_back(emitRounded(kb, end, value, end.low != end.lowest()));
  }
  int64_t bytes = kb.target.vectorBytes();
  const char *words = bytes == 64   ? "llvm.x86.avx512.packssdw.512"
                      : bytes == 32 ? "llvm.x86.avx2.packssdw"
                                    : "llvm.x86.sse2.packssdw.128";
  const char *signedBytes = bytes == 64   ? "llvm.x86.avx512.packsswb.512"
                            : bytes == 32 ? "llvm.x86.avx2.packsswb"
                                          : "llvm.x86.sse2.packsswb.128";
  const char *unsignedBytes = bytes == 64   ? "llvm.x86.avx512.packuswb.512"
                              : bytes == 32 ? "llvm.x86.avx2.packuswb"
                                            : "llvm.x86.sse2.packuswb.128";
  auto wordType = VectorType::get({bytes / 2}, kb.b.getI16Type()),
       byteType = VectorType::get({bytes}, kb.b.getI8Type());
  SmallVector<Value> halves;
  for (int64_t half = 0; half < 2; ++half) {
    Value packed = emitIntrinsic(kb, words, wordType, {integers[2 * half], integers[2 * half + 1]});
    if (end.zero) {
      packed = emitIntrinsic(kb, "llvm.sadd.sat", wordType, {packed, splatLike(kb, wordType, end.zero)});
    }
    halves.push_back(packed);
  }
  Value packed = emitIntrinsic(kb, end.lowest() == 0 ? unsignedBytes : signedBytes, byteType, halves);
  if (bytes == 16) {
    return packed;
  }
  // Packing works inside 128-bit lanes, so restore the order of the dwords, which hold four channels each.
  auto dwords = VectorType::get({bytes / 4}, kb.b.getI32Type());
  Value lanes = vector::BitCastOp::create(kb.b, dwords, packed);
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < bytes / 4; ++i) {
    order.push_back(bytes == 64 ? i % 4 * 4 + i / 4 : i / 4 * 2 + i % 4 / 2 + i % 2 * 4);
  }
  return vector::BitCastOp::create(kb.b, byteType, vector::ShuffleOp::create(kb.b, lanes, lanes, order));
}

} // namespace tessera::x86

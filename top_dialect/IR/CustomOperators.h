//===- CustomOperators.h - Operators outside Tessera ------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
//
// top.custom stands for an operator that only a library of the user can compute. Top neither loads libraries nor knows
// their interface: a program that does so passes its operators to setCustomOperators.
//===----------------------------------------------------------------------===//
#ifndef TESSERA_TOP_DIALECT_IR_CUSTOMOPERATORS_H
#define TESSERA_TOP_DIALECT_IR_CUSTOMOPERATORS_H

#include "top_dialect/IR/HostTensor.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/Error.h"

namespace tessera::top {

/// The operator and the attributes of a node.
struct CustomCall {
  llvm::StringRef domain, name;
  int64_t version;            ///< opset of the domain
  llvm::StringRef attributes; ///< JSON object
};

/// Dim |dim| of output |output| has the size that the run writes to element |index| of the last output; the output's
/// type has the largest size.
struct FoundSize {
  unsigned output, dim;
  int64_t index;
};

/// The custom operators of a process. May be called from several threads.
class CustomOperators {
public:
  virtual ~CustomOperators() = default;

  virtual bool contains(llvm::StringRef domain, llvm::StringRef name) const = 0;
  /// Returns true if the shape rule of a registered operator accepts sizes that are expressions.
  virtual bool acceptsOpenSizes(llvm::StringRef domain, llvm::StringRef name) const = 0;
  /// Returns true if a registered operator finds sizes when it runs; it then has one more output than its node.
  virtual bool findsSizes(llvm::StringRef domain, llvm::StringRef name) const = 0;
  /// Applies the shape rule of a registered operator to |inputs|, whose sizes are numbers or expressions. Adds the
  /// sizes that the run finds to |found|.
  virtual llvm::Expected<llvm::SmallVector<mlir::RankedTensorType>>
  infer(const CustomCall &call, llvm::ArrayRef<mlir::RankedTensorType> inputs, unsigned outputs,
        llvm::SmallVectorImpl<FoundSize> *found = nullptr) const = 0;
  /// Computes |outputs|. Fails if the shape rule does not give their types for |inputs|.
  virtual llvm::Error run(const CustomCall &call, llvm::ArrayRef<const HostTensor *> inputs,
                          llvm::MutableArrayRef<HostTensor> outputs) const = 0;
};

/// Returns null if this program does not load custom operators.
const CustomOperators *getCustomOperators();
/// Called once, before the first module is read.
void setCustomOperators(const CustomOperators *operators);

} // namespace tessera::top

#endif // TESSERA_TOP_DIALECT_IR_CUSTOMOPERATORS_H

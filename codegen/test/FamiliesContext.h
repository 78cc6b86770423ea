//===- FamiliesContext.h - A context for tests of whole models --*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0
#ifndef TESSERA_CODEGEN_TEST_FAMILIESCONTEXT_H
#define TESSERA_CODEGEN_TEST_FAMILIESCONTEXT_H

#include "codegen/Target/Registry.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <memory>

namespace tessera::codegen {

/// Returns a context with the dialects of all families.
inline std::unique_ptr<mlir::MLIRContext> createFamiliesContext() {
  mlir::DialectRegistry registry;
  registerFamilies(registry);
  registry.insert<mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::func::FuncDialect>();
  auto context = std::make_unique<mlir::MLIRContext>(registry, mlir::MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

} // namespace tessera::codegen

#endif // TESSERA_CODEGEN_TEST_FAMILIESCONTEXT_H

//===- Evaluator_test.cpp - Inputs, names, dims and errors of a run ---===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopDialect.h"
#include "top_dialect/IR/TopOps.h"
#include "top_dialect/Reference/Evaluator.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace tessera::top;
using mlir::RankedTensorType;

namespace {

class EvaluatorTest : public testing::Test {
protected:
  EvaluatorTest() : handler(&context, [&](mlir::Diagnostic &diagnostic) { message += diagnostic.str(); }) {
    context.loadDialect<TopDialect, mlir::func::FuncDialect>();
  }

  mlir::func::FuncOp parse(llvm::StringRef text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module) {
      throw std::runtime_error("test case does not parse: " + message); // fails the test
    }
    return *module->getOps<mlir::func::FuncOp>().begin();
  }

  HostTensor tensor(std::vector<float> values, llvm::ArrayRef<int64_t> shape) {
    HostTensor result(mlir::Float32Type::get(&context), shape);
    llvm::copy(values, result.data<float>().begin());
    return result;
  }

  mlir::MLIRContext context;
  std::string message;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

constexpr llvm::StringLiteral kAddOne = R"(
func.func @main(%x: tensor<?x2xf32> {top.name = "x"}) -> (tensor<?x2xf32> {top.name = "y"}) {
  %one = top.constant dense<1.0> : tensor<f32> : tensor<f32>
  %a = top.add %x, %one {top.outputs = ["a"]} : (tensor<?x2xf32>, tensor<f32>) -> tensor<?x2xf32>
  %y = top.mul %a, %a {top.outputs = ["y"]} : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
  return %y : tensor<?x2xf32>
})";

TEST_F(EvaluatorTest, RunsOnNamedInputsWithDynamicDims) {
  auto results = Evaluator().run(parse(kAddOne), {{"x", tensor({1, 2, 3, 4}, {2, 2})}});
  ASSERT_TRUE(succeeded(results)) << message;
  const HostTensor &y = std::as_const(results->at("y"));
  EXPECT_EQ(y.getShape(), llvm::ArrayRef<int64_t>({2, 2}));
  EXPECT_EQ(y.data<float>(), llvm::ArrayRef<float>({4, 9, 16, 25}));
}

TEST_F(EvaluatorTest, ReportsNamedTensors) {
  std::vector<std::string> names;
  Evaluator evaluator([&](llvm::StringRef name, const HostTensor &) { names.push_back(name.str()); });
  ASSERT_TRUE(succeeded(evaluator.run(parse(kAddOne), {{"x", tensor({1, 2}, {1, 2})}})));
  EXPECT_EQ(names, (std::vector<std::string>{"a", "y"}));
}

TEST_F(EvaluatorTest, RejectsMissingInput) {
  EXPECT_TRUE(failed(Evaluator().run(parse(kAddOne), {})));
  EXPECT_EQ(message, "input 'x' is missing: expected 'tensor<?x2xf32>'");
}

TEST_F(EvaluatorTest, RejectsUnknownInput) {
  EXPECT_TRUE(failed(Evaluator().run(parse(kAddOne), {{"x", tensor({1, 2}, {1, 2})}, {"z", tensor({1}, {1})}})));
  EXPECT_EQ(message, "unknown input 'z'; the inputs are: x");
}

TEST_F(EvaluatorTest, RejectsWrongShape) {
  EXPECT_TRUE(failed(Evaluator().run(parse(kAddOne), {{"x", tensor({1, 2, 3}, {1, 3})}})));
  EXPECT_EQ(message, "input 'x' has type 'tensor<1x3xf32>', expected 'tensor<?x2xf32>'");
}

TEST_F(EvaluatorTest, RejectsWrongElementType) {
  HostTensor x(mlir::IntegerType::get(&context, 64), {1, 2});
  EXPECT_TRUE(failed(Evaluator().run(parse(kAddOne), {{"x", x}})));
  EXPECT_EQ(message, "input 'x' has type 'tensor<1x2xi64>', expected 'tensor<?x2xf32>'");
}

TEST_F(EvaluatorTest, InfersDimsFromValues) {
  auto function = parse(R"(
func.func @main(%x: tensor<?x?xf32> {top.name = "x"}) -> (tensor<?xi64> {top.name = "n"}, tensor<?x?xf32> {top.name = "y"}) {
  %n = top.shape %x {start = 0 : i64, end = 2 : i64} : (tensor<?x?xf32>) -> tensor<2xi64>
  %i = top.constant dense<[1, 0]> : tensor<2xi64> : tensor<2xi64>
  %swapped = top.gather %n, %i {axis = 0 : i64} : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %y = top.reshape %x, %swapped {shape = array<i64: -1, -1>} : (tensor<?x?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
  %zero = top.constant dense<0> : tensor<i64> : tensor<i64>
  %one = top.constant dense<1> : tensor<i64> : tensor<i64>
  %two = top.constant dense<[1]> : tensor<1xi64> : tensor<1xi64>
  %rows = top.gather %n, %zero {axis = 0 : i64} : (tensor<2xi64>, tensor<i64>) -> tensor<i64>
  %r = top.range %zero, %rows, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
  return %r, %y : tensor<?xi64>, tensor<?x?xf32>
})");
  auto results = Evaluator().run(function, {{"x", tensor({1, 2, 3, 4, 5, 6}, {3, 2})}});
  ASSERT_TRUE(succeeded(results)) << message;
  EXPECT_EQ(results->at("y").getShape(), llvm::ArrayRef<int64_t>({2, 3}));
  EXPECT_EQ(std::as_const(results->at("n")).data<int64_t>(), llvm::ArrayRef<int64_t>({0, 1, 2}));
}

TEST_F(EvaluatorTest, NamesTheOpAndIndexOutOfRange) {
  auto function = parse(R"(
func.func @main(%i: tensor<1xi64> {top.name = "i"}) -> tensor<1xf32> {
  %x = top.constant dense<[1.0, 2.0]> : tensor<2xf32> : tensor<2xf32>
  %y = top.gather %x, %i {axis = 0 : i64} : (tensor<2xf32>, tensor<1xi64>) -> tensor<1xf32>
  return %y : tensor<1xf32>
})");
  HostTensor i(mlir::IntegerType::get(&context, 64), {1});
  i.data<int64_t>()[0] = 2;
  EXPECT_TRUE(failed(Evaluator().run(function, {{"i", i}})));
  EXPECT_EQ(message, "'top.gather' op index 2 is outside the dim of 2 elements (allowed: -2 to 1)");
}

TEST_F(EvaluatorTest, IntegersDividedByZeroAreZero) {
  auto function = parse(R"(
func.func @main() -> (tensor<2xi32> {top.name = "q"}, tensor<2xi32> {top.name = "r"}) {
  %a = top.constant dense<[4, 2]> : tensor<2xi32> : tensor<2xi32>
  %b = top.constant dense<[3, 0]> : tensor<2xi32> : tensor<2xi32>
  %q = top.div %a, %b : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  %r = top.mod %a, %b : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
  return %q, %r : tensor<2xi32>, tensor<2xi32>
})");
  auto results = Evaluator().run(function, {});
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ(results->at("q").data<int32_t>(), llvm::ArrayRef<int32_t>({1, 0}));
  EXPECT_EQ(results->at("r").data<int32_t>(), llvm::ArrayRef<int32_t>({1, 0}));
}

TEST_F(EvaluatorTest, RejectsResultsThatAreNotAsDeclared) {
  auto function = parse(R"(
func.func @main(%x: tensor<?xf32> {top.name = "x"}) -> tensor<3xf32> {
  %y = top.neg %x : (tensor<?xf32>) -> tensor<3xf32>
  return %y : tensor<3xf32>
})");
  EXPECT_TRUE(failed(Evaluator().run(function, {{"x", tensor({1, 2}, {2})}})));
  EXPECT_EQ(message, "'top.neg' op result 0 has actual type 'tensor<2xf32>', but is declared as 'tensor<3xf32>'");
}

constexpr llvm::StringLiteral kFlatten = R"(
func.func @main(%x: tensor<?x?xf32, #top.dims<[n[1:4], 2*h[1:2]]>> {top.name = "x"},
                %y: tensor<?x1xf32, #top.dims<[n[1:4], 1]>> {top.name = "y"})
    -> tensor<?x2xf32, #top.dims<[h[1:2]*n[1:4], 2]>> {
  %0 = top.add %x, %y : (tensor<?x?xf32, #top.dims<[n[1:4], 2*h[1:2]]>>, tensor<?x1xf32, #top.dims<[n[1:4], 1]>>)
      -> tensor<?x?xf32, #top.dims<[n[1:4], 2*h[1:2]]>>
  %1 = top.reshape %0 {shape = array<i64: -1, 2>, top.dims = #top.dims<[h[1:2]*n[1:4], 2]>}
      : (tensor<?x?xf32, #top.dims<[n[1:4], 2*h[1:2]]>>) -> tensor<?x2xf32, #top.dims<[h[1:2]*n[1:4], 2]>>
  return %1 : tensor<?x2xf32, #top.dims<[h[1:2]*n[1:4], 2]>>
})";

TEST_F(EvaluatorTest, ReadsSymbolsFromInputs) {
  auto function = parse(kFlatten);
  auto results =
      Evaluator().run(function, {{"x", tensor({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4})}, {"y", tensor({10, 20}, {2, 1})}});
  ASSERT_TRUE(succeeded(results)) << message;
  const HostTensor &result = results->begin()->second;
  EXPECT_EQ(result.getShape(), llvm::ArrayRef<int64_t>({4, 2}));
  EXPECT_EQ(result.data<float>(), llvm::ArrayRef<float>({11, 12, 13, 14, 25, 26, 27, 28}));
}

TEST_F(EvaluatorTest, RejectsSizesOutsideTheRange) {
  auto function = parse(kFlatten);
  EXPECT_TRUE(
      failed(Evaluator().run(function, {{"x", tensor({1, 2, 3, 4, 5, 6}, {1, 6})}, {"y", tensor({10}, {1, 1})}})));
  EXPECT_EQ(message, "input 'x' has size 6 in dim 1; the size is 2*h, from 2 to 4, here 6");
}

TEST_F(EvaluatorTest, RejectsSizesThatContradictEachOther) {
  auto function = parse(kFlatten);
  EXPECT_TRUE(
      failed(Evaluator().run(function, {{"x", tensor({1, 2, 3, 4}, {2, 2})}, {"y", tensor({1, 2, 3}, {3, 1})}})));
  EXPECT_EQ(message, "input 'y' has size 3 in dim 0; the size is n, from 1 to 4, here 2");
}

TEST_F(EvaluatorTest, EvaluatesSingleOp) {
  auto function = parse(kAddOne);
  mlir::Operation *mul = nullptr;
  function.walk([&](MulOp op) { mul = op; });
  HostTensor x = tensor({3, 4}, {1, 2});
  llvm::SmallVector<HostTensor> outputs;
  ASSERT_TRUE(succeeded(evaluateOp(mul, {&x, &x}, outputs)));
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(std::as_const(outputs[0]).data<float>(), llvm::ArrayRef<float>({9, 16}));
}

TEST_F(EvaluatorTest, BorrowedTensorIsCopiedWhenWritten) {
  std::vector<float> values{1, 2};
  llvm::ArrayRef<char> bytes(reinterpret_cast<const char *>(values.data()), 8);
  auto type = RankedTensorType::get({2}, mlir::Float32Type::get(&context));
  HostTensor borrowed = HostTensor::borrow(type, bytes, nullptr);
  EXPECT_EQ(std::as_const(borrowed).getBytes().data(), bytes.data());
  borrowed.data<float>()[0] = 5;
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(borrowed.data<float>()[0], 5);
}

} // namespace

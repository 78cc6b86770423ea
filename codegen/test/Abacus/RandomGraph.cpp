//===- RandomGraph.cpp - Random small networks ----------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "RandomGraph.h"

#include <algorithm>
#include <random>
#include <vector>

namespace {

using Shape = std::vector<int64_t>;

struct Value {
  std::string name;
  Shape shape;
};

std::string typeOf(const Shape &shape) {
  std::string text = "tensor<";
  for (int64_t size : shape) {
    text += std::to_string(size) + "x";
  }
  return text + "f32>";
}

int64_t elementsOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    count *= size;
  }
  return count;
}

/// Maximum number of elements of an inline constant: 1 KiB.
constexpr int64_t kMostElements = 256;

class Generator {
public:
  explicit Generator(uint32_t seed) : random(seed) {}

  std::string run() {
    std::string arguments;
    for (size_t count = 1 + pick(2), i = 0; i < count; ++i) {
      values.push_back({"%arg" + std::to_string(i), anyShape()});
      arguments += (i ? ", " : "") + values.back().name + ": " + typeOf(values.back().shape) + " {top.name = \"x" +
                   std::to_string(i) + "\"}";
    }
    for (size_t count = 1 + pick(24); count > 0; --count) {
      addOp();
    }
    return finish(arguments);
  }

private:
  size_t pick(size_t count) { return random() % count; }
  template <typename Type>
  const Type &any(const std::vector<Type> &from) {
    return from[pick(from.size())];
  }
  /// Returns a random value, recent ones more often.
  Value anyValue() { return values[std::max(pick(values.size()), pick(values.size()))]; }

  Shape anyShape() {
    Shape shape(any<size_t>({0, 1, 2, 2, 3, 3, 4, 5, 6, 7}));
    for (int64_t &size : shape) {
      size = any<int64_t>(shape.size() > 4 ? Shape{1, 2, 3} : Shape{1, 2, 3, 5, 16, 17});
    }
    return shape;
  }

  Value make(const std::string &op, const std::vector<Value> &operands, const std::string &attributes, Shape shape) {
    std::string name = "%v" + std::to_string(made++), names, types;
    for (const Value &operand : operands) {
      names += (names.empty() ? "" : ", ") + operand.name;
      types += (types.empty() ? "" : ", ") + typeOf(operand.shape);
    }
    body += "  " + name + " = top." + op + " " + names + " {" + attributes + (attributes.empty() ? "" : ", ") +
            "top.outputs = [\"" + name.substr(1) + "\"]} : (" + types + ") -> " + typeOf(shape) + " loc(\"" + op +
            name.substr(1) + "\")\n";
    values.push_back({name, std::move(shape)});
    return values.back();
  }

  /// Adds a constant with few different numbers, so that some constants are equal. |shape| has at most kMostElements
  /// elements.
  Value constant(Shape shape) {
    std::string name = "%c" + std::to_string(made++), type = typeOf(shape), list;
    const int64_t count = elementsOf(shape);
    for (int64_t i = 0; i < count; ++i) {
      list += any<std::string>({"0000403F", "000000BF", "0000803F", "9A9999BE"});
    }
    body += "  " + name + " = top.constant dense<" +
            (count == 1
                 ? std::string(shape.size(), '[') + any<std::string>({"0.75", "-0.3"}) + std::string(shape.size(), ']')
                 : "\"0x" + list + "\"") +
            "> : " + type + " : " + type + "\n";
    return {name, std::move(shape)};
  }

  void addOp() {
    switch (pick(9)) {
    case 0:
    case 1:
      return addUnary();
    case 2:
    case 3:
    case 4:
      return addBinary();
    case 5:
      return addProduct();
    case 6:
      return addTranspose();
    case 7:
      return addReshape();
    default:
      return addSoftmax();
    }
  }

  void addUnary() {
    Value x = anyValue();
    if (std::string op = any<std::string>({"relu", "neg", "abs", "sqrt", "tanh"}); op == "sqrt") {
      make(op, {make("abs", {x}, "", x.shape)}, "", x.shape);
    } else {
      make(op, {x}, "", x.shape);
    }
  }

  /// Adds a binary op with a value of the same shape, or with a constant that is broadcast.
  void addBinary() {
    Value x = anyValue();
    std::vector<Value> others;
    std::copy_if(values.begin(), values.end(), std::back_inserter(others),
                 [&](const Value &value) { return value.shape == x.shape; });
    Shape part(x.shape.begin() + int64_t(pick(x.shape.size() + 1)), x.shape.end());
    for (int64_t &size : part) {
      size = pick(3) ? size : 1;
    }
    if (elementsOf(part) > kMostElements) {
      part.clear();
    }
    bool isFirst = pick(2);
    Value other = pick(2) ? any(others) : constant(part);
    make(any<std::string>({"add", "sub", "mul", "div", "min", "max"}),
         isFirst ? std::vector{other, x} : std::vector{x, other}, "", x.shape);
  }

  /// Adds a matmul by weights or by another value, sometimes with flags and bias.
  void addProduct() {
    Value x = anyValue();
    if (x.shape.size() < 2) {
      return addUnary();
    }
    bool transA = pick(4) == 0, transB = pick(2);
    size_t rank = x.shape.size();
    int64_t rows = x.shape[rank - (transA ? 1 : 2)], depth = x.shape[rank - (transA ? 2 : 1)];
    int64_t columns = any<int64_t>({1, 3, 8, 19});
    Value b = x;
    if (rows > 64) {
      return addUnary();
    }
    if (bool isOfItself = pick(4) == 0 || depth * columns > kMostElements; isOfItself) {
      transB = !transA, columns = rows;
    } else {
      b = constant(transB ? Shape{columns, depth} : Shape{depth, columns});
    }
    Shape shape = x.shape;
    shape[rank - 2] = rows, shape[rank - 1] = columns;
    std::vector<Value> operands = {x, b};
    if (pick(3) == 0) {
      operands.push_back(constant({columns}));
    }
    std::string flags = transA ? "transA = true" : "";
    flags += transB ? std::string(transA ? ", " : "") + "transB = true" : "";
    make("matmul", operands, flags, shape);
  }

  void addTranspose() {
    Value x = anyValue();
    Shape order(x.shape.size()), shape;
    if (order.empty()) {
      return addUnary();
    }
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = int64_t(i);
    }
    std::shuffle(order.begin(), order.end(), random);
    std::string list;
    for (int64_t dim : order) {
      list += (list.empty() ? "" : ", ") + std::to_string(dim);
      shape.push_back(x.shape[size_t(dim)]);
    }
    make("transpose", {x}, "perm = array<i64: " + list + ">", shape);
  }

  void addReshape() {
    Value x = anyValue();
    const int64_t count = elementsOf(x.shape);
    Shape shape = count % 2 ? Shape{count} : pick(2) ? Shape{count / 2, 2} : Shape{2, 1, count / 2};
    std::string list;
    for (int64_t size : shape) {
      list += (list.empty() ? "" : ", ") + std::to_string(size);
    }
    make("reshape", {x}, "shape = array<i64: " + list + ">", shape);
  }

  void addSoftmax() {
    Value x = anyValue();
    if (x.shape.empty()) {
      return addUnary();
    }
    make("softmax", {x}, "axis = " + std::to_string(pick(x.shape.size())) + " : i64", x.shape);
  }

  std::string finish(const std::string &arguments) {
    std::vector<Value> results = {values.back()};
    for (size_t count = pick(8); count > 0; --count) {
      results.push_back(pick(8) ? values[pick(values.size())] : constant({3}));
    }
    std::string named, names, types;
    for (size_t i = 0; i < results.size(); ++i) {
      std::string comma = i ? ", " : "", type = typeOf(results[i].shape);
      named += comma + type + " {top.name = \"y" + std::to_string(i) + "\"}";
      names += comma + results[i].name, types += comma + type;
    }
    return "func.func @main(" + arguments + ") -> (" + named + ") attributes {device.exact} {\n" + body + "  return " +
           names + " : " + types + "\n}\n";
  }

  std::mt19937 random;
  std::vector<Value> values;
  std::string body;
  size_t made = 0;
};

} // namespace

std::string tessera::abacus::randomGraph(uint32_t seed) { return Generator(seed).run(); }

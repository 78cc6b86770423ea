//===- RandomNetwork.cpp - Random small Top functions ---------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "regression/npu/RandomNetwork.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tessera::npu {
namespace {

constexpr int64_t kMostElements = 12'000;

int64_t countOf(const Dims &dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t(1), std::multiplies<int64_t>());
}

std::string typeOf(const Dims &dims, const std::string &element = "f32") {
  std::string text = "tensor<";
  for (int64_t dim : dims) {
    text += std::to_string(dim) + "x";
  }
  return text + element + ">";
}

std::string listOf(const char *name, const Dims &numbers) {
  std::string text = std::string(name) + " = array<i64";
  for (size_t i = 0; i < numbers.size(); ++i) {
    text += (i ? ", " : ": ") + std::to_string(numbers[i]);
  }
  return text + ">";
}

} // namespace

int64_t RandomNetwork::drawDim() {
  return pickOf<int64_t>({1, 1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 16, 17, 20, 31, 32, 33, 40, 47, 63, 64, 65, 70});
}

Dims RandomNetwork::drawDims(int64_t rank) {
  Dims dims;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t dim = drawDim();
    dims.push_back(countOf(dims) * dim > kMostElements ? between(1, 3) : dim);
  }
  std::shuffle(dims.begin(), dims.end(), generator);
  return countOf(dims) > kMostElements ? Dims{between(1, 70), between(1, 70)} : dims;
}

/// Splits |count| elements into |rank| dims.
Dims RandomNetwork::factorise(int64_t count, int64_t rank) {
  Dims dims(size_t(rank), 1);
  for (int64_t left = count, factor = 2; left > 1;) {
    if (left % factor == 0) {
      dims[size_t(between(0, rank - 1))] *= factor, left /= factor;
    } else {
      ++factor;
    }
  }
  return dims;
}

std::optional<size_t> RandomNetwork::find(const std::function<bool(const Dims &)> &fits) {
  std::vector<size_t> found;
  for (size_t i = 0; i < values.size(); ++i) {
    if (fits(values[i].dims)) {
      found.push_back(i);
    }
  }
  if (found.empty()) {
    return std::nullopt;
  }
  return found[size_t(std::max(between(0, int64_t(found.size()) - 1), between(0, int64_t(found.size()) - 1)))];
}

size_t RandomNetwork::pick() {
  return *find([](const Dims &) { return true; });
}

size_t RandomNetwork::pickOfRank(int64_t rank) {
  auto found = oneIn(3) ? std::nullopt : find([&](const Dims &dims) { return int64_t(dims.size()) == rank; });
  if (found) {
    return *found;
  }
  size_t value = pick();
  return reshaped(value, factorise(countOf(values[value].dims), rank));
}

size_t RandomNetwork::pickRows() {
  size_t value = pick();
  if (kind != Kind::longRows || oneIn(4)) {
    return value;
  }
  int64_t count = countOf(values[value].dims), rows = between(1, 12);
  rows = count % rows ? 1 : rows;
  return reshaped(value, oneIn(2) ? Dims{rows, count / rows} : Dims{1, rows, count / rows});
}

size_t RandomNetwork::addInput(Dims dims) {
  values.push_back({"%x" + std::to_string(values.size()), std::move(dims), true});
  return values.size() - 1;
}

std::string RandomNetwork::constant(const Dims &dims, double low, double high) {
  std::vector<float> numbers(size_t(countOf(dims)));
  std::uniform_real_distribution<double> distribution(low, high);
  for (float &number : numbers) {
    number = float(std::round(distribution(generator) * 64) / 64);
  }
  std::string name = "%c" + std::to_string(constants++);
  body += "  " + name + " = top.weight \"" + store(dims, numbers) + "\" : " + typeOf(dims) + "\n";
  return name;
}

size_t RandomNetwork::add(const std::string &op, const std::vector<size_t> &operands, const std::string &more,
                          const std::string &attributes, Dims dims, const std::vector<Dims> &constantDims) {
  std::string name = "t" + std::to_string(values.size()), line, types;
  for (size_t operand : operands) {
    line += (line.empty() ? "" : ", ") + values[operand].name;
    types += (types.empty() ? "" : ", ") + typeOf(values[operand].dims);
    values[operand].isRead = true;
  }
  for (const Dims &each : constantDims) {
    types += ", " + typeOf(each);
  }
  names += name + typeOf(dims).substr(6) + " = " + op + "(" + line + ") " + attributes + "\n";
  body += "  %" + name + " = top." + op + " " + line + more + " {" + attributes + (attributes.empty() ? "" : ", ") +
          "top.outputs = [\"" + name + "\"]} : (" + types + ") -> " + typeOf(dims) + "\n";
  values.push_back({"%" + name, std::move(dims), false, oneIn(8)});
  return values.size() - 1;
}

size_t RandomNetwork::reshaped(size_t value, Dims dims) {
  std::string shape = listOf("shape", dims);
  return add("reshape", {value}, "", shape, std::move(dims));
}

bool RandomNetwork::reshape() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  Dims result;
  switch (between(0, 3)) {
  case 0: // squeeze
    std::copy_if(dims.begin(), dims.end(), std::back_inserter(result), [](int64_t dim) { return dim != 1; });
    result = result.empty() ? Dims{1} : result;
    break;
  case 1: // unsqueeze
    result = dims;
    result.insert(result.begin() + between(0, int64_t(dims.size())), 1);
    break;
  case 2: { // flatten
    int64_t axis = between(0, int64_t(dims.size()));
    result = {countOf({dims.begin(), dims.begin() + axis}), countOf({dims.begin() + axis, dims.end()})};
    break;
  }
  default:
    result = factorise(countOf(dims), between(1, 6));
  }
  if (result.size() > 6) {
    return false;
  }
  reshaped(value, result);
  return true;
}

size_t RandomNetwork::sliced(size_t value, const Dims &starts, const Dims &sizes, const Dims &steps) {
  return add("slice", {value}, "",
             listOf("starts", starts) + ", " + listOf("sizes", sizes) + ", " + listOf("steps", steps), sizes);
}

/// Slices one or two dims: a leading, trailing or middle part, every other element, or reversed.
bool RandomNetwork::slice() {
  size_t value = pick();
  Dims sizes = values[value].dims, starts(sizes.size(), 0), steps(sizes.size(), 1);
  for (int64_t round = between(1, 2); round-- > 0;) {
    auto axis = size_t(between(0, int64_t(sizes.size()) - 1));
    int64_t dim = values[value].dims[axis], size = between(1, dim);
    int64_t first = pickOf<int64_t>({0, dim - size, between(0, dim - size)});
    sizes[axis] = size, starts[axis] = first, steps[axis] = 1;
    if (oneIn(5)) {
      int64_t step = between(2, 3);
      sizes[axis] = (size - 1) / step + 1, steps[axis] = step;
    } else if (oneIn(10)) {
      starts[axis] = first + size - 1, steps[axis] = -1;
    }
  }
  sliced(value, starts, sizes, steps);
  return true;
}

bool RandomNetwork::split() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  auto axis = size_t(between(0, int64_t(dims.size()) - 1));
  if (dims[axis] < 2) {
    return false;
  }
  int64_t first = oneIn(2) ? dims[axis] / 2 : between(1, dims[axis] - 1);
  Dims sizes = dims, starts(dims.size(), 0), steps(dims.size(), 1);
  sizes[axis] = first;
  sliced(value, starts, sizes, steps);
  starts[axis] = first, sizes[axis] = dims[axis] - first;
  sliced(value, starts, sizes, steps);
  return true;
}

bool RandomNetwork::transpose() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  Dims perm(dims.size()), result;
  std::iota(perm.begin(), perm.end(), 0);
  if (oneIn(2) && perm.size() > 1) {
    auto at = size_t(between(0, int64_t(perm.size()) - 2));
    std::swap(perm[at], perm[at + 1]);
  } else {
    std::shuffle(perm.begin(), perm.end(), generator);
  }
  for (int64_t dim : perm) {
    result.push_back(dims[size_t(dim)]);
  }
  add("transpose", {value}, "", listOf("perm", perm), result);
  return true;
}

bool RandomNetwork::concat() {
  size_t value = pick();
  Dims result = values[value].dims;
  auto axis = size_t(between(0, int64_t(result.size()) - 1));
  std::vector<size_t> parts = {value};
  for (int64_t count = between(1, 2); count-- > 0;) {
    auto other = find([&](const Dims &dims) {
      return dims.size() == result.size() && std::equal(dims.begin(), dims.begin() + int64_t(axis), result.begin()) &&
             std::equal(dims.begin() + int64_t(axis) + 1, dims.end(), result.begin() + int64_t(axis) + 1);
    });
    if (other && (*other != value || oneIn(3))) {
      parts.push_back(*other), result[axis] += values[*other].dims[axis];
    }
  }
  if (parts.size() == 1) {
    parts.push_back(addInput(values[value].dims)), result[axis] *= 2;
  }
  if (countOf(result) > 2 * kMostElements) {
    return false;
  }
  std::shuffle(parts.begin(), parts.end(), generator);
  add("concat", parts, "", "axis = " + std::to_string(axis) + " : i64", result);
  return true;
}

bool RandomNetwork::expand() {
  size_t value = pick();
  Dims result = values[value].dims;
  for (int64_t &dim : result) {
    dim = dim == 1 && oneIn(2) ? drawDim() : dim;
  }
  if (result.size() < 6 && oneIn(2)) {
    result.insert(result.begin(), between(1, 3));
  }
  if (countOf(result) > kMostElements || result == values[value].dims) {
    return false;
  }
  add("expand", {value}, "", listOf("shape", result), result);
  return true;
}

bool RandomNetwork::pad() {
  size_t value = pick();
  Dims result = values[value].dims, pads(2 * result.size(), 0);
  for (int64_t round = between(1, 2); round-- > 0;) {
    auto axis = size_t(between(0, int64_t(result.size()) - 1));
    pads[axis] = between(0, 2), pads[result.size() + axis] = between(0, 2);
  }
  for (size_t axis = 0; axis < result.size(); ++axis) {
    result[axis] += pads[axis] + pads[result.size() + axis];
  }
  if (countOf(result) > 2 * kMostElements) {
    return false;
  }
  add("pad", {value}, "", listOf("pads", pads) + ", mode = 0 : i32", result);
  return true;
}

bool RandomNetwork::conv() {
  size_t value = pickOfRank(4);
  const Dims x = values[value].dims;
  int64_t group = pickOf<int64_t>({1, 1, 1, x[1], x[1] % 2 ? 1 : 2}), kernel = pickOf<int64_t>({1, 1, 3, 2, 5});
  int64_t outputs = group * between(1, std::max<int64_t>(1, 70 / group)), stride = pickOf<int64_t>({1, 1, 2});
  int64_t pad = between(0, kernel / 2);
  Dims y = {x[0], outputs, (x[2] + 2 * pad - kernel) / stride + 1, (x[3] + 2 * pad - kernel) / stride + 1};
  if (x[2] + 2 * pad < kernel || x[3] + 2 * pad < kernel || countOf(y) > 2 * kMostElements || outputs > 300) {
    return false;
  }
  Dims w = {outputs, x[1] / group, kernel, kernel};
  std::string more = ", " + constant(w, -1, 1);
  add("conv", {value}, more,
      listOf("strides", {stride, stride}) + ", " + listOf("pads", {pad, pad, pad, pad}) + ", " +
          listOf("dilations", {1, 1}) + ", groups = " + std::to_string(group) + " : i64",
      y, {w});
  return true;
}

bool RandomNetwork::conv1d() {
  size_t value = pickOfRank(3);
  const Dims x = values[value].dims;
  int64_t outputs = between(1, 70), kernel = pickOf<int64_t>({1, 3});
  Dims y = {x[0], outputs, x[2]}, w = {outputs, x[1], kernel};
  if (countOf(y) > 2 * kMostElements) {
    return false;
  }
  std::string more = ", " + constant(w, -1, 1);
  add("conv", {value}, more,
      listOf("strides", {1}) + ", " + listOf("pads", {kernel / 2, kernel / 2}) + ", " + listOf("dilations", {1}), y,
      {w});
  return true;
}

/// A matmul with constant weights.
bool RandomNetwork::matmul() {
  size_t value = pickOfRank(between(2, 5));
  Dims y = values[value].dims;
  int64_t inner = y.back(), outputs = drawDim();
  y.back() = outputs;
  if (countOf(y) > 2 * kMostElements) {
    return false;
  }
  Dims w = {inner, outputs};
  std::string more = ", " + constant(w, -1, 1);
  bool hasBias = oneIn(2);
  if (hasBias) {
    more += ", " + constant({outputs}, -2, 2);
    add("matmul", {value}, more, "", y, {w, {outputs}});
  } else {
    add("matmul", {value}, more, "", y, {w});
  }
  return true;
}

/// A batched matmul of two values.
bool RandomNetwork::products() {
  size_t a = pickOfRank(between(2, 4));
  const Dims dims = values[a].dims;
  bool transposed = oneIn(3);
  int64_t outputs = drawDim(), inner = dims.back();
  Dims b(dims.begin(), dims.end() - 2), y = b;
  for (int64_t &dim : b) {
    dim = oneIn(5) ? 1 : dim;
  }
  b.push_back(transposed ? outputs : inner), b.push_back(transposed ? inner : outputs);
  y.push_back(dims[dims.size() - 2]), y.push_back(outputs);
  auto other = find([&](const Dims &each) { return each == b; });
  if (countOf(y) > 2 * kMostElements || countOf(b) > 2 * kMostElements) {
    return false;
  }
  auto source = find([&](const Dims &each) { return countOf(each) == countOf(b); });
  size_t right = other ? *other : source ? reshaped(*source, b) : addInput(b);
  add("matmul", {a, right}, "", transposed ? "transB = true" : "", y);
  return true;
}

/// Batched matrix-vector products, whose results are squeezed and sliced.
bool RandomNetwork::gemv() {
  size_t a = pickOfRank(3);
  const Dims dims = values[a].dims;
  Dims b = {dims[0], dims[2], 1};
  auto source = find([&](const Dims &each) { return countOf(each) == countOf(b); });
  size_t right = source ? reshaped(*source, b) : addInput(b);
  size_t y = add("matmul", {a, right}, "", "", {dims[0], dims[1], 1});
  size_t flat = reshaped(y, {dims[0], dims[1]});
  int64_t first = between(0, dims[1] - 1);
  if (oneIn(2)) {
    sliced(flat, {0, first}, {dims[0], between(1, dims[1] - first)}, {1, 1});
  }
  return true;
}

bool RandomNetwork::pool() {
  size_t value = pickOfRank(4);
  const Dims x = values[value].dims;
  int64_t kernel = between(1, 3), stride = between(1, 2), pad = between(0, kernel / 2);
  Dims y = {x[0], x[1], (x[2] + 2 * pad - kernel) / stride + 1, (x[3] + 2 * pad - kernel) / stride + 1};
  if (x[2] + 2 * pad < kernel || x[3] + 2 * pad < kernel) {
    return false;
  }
  add(oneIn(2) ? "max_pool" : "avg_pool", {value}, "",
      listOf("kernel", {kernel, kernel}) + ", " + listOf("strides", {stride, stride}) + ", " +
          listOf("pads", {pad, pad, pad, pad}) + ", " + listOf("dilations", {1, 1}),
      y);
  return true;
}

bool RandomNetwork::reduce() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  auto first = size_t(between(0, int64_t(dims.size()) - 1)),
       last = size_t(between(int64_t(first), int64_t(dims.size()) - 1));
  bool keeps = oneIn(2) || last - first + 1 == dims.size();
  Dims axes, y;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (axis < first || axis > last) {
      y.push_back(dims[axis]);
    } else {
      axes.push_back(int64_t(axis));
      if (keeps) {
        y.push_back(1);
      }
    }
  }
  add("reduce", {value}, "",
      "kind = " + std::to_string(pickOf<int64_t>({0, 1, 1, 2, 3})) + " : i32, " + listOf("axes", axes) +
          (keeps ? "" : ", keepDims = false"),
      y);
  return true;
}

bool RandomNetwork::softmax() {
  size_t value = pickRows();
  const Dims dims = values[value].dims;
  int64_t axis = kind == Kind::longRows || oneIn(2) ? int64_t(dims.size()) - 1 : between(0, int64_t(dims.size()) - 1);
  add("softmax", {value}, "", "axis = " + std::to_string(axis) + " : i64", dims);
  return true;
}

bool RandomNetwork::norm() {
  size_t value = pickRows();
  const Dims dims = values[value].dims;
  int64_t axis = oneIn(3) ? between(0, int64_t(dims.size()) - 1) : int64_t(dims.size()) - 1;
  Dims row(dims.begin() + axis, dims.end());
  std::string attributes = "axis = " + std::to_string(axis) + " : i64, epsilon = 1.0e-3 : f64";
  if (oneIn(2)) {
    std::string more = " scale " + constant(row, 0.5, 1.5);
    more += " bias " + constant(row, -1, 1);
    add("layer_norm", {value}, more, attributes, dims, {row, row});
  } else {
    add("layer_norm", {value}, "", attributes, dims);
  }
  return true;
}

bool RandomNetwork::unary() {
  size_t value = pick();
  add(pickOf<std::string>({"relu", "relu", "sigmoid", "tanh", "abs", "neg", "silu", "gelu"}), {value}, "", "",
      values[value].dims);
  return true;
}

bool RandomNetwork::binary() {
  size_t a = pick();
  const Dims dims = values[a].dims;
  auto b = find([&](const Dims &each) { return each == dims && oneIn(2); });
  if (!b) { // with as many elements, or one that broadcasts
    b = find([&](const Dims &each) { return countOf(each) == countOf(dims) && each != dims; });
    b = b ? std::optional(reshaped(*b, dims)) : find([&](const Dims &each) {
      return each.size() == dims.size() &&
             std::equal(each.begin(), each.end(), dims.begin(), [](int64_t x, int64_t y) { return x == y || x == 1; });
    });
  }
  std::vector<size_t> operands = {a, *b};
  if (oneIn(2)) {
    std::swap(operands[0], operands[1]);
  }
  add(pickOf<std::string>({"add", "add", "sub", "mul", "max", "min"}), operands, "", "", dims);
  return true;
}

/// Multiplies by a constant that broadcasts.
bool RandomNetwork::scale() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  Dims other = dims;
  for (int64_t &dim : other) {
    dim = oneIn(2) ? dim : 1;
  }
  std::string more = ", " + constant(other, 0.25, 1.75);
  add(oneIn(2) ? "mul" : "add", {value}, more, "", dims, {other});
  return true;
}

bool RandomNetwork::runningSum() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  std::string attributes = "axis = " + std::to_string(between(0, int64_t(dims.size()) - 1)) + " : i64";
  attributes += std::string(oneIn(3) ? ", exclusive = true" : "") + (oneIn(3) ? ", reverse = true" : "");
  add("cumsum", {value}, "", attributes, dims);
  return true;
}

/// Selects a value where an i64 argument, which broadcasts to it, compares with a number in some way; elsewhere another
/// number.
bool RandomNetwork::mask() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  Dims seen(dims.begin() + between(0, int64_t(dims.size()) - 1), dims.end());
  for (int64_t &dim : seen) {
    dim = oneIn(3) ? 1 : dim;
  }
  std::string number = std::to_string(masks.size()), given = "%m" + number, type = typeOf(seen, "i64"),
              truth = typeOf(seen, "i1");
  masks.push_back(seen);
  body +=
      "  %n" + number + " = top.constant dense<" + std::to_string(between(-20, 20)) + "> : tensor<i64> : tensor<i64>\n";
  body += "  %z" + number + " = top.constant dense<-2.0> : tensor<f32> : tensor<f32>\n";
  body += "  %b" + number + " = top.compare " + given + ", %n" + number + " {kind = " + std::to_string(between(0, 5)) +
          " : i32} : (" + type + ", tensor<i64>) -> " + truth + "\n";
  std::string result = "t" + std::to_string(values.size());
  names += result + typeOf(dims).substr(6) + " = mask(" + values[value].name + ")\n";
  body += "  %" + result + " = top.where %b" + number + ", " + values[value].name + ", %z" + number +
          " {top.outputs = [\"" + result + "\"]} : (" + truth + ", " + typeOf(dims) + ", tensor<f32>) -> " +
          typeOf(dims) + "\n";
  values[value].isRead = true;
  values.push_back({"%" + result, dims, false, oneIn(8)});
  return true;
}

/// Overwrites some slices of a value with constants.
bool RandomNetwork::writeRows() {
  size_t value = pick();
  const Dims dims = values[value].dims;
  int64_t step = between(1, 3), count = between(1, std::min<int64_t>((dims[0] - 1) / step + 1, 100));
  int64_t first = between(0, dims[0] - 1 - (count - 1) * step);
  std::string indices;
  for (int64_t i = 0; i < count; ++i) {
    indices += (i ? ", [" : "[") + std::to_string(first + i * step) + "]";
  }
  Dims written = dims, tuples{count, 1};
  written[0] = count;
  std::string type = typeOf(tuples, "i64"), name = "%c" + std::to_string(constants++);
  body += "  " + name + " = top.constant dense<[" + indices + "]> : " + type + " : " + type + "\n";
  std::string updates = constant(written, -1, 1), result = "t" + std::to_string(values.size());
  names += result + typeOf(dims).substr(6) + " = write(" + values[value].name + ")\n";
  body += "  %" + result + " = top.scatter_nd " + values[value].name + ", " + name + ", " + updates +
          " {top.outputs = [\"" + result + "\"]} : (" + typeOf(dims) + ", " + type + ", " + typeOf(written) + ") -> " +
          typeOf(dims) + "\n";
  values[value].isRead = true;
  values.push_back({"%" + result, dims, false, oneIn(8)});
  return true;
}

bool RandomNetwork::gather() {
  size_t value = pick();
  Dims dims = values[value].dims;
  auto axis = size_t(between(0, int64_t(dims.size()) - 1));
  std::string indices, name = "%c" + std::to_string(constants++);
  int64_t count = between(1, 7);
  for (int64_t i = 0; i < count; ++i) {
    indices += (i ? ", " : "") + std::to_string(between(0, dims[axis] - 1));
  }
  std::string type = typeOf({count}, "i64");
  body += "  " + name + " = top.constant dense<[" + indices + "]> : " + type + " : " + type + "\n";
  dims[axis] = count;
  std::string result = "t" + std::to_string(values.size()), from = typeOf(values[value].dims);
  if (countOf(dims) > 2 * kMostElements) {
    return false;
  }
  names +=
      result + typeOf(dims).substr(6) + " = gather(" + values[value].name + ") axis " + std::to_string(axis) + "\n";
  body += "  %" + result + " = top.gather " + values[value].name + ", " + name + " {axis = " + std::to_string(axis) +
          " : i64, top.outputs = [\"" + result + "\"]} : (" + from + ", " + type + ") -> " + typeOf(dims) + "\n";
  values[value].isRead = true;
  values.push_back({"%" + result, dims, false, oneIn(8)});
  return true;
}

bool RandomNetwork::resize() {
  size_t value = pickOfRank(4);
  Dims dims = values[value].dims;
  int64_t rows = between(1, 3), columns = between(1, 3);
  dims[2] *= rows, dims[3] *= columns;
  if (countOf(dims) > 2 * kMostElements) {
    return false;
  }
  add("resize", {value}, "",
      listOf("sizes", dims) + ", scales = array<f64: 1.0, 1.0, " + std::to_string(rows) + ".0, " +
          std::to_string(columns) + ".0>, mode = " + std::to_string(between(0, 1)) +
          " : i32, coord = " + (oneIn(2) ? "0" : "3") + " : i32",
      dims);
  return true;
}

/// Attention on slices of one matmul's result.
bool RandomNetwork::attention() {
  int64_t heads = between(1, 4), width = pickOf<int64_t>({4, 8, 16, 12}), rows = drawDim(), batch = between(1, 2);
  if (batch * rows * heads * width * 3 > kMostElements) {
    return false;
  }
  Dims in = {batch, rows, 3 * heads * width};
  auto source = find([&](const Dims &each) { return countOf(each) == countOf(in); });
  size_t all = source ? reshaped(*source, in) : addInput(in);
  std::vector<size_t> parts;
  for (int64_t i = 0; i < 3; ++i) {
    size_t part = sliced(all, {0, 0, i * heads * width}, {batch, rows, heads * width}, {1, 1, 1});
    part = reshaped(part, {batch, rows, heads, width});
    parts.push_back(add("transpose", {part}, "", listOf("perm", {0, 2, 1, 3}), {batch, heads, rows, width}));
  }
  add("attention", parts, "", "scale = 0.25 : f64", {batch, heads, rows, width});
  return true;
}

RandomNetwork::RandomNetwork(uint64_t seed, unsigned steps, Kind kind, Store store)
    : kind(kind), store(std::move(store)), generator(seed) {
  using N = RandomNetwork;
  const std::vector<Stage> moves = {&N::reshape, &N::reshape, &N::slice,     &N::slice,  &N::slice,  &N::split,
                                    &N::split,   &N::concat,  &N::transpose, &N::concat, &N::expand, &N::pad};
  const std::vector<Stage> all = {&N::conv,  &N::conv,     &N::conv1d, &N::matmul,   &N::matmul,  &N::products,
                                  &N::gemv,  &N::products, &N::pool,   &N::reduce,   &N::softmax, &N::norm,
                                  &N::unary, &N::unary,    &N::binary, &N::binary,   &N::binary,  &N::scale,
                                  &N::scale, &N::gather,   &N::resize, &N::attention};
  const std::vector<Stage> ofRows = {&N::norm,  &N::norm,  &N::norm,   &N::softmax, &N::softmax,
                                     &N::unary, &N::scale, &N::binary, &N::gather};
  const std::vector<Stage> ofIndices = {&N::runningSum, &N::runningSum, &N::mask,      &N::mask,
                                        &N::mask,       &N::writeRows,  &N::writeRows, &N::gather,
                                        &N::softmax,    &N::binary,     &N::scale,     &N::matmul};
  const std::vector<Stage> &computations = kind == Kind::any ? all : kind == Kind::indices ? ofIndices : ofRows;
  addInput(kind != Kind::longRows ? drawDims(between(1, 6)) : Dims{between(1, 12), between(100, 1000)});
  if (oneIn(2)) {
    addInput(drawDims(between(1, 5)));
  }
  auto length = unsigned(between(2, kMostSteps)), done = 0u;
  for (unsigned tries = 0; done < std::min(length, steps) && tries < 100; ++tries) {
    done += (this->*pickOf(oneIn(2) ? moves : computations))();
  }
}

std::string RandomNetwork::text() const {
  std::string arguments, results, types, returned;
  for (size_t i = 0; i < masks.size(); ++i) {
    std::string number = std::to_string(i);
    arguments += (i ? ", %m" : "%m") + number + ": " + typeOf(masks[i], "i64") + " {top.name = \"m" + number + "\"}";
  }
  for (const Value &value : values) {
    std::string named = " {top.name = \"" + value.name.substr(1) + "\"}";
    if (value.isInput) {
      arguments += (arguments.empty() ? "" : ", ") + value.name + ": " + typeOf(value.dims) + named;
    } else if (!value.isRead || value.storedDirectly) {
      results += (results.empty() ? "" : ", ") + typeOf(value.dims) + named;
      returned += (returned.empty() ? "" : ", ") + value.name;
      types += (types.empty() ? "" : ", ") + typeOf(value.dims);
    }
  }
  return "func.func @main(" + arguments + ") -> (" + results + ") attributes {device.exact} {\n" + body + "  return " +
         returned + " : " + types + "\n}\n";
}

} // namespace tessera::npu

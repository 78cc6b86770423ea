//===- OnnxLegacy.cpp - Operators of opsets before 7 ----------------------===//
// SPDX-License-Identifier: Apache-2.0
// Each operator is rewritten as the equivalent one of opset 7 and then passed to the handler of that opset. Operators
// that are not listed here have the same meaning in all opsets, or their handlers also support the old form. ONNX's
// Changelog.md lists the changes.
#include "top_dialect/Import/Onnx/GraphImporter.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using llvm::StringRef;
using mlir::Value;

namespace tessera::top::onnx_import {

namespace {

/// The node that replaces a legacy node.
class Upgrade {
public:
  explicit Upgrade(NodeImporter &n) : n(n), node(n.node) { drop("consumed_inputs"); }

  void drop(StringRef name) {
    auto &attributes = *node.mutable_attribute();
    for (int i = attributes.size() - 1; i >= 0; --i) {
      if (attributes.Get(i).name() == name) {
        attributes.DeleteSubrange(i, 1);
      }
    }
  }

  void rename(StringRef from, StringRef to) {
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.name() == from) {
        attribute.set_name(to.str());
      }
    }
  }

  void setInt(StringRef name, int64_t value) {
    drop(name);
    add(name, onnx::AttributeProto::INT).set_i(value);
  }

  void setFloats(StringRef name, llvm::ArrayRef<float> values) {
    drop(name);
    auto &attribute = add(name, onnx::AttributeProto::FLOATS);
    attribute.mutable_floats()->Add(values.begin(), values.end());
  }

  void setDefault(StringRef name, float value) {
    if (!n.hasAttr(name)) {
      add(name, onnx::AttributeProto::FLOAT).set_f(value);
    }
  }

  /// Binds |value| as the i-th input, under a name that cannot occur in a file.
  void setInput(int i, Value value) {
    std::string name = (nodeName(n.node) + StringRef("\0legacy", 7) + llvm::Twine(i)).str();
    n.graph.bind(name, value);
    while (node.input_size() <= i) {
      node.add_input();
    }
    node.set_input(i, name);
  }

  void keepInputs(int count) {
    if (node.input_size() > count) {
      node.mutable_input()->DeleteSubrange(count, node.input_size() - count);
    }
  }

  /// Imports the node as an operator of opset 7.
  void run() {
    if (n.failed()) {
      return;
    }
    NodeImporter modern(n.graph, node, kFirstModernOpset, n.b, n.loc);
    findHandler("", node.op_type(), kFirstModernOpset)(modern);
    if (modern.failed()) {
      n.fail(modern.getError());
    }
  }

private:
  onnx::AttributeProto &add(StringRef name, onnx::AttributeProto::AttributeType type) {
    auto &attribute = *node.add_attribute();
    attribute.set_name(name.str());
    attribute.set_type(type);
    return attribute;
  }

  NodeImporter &n;
  onnx::NodeProto node;
};

/// Returns |value| with dims of size 1 appended.
Value withTrailingOnes(NodeImporter &n, Value value, int64_t count) {
  Ints shape(NodeImporter::shape(value));
  shape.append(count, 1);
  return n.reshape(value, shape);
}

/// Add and similar operators: the dims of the second operand are aligned at `axis` of the first, or at its end. Without
/// `broadcast`, the shapes must be equal.
void broadcasting(NodeImporter &n) {
  Upgrade upgrade(n);
  Value a = n.input(0), b = n.input(1);
  bool broadcasts = n.intAttr("broadcast", 0) != 0;
  if (n.failed()) {
    return;
  }
  if (!broadcasts) {
    if (NodeImporter::rank(a) != NodeImporter::rank(b) ||
        llvm::any_of(llvm::zip(NodeImporter::shape(a), NodeImporter::shape(b)), [](auto dims) {
          auto [x, y] = dims;
          return x != y && !mlir::ShapedType::isDynamic(x) && !mlir::ShapedType::isDynamic(y);
        })) {
      n.fail("its operands have different shapes and 'broadcast' is not set");
    }
  } else if (n.hasAttr("axis")) {
    int64_t axis = n.normalizeAxis(n.intAttr("axis", 0), NodeImporter::rank(a));
    int64_t behind = NodeImporter::rank(a) - axis - NodeImporter::rank(b);
    if (!n.failed() && behind < 0) {
      n.fail(llvm::formatv("the second operand of rank {0} cannot be aligned at axis {1} of the first, of rank {2}",
                           NodeImporter::rank(b), axis, NodeImporter::rank(a)));
    } else if (behind > 0) {
      upgrade.setInput(1, withTrailingOnes(n, b, behind));
    }
  }
  upgrade.drop("broadcast");
  upgrade.drop("axis");
  upgrade.run();
}

/// A slope of [C] means one slope per channel (dim 1).
void prelu(NodeImporter &n) {
  Upgrade upgrade(n);
  Value x = n.input(0), slope = n.input(1);
  if (!n.failed() && NodeImporter::rank(slope) == 1 && NodeImporter::rank(x) > 2 && NodeImporter::dim(slope, 0) != 1) {
    upgrade.setInput(1, withTrailingOnes(n, slope, NodeImporter::rank(x) - 2));
  }
  upgrade.run();
}

void gemm(NodeImporter &n) {
  Upgrade upgrade(n);
  upgrade.drop("broadcast");
  upgrade.run();
}

/// BatchNormalization and Dropout: `is_test` selects inference. The default is training.
void inferenceOnly(NodeImporter &n) {
  Upgrade upgrade(n);
  if (n.intAttr("is_test", 0) == 0) {
    n.unsupported("'is_test' is not set, so it is in training mode; export the model for inference");
  }
  upgrade.drop("is_test");
  upgrade.run();
}

/// `output_sequence` says whether Y is produced. This is ignored, because the users of Y show it.
void recurrent(NodeImporter &n) {
  Upgrade upgrade(n);
  upgrade.drop("output_sequence");
  upgrade.run();
}

/// Cast: the type is given by name.
void cast(NodeImporter &n) {
  Upgrade upgrade(n);
  const onnx::AttributeProto *to = n.findAttr("to");
  if (to && (to->type() == onnx::AttributeProto::STRING || !to->s().empty())) {
    onnx::TensorProto::DataType type;
    if (!onnx::TensorProto::DataType_Parse(StringRef(to->s()).upper(), &type)) {
      n.fail(llvm::formatv("attribute 'to' is '{0}', which is not a type", to->s()));
    } else {
      upgrade.setInt("to", type);
    }
  }
  upgrade.run();
}

/// Reshape: the shape is an attribute.
void reshape(NodeImporter &n) {
  Upgrade upgrade(n);
  if (n.numInputs() < 2) {
    upgrade.setInput(1, n.intVector(n.intsAttr("shape")));
    upgrade.drop("shape");
  }
  upgrade.run();
}

void pad(NodeImporter &n) {
  Upgrade upgrade(n);
  upgrade.rename("paddings", "pads");
  upgrade.run();
}

/// Tile: a single axis and its number of repeats.
void tile(NodeImporter &n) {
  Upgrade upgrade(n);
  Value x = n.input(0);
  auto whole = [](llvm::ArrayRef<double> values) { // values of the tensor's type
    return values.size() == 1 && std::abs(values[0]) < 0x1p53 && values[0] == std::trunc(values[0]);
  };
  auto tiles = n.constantDoubles(1, "the number of tiles"), axes = n.constantDoubles(2, "the axis");
  if (n.failed() || !whole(tiles) || !whole(axes)) {
    n.fail("'tiles' and 'axis' are not single integers");
    return;
  }
  Ints repeats(NodeImporter::rank(x), 1);
  int64_t axis = n.normalizeAxis(static_cast<int64_t>(axes[0]), NodeImporter::rank(x));
  if (!n.failed()) {
    repeats[axis] = static_cast<int64_t>(tiles[0]);
    upgrade.setInput(1, n.intVector(repeats));
    upgrade.keepInputs(2);
  }
  upgrade.run();
}

/// LpPool and GlobalLpPool: p is a float.
void lpPool(NodeImporter &n) {
  Upgrade upgrade(n);
  const onnx::AttributeProto *p = n.findAttr("p");
  if (p && p->type() == onnx::AttributeProto::FLOAT) {
    if (p->f() != static_cast<float>(static_cast<int>(p->f()))) {
      n.unsupported(llvm::formatv("p is {0}; integers are supported", p->f()));
    }
    upgrade.setInt("p", static_cast<int64_t>(p->f()));
  }
  upgrade.run();
}

void upsample(NodeImporter &n) {
  Upgrade upgrade(n);
  if (!n.hasAttr("scales")) {
    upgrade.setFloats("scales", {1, 1, static_cast<float>(n.floatAttr("height_scale", 1)),
                                 static_cast<float>(n.floatAttr("width_scale", 1))});
    upgrade.drop("height_scale");
    upgrade.drop("width_scale");
  }
  upgrade.run();
}

/// Selu: the defaults have fewer digits.
void selu(NodeImporter &n) {
  Upgrade upgrade(n);
  upgrade.setDefault("alpha", 1.6732F);
  upgrade.setDefault("gamma", 1.0507F);
  upgrade.run();
}

/// |handler| is used for opsets below |until|.
struct LegacyEntry {
  StringRef name;
  Handler handler;
  int64_t until;
};

constexpr LegacyEntry kEntries[] = {
    {"Add", broadcasting, 7},    {"And", broadcasting, 7},     {"BatchNormalization", inferenceOnly, 7},
    {"Cast", cast, 6},           {"Div", broadcasting, 7},     {"Dropout", inferenceOnly, 7},
    {"Equal", broadcasting, 7},  {"GRU", recurrent, 7},        {"Gemm", gemm, 7},
    {"GlobalLpPool", lpPool, 2}, {"Greater", broadcasting, 7}, {"LSTM", recurrent, 7},
    {"Less", broadcasting, 7},   {"LpPool", lpPool, 2},        {"Mul", broadcasting, 7},
    {"Or", broadcasting, 7},     {"PRelu", prelu, 7},          {"Pad", pad, 2},
    {"Pow", broadcasting, 7},    {"RNN", recurrent, 7},        {"Reshape", reshape, 5},
    {"Selu", selu, 6},           {"Sub", broadcasting, 7},     {"Tile", tile, 6},
    {"Upsample", upsample, 7},   {"Xor", broadcasting, 7},
};

} // namespace

Handler findLegacyHandler(StringRef name, int64_t opset) {
  const auto *entry = llvm::find_if(kEntries, [&](const LegacyEntry &each) { return each.name == name; });
  return entry != std::end(kEntries) && opset < entry->until ? entry->handler : nullptr;
}

} // namespace tessera::top::onnx_import

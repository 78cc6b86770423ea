//===- Detection.cpp - Handler of detection post-processing ---------------===//
// SPDX-License-Identifier: Apache-2.0
//
// The custom operator decodes boxes relative to anchors and suppresses those that overlap better ones. Its results have
// room for the largest number of detections; rows behind the last detection are 0.
#include "top_dialect/Import/Tflite/OperatorImporter.h"

#include "flatbuffers/flexbuffers.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace tessera::top::tflite_import {
namespace {

struct Options {
  int64_t maxDetections, perClass, classes, classesPerBox;
  bool isRegular; ///< suppresses in each class by itself; otherwise each box counts with its best class only
  float minScore, maxOverlap;
  double scales[4]; ///< divisors of y, x, height and width
};

std::optional<Options> readOptions(OperatorImporter &n) {
  const auto *bytes = n.op.custom_options();
  std::vector<uint8_t> visited;
  if (!bytes || bytes->size() < 3 || !flexbuffers::VerifyBuffer(bytes->data(), bytes->size(), &visited) ||
      !flexbuffers::GetRoot(bytes->data(), bytes->size()).IsMap()) {
    n.fail("its options are damaged");
    return std::nullopt;
  }
  auto map = flexbuffers::GetRoot(bytes->data(), bytes->size()).AsMap();
  auto integer = [&](const char *key, int64_t otherwise) { return map[key].IsNull() ? otherwise : map[key].AsInt64(); };
  Options o;
  o.maxDetections = integer("max_detections", 0), o.perClass = integer("detections_per_class", 100);
  o.classes = integer("num_classes", 0), o.classesPerBox = integer("max_classes_per_detection", 0);
  o.isRegular = !map["use_regular_nms"].IsNull() && map["use_regular_nms"].AsBool();
  o.minScore = map["nms_score_threshold"].AsFloat(), o.maxOverlap = map["nms_iou_threshold"].AsFloat();
  bool isValid = o.maxDetections > 0 && o.perClass > 0 && o.classes > 0 && o.maxOverlap > 0 && o.maxOverlap <= 1;
  constexpr const char *kScales[] = {"y_scale", "x_scale", "h_scale", "w_scale"};
  for (auto [i, key] : llvm::enumerate(kScales)) {
    o.scales[i] = map[key].AsFloat();
    isValid &= o.scales[i] > 0 && std::isfinite(o.scales[i]);
  }
  if (!isValid) {
    n.fail("its options are not within their bounds: numbers of detections and classes and scales must be positive, "
           "nms_iou_threshold at most 1");
    return std::nullopt;
  }
  return o;
}

/// Builds the network of one operator.
class DetectionPostProcess {
public:
  DetectionPostProcess(OperatorImporter &n, const Options &o) : n(n), o(o) {}

  void run() {
    Value encoded = n.input(0), scores = n.input(1), anchors = n.input(2);
    if (!checkShapes(encoded, scores, anchors)) {
      return;
    }
    Value boxes = decode(encoded, anchors);
    int64_t offset = n.shape(scores)[2] - o.classes;
    scores = n.reshape(n.slice(scores, {0, 0, offset}, {1, count, o.classes}, {1, 1, 1}), {count, o.classes});
    o.isRegular ? detectPerClass(boxes, scores) : detectBest(boxes, scores);
  }

private:
  bool checkShapes(Value encoded, Value scores, Value anchors) {
    if (!n.requireRank(encoded, 3) || !n.requireRank(scores, 3) || !n.requireRank(anchors, 2)) {
      return false;
    }
    count = n.shape(encoded)[1];
    bool fits = n.shape(encoded)[0] == 1 && n.shape(scores)[0] == 1 && n.shape(encoded)[2] >= 4 && count > 0 &&
                n.shape(scores)[1] == count && n.shape(anchors)[0] == count && n.shape(anchors)[1] == 4;
    int64_t background = n.shape(scores)[2] - o.classes;
    if (!fits || background < 0 || background > 1) {
      n.fail("the shapes of its boxes, scores and anchors do not belong together, or are not those of one picture");
    }
    constexpr int64_t kMost = 1 << 24;
    if (o.maxDetections > kMost || o.perClass > kMost || o.classes * count > (int64_t(1) << 31)) {
      n.unsupported("it has too many detections");
    }
    if (!o.isRegular && o.classesPerBox != 1) {
      n.unsupported(llvm::formatv("max_classes_per_detection is {0}; supported is 1", o.classesPerBox));
    }
    for (Value value : {encoded, scores, anchors}) {
      if (!n.failed() && !n.elementType(value).isF32()) {
        n.unsupported("its operands must be floats, or integers with a scale");
      }
    }
    return !n.failed();
  }

  mlir::Type f64() { return n.b.getBuilder().getF64Type(); }
  mlir::Type i64() { return n.b.getBuilder().getI64Type(); }
  Value f32(double value) { return n.b.scalar(n.b.f32(), value); }

  /// Returns two of the four columns.
  Value columns(Value x, int64_t first) { return n.slice(x, {0, first}, {count, 2}, {1, 1}); }

  /// Returns the corners ymin, xmin, ymax, xmax of the boxes in f32, computed in f64.
  Value decode(Value encoded, Value anchors) {
    Value wide = n.cast(n.reshape(n.slice(encoded, {0, 0, 0}, {1, count, 4}, {1, 1, 1}), {count, 4}), f64());
    auto bytes = llvm::ArrayRef(reinterpret_cast<const char *>(o.scales), sizeof(o.scales));
    Value scale =
        n.b.constant(mlir::RankedTensorType::get({4}, f64()), std::vector<char>(bytes.begin(), bytes.end()), "scales");
    Value relative = n.create<DivOp>(wide, scale), anchor = n.cast(anchors, f64());
    Value sizes = columns(anchor, 2);
    Value centre = n.create<AddOp>(n.create<MulOp>(columns(relative, 0), sizes), columns(anchor, 0));
    Value grown = n.create<MulOp>(n.b.scalar(f64(), 0.5), n.create<ExpOp>(columns(relative, 2)));
    centre = n.cast(centre, n.b.f32());
    Value half = n.cast(n.create<MulOp>(grown, sizes), n.b.f32());
    return n.b.concat(n.create<SubOp>(centre, half), n.create<AddOp>(centre, half), 1);
  }

  /// Returns the indices of the selected boxes, at most |most| of each class of |scores| [C, N], or -1.
  Value suppress(Value boxes, Value scores, int64_t most) {
    int64_t classes = n.shape(scores)[0];
    // A score equal to the threshold counts, but the op selects only those above it.
    float below = std::nextafter(o.minScore, -std::numeric_limits<float>::infinity());
    return n.create<NonMaxSuppressionOp>(n.reshape(boxes, {1, count, 4}), n.reshape(scores, {1, classes, count}),
                                         n.b.scalar(i64(), double(most)), f32(o.maxOverlap), f32(below),
                                         std::min(most, count), false);
  }

  void detectBest(Value boxes, Value scores) {
    Value best = n.create<ReduceOp>(scores, ReduceKind::max, Ints{1}, false);
    Value classes = n.cast(n.create<ArgReduceOp>(scores, 1, false, false, false), n.b.f32());
    Value chosen = suppress(boxes, n.reshape(best, {1, count}), o.maxDetections);
    chosen = n.reshape(chosen, {std::min(o.maxDetections, count)});
    Value index = n.create<MaxOp>(chosen, n.b.scalar(i64(), 0));
    auto take = [&](Value x) { return n.create<GatherOp>(x, index, 0); };
    setResults(isDetection(chosen), take(boxes), take(classes), take(best));
  }

  void detectPerClass(Value boxes, Value scores) {
    int64_t most = std::min(o.perClass, o.maxDetections), each = std::min(most, count), all = o.classes * each;
    Value byClass = n.b.transpose(scores, {1, 0});
    Value chosen = n.reshape(suppress(boxes, byClass, most), {o.classes, each});
    std::vector<char> starts(o.classes * sizeof(int64_t));
    for (int64_t c = 0; c < o.classes; ++c) {
      int64_t start = c * count;
      std::memcpy(starts.data() + c * sizeof(start), &start, sizeof(start));
    }
    Value start = n.b.constant(mlir::RankedTensorType::get({o.classes, 1}, i64()), std::move(starts), "starts");
    Value index = n.create<MaxOp>(chosen, n.b.scalar(i64(), 0));
    Value flat = n.reshape(n.create<AddOp>(index, start), {all});
    Value found = n.create<GatherOp>(n.reshape(byClass, {o.classes * count}), flat, 0);
    Value valid = isDetection(n.reshape(chosen, {all}));
    Value ranked = n.create<WhereOp>(valid, found, f32(-std::numeric_limits<double>::infinity()));
    if (n.failed()) {
      return;
    }
    int64_t kept = std::min(o.maxDetections, all);
    auto typeOf = [&](mlir::Type element) { return mlir::RankedTensorType::get({kept}, element); };
    Value order =
        TopKOp::create(n.b.getBuilder(), ranked.getLoc(), typeOf(n.b.f32()), typeOf(i64()), ranked, kept, 0, true)
            .getIndices();
    auto take = [&](Value x) { return n.create<GatherOp>(x, order, 0); };
    Value classes = n.cast(n.create<DivOp>(order, n.b.scalar(i64(), double(each))), n.b.f32());
    Value corners = n.create<GatherOp>(boxes, take(n.reshape(index, {all})), 0);
    setResults(take(valid), corners, classes, take(found));
  }

  Value isDetection(Value index) { return n.create<CompareOp>(index, n.b.scalar(i64(), 0), CompareKind::ge); }

  /// Sets the results; rows that are not |valid| become 0, and further rows are added.
  void setResults(Value valid, Value boxes, Value classes, Value scores) {
    if (n.failed()) {
      return;
    }
    int64_t rows = n.shape(valid)[0], more = o.maxDetections - rows;
    auto padded = [&](Value x, Value isValid, Ints dims) {
      Ints pads(2 * n.rank(x), 0);
      pads[n.rank(x)] = more;
      Value y = n.create<WhereOp>(isValid, x, f32(0));
      y = more > 0 ? n.create<PadOp>(y, pads, PadMode::constant, llvm::APFloat(0.0)) : y;
      return n.reshape(y, dims);
    };
    n.setOutput(0, padded(boxes, n.reshape(valid, {rows, 1}), {1, o.maxDetections, 4}));
    n.setOutput(1, padded(classes, valid, {1, o.maxDetections}));
    n.setOutput(2, padded(scores, valid, {1, o.maxDetections}));
    n.setOutput(3, n.create<ReduceOp>(n.cast(valid, n.b.f32()), ReduceKind::sum, Ints{0}, true));
  }

  OperatorImporter &n;
  Options o;
  int64_t count = 0; ///< of boxes
};

} // namespace

void detectionPostProcess(OperatorImporter &n) {
  if (std::optional<Options> options = readOptions(n)) {
    DetectionPostProcess(n, *options).run();
  }
}

} // namespace tessera::top::tflite_import

//===- TopAttrs.cpp - Text and verification of sizes ----------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/TopAttrs.h"

#include "top_dialect/IR/Sizes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tessera;
using namespace tessera::top;

#include "top_dialect/IR/SizesInterface.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "top_dialect/IR/TopAttrs.cpp.inc"

void TopDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "top_dialect/IR/TopAttrs.cpp.inc"
      >();
}

//===--- printing ---------------------------------------------------------===//

namespace {

constexpr StringLiteral kFunctions[] = {"floordiv", "min", "max"};

void printSize(AsmPrinter &printer, SizeAttr size);

void printSymbol(AsmPrinter &printer, SizeSymbolAttr symbol) {
  if (llvm::is_contained(kFunctions, symbol.getName())) {
    printer << '"' << symbol.getName() << '"';
  } else {
    printer.printKeywordOrString(symbol.getName());
  }
  printer << '[' << symbol.getMin() << ':' << symbol.getMax();
  if (symbol.getLikely() != symbol.getMax()) {
    printer << ':' << symbol.getLikely();
  }
  printer << ']';
}

void printOperation(AsmPrinter &printer, SizeOperationAttr operation) {
  printer << kFunctions[size_t(operation.getFunction())] << '(';
  printSize(printer, operation.getLhs());
  printer << ", ";
  printSize(printer, operation.getRhs());
  printer << ')';
}

void printAtom(AsmPrinter &printer, Attribute atom) {
  llvm::TypeSwitch<Attribute>(atom)
      .Case([&](SizeSymbolAttr symbol) { printSymbol(printer, symbol); })
      .Case([&](SizeOperationAttr operation) { printOperation(printer, operation); });
}

/// Prints a term without its sign. The smallest number has no absolute value, so it is printed as it is.
void printTerm(AsmPrinter &printer, uint64_t coefficient, ArrayAttr monomial) {
  bool printsNumber = coefficient != 1 || monomial.empty();
  if (printsNumber) {
    printer << coefficient;
  }
  for (auto [i, atom] : llvm::enumerate(monomial)) {
    printer << (i || printsNumber ? "*" : "");
    printAtom(printer, atom);
  }
}

void printSize(AsmPrinter &printer, SizeAttr size) {
  if (size.getCoefficients().empty()) {
    printer << 0;
  }
  for (auto [i, coefficient] : llvm::enumerate(size.getCoefficients())) {
    bool isNegative = coefficient < 0;
    printer << (i ? isNegative ? " - " : " + " : isNegative ? "-" : "");
    printTerm(printer, isNegative ? 0 - uint64_t(coefficient) : uint64_t(coefficient), size.getMonomials()[i]);
  }
}

//===--- parsing ----------------------------------------------------------===//

FailureOr<Dim> parseSize(AsmParser &parser);

FailureOr<Dim> parseFunction(AsmParser &parser, SizeFunction function) {
  FailureOr<Dim> lhs, rhs;
  if (parser.parseLParen() || failed(lhs = parseSize(parser)) || parser.parseComma() ||
      failed(rhs = parseSize(parser)) || parser.parseRParen()) {
    return failure();
  }
  return function == SizeFunction::FloorDiv ? floorDiv(*lhs, *rhs)
         : function == SizeFunction::Min    ? min(*lhs, *rhs)
                                            : max(*lhs, *rhs);
}

FailureOr<Dim> parseSymbol(AsmParser &parser, StringRef name) {
  int64_t min = 0, max = 0;
  if (parser.parseLSquare() || parser.parseInteger(min) || parser.parseColon() || parser.parseInteger(max)) {
    return failure();
  }
  int64_t likely = max;
  if (succeeded(parser.parseOptionalColon()) && parser.parseInteger(likely)) {
    return failure();
  }
  if (parser.parseRSquare()) {
    return failure();
  }
  auto emitError = [&] { return parser.emitError(parser.getCurrentLocation()); };
  if (failed(SizeSymbolAttr::verify(emitError, name, min, max, likely))) {
    return failure();
  }
  return Dim::symbol(parser.getContext(), name, min, max, likely);
}

FailureOr<Dim> parseFactor(AsmParser &parser) {
  int64_t number = 0;
  if (OptionalParseResult parsed = parser.parseOptionalInteger(number); parsed.has_value()) {
    return failed(*parsed) ? FailureOr<Dim>(failure()) : Dim(number);
  }
  std::string name;
  bool isString = succeeded(parser.parseOptionalString(&name));
  if (!isString && failed(parser.parseKeywordOrString(&name))) {
    return failure();
  }
  const auto *function = isString ? std::end(kFunctions) : llvm::find(kFunctions, StringRef(name));
  return function == std::end(kFunctions) ? parseSymbol(parser, name)
                                          : parseFunction(parser, SizeFunction(function - std::begin(kFunctions)));
}

FailureOr<Dim> parseTerm(AsmParser &parser) {
  FailureOr<Dim> product = parseFactor(parser);
  while (succeeded(product) && succeeded(parser.parseOptionalStar())) {
    FailureOr<Dim> factor = parseFactor(parser);
    product = failed(factor) ? factor : FailureOr<Dim>(*product * *factor);
  }
  return product;
}

FailureOr<Dim> parseSize(AsmParser &parser) {
  Dim sum = 0;
  bool isNegative = succeeded(parser.parseOptionalMinus());
  while (true) {
    FailureOr<Dim> term = parseTerm(parser);
    if (failed(term)) {
      return failure();
    }
    sum = isNegative ? sum - *term : sum + *term;
    isNegative = succeeded(parser.parseOptionalMinus());
    if (!isNegative && failed(parser.parseOptionalPlus())) {
      return sum.isUnknown() ? FailureOr<Dim>(parser.emitError(parser.getCurrentLocation(), "the size overflows"))
                             : FailureOr<Dim>(sum);
    }
  }
}

SizeAttr toAttr(MLIRContext *context, Dim size) {
  if (!size.isKnown()) {
    return size.expression();
  }
  ArrayAttr one = ArrayAttr::get(context, {});
  return size.is(0) ? SizeAttr::get(context, {}, {}) : SizeAttr::get(context, {size.value()}, {one});
}

template <typename Attr>
Attribute parseOnly(AsmParser &parser) {
  FailureOr<Dim> size;
  if (parser.parseLess() || failed(size = parseSize(parser)) || parser.parseGreater()) {
    return {};
  }
  SizeAttr attr = toAttr(parser.getContext(), *size);
  if constexpr (std::is_same_v<Attr, SizeAttr>) {
    return attr;
  } else {
    bool isAtom = attr.getCoefficients() == ArrayRef<int64_t>{1} && attr.getMonomials().front().size() == 1;
    auto atom = isAtom ? dyn_cast<Attr>(attr.getMonomials().front()[0]) : Attr();
    return atom ? atom : (parser.emitError(parser.getNameLoc(), "the size has another form"), Attr());
  }
}

} // namespace

ParseResult top::parseSizes(AsmParser &parser, SmallVectorImpl<SizeAttr> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion())) {
      sizes.push_back({});
      return success();
    }
    FailureOr<Dim> size = parseSize(parser);
    if (failed(size)) {
      return failure();
    }
    sizes.push_back(toAttr(parser.getContext(), *size));
    return success();
  });
}

void top::printSizes(AsmPrinter &printer, ArrayRef<SizeAttr> sizes) {
  printer << '[';
  llvm::interleaveComma(sizes, printer, [&](SizeAttr size) {
    if (size) {
      printSize(printer, size);
    } else {
      printer << '?';
    }
  });
  printer << ']';
}

Attribute SizeAttr::parse(AsmParser &parser, Type) { return parseOnly<SizeAttr>(parser); }
Attribute SizeSymbolAttr::parse(AsmParser &parser, Type) { return parseOnly<SizeSymbolAttr>(parser); }
Attribute SizeOperationAttr::parse(AsmParser &parser, Type) { return parseOnly<SizeOperationAttr>(parser); }
Attribute DimsAttr::parse(AsmParser &parser, Type) {
  SmallVector<SizeAttr> sizes;
  if (parser.parseLess() || parseSizes(parser, sizes) || parser.parseGreater()) {
    return {};
  }
  return DimsAttr::get(parser.getContext(), sizes);
}

template <typename Print>
static void printInAngles(AsmPrinter &printer, Print print) {
  printer << '<';
  print();
  printer << '>';
}

void SizeAttr::print(AsmPrinter &printer) const {
  printInAngles(printer, [&] { printSize(printer, *this); });
}
void SizeSymbolAttr::print(AsmPrinter &printer) const {
  printInAngles(printer, [&] { printSymbol(printer, *this); });
}
void SizeOperationAttr::print(AsmPrinter &printer) const {
  printInAngles(printer, [&] { printOperation(printer, *this); });
}
void DimsAttr::print(AsmPrinter &printer) const {
  printInAngles(printer, [&] { printSizes(printer, getSizes()); });
}

//===--- verification -----------------------------------------------------===//

LogicalResult SizeSymbolAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringRef name, int64_t min,
                                     int64_t max, int64_t likely) {
  if (min < 0 || likely < min || max < likely) { // size_symbol_c1
    return emitError() << "size '" << name << "' ranges from " << min << " to " << max << " and is likely " << likely
                       << ", which must be in ascending order from 0 on (size_symbol_c1)";
  }
  return success();
}

LogicalResult top::verifySizes(ArrayRef<SizeAttr> sizes, ArrayRef<int64_t> shape,
                               function_ref<InFlightDiagnostic()> emitError) {
  if (sizes.empty()) {
    return success();
  }
  if (sizes.size() != shape.size()) { // dims_c1
    return emitError() << "a tensor of rank " << shape.size() << " has " << sizes.size() << " sizes (dims_c1)";
  }
  for (auto [i, size, number] : llvm::enumerate(sizes, shape)) {
    Dim dim(size);
    if (dim.isKnown() ? !dim.is(number) : !ShapedType::isDynamic(number)) { // dims_c2
      return emitError() << "dim " << i << " of the type and its size " << toText(dim) << " disagree (dims_c2)";
    }
  }
  if (llvm::none_of(sizes, [](SizeAttr size) { return Dim(size).isSymbolic(); })) { // dims_c3
    return emitError() << "no size is symbolic, so none may be listed (dims_c3)";
  }
  return success();
}

LogicalResult DimsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type,
                                       function_ref<InFlightDiagnostic()> emitError) const {
  return verifySizes(getSizes(), shape, [&] { return emitError(); });
}

Attribute DimsAttr::withSizes(ArrayRef<SizeAttr> sizes) const {
  return sizes.empty() ? Attribute() : DimsAttr::get(getContext(), sizes);
}

//===- Sizes.cpp - Arithmetic of sizes ------------------------------------===//
// SPDX-License-Identifier: Apache-2.0
#include "top_dialect/IR/Sizes.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <numeric>

using namespace mlir;
using namespace tessera;
using namespace tessera::top;

//===--- order of terms ---------------------------------------------------===//

namespace {

template <typename T>
int compareNumbers(T a, T b) {
  return a < b ? -1 : a > b;
}

int compareSizes(SizeAttr a, SizeAttr b);

/// Orders symbols by name, and before operations. The order must not depend on addresses, because the text of the IR
/// depends on it.
int compareAtoms(Attribute a, Attribute b) {
  if (a == b) {
    return 0;
  }
  auto x = dyn_cast<SizeSymbolAttr>(a), y = dyn_cast<SizeSymbolAttr>(b);
  if (!x && !y) {
    auto left = cast<SizeOperationAttr>(a), right = cast<SizeOperationAttr>(b);
    if (int order = compareNumbers(left.getFunction(), right.getFunction())) {
      return order;
    }
    int order = compareSizes(left.getLhs(), right.getLhs());
    return order ? order : compareSizes(left.getRhs(), right.getRhs());
  }
  if (!x || !y) {
    return x ? -1 : 1;
  }
  auto key = [](SizeSymbolAttr symbol) {
    return std::make_tuple(symbol.getName(), symbol.getMin(), symbol.getMax(), symbol.getLikely());
  };
  return compareNumbers(key(x), key(y));
}

/// Orders products by descending degree, then by their atoms. Products keep their order when both are multiplied by the
/// same product, which the division of polynomials needs.
int compareProducts(ArrayAttr a, ArrayAttr b) {
  if (a.size() != b.size()) {
    return compareNumbers(b.size(), a.size());
  }
  for (auto [x, y] : llvm::zip(a, b)) {
    if (int order = compareAtoms(x, y)) {
      return order;
    }
  }
  return 0;
}

int compareSizes(SizeAttr a, SizeAttr b) {
  if (int order = compareNumbers(a.getMonomials().size(), b.getMonomials().size())) {
    return order;
  }
  for (size_t i = 0; i < a.getMonomials().size(); ++i) {
    int order = compareProducts(a.getMonomials()[i], b.getMonomials()[i]);
    order = order ? order : compareNumbers(a.getCoefficients()[i], b.getCoefficients()[i]);
    if (order) {
      return order;
    }
  }
  return 0;
}

//===--- polynomials ------------------------------------------------------===//

/// A polynomial under construction. Its terms are sorted and none has the coefficient 0.
class Polynomial {
public:
  struct Term {
    ArrayAttr product;
    int64_t coefficient;
  };

  Polynomial(MLIRContext *context, Dim size) : context(context) {
    if (size.isSymbolic()) {
      for (auto [coefficient, product] :
           llvm::zip(size.expression().getCoefficients(), size.expression().getMonomials())) {
        terms.push_back({product, coefficient});
      }
    } else if (!size.is(0)) {
      terms.push_back({ArrayAttr::get(context, {}), size.value()});
    }
  }

  void add(ArrayAttr product, int64_t coefficient) {
    auto *at = llvm::lower_bound(
        terms, product, [](const Term &term, ArrayAttr other) { return compareProducts(term.product, other) < 0; });
    if (at == terms.end() || at->product != product) {
      at = terms.insert(at, {product, 0});
    }
    overflows |= llvm::AddOverflow(at->coefficient, coefficient, at->coefficient) != 0;
    if (at->coefficient == 0) {
      terms.erase(at);
    }
  }

  /// Adds |other| times |coefficient| times |product|.
  void addMultiple(const Polynomial &other, int64_t coefficient, ArrayAttr product) {
    for (const Term &term : other.terms) {
      SmallVector<Attribute> atoms(term.product.begin(), term.product.end());
      atoms.append(product.begin(), product.end());
      llvm::sort(atoms, [](Attribute a, Attribute b) { return compareAtoms(a, b) < 0; });
      int64_t number = 0;
      overflows |= llvm::MulOverflow(term.coefficient, coefficient, number) != 0;
      add(ArrayAttr::get(context, atoms), number);
    }
  }

  Dim toDim() const { return overflows ? Dim(ShapedType::kDynamic) : Dim(toAttr()); }
  SizeAttr toAttr() const {
    auto coefficients = llvm::map_to_vector(terms, [](const Term &term) { return term.coefficient; });
    auto products = llvm::map_to_vector(terms, [](const Term &term) { return term.product; });
    return SizeAttr::get(context, coefficients, products);
  }

  MLIRContext *context;
  SmallVector<Term> terms;
  bool overflows = false;
};

MLIRContext *contextOf(Dim a, Dim b) { return (a.isSymbolic() ? a : b).expression().getContext(); }

ArrayAttr emptyProduct(MLIRContext *context) { return ArrayAttr::get(context, {}); }

/// Returns a + factor * b.
Dim addMultiple(Dim a, int64_t factor, Dim b) {
  MLIRContext *context = contextOf(a, b);
  Polynomial sum(context, a);
  sum.addMultiple(Polynomial(context, b), factor, emptyProduct(context));
  return sum.toDim();
}

Dim knownResult(bool overflows, int64_t result) { return overflows ? Dim(ShapedType::kDynamic) : Dim(result); }

/// Returns `function(a, b)` as an atom.
Dim operation(SizeFunction function, Dim a, Dim b) {
  MLIRContext *context = contextOf(a, b);
  auto atom =
      SizeOperationAttr::get(context, function, Polynomial(context, a).toAttr(), Polynomial(context, b).toAttr());
  return Dim(SizeAttr::get(context, {1}, {ArrayAttr::get(context, {atom})}));
}

} // namespace

Dim::Dim(SizeAttr attr) : number(ShapedType::kDynamic), size(attr) {
  if (!attr) {
    return;
  }
  if (attr.getCoefficients().empty()) {
    number = 0, size = {};
  } else if (attr.getMonomials().front().empty()) { // constants are last, so this is the only term
    number = attr.getCoefficients().front(), size = {};
  }
}

Dim Dim::symbol(MLIRContext *context, StringRef name, int64_t min, int64_t max, int64_t likely) {
  if (min == max) {
    return min;
  }
  Attribute atom = SizeSymbolAttr::get(context, name, min, max, likely);
  return Dim(SizeAttr::get(context, {1}, {ArrayAttr::get(context, {atom})}));
}

Dim tessera::operator+(Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown()) {
    return ShapedType::kDynamic;
  }
  if (a.isKnown() && b.isKnown()) {
    int64_t result = 0;
    bool overflows = llvm::AddOverflow(a.value(), b.value(), result);
    return knownResult(overflows, result);
  }
  return addMultiple(a, 1, b);
}

Dim tessera::operator-(Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown()) {
    return ShapedType::kDynamic;
  }
  if (a.isKnown() && b.isKnown()) {
    int64_t result = 0;
    bool overflows = llvm::SubOverflow(a.value(), b.value(), result);
    return knownResult(overflows, result);
  }
  return addMultiple(a, -1, b);
}

Dim tessera::operator*(Dim a, Dim b) {
  if (a.is(0) || b.is(0)) {
    return 0;
  }
  if (a.isUnknown() || b.isUnknown()) {
    return ShapedType::kDynamic;
  }
  if (a.isKnown() && b.isKnown()) {
    int64_t result = 0;
    bool overflows = llvm::MulOverflow(a.value(), b.value(), result);
    return knownResult(overflows, result);
  }
  MLIRContext *context = contextOf(a, b);
  Polynomial product(context, 0), left(context, a), right(context, b);
  for (const Polynomial::Term &term : right.terms) {
    product.addMultiple(left, term.coefficient, term.product);
  }
  return product.toDim();
}

//===--- division ---------------------------------------------------------===//

namespace {

/// Returns |product| without the atoms of |divisor|; none if it does not contain them all.
std::optional<ArrayAttr> divideProduct(ArrayAttr product, ArrayAttr divisor) {
  SmallVector<Attribute> atoms(product.begin(), product.end());
  for (Attribute atom : divisor) {
    auto *at = llvm::find(atoms, atom);
    if (at == atoms.end()) {
      return std::nullopt;
    }
    atoms.erase(at);
  }
  return ArrayAttr::get(product.getContext(), atoms);
}

/// Returns q with a == q * b for all values; none if there is no such polynomial.
std::optional<Dim> divideExactly(Dim a, Dim b) {
  MLIRContext *context = contextOf(a, b);
  Polynomial rest(context, a), divisor(context, b), quotient(context, 0);
  while (!rest.terms.empty()) {
    const Polynomial::Term lead = rest.terms.front(), by = divisor.terms.front();
    std::optional<ArrayAttr> product = divideProduct(lead.product, by.product);
    if (!product || lead.coefficient % by.coefficient != 0) {
      return std::nullopt;
    }
    int64_t coefficient = lead.coefficient / by.coefficient;
    quotient.add(*product, coefficient);
    rest.addMultiple(divisor, -coefficient, *product);
    if (rest.overflows) {
      return std::nullopt;
    }
  }
  return quotient.toDim();
}

/// Returns |size| without its constant term, and that term.
std::pair<Dim, int64_t> splitConstant(Dim size) {
  SizeAttr attr = size.expression();
  int64_t constant = attr.getMonomials().back().empty() ? attr.getCoefficients().back() : 0;
  return {size - constant, constant};
}

/// If |size| is floordiv(lhs, rhs) with a number rhs, returns both.
std::optional<std::pair<Dim, int64_t>> matchQuotient(Dim size) {
  SizeAttr attr = size.expression();
  if (!attr || attr.getCoefficients() != ArrayRef<int64_t>{1} || attr.getMonomials().front().size() != 1) {
    return std::nullopt;
  }
  auto operation = dyn_cast<SizeOperationAttr>(attr.getMonomials().front()[0]);
  if (!operation || operation.getFunction() != SizeFunction::FloorDiv || !Dim(operation.getRhs()).isKnown()) {
    return std::nullopt;
  }
  return std::pair(Dim(operation.getLhs()), Dim(operation.getRhs()).value());
}

Dim floorDivRest(Dim rest, int64_t divisor);

/// Divides by a positive number: what the divisor divides leaves the quotient, so that only a rest with coefficients
/// below the divisor remains in it.
Dim floorDivByNumber(Dim size, int64_t divisor) {
  MLIRContext *context = size.expression().getContext();
  Polynomial quotient(context, 0), rest(context, 0);
  for (auto [coefficient, product] : llvm::zip(size.expression().getCoefficients(), size.expression().getMonomials())) {
    int64_t whole = llvm::divideFloorSigned(coefficient, divisor);
    if (whole) {
      quotient.add(product, whole);
    }
    if (coefficient != whole * divisor) {
      rest.add(product, coefficient - whole * divisor);
    }
  }
  return quotient.toDim() + floorDivRest(rest.toDim(), divisor);
}

Dim floorDivRest(Dim rest, int64_t divisor) {
  SizeRange range = rangeOf(rest);
  if (range.min >= 0 && range.max < divisor) {
    return 0;
  }
  if (rest.isKnown()) {
    return llvm::divideFloorSigned(rest.value(), divisor);
  }
  auto [variable, constant] = splitConstant(rest);
  if (int64_t common = std::gcd(divisorOf(variable), divisor); common > 1) {
    Dim reduced = floorDivByNumber(variable, common) + llvm::divideFloorSigned(constant, common);
    return floorDiv(reduced, divisor / common);
  }
  if (auto inner = matchQuotient(variable)) {
    Dim product = Dim(divisor) * inner->second, sum = inner->first + Dim(constant) * inner->second;
    return product.isUnknown() ? operation(SizeFunction::FloorDiv, rest, divisor) : floorDiv(sum, product);
  }
  return operation(SizeFunction::FloorDiv, rest, divisor);
}

} // namespace

Dim tessera::floorDiv(Dim a, Dim b) {
  if (a.isUnknown() || b.isUnknown() || minOf(b) < (b.isKnown() ? 1 : 0)) {
    return ShapedType::kDynamic;
  }
  if (b.isKnown()) {
    return a.isKnown() ? Dim(llvm::divideFloorSigned(a.value(), b.value())) : floorDivByNumber(a, b.value());
  }
  if (std::optional<Dim> exact = divideExactly(a, b)) {
    return *exact;
  }
  return minOf(b) < 1 ? Dim(ShapedType::kDynamic) : operation(SizeFunction::FloorDiv, a, b);
}

Dim tessera::ceilDiv(Dim a, Dim b) { return floorDiv(a + (b - 1), b); }

Dim tessera::mod(Dim a, Dim b) { return a - b * floorDiv(a, b); }

/// Returns the smaller (sign 1) or larger (sign -1) of two sizes.
static Dim choose(SizeFunction function, Dim a, Dim b) {
  Dim difference = function == SizeFunction::Min ? a - b : b - a;
  if (a.isUnknown() || b.isUnknown()) {
    return ShapedType::kDynamic;
  }
  SizeRange range = rangeOf(difference);
  if (range.max <= 0) {
    return a;
  }
  if (range.min >= 0) {
    return b;
  }
  Dim first = a, second = b;
  MLIRContext *context = contextOf(a, b);
  if (compareSizes(Polynomial(context, a).toAttr(), Polynomial(context, b).toAttr()) > 0) {
    std::swap(first, second);
  }
  return operation(function, first, second);
}

Dim tessera::min(Dim a, Dim b) { return choose(SizeFunction::Min, a, b); }
Dim tessera::max(Dim a, Dim b) { return choose(SizeFunction::Max, a, b); }

//===--- bounds -----------------------------------------------------------===//

namespace {

int64_t addSaturating(int64_t a, int64_t b) {
  int64_t result = 0;
  return llvm::AddOverflow(a, b, result) ? (a < 0 ? INT64_MIN : INT64_MAX) : result;
}

int64_t multiplySaturating(int64_t a, int64_t b) {
  int64_t result = 0;
  return llvm::MulOverflow(a, b, result) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : result;
}

template <typename Function>
SizeRange combine(SizeRange a, SizeRange b, Function function) {
  auto [min, max] =
      std::minmax({function(a.min, b.min), function(a.min, b.max), function(a.max, b.min), function(a.max, b.max)});
  return {min, max};
}

SizeRange rangeOfAtom(Attribute atom) {
  if (auto symbol = dyn_cast<SizeSymbolAttr>(atom)) {
    return {symbol.getMin(), symbol.getMax()};
  }
  auto operation = cast<SizeOperationAttr>(atom);
  SizeRange lhs = rangeOf(Dim(operation.getLhs())), rhs = rangeOf(Dim(operation.getRhs()));
  switch (operation.getFunction()) {
  case SizeFunction::FloorDiv:
    return combine(lhs, {std::max<int64_t>(rhs.min, 1), std::max<int64_t>(rhs.max, 1)},
                   [](int64_t a, int64_t b) { return llvm::divideFloorSigned(a, b); });
  case SizeFunction::Min:
    return {std::min(lhs.min, rhs.min), std::min(lhs.max, rhs.max)};
  case SizeFunction::Max:
    return {std::max(lhs.min, rhs.min), std::max(lhs.max, rhs.max)};
  }
  llvm_unreachable("unknown function");
}

SizeRange rangeOfTerms(SizeAttr size) {
  SizeRange sum = {0, 0};
  for (auto [coefficient, product] : llvm::zip(size.getCoefficients(), size.getMonomials())) {
    SizeRange term = {coefficient, coefficient};
    for (Attribute atom : product) {
      term = combine(term, rangeOfAtom(atom), multiplySaturating);
    }
    sum = {addSaturating(sum.min, term.min), addSaturating(sum.max, term.max)};
  }
  return sum;
}

/// Returns |size| with |atom| replaced by a number. Keeps it within other atoms.
Dim fixAtom(SizeAttr size, Attribute atom, int64_t value) {
  MLIRContext *context = size.getContext();
  Polynomial result(context, 0);
  for (auto [coefficient, product] : llvm::zip(size.getCoefficients(), size.getMonomials())) {
    int64_t number = coefficient;
    SmallVector<Attribute> others;
    for (Attribute each : product) {
      if (each == atom) {
        result.overflows |= llvm::MulOverflow(number, value, number) != 0;
      } else {
        others.push_back(each);
      }
    }
    result.add(ArrayAttr::get(context, others), number);
  }
  return result.toDim();
}

/// Returns the derivative of |size| with respect to |atom|.
Dim derivative(SizeAttr size, Attribute atom) {
  MLIRContext *context = size.getContext();
  Polynomial result(context, 0);
  for (auto [coefficient, product] : llvm::zip(size.getCoefficients(), size.getMonomials())) {
    int64_t power = llvm::count(product, atom), factor = 0;
    if (power) {
      result.overflows |= llvm::MulOverflow(coefficient, power, factor) != 0;
      result.add(*divideProduct(product, ArrayAttr::get(context, {atom})), factor);
    }
  }
  return result.toDim();
}

/// Returns the atoms that occur in several terms.
llvm::SetVector<Attribute> sharedAtoms(SizeAttr size) {
  llvm::SetVector<Attribute> seen, shared;
  for (ArrayAttr product : size.getMonomials()) {
    llvm::SetVector<Attribute> atoms(product.begin(), product.end());
    for (Attribute atom : atoms) {
      if (!seen.insert(atom)) {
        shared.insert(atom);
      }
    }
  }
  return shared;
}

} // namespace

SizeRange tessera::rangeOf(Dim size) {
  if (size.isKnown()) {
    return {size.value(), size.value()};
  }
  if (size.isUnknown()) {
    return {INT64_MIN, INT64_MAX};
  }
  SizeRange range = rangeOfTerms(size.expression());
  if (llvm::all_of(size.expression().getCoefficients(), [](int64_t coefficient) { return coefficient >= 0; })) {
    return range;
  }
  // Terms with common atoms are not independent: h * w - h is largest where h and w are. The bounds of such a sum are
  // at the ends of the range of an atom in which it is monotonic, so that h * w - h and h * (w - 1) have the same
  // bounds.
  for (Attribute atom : sharedAtoms(size.expression())) {
    SizeRange slope = rangeOf(derivative(size.expression(), atom)), ends = rangeOfAtom(atom);
    if (slope.min >= 0 || slope.max <= 0) {
      bool rises = slope.min >= 0;
      SizeRange low = rangeOf(fixAtom(size.expression(), atom, rises ? ends.min : ends.max));
      SizeRange high = rangeOf(fixAtom(size.expression(), atom, rises ? ends.max : ends.min));
      return {std::max(range.min, low.min), std::min(range.max, high.max)};
    }
  }
  return range;
}

int64_t tessera::likelyOf(Dim size) {
  return substitute(size, [](SizeSymbolAttr symbol) { return Dim(symbol.getLikely()); }).value();
}

int64_t tessera::divisorOf(Dim size) {
  if (size.isUnknown()) {
    return 1;
  }
  if (size.isKnown()) {
    return std::abs(size.value());
  }
  int64_t divisor = 0;
  for (int64_t coefficient : size.expression().getCoefficients()) {
    divisor = std::gcd(divisor, coefficient);
  }
  return divisor;
}

//===--- walks over expressions -------------------------------------------===//

Dim tessera::substitute(Dim size, llvm::function_ref<Dim(SizeSymbolAttr)> replace) {
  if (!size.isSymbolic()) {
    return size;
  }
  Dim sum = 0;
  for (auto [coefficient, product] : llvm::zip(size.expression().getCoefficients(), size.expression().getMonomials())) {
    Dim term = coefficient;
    for (Attribute atom : product) {
      if (auto symbol = dyn_cast<SizeSymbolAttr>(atom)) {
        term *= replace(symbol);
        continue;
      }
      auto operation = cast<SizeOperationAttr>(atom);
      Dim lhs = substitute(Dim(operation.getLhs()), replace), rhs = substitute(Dim(operation.getRhs()), replace);
      term *= operation.getFunction() == SizeFunction::FloorDiv ? floorDiv(lhs, rhs)
              : operation.getFunction() == SizeFunction::Min    ? min(lhs, rhs)
                                                                : max(lhs, rhs);
    }
    sum += term;
  }
  return sum;
}

void tessera::collectSymbols(Dim size, llvm::SetVector<SizeSymbolAttr> &symbols) {
  for (const SizeStep &step : size.isUnknown() ? SmallVector<SizeStep>() : toPostfix(size)) {
    if (step.symbol) {
      symbols.insert(step.symbol);
    }
  }
}

/// Appends the factor |name| to |text|, which may end with the factor "NUMBER*". A multiple of a quotient is reduced: 8
/// times the symbol "h/32", as the importer calls a dim h divided by 32, is "h/4".
static void appendName(std::string &text, StringRef name) {
  auto [whole, digits] = name.rsplit('/');
  StringRef term = text;
  bool hasFactor = term.consume_back("*");
  StringRef before = term.rtrim("0123456789"), number = term.drop_front(before.size());
  bool startsTerm = before.empty() || StringRef(" -(").contains(before.back()); // no digits of another name
  int64_t divisor = 0, factor = 0;
  if (!hasFactor || !startsTerm || whole.empty() || digits.getAsInteger(10, divisor) || divisor < 1 ||
      number.getAsInteger(10, factor)) {
    text += name;
    return;
  }
  int64_t common = std::gcd(factor, divisor);
  text.resize(before.size());
  text += (factor == common ? "" : std::to_string(factor / common) + "*") + whole.str() +
          (divisor == common ? "" : "/" + std::to_string(divisor / common));
}

std::string tessera::toText(Dim size) {
  if (!size.isSymbolic()) {
    return size.isKnown() ? std::to_string(size.value()) : "?";
  }
  std::string attribute, text;
  llvm::raw_string_ostream(attribute) << size.expression();
  StringRef rest = StringRef(attribute).drop_front(StringRef("#top.size<").size()).drop_back();
  while (!rest.empty()) {
    if (rest.consume_front("\"")) {
      auto [name, behind] = rest.split('"');
      appendName(text, name);
      rest = behind;
    } else if (rest.front() == '[') {
      rest = rest.split(']').second;
    } else {
      text += rest.front();
      rest = rest.drop_front();
    }
  }
  return text;
}

static void appendSteps(Dim size, SmallVectorImpl<SizeStep> &steps);

static void appendAtom(Attribute atom, SmallVectorImpl<SizeStep> &steps) {
  if (auto symbol = dyn_cast<SizeSymbolAttr>(atom)) {
    steps.push_back({SizeStep::Symbol, 0, symbol});
    return;
  }
  auto operation = cast<SizeOperationAttr>(atom);
  appendSteps(Dim(operation.getLhs()), steps);
  appendSteps(Dim(operation.getRhs()), steps);
  steps.push_back({operation.getFunction() == SizeFunction::FloorDiv ? SizeStep::FloorDiv
                   : operation.getFunction() == SizeFunction::Min    ? SizeStep::Min
                                                                     : SizeStep::Max,
                   0,
                   {}});
}

static void appendSteps(Dim size, SmallVectorImpl<SizeStep> &steps) {
  if (size.isKnown()) {
    steps.push_back({SizeStep::Number, size.value(), {}});
    return;
  }
  for (auto [i, coefficient] : llvm::enumerate(size.expression().getCoefficients())) {
    ArrayAttr product = size.expression().getMonomials()[i];
    bool startsWithNumber = coefficient != 1 || product.empty();
    if (startsWithNumber) {
      steps.push_back({SizeStep::Number, coefficient, {}});
    }
    for (auto [j, atom] : llvm::enumerate(product)) {
      appendAtom(atom, steps);
      if (j || startsWithNumber) {
        steps.push_back({SizeStep::Multiply, 0, {}});
      }
    }
    if (i) {
      steps.push_back({SizeStep::Add, 0, {}});
    }
  }
}

SmallVector<SizeStep> tessera::toPostfix(Dim size) {
  assert(!size.isUnknown() && "an unknown size cannot be computed");
  SmallVector<SizeStep> steps;
  appendSteps(size, steps);
  return steps;
}

//===--- types ------------------------------------------------------------===//

Shape::Shape(RankedTensorType type) : numbers(type.getShape()) {
  if (auto encoding = dyn_cast_or_null<SizesInterface>(type.getEncoding())) {
    sizes = encoding.getSizes();
  }
}

RankedTensorType tessera::tensorType(ArrayRef<Dim> sizes, Type element, Attribute layout) {
  MLIRContext *context = element.getContext();
  auto numbers = llvm::map_to_vector(
      sizes, [](Dim size) { return size.isKnown() ? size.value() : int64_t(ShapedType::kDynamic); });
  SmallVector<SizeAttr> attrs;
  if (llvm::any_of(sizes, [](Dim size) { return size.isSymbolic(); })) {
    attrs = llvm::map_to_vector(
        sizes, [&](Dim size) { return size.isUnknown() ? SizeAttr() : Polynomial(context, size).toAttr(); });
  }
  if (auto sized = dyn_cast_or_null<SizesInterface>(layout)) {
    layout = sized.withSizes(attrs);
  } else if (!attrs.empty()) {
    assert(!layout && "this layout cannot hold sizes");
    layout = DimsAttr::get(context, attrs);
  }
  return RankedTensorType::get(numbers, element, layout);
}

RankedTensorType tessera::withElement(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element, type.getEncoding());
}

RankedTensorType tessera::substitute(RankedTensorType type, llvm::function_ref<Dim(SizeSymbolAttr)> replace) {
  auto sizes = llvm::map_to_vector(Shape(type).dims(), [&](Dim size) { return substitute(size, replace); });
  return tensorType(sizes, type.getElementType(), type.getEncoding());
}

void tessera::collectSymbols(Shape shape, llvm::SetVector<SizeSymbolAttr> &symbols) {
  for (Dim size : shape.dims()) {
    collectSymbols(size, symbols);
  }
}

Dim tessera::countElements(Shape shape) {
  Dim count = 1;
  for (Dim size : shape.dims()) {
    count *= size;
  }
  return count;
}

//! Sets of values.

use std::cmp::Ordering;

use model::json::Value;

use crate::bound::Constant;
use crate::eval::{Datum, equal};

/// Values that a span leaves out; more are not noted, which makes it larger.
const EXCEPTIONS_MAX: usize = 16;

/// A set of values, undefined among them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Domain {
    pub(crate) undefined: bool,
    pub(crate) null: bool,
    pub(crate) no: bool,
    pub(crate) yes: bool,
    pub(crate) numbers: Values<f64>,
    pub(crate) strings: Values<String>,
    pub(crate) arrays: Structures,
    pub(crate) objects: Structures,
}

/// Values of a type that is in order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values<T> {
    /// In order, all different.
    Points(Vec<T>),
    Span(Span<T>),
}

/// Values between bounds, which belong to it or not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Span<T> {
    pub(crate) low: Option<(T, bool)>,
    pub(crate) high: Option<(T, bool)>,
    pub(crate) except: Vec<T>,
}

/// Arrays or objects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Structures {
    Points(Vec<Value>),
    Any,
}

impl<T: Clone + PartialOrd> Values<T> {
    pub(crate) const NONE: Values<T> = Values::Points(Vec::new());

    pub(crate) const fn all() -> Values<T> {
        Values::Span(Span { low: None, high: None, except: Vec::new() })
    }

    /// Values that are in no order, such as NaN, are equal to none and left out.
    pub(crate) fn points(points: impl IntoIterator<Item = T>) -> Values<T> {
        let ordered = |point: &T| point.partial_cmp(point).is_some();
        let mut points: Vec<T> = points.into_iter().filter(ordered).collect();
        points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(Ordering::Equal));
        points.dedup_by(|a, b| a == b);
        Values::Points(points)
    }

    pub(crate) fn span(low: Option<(T, bool)>, high: Option<(T, bool)>) -> Values<T> {
        Values::Span(Span { low, high, except: Vec::new() }).checked()
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Values::Points(points) if points.is_empty())
    }

    /// Whether no value is left out.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self, Values::Span(Span { low: None, high: None, except }) if except.is_empty())
    }

    /// The values, if they can be enumerated.
    pub(crate) fn as_points(&self) -> Option<&[T]> {
        match self {
            Values::Points(points) => Some(points),
            Values::Span(_) => None,
        }
    }

    fn contains(&self, value: &T) -> bool {
        match self {
            Values::Points(points) => {
                points.binary_search_by(|p| p.partial_cmp(value).unwrap_or(Ordering::Less)).is_ok()
            }
            Values::Span(Span { low, high, except }) => {
                let above =
                    low.as_ref().is_none_or(|(low, own)| value > low || (*own && value == low));
                let below =
                    high.as_ref().is_none_or(|(high, own)| value < high || (*own && value == high));
                above && below && !except.contains(value)
            }
        }
    }

    /// Turns a span with one value or none into points.
    fn checked(self) -> Values<T> {
        let Values::Span(Span { low: Some((low, from)), high: Some((high, to)), except }) = &self
        else {
            return self;
        };
        match low.partial_cmp(high) {
            Some(Ordering::Less) => self,
            Some(Ordering::Equal) if *from && *to && !except.contains(low) => {
                Values::Points(vec![low.clone()])
            }
            _ => Values::NONE,
        }
    }

    pub(crate) fn and(&self, other: &Values<T>) -> Values<T> {
        match (self, other) {
            (Values::Points(points), other) | (other, Values::Points(points)) => {
                Values::Points(points.iter().filter(|p| other.contains(p)).cloned().collect())
            }
            (Values::Span(a), Values::Span(b)) => {
                let low = tighter(&a.low, &b.low, Ordering::Greater);
                let high = tighter(&a.high, &b.high, Ordering::Less);
                let mut except = a.except.clone();
                except.extend(b.except.iter().cloned());
                except.truncate(EXCEPTIONS_MAX);
                Values::Span(Span { low, high, except }).checked()
            }
        }
    }

    /// Values of either; possibly more.
    pub(crate) fn or(&self, other: &Values<T>) -> Values<T> {
        match (self, other) {
            (Values::Points(a), Values::Points(b)) => Values::points(a.iter().chain(b).cloned()),
            (Values::Points(points), span) | (span, Values::Points(points)) => {
                if points.iter().all(|point| span.contains(point)) {
                    span.clone()
                } else {
                    Values::all()
                }
            }
            (a, b) if a == b => a.clone(),
            _ => Values::all(),
        }
    }

    /// The values without one.
    pub(crate) fn without(&self, value: &T) -> Values<T> {
        let except = vec![value.clone()];
        self.and(&Values::Span(Span { low: None, high: None, except }))
    }
}

/// The bound that leaves out more; `order` is how the tighter one compares to the other.
fn tighter<T: Clone + PartialOrd>(
    a: &Option<(T, bool)>,
    b: &Option<(T, bool)>,
    order: Ordering,
) -> Option<(T, bool)> {
    match (a, b) {
        (None, one) | (one, None) => one.clone(),
        (Some((a, a_own)), Some((b, b_own))) => match a.partial_cmp(b) {
            Some(Ordering::Equal) => Some((a.clone(), *a_own && *b_own)),
            Some(found) if found == order => Some((a.clone(), *a_own)),
            _ => Some((b.clone(), *b_own)),
        },
    }
}

/// Whether two values are equal in the language.
fn same(a: &Value, b: &Value) -> bool {
    equal(&Datum::owned(a.clone()), &Datum::owned(b.clone()))
}

impl Structures {
    pub(crate) const NONE: Structures = Structures::Points(Vec::new());

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Structures::Points(points) if points.is_empty())
    }

    pub(crate) fn as_points(&self) -> Option<&[Value]> {
        match self {
            Structures::Points(points) => Some(points),
            Structures::Any => None,
        }
    }

    fn and(&self, other: &Structures) -> Structures {
        match (self, other) {
            (Structures::Any, one) | (one, Structures::Any) => one.clone(),
            (Structures::Points(a), Structures::Points(b)) => {
                // Comparing takes long; the points of one side are a true answer, too.
                if a.len().saturating_mul(b.len()) > PAIRS_MAX {
                    return self.clone();
                }
                let common = a.iter().filter(|a| b.iter().any(|b| same(a, b)));
                Structures::Points(common.cloned().collect())
            }
        }
    }

    fn or(&self, other: &Structures) -> Structures {
        match (self, other) {
            (Structures::Any, _) | (_, Structures::Any) => Structures::Any,
            (Structures::Points(a), Structures::Points(b)) => {
                Structures::Points(a.iter().chain(b).cloned().collect())
            }
        }
    }
}

/// Pairs of arrays or objects that are compared.
const PAIRS_MAX: usize = 4_096;

impl Domain {
    pub(crate) const TRUE: Domain = Domain::flags(false, false, true);
    pub(crate) const FALSE: Domain = Domain::flags(false, true, false);
    pub(crate) const UNDEFINED: Domain = Domain::flags(true, false, false);

    pub(crate) const fn none() -> Domain {
        Domain::flags(false, false, false)
    }

    const fn flags(undefined: bool, no: bool, yes: bool) -> Domain {
        Domain {
            undefined,
            null: false,
            no,
            yes,
            numbers: Values::NONE,
            strings: Values::NONE,
            arrays: Structures::NONE,
            objects: Structures::NONE,
        }
    }

    pub(crate) fn any() -> Domain {
        Domain { undefined: true, ..Domain::defined() }
    }

    pub(crate) fn defined() -> Domain {
        Domain { arrays: Structures::Any, objects: Structures::Any, ..Domain::primitives() }
    }

    pub(crate) fn primitives() -> Domain {
        Domain {
            null: true,
            no: true,
            yes: true,
            numbers: Values::all(),
            strings: Values::all(),
            ..Domain::none()
        }
    }

    pub(crate) fn bools() -> Domain {
        Domain { no: true, yes: true, ..Domain::none() }
    }

    pub(crate) fn numbers() -> Domain {
        Domain { numbers: Values::all(), ..Domain::none() }
    }

    pub(crate) fn strings() -> Domain {
        Domain { strings: Values::all(), ..Domain::none() }
    }

    pub(crate) fn arrays() -> Domain {
        Domain { arrays: Structures::Any, ..Domain::none() }
    }

    pub(crate) fn objects() -> Domain {
        Domain { objects: Structures::Any, ..Domain::none() }
    }

    pub(crate) fn of_numbers(numbers: Values<f64>) -> Domain {
        Domain { numbers, ..Domain::none() }
    }

    pub(crate) fn of_strings(strings: Values<String>) -> Domain {
        Domain { strings, ..Domain::none() }
    }

    /// The one value.
    pub(crate) fn of(constant: &Constant) -> Domain {
        let value = match constant {
            Constant::Undefined => return Domain::UNDEFINED,
            // JSON has no word for some numbers.
            Constant::Number(number) => {
                let number = number.as_f64();
                if number.is_nan() {
                    return Domain::numbers();
                }
                return Domain::of_numbers(Values::points([number]));
            }
            Constant::String(text) => {
                return Domain::of_strings(Values::Points(vec![text.to_string()]));
            }
            Constant::Null | Constant::Bool(_) | Constant::Json(_) => constant.to_value(),
        };
        value.map_or_else(Domain::any, |value| Domain::of_value(&value))
    }

    pub(crate) fn of_value(value: &Value) -> Domain {
        let none = Domain::none();
        match value {
            Value::Null => Domain { null: true, ..none },
            Value::Bool(truth) => Domain { yes: *truth, no: !truth, ..none },
            Value::Number(number) => Domain::of_numbers(Values::points([number.as_f64()])),
            Value::String(text) => Domain::of_strings(Values::points([text.clone()])),
            Value::Array(_) => Domain { arrays: Structures::Points(vec![value.clone()]), ..none },
            Value::Object(_) => Domain { objects: Structures::Points(vec![value.clone()]), ..none },
        }
    }

    /// The values of a list, put together at once: there may be thousands.
    pub(crate) fn of_values(values: &[Value]) -> Domain {
        let mut all = Domain::none();
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        let (mut arrays, mut objects) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Value::Null => all.null = true,
                Value::Bool(true) => all.yes = true,
                Value::Bool(false) => all.no = true,
                Value::Number(number) => numbers.push(number.as_f64()),
                Value::String(text) => strings.push(text.clone()),
                Value::Array(_) => arrays.push(value.clone()),
                Value::Object(_) => objects.push(value.clone()),
            }
        }
        Domain {
            numbers: Values::points(numbers),
            strings: Values::points(strings),
            arrays: Structures::Points(arrays),
            objects: Structures::Points(objects),
            ..all
        }
    }

    pub(crate) fn is_defined_somewhere(&self) -> bool {
        !Domain { undefined: false, ..self.clone() }.is_empty()
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.undefined
            && !self.null
            && !self.no
            && !self.yes
            && self.numbers.is_empty()
            && self.strings.is_empty()
            && self.arrays.is_empty()
            && self.objects.is_empty()
    }

    pub(crate) fn is_any(&self) -> bool {
        *self == Domain::any()
    }

    /// Whether it is one value that is known.
    pub(crate) fn is_one(&self) -> bool {
        let flags = [self.undefined, self.null, self.no, self.yes];
        let flags = flags.into_iter().filter(|flag| *flag).count();
        let points = self
            .numbers
            .as_points()
            .map(<[f64]>::len)
            .zip(self.strings.as_points().map(<[String]>::len));
        let structures = self
            .arrays
            .as_points()
            .map(<[Value]>::len)
            .zip(self.objects.as_points().map(<[Value]>::len));
        let Some(((numbers, strings), (arrays, objects))) = points.zip(structures) else {
            return false;
        };
        flags + numbers + strings + arrays + objects == 1
    }

    pub(crate) fn and(&self, other: &Domain) -> Domain {
        Domain {
            undefined: self.undefined && other.undefined,
            null: self.null && other.null,
            no: self.no && other.no,
            yes: self.yes && other.yes,
            numbers: self.numbers.and(&other.numbers),
            strings: self.strings.and(&other.strings),
            arrays: self.arrays.and(&other.arrays),
            objects: self.objects.and(&other.objects),
        }
    }

    /// Values of either; possibly more.
    pub(crate) fn or(&self, other: Domain) -> Domain {
        Domain {
            undefined: self.undefined || other.undefined,
            null: self.null || other.null,
            no: self.no || other.no,
            yes: self.yes || other.yes,
            numbers: self.numbers.or(&other.numbers),
            strings: self.strings.or(&other.strings),
            arrays: self.arrays.or(&other.arrays),
            objects: self.objects.or(&other.objects),
        }
    }

    pub(crate) fn defined_part(&self) -> Domain {
        Domain { undefined: false, ..self.clone() }
    }

    /// All values but these, as far as that can be said: possibly more.
    pub(crate) fn complement(&self) -> Domain {
        let outside = |values: &Values<f64>| match values {
            Values::Points(points) => points.iter().fold(Values::all(), |all, p| all.without(p)),
            all if all.is_all() => Values::NONE,
            Values::Span(_) => Values::all(),
        };
        let strings = match &self.strings {
            Values::Points(points) => {
                points.iter().fold(Values::all(), |all: Values<String>, p| all.without(p))
            }
            all if all.is_all() => Values::NONE,
            Values::Span(_) => Values::all(),
        };
        let structures = |structures: &Structures| match structures {
            Structures::Any => Structures::NONE,
            Structures::Points(_) => Structures::Any,
        };
        Domain {
            undefined: !self.undefined,
            null: !self.null,
            no: !self.no,
            yes: !self.yes,
            numbers: outside(&self.numbers),
            strings,
            arrays: structures(&self.arrays),
            objects: structures(&self.objects),
        }
    }
}

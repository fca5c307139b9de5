//! Functions on arrays and sets.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::{Function, MANY, at, defined, only};
use crate::error::QueryError;
use crate::eval::{Ambient, Datum, Evaluated, Truth, Type, and, equal, identity, or, total_order};
use crate::number::Numeric;

pub(super) const TABLE: &[Function] = &[
    Function::new(&["ARRAY_CONCAT", "ARRAYCONCAT"], (2, MANY), concat),
    Function::new(&["ARRAY_LENGTH", "ARRAYLENGTH"], (1, 1), length),
    Function::new(&["ARRAY_SLICE", "ARRAYSLICE"], (2, 3), slice),
    Function::aware(&["ARRAY_CONTAINS", "ARRAYCONTAINS", "_TRY_ARRAY_CONTAINS"], (2, 3), contains)
        .taking_undefined(),
    Function::new(&["ARRAY_CONTAINS_ANY", "ARRAYCONTAINSANY"], (2, MANY), |a| {
        contains_each(a, Some(false), or)
    })
    .taking_undefined(),
    Function::new(&["ARRAY_CONTAINS_ALL", "ARRAYCONTAINSALL"], (2, MANY), |a| {
        contains_each(a, Some(true), and)
    })
    .taking_undefined(),
    Function::new(&["ARRAY_AVG", "ARRAYAVG"], (1, 1), average),
    Function::new(&["ARRAY_SUM", "ARRAYSUM"], (1, 1), sum),
    Function::new(&["ARRAY_MEDIAN", "ARRAYMEDIAN"], (1, 1), median),
    Function::new(&["ARRAY_MIN", "ARRAYMIN"], (1, 1), |a| extreme(a, false)),
    Function::new(&["ARRAY_MAX", "ARRAYMAX"], (1, 1), |a| extreme(a, true)),
    Function::new(&["SETUNION", "SET_UNION"], (2, 2), set_union),
    Function::new(&["SETINTERSECT", "SET_INTERSECT"], (2, 2), set_intersect),
    Function::new(&["SETDIFFERENCE", "SET_DIFFERENCE"], (2, 2), set_difference),
    Function::new(&["SETEQUAL", "SET_EQUAL"], (2, 2), set_equal),
    Function::new(&["OBJECTTOARRAY", "_OBJECTTOARRAY"], (1, 3), object_to_array)
        .sized(object_to_array_bytes),
];

fn concat<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let arrays: Option<Vec<_>> = arguments.iter().map(Datum::elements).collect();
    defined(arrays.map(|arrays| Datum::array(arrays.into_iter().flatten())))
}

fn length<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined(only(arguments).elements().map(|elements| Datum::count(elements.len())))
}

/// A negative start counts from the end; everything out of range is cut off.
fn slice<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let elements = at(arguments, 0).elements()?;
        let length = i64::try_from(elements.len()).ok()?;
        let start = at(arguments, 1).as_i64()?;
        let start = if start < 0 { start.saturating_add(length).max(0) } else { start };
        let count = match arguments.get(2) {
            Some(count) => count.as_i64()?.max(0),
            None => length,
        };
        let (start, count) = (usize::try_from(start).ok()?, usize::try_from(count).ok()?);
        Some(Datum::array(elements.into_iter().skip(start).take(count)))
    })())
}

/// With a third argument that is true, an object matches an element that has its members
/// and more.
fn contains<'a>(ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
    let (wanted, partially) = (at(arguments, 1), at(arguments, 2));
    let flag = if arguments.len() > 2 { partially.as_bool() } else { Some(false) };
    let given = at(arguments, 0).elements().zip(flag).filter(|_| wanted.is_defined());
    let Some((elements, in_part)) = given else { return Ok(Datum::Undefined) };
    let parts = if in_part { wanted.members() } else { None };
    let kind = wanted.type_of();
    // Made once: the wanted value may be as large as the array.
    let wanted = identity(wanted);
    for element in elements.iter().filter(|element| element.type_of() == kind) {
        let found = match &parts {
            Some(parts) => has_parts(element, parts, ambient)?,
            None => identity(element) == wanted,
        };
        if found {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

fn has_parts(
    element: &Datum<'_>,
    parts: &[(Cow<'_, str>, Datum<'_>)],
    ambient: &Ambient,
) -> Result<bool, QueryError> {
    for (name, value) in parts {
        ambient.budget.spend_steps(1)?;
        ambient.budget.spend_reading(element.effort())?;
        if !equal(value, &element.get(name)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Combines the answers for all values in three-valued logic.
fn contains_each<'a>(
    arguments: &[Datum<'a>],
    start: Truth,
    join: fn(Truth, Truth) -> Truth,
) -> Datum<'a> {
    let Some(elements) = only(arguments).elements() else { return Datum::Undefined };
    // A set, because both the array and the list of values may be long.
    let elements = identities(&elements);
    let holds =
        |wanted: &Datum<'_>| wanted.is_defined().then(|| elements.contains(&identity(wanted)));
    arguments.iter().skip(1).map(holds).fold(start, join).into()
}

fn numbers(arguments: &[Datum<'_>]) -> Option<Vec<Numeric>> {
    only(arguments).elements()?.iter().map(Datum::as_numeric).collect()
}

/// Integers add up to an integer as long as that has 64 bits.
fn total(numbers: &[Numeric]) -> Numeric {
    let plus = |sum: Numeric, number: &Numeric| {
        match (sum, *number) {
            (Numeric::Integer(a), Numeric::Integer(b)) => a.checked_add(b).map(Numeric::Integer),
            _ => None,
        }
        .unwrap_or_else(|| Numeric::Double(sum.as_f64() + number.as_f64()))
    };
    numbers.iter().fold(Numeric::Integer(0), plus)
}

fn average<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let numbers = numbers(arguments)?;
        let count = Datum::count(numbers.len()).as_f64().filter(|count| *count > 0.0)?;
        Some(Datum::number(total(&numbers).as_f64() / count))
    })())
}

fn sum<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let given = numbers(arguments).filter(|numbers| !numbers.is_empty());
    defined(given.map(|numbers| Datum::number(total(&numbers))))
}

fn median<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let mut numbers = numbers(arguments)?;
        numbers.sort_by(|a, b| a.as_f64().total_cmp(&b.as_f64()));
        let half = numbers.len() / 2;
        if !numbers.len().is_multiple_of(2) {
            return Some(Datum::number(*numbers.get(half)?));
        }
        let middle = numbers.get(half.checked_sub(1)?..=half)?;
        Some(Datum::number(total(middle).as_f64() / 2.0))
    })())
}

/// Among primitives, by type and then by value.
fn extreme<'a>(arguments: &[Datum<'a>], largest: bool) -> Datum<'a> {
    defined((|| {
        let elements = only(arguments).elements()?;
        let structured = |d: &Datum<'_>| matches!(d.type_of(), Type::Array | Type::Object);
        if elements.iter().any(structured) {
            return None;
        }
        let mut elements = elements.into_iter();
        if largest { elements.max_by(total_order) } else { elements.by_ref().min_by(total_order) }
    })())
}

fn two_sets<'a>(arguments: &[Datum<'a>]) -> Option<(Vec<Datum<'a>>, Vec<Datum<'a>>)> {
    Some((at(arguments, 0).elements()?, at(arguments, 1).elements()?))
}

fn identities(elements: &[Datum<'_>]) -> BTreeSet<String> {
    elements.iter().map(identity).collect()
}

/// The first of each value for which `keeps` holds.
fn distinct<'a>(elements: Vec<Datum<'a>>, keeps: impl Fn(&str) -> bool) -> Datum<'a> {
    let mut seen = BTreeSet::new();
    Datum::array(elements.into_iter().filter(move |element| {
        let identity = identity(element);
        keeps(&identity) && seen.insert(identity)
    }))
}

fn set_union<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined(two_sets(arguments).map(|(mut first, second)| {
        first.extend(second);
        distinct(first, |_| true)
    }))
}

/// In the order of the first set, or of the second if all of it is in a longer one.
fn set_intersect<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined(two_sets(arguments).map(|(first, second)| {
        let (in_first, in_second) = (identities(&first), identities(&second));
        let whole = in_second.len() == second.len() && in_second.is_subset(&in_first);
        match whole && second.len() < first.len() {
            true => Datum::array(second),
            false => distinct(first, |identity| in_second.contains(identity)),
        }
    }))
}

fn set_difference<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined(two_sets(arguments).map(|(first, second)| {
        let second = identities(&second);
        distinct(first, |identity| !second.contains(identity))
    }))
}

fn set_equal<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let same = |(first, second): (Vec<_>, Vec<_>)| identities(&first) == identities(&second);
    defined(two_sets(arguments).map(|sets| Datum::Bool(same(sets))))
}

/// The names that the caller chose are in every element.
fn object_to_array_bytes(arguments: &[Datum<'_>]) -> usize {
    let members = only(arguments).members().map_or(0, |members| members.len());
    let names: usize =
        arguments.iter().skip(1).filter_map(Datum::as_str).map(|name| name.len()).sum();
    only(arguments).weight().saturating_add(members.saturating_mul(names))
}

/// Members as objects with a name and a value, called `k` and `v` unless the caller names
/// them.
fn object_to_array<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let members = only(arguments).members()?;
        let called = |place: usize, fallback: &str| match arguments.get(place) {
            Some(name) => Some(name.as_str()?.into_owned()),
            None => Some(fallback.to_owned()),
        };
        let (name_key, value_key) = (called(1, "k")?, called(2, "v")?);
        Some(Datum::array(members.into_iter().map(|(name, value)| {
            Datum::object([
                (name_key.clone().into(), Datum::String(name)),
                (value_key.clone().into(), value),
            ])
        })))
    })())
}

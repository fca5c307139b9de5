//! The types that functions take and give.
//!
//! One table: what a function takes at each place, and what it gives. An argument that
//! can only be of another type makes a call undefined. Functions that are not in it take
//! and give anything. A test holds every line against the function itself.

use super::domain::{Domain, Structures, Values};

/// Letters for types, as the table writes them: number, string, bool, array, object,
/// null; `d` is anything but undefined, `*` anything at all.
type Types = &'static str;

/// Names, what they take (the last place stands for all that follow), what they give.
/// A `?` behind what is given says that it may be undefined with arguments that fit.
const TABLE: &[(&[&str], &[Types], Types)] = &[
    (
        &[
            "IS_ARRAY",
            "IS_BOOL",
            "IS_NULL",
            "IS_NUMBER",
            "IS_OBJECT",
            "IS_STRING",
            "IS_DEFINED",
            "IS_PRIMITIVE",
            "IS_INTEGER",
            "IS_FINITE_NUMBER",
            "IS_DATETIME",
        ],
        &["*"],
        "b",
    ),
    (
        &[
            "ABS",
            "ACOS",
            "ASIN",
            "ATAN",
            "ATN2",
            "CEILING",
            "COS",
            "COT",
            "DEGREES",
            "EXP",
            "FLOOR",
            "LOG",
            "LOG10",
            "NUMBERBIN",
            "POWER",
            "RADIANS",
            "ROUND",
            "SIGN",
            "SIN",
            "SQRT",
            "SQUARE",
            "TAN",
            "TRUNC",
            "INTADD",
            "INTSUB",
            "INTMUL",
            "INTDIV",
            "INTMOD",
            "INTBITAND",
            "INTBITOR",
            "INTBITXOR",
            "INTBITNOT",
            "INTBITLEFTSHIFT",
            "INTBITRIGHTSHIFT",
        ],
        &["n"],
        "n?",
    ),
    (&["PI", "RAND", "GETCURRENTTICKS", "GETCURRENTTIMESTAMP"], &[], "n"),
    (&["GETCURRENTDATETIME"], &[], "s"),
    (&["CONCAT"], &["s"], "s?"),
    (&["CONTAINS", "STARTSWITH", "ENDSWITH", "STRINGEQUALS"], &["s", "s", "b"], "b?"),
    (
        &["CONTAINS_ALL_CS", "CONTAINS_ALL_CI", "CONTAINS_ANY_CS", "CONTAINS_ANY_CI"],
        &["s", "*"],
        "b?",
    ),
    (&["INDEX_OF"], &["s", "s", "n"], "n?"),
    (&["LASTINDEXOF"], &["s", "s", "n?"], "n?"),
    (
        &["SUBSTRINGBEFORE", "SUBSTRINGAFTER", "LASTSUBSTRINGBEFORE", "LASTSUBSTRINGAFTER"],
        &["s", "s"],
        "s?",
    ),
    (&["LEFT", "RIGHT", "REPLICATE"], &["s", "n"], "s?"),
    (&["SUBSTRING"], &["s", "n", "n"], "s?"),
    (&["LENGTH"], &["s"], "n?"),
    (&["LOWER", "UPPER", "REVERSE", "TRIM", "LTRIM", "RTRIM", "REPLACE"], &["s"], "s?"),
    (&["STRINGJOIN"], &["a", "s"], "s?"),
    (&["STRINGSPLIT"], &["s", "s"], "a?"),
    (&["TOSTRING"], &["d"], "s?"),
    (&["STRINGTOARRAY"], &["s"], "a?"),
    (&["STRINGTOBOOLEAN"], &["s"], "b?"),
    (&["STRINGTONULL"], &["s"], "0?"),
    (&["STRINGTONUMBER"], &["s"], "n?"),
    (&["STRINGTOOBJECT"], &["s"], "o?"),
    (&["REGEXMATCH"], &["s", "s", "s"], "b?"),
    (&["REGEXREPLACE", "REGEXREPLACEALL"], &["s"], "s?"),
    (&["REGEXEXTRACT"], &["s", "s", "s", "n"], "s?"),
    (&["REGEXEXTRACTALL"], &["s", "s", "s", "na"], "a?"),
    (&["ARRAY_CONCAT", "SETUNION", "SETINTERSECT", "SETDIFFERENCE"], &["a"], "a?"),
    (&["SETEQUAL"], &["a"], "b?"),
    (&["ARRAY_LENGTH", "ARRAY_AVG", "ARRAY_SUM", "ARRAY_MEDIAN"], &["a"], "n?"),
    (&["ARRAY_MIN", "ARRAY_MAX"], &["a"], "*"),
    (&["ARRAY_SLICE"], &["a", "n", "n"], "a?"),
    (&["ARRAY_CONTAINS"], &["a", "d", "b"], "b?"),
    (&["ARRAY_CONTAINS_ANY", "ARRAY_CONTAINS_ALL"], &["a", "*"], "b?"),
    (&["OBJECTTOARRAY"], &["o", "*"], "a?"),
    (&["DATETIMEADD"], &["s", "n", "s"], "s?"),
    (&["DATETIMEBIN"], &["s", "s", "n", "s"], "s?"),
    (
        &[
            "DATETIMEDIFF",
            "DATETIMEPART",
            "DATETIMETOTICKS",
            "DATETIMETOTIMESTAMP",
            "YEAR",
            "MONTH",
            "DAY",
        ],
        &["s"],
        "n?",
    ),
    (&["AGO", "NOW"], &["s", "n"], "s?"),
    (&["DOCUMENTID"], &["o"], "n?"),
    (&["HASH"], &["*"], "n?"),
    (&["ST_AREA"], &["*"], "n?"),
    (&["DATETIMEFORMAT"], &["s"], "s?"),
    (&["DATETIMEFROMPARTS"], &["n"], "s?"),
    (&["TICKSTODATETIME", "TIMESTAMPTODATETIME"], &["n", "s"], "s?"),
    (&["ST_ISVALID"], &["*"], "b?"),
    (&["ST_DISTANCE"], &["o", "o"], "n?"),
    (&["ST_WITHIN", "ST_INTERSECTS"], &["*"], "b?"),
];

/// The values of types.
fn domain(types: Types) -> Domain {
    let mut all = Domain::none();
    for letter in types.chars() {
        match letter {
            '*' => return Domain::any(),
            'd' => return Domain::defined(),
            '?' => all.undefined = true,
            '0' => all.null = true,
            'n' => all.numbers = Values::all(),
            's' => all.strings = Values::all(),
            'a' => all.arrays = Structures::Any,
            'o' => all.objects = Structures::Any,
            'b' => (all.yes, all.no) = (true, true),
            _ => return Domain::any(),
        }
    }
    all
}

fn line(name: &str) -> Option<(&'static [Types], Types)> {
    let found = TABLE.iter().find(|(names, ..)| names.contains(&name));
    found.map(|(_, takes, gives)| (*takes, *gives))
}

/// What a function takes at a place.
pub(super) fn takes(name: &str, place: usize) -> Domain {
    let takes = line(name).map_or(&[][..], |(takes, _)| takes);
    takes.get(place).or(takes.last()).map_or_else(Domain::any, |types| domain(types))
}

/// With one argument less, these take a time span in place of part and count.
pub(super) fn is_short(name: &str, arguments: usize) -> bool {
    matches!((name, arguments), ("DATETIMEADD", 2) | ("NOW" | "AGO", 1))
}

/// What a call can give, by the values that its arguments can have.
pub(super) fn results(name: &str, arguments: &[Domain]) -> Domain {
    let Some((_, gives)) = line(name) else { return Domain::any() };
    if is_short(name, arguments.len()) {
        return domain(gives);
    }
    let fits = |(place, values): (usize, &Domain)| !values.and(&takes(name, place)).is_empty();
    if arguments.iter().enumerate().all(fits) { domain(gives) } else { Domain::UNDEFINED }
}

#[cfg(test)]
mod tests {
    use model::json::Value;

    use super::*;
    use crate::{Parameters, evaluate};

    /// Arguments, with the letters of their types; `?` is undefined.
    const SAMPLES: [(&str, Types); 12] = [
        ("1", "n"),
        ("'a'", "s"),
        ("[1, 'a']", "a"),
        ("true", "b"),
        ("undefined", "?"),
        ("null", "0"),
        ("{'a': 1}", "o"),
        ("-2.5", "n"),
        ("'2020-01-02T03:04:05Z'", "s"),
        ("'day'", "s"),
        ("{'type': 'Point', 'coordinates': [1, 2]}", "o"),
        ("'[null]'", "s"),
    ];

    /// How many of the samples stand at each place, by the number of places.
    const SAMPLES_USED: [usize; 5] = [0, 12, 12, 6, 4];

    /// Further lists of arguments, for functions that give nothing for most.
    const MORE: [&[(&str, Types)]; 9] = [
        &[("['a']", "a"), ("'b'", "s")],
        &[("'true'", "s")],
        &[("'null'", "s")],
        &[("'1'", "s")],
        &[("'{}'", "s")],
        &[("[1]", "a")],
        &[("'day'", "s"), ("1", "n"), ("'2020-01-02T03:04:05Z'", "s")],
        &[("'day'", "s"), ("'2020-01-02T03:04:05Z'", "s"), ("'2020-01-02T03:04:05Z'", "s")],
        &[("2020", "n"), ("1", "n"), ("2", "n")],
    ];

    /// What has a value for items only.
    const OF_ITEMS: &str = "DOCUMENTID";

    fn types_of(value: Option<&Value>) -> Types {
        match value {
            None => "?",
            Some(Value::Null) => "0",
            Some(Value::Bool(_)) => "b",
            Some(Value::Number(_)) => "n",
            Some(Value::String(_)) => "s",
            Some(Value::Array(_)) => "a",
            Some(Value::Object(_)) => "o",
        }
    }

    /// All lists of samples of one length.
    fn lists(length: usize) -> Vec<Vec<(&'static str, Types)>> {
        (0..length).fold(vec![Vec::new()], |lists, _| {
            let used = &SAMPLES[..SAMPLES_USED[length]];
            let longer = |list: &Vec<_>, sample| [list.as_slice(), &[sample]].concat();
            lists.iter().flat_map(|list| used.iter().map(move |own| longer(list, *own))).collect()
        })
    }

    #[test]
    fn functions_give_what_the_table_says() {
        let names = || TABLE.iter().flat_map(|(names, ..)| names.iter().copied());
        let mut without_value: std::collections::BTreeSet<&str> = names().collect();
        let more = MORE.iter().map(|list| list.to_vec());
        for arguments in (0..SAMPLES_USED.len()).flat_map(lists).chain(more) {
            let domains: Vec<Domain> = arguments.iter().map(|(_, own)| domain(own)).collect();
            let texts: Vec<&str> = arguments.iter().map(|(text, _)| *text).collect();
            for name in names() {
                let call = format!("{name}({})", texts.join(", "));
                // Some take other numbers of arguments, or literals of a certain form.
                let Ok(value) = evaluate(&call, &Parameters::none()) else { continue };
                let found = domain(types_of(value.as_ref()));
                let promised = results(name, &domains);
                assert!(!promised.and(&found).is_empty(), "{call} gives {value:?}");
                if value.is_some() {
                    without_value.remove(name);
                }
            }
        }
        assert_eq!(Vec::from_iter(without_value), [OF_ITEMS], "nothing was tried that has a value");
    }
}

//! Query metrics: what clients may learn about the work behind a page.
//!
//! Times and counts are all measured. Which indexes a query uses follows from its text
//! (`query::IndexUse`).

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::json::{Object, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use service::{Advice, Impact, IndexSpec, IndexUse, QueryReport};

/// The service's name for the order of hashed keys, along which the items of one key are
/// found.
const HASHED_KEY: &str = "/_epk/?";

/// `name=value;…` without a trailing semicolon: some clients refuse an empty last piece.
#[must_use]
pub fn of(report: &QueryReport) -> String {
    let times = [
        ("totalExecutionTimeInMs", report.times.total),
        ("queryCompileTimeInMs", report.times.parsing),
        ("queryLogicalPlanBuildTimeInMs", report.times.binding),
        ("queryPhysicalPlanBuildTimeInMs", report.times.choosing),
        ("queryOptimizationTimeInMs", report.times.aiming),
        ("VMExecutionTimeInMs", report.times.running),
        ("indexLookupTimeInMs", report.times.finding),
        ("documentLoadTimeInMs", report.times.loading),
        ("systemFunctionExecuteTimeInMs", report.times.system_functions),
        ("userFunctionExecuteTimeInMs", report.times.user_functions),
    ];
    let counts = [
        ("retrievedDocumentCount", report.items),
        ("retrievedDocumentSize", report.bytes),
        ("outputDocumentCount", report.rows),
        ("outputDocumentSize", report.row_bytes),
    ];
    let times = times.iter().map(|(name, time)| format!("{name}={}", milliseconds(*time)));
    let counts = counts.iter().map(|(name, count)| format!("{name}={count}"));
    let rest = [
        format!("writeOutputTimeInMs={}", milliseconds(report.times.writing)),
        format!("indexUtilizationRatio={:.2}", ratio(report)),
    ];
    times.chain(counts).chain(rest).collect::<Vec<_>>().join(";")
}

/// To the tenth of a microsecond: on a small container nothing takes longer.
fn milliseconds(time: Duration) -> String {
    format!("{:.4}", time.as_secs_f64() * 1_000.0)
}

/// The fraction of loaded items that gave a row.
fn ratio(report: &QueryReport) -> f64 {
    let count = |count: u64| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    if report.items == 0 { 1.0 } else { count(report.hits) / count(report.items) }
}

/// The access path, for people and tests.
#[must_use]
pub fn explained(report: &QueryReport) -> String {
    let number = |count: u64| Value::from(i64::try_from(count).unwrap_or(i64::MAX));
    let partitions = report.partitions.iter().map(ToString::to_string);
    let object = Object::from_iter([
        ("access", Value::from(report.access.as_str())),
        ("partitions", partitions.collect::<Value>()),
        ("entries", number(report.entries)),
        ("items", number(report.items)),
        ("bytes", number(report.bytes)),
    ]);
    ascii(&Value::Object(object).to_string())
}

/// Headers carry only ASCII; in JSON every other character can be escaped.
fn ascii(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for character in json.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units);
            out.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

/// The first form of index metrics: base 64 of four lists.
#[must_use]
pub fn index_use(usage: &IndexUse, keyed: bool) -> String {
    let used = used(usage, keyed);
    let single = |path: &str, impact: Impact| {
        Object::from_iter([
            ("FilterExpression", Value::from("")),
            ("IndexSpec", Value::from(path)),
            ("FilterPreciseSet", Value::from(true)),
            ("IndexPreciseSet", Value::from(true)),
            ("IndexImpactScore", Value::from(score(impact))),
        ])
    };
    let composite = |parts: Value| {
        Object::from_iter([
            ("IndexSpecs", parts),
            ("IndexPreciseSet", Value::from(false)),
            ("IndexImpactScore", Value::from(score(Impact::High))),
        ])
    };
    let lists = Object::from_iter([
        ("UtilizedSingleIndexes", singles(&used, single)),
        ("PotentialSingleIndexes", singles(&usage.wanted, single)),
        ("UtilizedCompositeIndexes", composites(&used, composite)),
        ("PotentialCompositeIndexes", composites(&usage.wanted, composite)),
    ]);
    STANDARD.encode(Value::Object(lists).to_string())
}

fn score(impact: Impact) -> &'static str {
    match impact {
        Impact::Low => "Low",
        Impact::High => "High",
    }
}

/// The second form: two objects, percent-encoded. Clients pass on the text as it is, so its
/// names and their order are what programs know. Only missing indexes have a score.
#[must_use]
pub fn index_use_v2(usage: &IndexUse, keyed: bool) -> String {
    let lists = |specs: &[IndexSpec], scored: bool| {
        let with_score = |mut object: Object, impact: Impact| {
            if scored {
                object.insert("IndexImpactScore", score(impact));
            }
            object
        };
        let single = |path: &str, impact: Impact| {
            with_score(Object::from_iter([("IndexSpec", path)]), impact)
        };
        let composite =
            |parts: Value| with_score(Object::from_iter([("IndexSpecs", parts)]), Impact::High);
        Object::from_iter([
            ("SingleIndexes", singles(specs, single)),
            ("CompositeIndexes", composites(specs, composite)),
        ])
    };
    let both = Object::from_iter([
        ("UtilizedIndexes", lists(&used(usage, keyed), false)),
        ("PotentialIndexes", lists(&usage.wanted, true)),
    ]);
    percent_encoded(&Value::Object(both).to_string())
}

fn used(usage: &IndexUse, keyed: bool) -> Vec<IndexSpec> {
    let key = IndexSpec::Single { path: HASHED_KEY.to_owned(), impact: Impact::High };
    keyed.then_some(key).into_iter().chain(usage.used.iter().cloned()).collect()
}

fn singles(specs: &[IndexSpec], object: impl Fn(&str, Impact) -> Object) -> Value {
    let single = |spec: &IndexSpec| match spec {
        IndexSpec::Single { path, impact } => Some(object(path, *impact)),
        IndexSpec::Composite(_) => None,
    };
    specs.iter().filter_map(single).collect()
}

fn composites(specs: &[IndexSpec], object: impl Fn(Value) -> Object) -> Value {
    let part = |(path, descending): &(String, bool)| {
        format!("{path} {}", if *descending { "DESC" } else { "ASC" })
    };
    let composite = |spec: &IndexSpec| match spec {
        IndexSpec::Single { .. } => None,
        IndexSpec::Composite(parts) => Some(object(parts.iter().map(part).collect())),
    };
    specs.iter().filter_map(composite).collect()
}

/// Advice by number, percent-encoded; `None` if there is none.
#[must_use]
pub fn advice(advice: &[Advice]) -> Option<String> {
    let entry = |advice: &Advice| {
        Object::from_iter([("Id", Value::from(advice.id())), ("Params", Value::Array(Vec::new()))])
    };
    let entries: Value = advice.iter().map(entry).collect();
    (!advice.is_empty()).then(|| percent_encoded(&entries.to_string()))
}

/// All but what is never encoded in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> IndexUse {
        let single = |path: &str, impact| IndexSpec::Single { path: path.to_owned(), impact };
        let composite = vec![("/a".to_owned(), false), ("/b".to_owned(), true)];
        let wanted = vec![("/a".to_owned(), false), ("/c".to_owned(), false)];
        IndexUse {
            used: vec![single("/a/?", Impact::High), IndexSpec::Composite(composite)],
            wanted: vec![single("/\"ä b\"/?", Impact::Low), IndexSpec::Composite(wanted)],
        }
    }

    #[test]
    fn the_first_form_is_base_64_of_four_lists() {
        let decoded = STANDARD.decode(index_use(&usage(), true)).unwrap();
        let single = |path: &str, score: &str| {
            format!(
                r#"{{"FilterExpression":"","IndexSpec":"{path}","FilterPreciseSet":true,"IndexPreciseSet":true,"IndexImpactScore":"{score}"}}"#
            )
        };
        let composite = |paths: &str| {
            format!(
                r#"{{"IndexSpecs":[{paths}],"IndexPreciseSet":false,"IndexImpactScore":"High"}}"#
            )
        };
        let expected = format!(
            r#"{{"UtilizedSingleIndexes":[{},{}],"PotentialSingleIndexes":[{}],"UtilizedCompositeIndexes":[{}],"PotentialCompositeIndexes":[{}]}}"#,
            single("/_epk/?", "High"),
            single("/a/?", "High"),
            single(r#"/\"ä b\"/?"#, "Low"),
            composite(r#""/a ASC","/b DESC""#),
            composite(r#""/a ASC","/c ASC""#),
        );
        assert_eq!(String::from_utf8(decoded).unwrap(), expected);
    }

    #[test]
    fn the_second_form_is_percent_encoded() {
        let encoded = index_use_v2(&usage(), false);
        let expected = concat!(
            r#"{"UtilizedIndexes":{"SingleIndexes":[{"IndexSpec":"/a/?"}],"#,
            r#""CompositeIndexes":[{"IndexSpecs":["/a ASC","/b DESC"]}]},"#,
            r#""PotentialIndexes":{"SingleIndexes":[{"IndexSpec":"/\"ä b\"/?","IndexImpactScore":"Low"}],"#,
            r#""CompositeIndexes":[{"IndexSpecs":["/a ASC","/c ASC"],"IndexImpactScore":"High"}]}}"#,
        );
        assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"%_".contains(&byte)));
        assert!(encoded.contains("%5C%22%C3%A4%20b%5C%22"), "{encoded}");
        assert_eq!(percent_encoded(expected), encoded);
    }

    #[test]
    fn advice_is_percent_encoded() {
        assert_eq!(advice(&[]), None);
        let some = advice(&[Advice::Contains, Advice::CaselessEnd]);
        let text = r#"[{"Id":"QA1002","Params":[]},{"Id":"QA1004","Params":[]}]"#;
        assert_eq!(some, Some(percent_encoded(text)));
    }

    #[test]
    fn explanations_are_ascii() {
        assert_eq!(ascii("aä🚀"), "a\\u00e4\\ud83d\\ude80");
    }
}

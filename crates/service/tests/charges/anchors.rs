//! The charges that are known of the service, as a table.

const FILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/partitioning/ru_anchors.csv");

/// The page whose table of 2026 gives read and write charges by size.
const TABLE_OF_2026: &str = "understand-request-unit-consumption";

#[derive(Debug)]
pub(crate) struct Anchor {
    pub(crate) id: String,
    pub(crate) operation: String,
    pub(crate) item_kb: String,
    pub(crate) charge: String,
    exactness: String,
    source: String,
}

impl Anchor {
    /// Whether it is one of the exact numbers by size.
    pub(crate) fn calibrates_2026(&self) -> bool {
        self.source == TABLE_OF_2026
            && matches!(self.exactness.as_str(), "exact" | "truncated")
            && self.published().is_some()
    }

    pub(crate) fn is_query(&self) -> bool {
        self.id.starts_with('Q')
    }

    /// The prefix of a number that is no measurement.
    pub(crate) fn sign(&self) -> &'static str {
        if self.exactness == "approx" { "~" } else { "" }
    }

    /// The charge in request units, where it is a number.
    pub(crate) fn published(&self) -> Option<f64> {
        self.charge.parse().ok()
    }

    /// The numbers of a row that has several: `7.72 / 8.92`.
    pub(crate) fn all_published(&self) -> Vec<f64> {
        let is_other = |character: char| !character.is_ascii_digit() && character != '.';
        self.charge.split(is_other).filter_map(|number| number.parse().ok()).collect()
    }

    pub(crate) fn bytes(&self) -> Option<usize> {
        Some(self.item_kb.parse::<usize>().ok()? * 1024)
    }
}

/// All rows; `None` if the file is absent and need not be there.
pub(crate) fn read() -> Option<Vec<Anchor>> {
    let text = std::fs::read_to_string(FILE).ok();
    let required = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(text.is_some() || !required, "{FILE} is required in CI");
    Some(text?.lines().skip(1).map(anchor).collect())
}

fn anchor(line: &str) -> Anchor {
    let fields = fields(line);
    let [id, operation, item_kb, _, _, charge, exactness, _, source, ..] = fields.as_slice() else {
        panic!("a row has eleven columns: {line}")
    };
    Anchor {
        id: id.clone(),
        operation: operation.clone(),
        item_kb: item_kb.clone(),
        charge: charge.clone(),
        exactness: exactness.clone(),
        source: source.clone(),
    }
}

/// The fields of a line, some of which are quoted because of their commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().expect("there is a first field").push(other),
        }
    }
    fields
}

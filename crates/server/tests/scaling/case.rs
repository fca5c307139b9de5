//! The table of cases, parsed into what can be played.

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) profile: String,
    pub(crate) start: Start,
    pub(crate) step: Step,
    /// The expected result; more than one where a setting decides.
    pub(crate) expected: Vec<Expected>,
}

#[derive(Debug)]
pub(crate) enum Start {
    Nothing,
    Stands { partitions: u32, throughput: u32 },
}

#[derive(Debug)]
pub(crate) enum Step {
    Create {
        headers: String,
    },
    /// Creating a container without a key is refused with a text.
    Refused {
        throughput: u32,
        text: String,
    },
    /// One after the other.
    Scale(Vec<u32>),
    Redistribute(Vec<(u32, u32)>),
    LowerAndMerge(u32),
    StorageSplit,
}

#[derive(Debug)]
pub(crate) struct Expected {
    /// Who gets the throughput of a partition that is split for its storage.
    pub(crate) division: &'static str,
    pub(crate) partitions: usize,
    pub(crate) ids: Option<Vec<String>>,
    pub(crate) instant: Option<bool>,
    /// One for all, or one each.
    pub(crate) shares: Vec<u32>,
}

impl Case {
    pub(crate) fn parse(line: &str) -> Case {
        let fields = fields(line);
        let [name, start, start_ru, action, partitions, shares, _, profile] = fields.as_slice()
        else {
            panic!("eight columns: {line}")
        };
        let step = parse_step(action, shares);
        Case {
            name: name.clone(),
            profile: profile.clone(),
            start: parse_start(start, start_ru, &step),
            expected: parse_expected(partitions, shares, &step),
            step,
        }
    }
}

/// The fields of a line; some are quoted.
fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut quoted) = (vec![String::new()], false);
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields
}

/// All whole numbers in a text, in their order.
fn numbers(text: &str) -> Vec<u32> {
    let digits = text.split(|character: char| !character.is_ascii_digit());
    digits.filter(|digits| !digits.is_empty()).map(|digits| digits.parse().unwrap()).collect()
}

fn parse_step(action: &str, shares: &str) -> Step {
    let numbers = numbers(action);
    match action.split(' ').next().unwrap() {
        "create" if action.contains("autoscale") => {
            let max = numbers[0];
            let settings = format!(r#"{{"maxThroughput":{max}}}"#);
            Step::Create {
                headers: format!("x-ms-cosmos-offer-autopilot-settings: {settings}\r\n"),
            }
        }
        "create" if action.contains("without key") => {
            Step::Refused { throughput: numbers[0] + 100, text: shares.replace('\'', "") }
        }
        "create" => Step::Create { headers: format!("x-ms-offer-throughput: {}\r\n", numbers[0]) },
        "scale" => Step::Scale(numbers),
        "redistribute" => {
            let pairs = numbers.chunks(2).map(|pair| (pair[0], pair[1]));
            Step::Redistribute(pairs.collect())
        }
        "set" => Step::Redistribute(vec![(1, numbers[0])]),
        "lower" => Step::LowerAndMerge(numbers[0]),
        "storage" => Step::StorageSplit,
        other => panic!("'{other}' is not understood"),
    }
}

/// One of several is taken for one of three.
fn parse_start(partitions: &str, throughput: &str, step: &Step) -> Start {
    if partitions == "create" || matches!(step, Step::Refused { .. }) {
        return Start::Nothing;
    }
    let throughput = throughput.parse().unwrap();
    match partitions {
        "1 of n" => Start::Stands { partitions: 3, throughput: 3 * throughput },
        count => Start::Stands { partitions: count.parse().unwrap(), throughput },
    }
}

fn parse_expected(partitions: &str, shares: &str, step: &Step) -> Vec<Expected> {
    let expected = |division, partitions, shares| Expected {
        division,
        partitions,
        ids: None,
        instant: None,
        shares,
    };
    match step {
        Step::Refused { .. } => vec![expected("even", 0, Vec::new())],
        // What was asked for one is split in two, beside two others.
        Step::Redistribute(targets) if targets.len() == 1 => {
            let each = numbers(shares)[0];
            vec![expected("even", 4, vec![5_000, 5_000, each, each])]
        }
        Step::StorageSplit => {
            let [even, inherited @ ..] = numbers(shares).try_into().unwrap_or([0; 4]);
            vec![expected("even", 3, vec![even]), expected("inherited", 3, inherited.to_vec())]
        }
        Step::Create { .. } | Step::Scale(_) | Step::Redistribute(_) | Step::LowerAndMerge(_) => {
            let (count, rest) =
                partitions.split_at(partitions.find([':', ' ']).unwrap_or(partitions.len()));
            let named = rest.split(['(', ';']).next().unwrap_or_default();
            let named = if named.contains("ids") { named } else { rest };
            let ids = (partitions.contains("id ") || partitions.contains("ids"))
                .then(|| numbers(named).iter().map(ToString::to_string).collect());
            let known = partitions.contains("instant") || partitions.contains("async");
            let shares = shares.split(" (").next().unwrap_or_default();
            vec![Expected {
                ids,
                instant: known.then(|| partitions.contains("instant")),
                ..expected("even", count.parse().unwrap(), numbers(shares))
            }]
        }
    }
}

//! Queries that ask for too much are refused or stopped, and others are served
//! meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};

use lab::queries::{Ask, Lab, PAGE_ALL, definition};
use service::{Approach, ServiceError};

fn lab() -> Lab {
    let lab = Lab::memory();
    let key = r#"{"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    lab.create_container(&definition(key)).unwrap();
    let list: Vec<String> = (0..2_000).map(|number| number.to_string()).collect();
    let list = list.join(",");
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let letters = "a".repeat(200_000);
    for item in [
        format!(r#"{{"id":"1","pk":"x","n":1,"l":[{list}]}}"#),
        format!(r#"{{"id":"2","pk":"y","n":2,"deep":{deep},"text":"{letters}"}}"#),
        r#"{"id":"3","pk":"z","n":3}"#.to_owned(),
    ] {
        lab.put(&item).unwrap();
    }
    lab
}

fn refusal(lab: &Lab, text: &str) -> String {
    let shown: String = text.chars().take(60).collect();
    match lab.page(&Ask::new(text), Approach::Index, None, PAGE_ALL) {
        Err(ServiceError::Query { report }) => report.to_string(),
        Err(other) => panic!("{shown}: not the query's fault? {other}"),
        Ok(page) => panic!("{shown}: {} rows", page.rows.len()),
    }
}

/// Texts on which a careless parser runs out of stack or time.
#[test]
fn texts_have_limits() {
    let lab = lab();
    let filter = |filter: String| format!("SELECT * FROM c WHERE {filter}");
    let repeated = |text: &str, count: usize| text.repeat(count);
    let list = |count: usize| vec!["1"; count].join(",");
    for (what, text) in [
        ("20000 nested arrays", filter(repeated("[", 20_000) + &repeated("]", 20_000))),
        ("50000 NOTs", filter(repeated("NOT ", 50_000) + "true")),
        ("100000 additions", filter("1".to_owned() + &repeated("+1", 100_000))),
        ("100000 signs", filter(repeated("- ", 100_000) + "1")),
        ("a path of 100000 names", filter("c".to_owned() + &repeated(".a", 100_000))),
        ("16001 values", filter(format!("c.n IN ({})", list(16_001)))),
        ("20000 ORs", filter(vec!["c.n = 1"; 20_000].join(" OR "))),
        ("a text of 512 KB", filter(format!("c.s = '{}'", repeated("x", 512 * 1024)))),
        ("10000 subqueries", repeated("SELECT VALUE (", 10_000)),
        ("100 joins", format!("SELECT * FROM c{}", repeated(" JOIN a IN c.l", 100))),
    ] {
        let refused = refusal(&lab, &text);
        assert!(refused.len() < 2_000, "{what}: {} bytes of refusal", refused.len());
        println!("{what}: {refused}");
    }
}

/// The largest allowed texts are answered, and so are redundant brackets.
#[test]
fn long_texts_are_answered() {
    let lab = lab();
    let list: Vec<String> = (0..16_000).map(|number| number.to_string()).collect();
    let text = format!("SELECT VALUE c.id FROM c WHERE c.n IN ({})", list.join(","));
    for approach in [Approach::Index, Approach::Scan] {
        let page = lab.page(&Ask::new(text.as_str()), approach, None, PAGE_ALL).unwrap();
        assert_eq!(page.rows.len(), 3, "{approach:?}");
    }
    let text = format!(
        "SELECT VALUE c.id FROM c WHERE c.n = {}",
        "(".repeat(990) + "2" + &")".repeat(990)
    );
    assert_eq!(lab.page(&Ask::new(text), Approach::Index, None, PAGE_ALL).unwrap().rows.len(), 1);
}

/// The deepest texts that the service accepts are planned and answered, by threads that
/// have the stack for it; elsewhere they are refused.
#[test]
fn deep_texts_are_answered() {
    let lab = lab();
    let nested = |open: &str, inside: &str, close: &str, levels: usize| {
        format!("{}{inside}{}", open.repeat(levels), close.repeat(levels))
    };
    let number = nested("ABS(", "c.n", ")", 490) + " = 1";
    for filter in [
        nested("NOT ", "(c.n = 1)", "", 980),
        number.clone(),
        nested("(SELECT VALUE ", "c.n", ")", 240) + " = 1",
        nested("EXISTS(SELECT VALUE 1 WHERE ", "c.n = 1", ")", 190),
        nested("(true AND ", "c.n = 1", ")", 320),
        format!("{} = {}", nested("[", "c.n", "]", 900), nested("[", "1", "]", 900)),
        format!("c.n = 1 AND NOT IS_DEFINED(c{})", ".a".repeat(990)),
    ] {
        let ask = Ask::new(format!("SELECT VALUE c.id FROM c WHERE {filter}"));
        for approach in [Approach::Index, Approach::Scan] {
            let page = lab.page(&ask, approach, None, PAGE_ALL).unwrap();
            assert_eq!(page.rows.len(), 1, "{}", &filter[..40]);
        }
        assert!(lab.plan(&ask).is_ok(), "{}", &filter[..40]);
    }
    let ask = Ask::new(format!("SELECT VALUE {} FROM c ORDER BY c.n", nested("[", "c", "]", 990)));
    let (rows, ..) = lab.raw_page(&ask, Approach::Index, None, PAGE_ALL).unwrap();
    assert!(rows.iter().all(|row| row.starts_with("[".repeat(990).as_bytes())));
    assert_eq!(rows.len(), 3);
    let computed = format!(
        r#"{{"partitionKey":{{"paths":["/pk"],"kind":"Hash","version":2}},
            "computedProperties":[{{"name":"x","query":"SELECT VALUE {number} FROM c"}}]}}"#
    );
    assert!(lab.replace_container(&definition(&computed)).is_err());
}

/// Work that grows faster than its input is stopped at a limit, or comes in pages; other
/// queries are answered meanwhile.
#[test]
fn work_has_limits_and_others_are_served() {
    let lab = lab();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let others = scope.spawn(|| {
            let mut served = 0;
            while !stop.load(Ordering::Relaxed) || served == 0 {
                let ask = Ask::new("SELECT VALUE c.id FROM c WHERE c.n = 3");
                let page = lab.page(&ask, Approach::Index, None, PAGE_ALL).unwrap();
                assert_eq!(page.rows.len(), 1);
                served += 1;
            }
            served
        });
        for text in [
            "SELECT VALUE COUNT(1) FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l",
            "SELECT DISTINCT a, b, d FROM c JOIN a IN c.l JOIN b IN c.l JOIN d IN c.l",
            "SELECT VALUE 1 FROM c WHERE EXISTS(SELECT VALUE 1 FROM a IN c.l JOIN b IN c.l JOIN d IN c.l WHERE a + b + d < 0)",
        ] {
            let refused = refusal(&lab, text);
            assert!(refused.contains("limit"), "{refused}");
            println!("{text}: {refused}");
        }
        stop.store(true, Ordering::Relaxed);
        println!("{} others were served", others.join().unwrap());
    });
}

/// Rows of a cross join come page by page, and only as many are produced as a page holds.
#[test]
fn cross_joins_come_in_pages() {
    let lab = lab();
    for text in [
        "SELECT a, b FROM c JOIN a IN c.l JOIN b IN c.l",
        "SELECT a, b FROM c JOIN a IN c.l JOIN b IN c.l ORDER BY c.n",
        "SELECT c, a FROM c JOIN a IN c.l",
    ] {
        let mut rest = None;
        for _ in 0..3 {
            let page = lab.page(&Ask::new(text), Approach::Index, rest.as_deref(), 100).unwrap();
            assert_eq!(page.rows.len(), 100, "{text}");
            rest = page.rest;
        }
    }
}

/// Patterns that make a backtracking matcher take forever are matched in time.
#[test]
fn regular_expressions_do_not_backtrack() {
    let lab = lab();
    for filter in [
        "RegexMatch(c.text, '(a+)+$')",
        "RegexMatch(c.text, '(a|aa)+b')",
        "RegexMatch(c.text, '(.*)*x')",
        "c.text LIKE '%a%a%a%a%a%a%a%a%b'",
    ] {
        let ask = Ask::new(format!("SELECT VALUE c.id FROM c WHERE {filter}"));
        let page = lab.page(&ask, Approach::Index, None, PAGE_ALL).unwrap();
        assert!(page.rows.len() <= 1, "{filter}");
    }
    // A pattern that is too large to compile matches nothing.
    let bomb = "SELECT VALUE RegexMatch(c.text, '((a{1,500}){1,500}){1,500}') FROM c";
    let page = lab.page(&Ask::new(bomb), Approach::Index, None, PAGE_ALL).unwrap();
    assert_eq!(page.rows, []);
}

/// Values that double are stopped before they fill the memory.
#[test]
fn values_have_limits() {
    let lab = lab();
    let doubled = (0..12).fold("c.text".to_owned(), |text, _| format!("CONCAT({text}, {text})"));
    for text in [
        format!("SELECT VALUE {doubled} FROM c"),
        "SELECT VALUE REPLICATE(c.text, 10000) FROM c WHERE c.n = 2".to_owned(),
        "SELECT VALUE REPLACE(c.text, 'a', c.text) FROM c WHERE c.n = 2".to_owned(),
    ] {
        let (ask, index) = (Ask::new(text.as_str()), Approach::Index);
        let length = match lab.page(&ask, index, None, PAGE_ALL) {
            Ok(page) => page.rows.iter().map(|row| row.to_string().len()).sum(),
            Err(_) => 0,
        };
        assert!(length < 4 * 1024 * 1024, "{length} bytes");
    }
}

/// Of a long list of keys, each is looked up once, and charged.
#[test]
fn long_lists_of_keys_are_looked_up_and_charged() {
    let lab = lab();
    let list = |count: usize| {
        let others = (0..count).map(|number| format!("'k{number}'"));
        let keys: Vec<String> = others.chain(["'x'".to_owned(), "'z'".to_owned()]).collect();
        let text = format!("SELECT VALUE c.id FROM c WHERE c.pk IN ({})", keys.join(","));
        lab.page(&Ask::new(&text), Approach::Index, None, PAGE_ALL).unwrap()
    };
    let (short, long) = (list(0), list(15_998));
    assert_eq!((short.rows.len(), long.rows.len()), (2, 2));
    assert_eq!(long.report.entries, 16_000);
    assert!(short.report.entries <= 2, "one key of a bucket need not be looked for first");
    assert_eq!(long.report.items, short.report.items);
}

//! How the published charges of queries are asked of our service.
//!
//! Rows of one source share its data, which is loaded once. A row with several charges, or
//! one of several cases, has several parts.

mod blog;
mod nutrition;

use std::cell::OnceCell;

use model::charge::{Charge, Scanned, Tariff, Work};

use self::blog::Blog;
use self::nutrition::Nutrition;
use crate::anchors::Anchor;
use crate::lab::{Answer, Lab, item, item_named, item_with};
use crate::measure::{KB, Measured};

pub(crate) use self::blog::Entry;

/// Partitions of a container that is asked across all of them.
const PARTITIONS: u32 = 5;

/// Foods of a kilobyte, of each group and of each maker.
const FOODS: usize = 1_000;
const GROUP_FOODS: usize = 100;
const MAKER_FOODS: usize = 7;

/// A charge, and what it is for.
type LabeledCharge = (Charge, String);

/// A part of a row, or why it cannot be measured.
type Part = Result<LabeledCharge, &'static str>;

/// The data that queries are asked about, loaded when they first are.
#[derive(Default)]
pub(crate) struct Labs {
    foods: OnceCell<Lab>,
    nutrition: OnceCell<Option<Nutrition>>,
    blog: OnceCell<Blog>,
}

/// Measures all parts of a row.
pub(crate) fn measure(anchor: &Anchor, labs: &Labs) -> Vec<Measured> {
    let published = anchor.all_published();
    let number = |at: usize| published.get(at).or(published.last());
    let measured = |(at, part): (usize, Part)| match part {
        Ok((charge, of)) => Measured::Charge {
            published: *number(at).expect("what is measured was published"),
            ours: charge.request_units(),
            of,
        },
        Err(reason) => Measured::Not(reason),
    };
    parts(&anchor.id, labs).into_iter().enumerate().map(measured).collect()
}

fn parts(id: &str, labs: &Labs) -> Vec<Part> {
    match id {
        "Q1" => vec![Ok(nothing_found()), Ok(nothing_found_in_one_more())],
        "Q2" => vec![Ok(labs.by_id())],
        "Q3" => vec![Ok(one_item())],
        "Q4" | "Q5" | "Q7" | "Q8" | "Q9" | "Q10" => vec![labs.nutrition(id)],
        "Q6" => vec![Ok(counted_scan())],
        "Q11" | "Q12" | "Q13" | "Q14" | "Q15" => vec![Ok(labs.foods(id))],
        "Q16" => vec![Err("not offered: the protocol of MongoDB")],
        "Q17" | "Q19" | "Q20" | "Q22" | "Q23" | "Q24" => {
            labs.blog.get_or_init(Blog::load).parts(id)
        }
        "Q18" | "Q21" => vec![Err(blog::UNKNOWN_PARTITIONS)],
        "Q25" => vec![Err("cannot be measured: the source tells neither items nor partitions")],
        "Q26" => labs.by_id_and_key(),
        other => panic!("{other} is new and has neither a measurement nor a reason"),
    }
}

impl Labs {
    fn nutrition(&self, id: &str) -> Part {
        let nutrition = self.nutrition.get_or_init(Nutrition::load);
        nutrition.as_ref().map_or(Err(nutrition::ABSENT), |nutrition| Ok(nutrition.measure(id)))
    }

    fn lab_of_foods(&self) -> &Lab {
        self.foods.get_or_init(|| {
            let lab = Lab::new(1);
            lab.load(&(0..FOODS).map(food).collect::<Vec<_>>());
            lab
        })
    }

    fn by_id(&self) -> LabeledCharge {
        let answer = self.lab_of_foods().query("SELECT * FROM c WHERE c.id = '500'");
        labeled(1, &answer, "by id, one of 1,000 items of 1 KB")
    }

    fn by_id_and_key(&self) -> Vec<Part> {
        let lab = self.lab_of_foods();
        let answer = lab.query("SELECT * FROM c WHERE c.id = '500' AND c.pk = 'key'");
        let read = (lab.read("500"), "the same as a point read".to_owned());
        vec![Ok(labeled(1, &answer, "by id and key, 1 KB")), Ok(read)]
    }

    fn foods(&self, id: &str) -> LabeledCharge {
        let lab = self.lab_of_foods();
        let (text, count, of) = match id {
            "Q11" => (
                "SELECT * FROM c WHERE c.manufacturer = 'm9'",
                MAKER_FOODS,
                "by an indexed value, 7 items of 1 KB, made up",
            ),
            "Q12" => (
                "SELECT * FROM c WHERE c.foodGroup = 'g5' ORDER BY c.weight",
                GROUP_FOODS,
                "with ORDER BY, 100 items of 1 KB, made up",
            ),
            "Q13" => (
                "SELECT TOP 10 * FROM c WHERE c.foodGroup = 'g5'",
                10,
                "TOP 10 of 100 items of 1 KB, made up",
            ),
            "Q14" => ("SELECT * FROM c", FOODS, "1,000 items of 1 KB, ten pages, made up"),
            "Q15" => (
                "SELECT * FROM c WHERE c.foodGroup = 'g5'",
                GROUP_FOODS,
                "by an indexed value, 100 items of 1 KB, made up",
            ),
            other => panic!("{other} is not about foods of a kilobyte"),
        };
        labeled(count, &lab.query(text), of)
    }
}

/// The charge of an answer, and its access path. It must have `count` rows.
fn labeled(count: usize, answer: &Answer, of: &str) -> LabeledCharge {
    (rows(count, answer), format!("{of} [{}]", answer.access))
}

/// The charge of an answer, which must have `count` rows.
fn rows(count: usize, answer: &Answer) -> Charge {
    assert_eq!(answer.rows, count, "{}", answer.access);
    answer.charge
}

fn food(number: usize) -> String {
    let (group, maker) = (number / GROUP_FOODS, number / MAKER_FOODS);
    let members =
        format!(r#""foodGroup":"g{group}","manufacturer":"m{maker}","weight":{},"#, number % 97);
    item_named(&number.to_string(), &members, KB)
}

fn nothing_found() -> LabeledCharge {
    (nothing_in(1), "finds nothing, one partition".to_owned())
}

fn nothing_found_in_one_more() -> LabeledCharge {
    let further = nothing_in(PARTITIONS).units() - nothing_in(1).units();
    let each = Charge::from_units(further / u64::from(PARTITIONS - 1));
    (each, "finds nothing, each further one of five partitions".to_owned())
}

fn nothing_in(partitions: u32) -> Charge {
    let lab = Lab::with_partitions(1, partitions);
    lab.create(&item(KB));
    rows(0, &lab.query("SELECT * FROM c WHERE c.text = 'none'"))
}

fn one_item() -> LabeledCharge {
    const BYTES: usize = 9_963;
    let lab = Lab::new(1);
    lab.create(&item_with(r#""name":"one","#, BYTES));
    let answer = lab.query("SELECT * FROM c WHERE c.name = 'one'");
    labeled(1, &answer, "by an indexed value, 9,963 bytes")
}

/// The source says what its query read, but does not show it.
fn counted_scan() -> LabeledCharge {
    let scanned = Scanned { items: 60_951, entries: 0, output_bytes: 510 };
    let charge = Tariff::default().charge(&Work::Query(scanned));
    (charge, "the tariff alone: a scan of 60,951 items, 510 bytes given".to_owned())
}

//! Queries on the nutrition data, which the service's own examples are about.
//!
//! Only the paths are indexed whose entries these queries read. Entries of others cost a
//! query nothing, and loading would take minutes. Nutrients and servings are among the
//! others: a range is not looked up beside a single value, which the tag is.

use std::io::Read as _;

use super::{LabeledCharge, labeled};
use crate::lab::Lab;

const FILE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/nutrition_sr28.jsonl.gz");

pub(super) const ABSENT: &str = "left out: the nutrition data is not there";

/// The key of the container in the examples.
const KEY: &str = "/foodGroup";

const SPINACH: &str = r#"SELECT * FROM c WHERE c.description = "Malabar spinach, cooked""#;

const VEGETABLES: &str = r#""foodGroup":"Vegetables and Vegetable Products""#;

const SOUPS: &str = r#""foodGroup":"Soups, Sauces, and Gravies""#;

const SOUPS_ORDERED: &str =
    r#"SELECT * FROM c WHERE c.foodGroup = "Soups, Sauces, and Gravies" ORDER BY "#;

const SOUPS_OF: &str = "465 soups in order, the first 100";

const COMPOSITE: &str = r#"[{"path":"/foodGroup"},{"path":"/_ts"}]"#;

const JOINED: &str = "SELECT COUNT(1) AS Count FROM c
    JOIN t IN c.tags JOIN n IN c.nutrients JOIN s IN c.servings
    WHERE t.name = 'infant formula'
    AND (n.nutritionValue > 0 AND n.nutritionValue < 10) AND s.amount > 1";

const JOINED_SUBQUERIES: &str = "SELECT COUNT(1) AS Count FROM c
    JOIN (SELECT VALUE t FROM t IN c.tags WHERE t.name = 'infant formula')
    JOIN (SELECT VALUE n FROM n IN c.nutrients
        WHERE n.nutritionValue > 0 AND n.nutritionValue < 10)
    JOIN (SELECT VALUE s FROM s IN c.servings WHERE s.amount > 1)";

/// Foods and the policies of the examples. Where the rest costs a query nothing, it is left
/// out: an index lookup costs the same among fewer items, and so do the items of a key.
pub(super) struct Nutrition {
    /// All of them, with what these queries ask of them indexed but the description.
    foods: Lab,
    /// With the description.
    vegetables: Lab,
    /// Without the composite index.
    soups: Lab,
}

impl Nutrition {
    /// None if the data is not there and need not be.
    pub(super) fn load() -> Option<Nutrition> {
        let foods = foods()?;
        let some = |group: &str, paths: &[&str]| {
            let foods = foods.iter().filter(|food| food.contains(group)).cloned();
            lab(&foods.collect::<Vec<_>>(), paths, "")
        };
        let vegetables = some(VEGETABLES, &["/description/?"]);
        let soups = some(SOUPS, &["/foodGroup/?"]);
        let foods = lab(&foods, &["/foodGroup/?", "/tags/[]/name/?"], COMPOSITE);
        Some(Nutrition { foods, vegetables, soups })
    }

    pub(super) fn measure(&self, id: &str) -> LabeledCharge {
        let Nutrition { foods, vegetables, soups } = self;
        let first_soups = |lab: &Lab, order: &str| {
            labeled(100, &lab.first_page(&format!("{SOUPS_ORDERED}{order} ASC")), SOUPS_OF)
        };
        match id {
            "Q4" => labeled(1, &vegetables.query(SPINACH), "one of 836 vegetables, 3.1 KB"),
            "Q5" => labeled(1, &foods.query(SPINACH), "one of 8,789 foods"),
            "Q7" => first_soups(soups, "c._ts"),
            "Q8" => first_soups(foods, "c.foodGroup, c._ts"),
            "Q9" => labeled(1, &foods.query(JOINED), "three JOINs, COUNT"),
            "Q10" => labeled(1, &foods.query(JOINED_SUBQUERIES), "the same with subqueries"),
            other => panic!("{other} is not about the nutrition data"),
        }
    }
}

/// A container with only these paths indexed.
fn lab(foods: &[String], paths: &[&str], composite: &str) -> Lab {
    let paths: Vec<String> = paths.iter().map(|path| format!(r#"{{"path":"{path}"}}"#)).collect();
    let policy = format!(
        r#","indexingPolicy":{{"indexingMode":"consistent","includedPaths":[{}],"excludedPaths":[{{"path":"/*"}}],"compositeIndexes":[{composite}]}}"#,
        paths.join(",")
    );
    let lab = Lab::with_definition(1, KEY, &policy);
    lab.load(foods);
    lab
}

/// The foods as they are sent.
fn foods() -> Option<Vec<String>> {
    let packed = std::fs::read(FILE).ok();
    let required = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(packed.is_some() || !required, "{FILE} is required in CI");
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed?.as_slice()).read_to_string(&mut text).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

use super::*;

fn code(text: &str) -> String {
    Source::new("a.rs", text).code
}

#[test]
fn comments_and_literals_are_blanked_in_place() {
    assert_eq!(code("a // b\nc"), "a     \nc");
    assert_eq!(code("a /* b /* c */ d */ e"), format!("a{}e", " ".repeat(19)));
    assert_eq!(code(r#"f("a\"b{", x)"#), format!("f({}, x)", " ".repeat(7)));
    assert_eq!(code(r##"f(r#"a"b{"#)"##), format!("f({})", " ".repeat(9)));
    assert_eq!(code(r"f('{', b'\'', '\u{7b}', 'é')"), "f(   , b    ,         ,     )");
    assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
    assert_eq!(code("let r#fn = bar"), "let r#fn = bar");
    assert_eq!(code("\"unfinished"), " ".repeat(11));
}

#[test]
fn comments_are_kept_apart() {
    let source = Source::new("a.rs", "let a = \"// no\"; // yes");
    assert_eq!(source.comments().trim(), "// yes");
}

#[test]
fn functions_are_measured_from_keyword_to_brace() {
    let text = "/// Doc.\nfn one() -> [u8; 4] {\n    [0; 4]\n}\ntrait T {\n    fn two(&self);\n}\n\
                type F = fn(u8) -> u8;\nfn three() {}\n";
    let functions = Source::new("a.rs", text).functions();
    let seen: Vec<_> = functions.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
    assert_eq!(seen, [("one", 2, 3), ("three", 9, 1)]);
}

#[test]
fn test_items_do_not_count() {
    let text = "fn a() {}\n#[cfg(test)]\nuse b::{c, d};\n\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    \
                #[test]\n    fn e() {}\n}\nfn f() {}\n";
    let source = Source::new("a.rs", text);
    let names: Vec<_> = source.functions().into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["a", "f"]);
    assert_eq!(source.production_lines(), 3);
}

#[test]
fn a_module_declared_for_tests_is_found_by_its_path() {
    let declared = "#[cfg(test)]\nmod golden;\n";
    let in_root = Source::new("crates/a/src/lib.rs", declared);
    assert_eq!(in_root.test_modules(), ["crates/a/src/golden"]);
    let in_module = Source::new("crates/a/src/b.rs", declared);
    assert_eq!(in_module.test_modules(), ["crates/a/src/b/golden"]);
}

#[test]
fn docs_are_the_lines_at_the_head() {
    let source = Source::new("a.rs", "#![allow(x)]\n//! One.\n//!\n//! Two.\n\nuse a;\n//! No.\n");
    assert_eq!(source.docs(), ["One.", "", "Two."]);
}

//! The tree as canonical text, as the service prints it in rewritten queries:
//! every operator in brackets, strings in double quotes, one clause per line.

use std::fmt::{self, Display, Formatter, Write};

use super::{
    BinaryOp, Collection, Count, Direction, Expr, ExprKind, From, Item, OrderBy, OrderItem,
    OrderKeys, Property, Select, Selection, Source, Step, SubqueryKind, UnaryOp,
};
use crate::lexer::is_plain_name;
use crate::number::Numeric;

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        if self.distinct {
            f.write_str("DISTINCT ")?;
        }
        if let Some(top) = &self.top {
            write!(f, "TOP {} ", top.count)?;
        }
        write!(f, "{}", self.selection)?;
        if let Some(from) = &self.from {
            write!(f, "\n{from}")?;
        }
        if let Some(filter) = &self.filter {
            write!(f, "\nWHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            f.write_str("\nGROUP BY ")?;
            list(f, &self.group_by)?;
        }
        if let Some(order) = &self.order_by {
            write!(f, "\n{order}")?;
        }
        if let Some(page) = &self.page {
            write!(f, "\nOFFSET {} LIMIT {}", page.offset, page.limit)?;
        }
        Ok(())
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Count::Rows(rows) => write!(f, "{rows}"),
            Count::Parameter(name) => f.write_str(&name.text),
        }
    }
}

impl Display for Selection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Selection::All(_) => f.write_str("*"),
            Selection::Value(expr) => write!(f, "VALUE {expr}"),
            Selection::List(items) => list(f, items),
        }
    }
}

impl Display for Item {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)?;
        match &self.alias {
            None => Ok(()),
            Some(alias) if is_plain_name(alias) => write!(f, " AS {alias}"),
            Some(alias) => {
                f.write_str(" AS ")?;
                quoted(f, alias)
            }
        }
    }
}

impl Display for From {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "FROM {}", self.first)?;
        self.joins.iter().try_for_each(|join| write!(f, "\nJOIN {join}"))
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.alias {
            Some(alias) if self.iterates => write!(f, "{} IN {}", alias.text, self.collection),
            Some(alias) => write!(f, "{} AS {}", self.collection, alias.text),
            None => write!(f, "{}", self.collection),
        }
    }
}

impl Display for Collection {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Collection::Subquery(select) => write!(f, "({select})"),
            Collection::Path { root, steps } => {
                f.write_str(&root.text)?;
                steps.iter().try_for_each(|step| match step {
                    Step::Name(property) => member(f, property),
                    Step::Index(index) => write!(f, "[{index}]"),
                })
            }
        }
    }
}

impl Display for OrderBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.keys {
            OrderKeys::Items(items) => {
                f.write_str("ORDER BY ")?;
                list(f, items)
            }
            OrderKeys::Rank(item) => write!(f, "ORDER BY RANK {item}"),
        }
    }
}

impl Display for OrderItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let direction = match self.direction {
            None => "",
            Some(Direction::Ascending) => " ASC",
            Some(Direction::Descending) => " DESC",
        };
        write!(f, "{}{direction}", self.expr)
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.kind() {
            ExprKind::Undefined => f.write_str("undefined"),
            ExprKind::Null => f.write_str("null"),
            ExprKind::Bool(truth) => write!(f, "{truth}"),
            ExprKind::Number(number) => self::number(f, *number),
            ExprKind::String(text) => quoted(f, text),
            ExprKind::Parameter(name) | ExprKind::Identifier(name) => f.write_str(name),
            ExprKind::Array(items) => bracketed(f, '[', items, ']'),
            ExprKind::Object(members) => object(f, members),
            ExprKind::Member(base, property) => {
                // A point right behind a number would be its decimal point.
                if matches!(base.kind, ExprKind::Number(_)) {
                    write!(f, "({base})")?;
                } else {
                    write!(f, "{base}")?;
                }
                member(f, property)
            }
            ExprKind::Index(base, index) => write!(f, "{base}[{index}]"),
            ExprKind::Unary(op, operand) => write!(f, "({op} {operand})"),
            ExprKind::Binary(op, left, right) => write!(f, "({left} {op} {right})"),
            ExprKind::And(operands) => chain(f, "AND", operands),
            ExprKind::Or(operands) => chain(f, "OR", operands),
            ExprKind::Coalesce(left, right) => write!(f, "({left} ?? {right})"),
            ExprKind::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                write!(f, "({condition} ? {yes} : {no})")
            }
            ExprKind::Call { name, arguments } => call(f, "", &name.text, arguments),
            ExprKind::Udf { name, arguments } => call(f, "udf.", &name.text, arguments),
            ExprKind::Subquery(kind, select) => write!(f, "{kind}({select})"),
            ExprKind::Let { name, parts } => {
                let [value, body] = &**parts;
                write!(f, "(LET {} = {value} IN {body})", name.text)
            }
            ExprKind::Between { .. } | ExprKind::In { .. } | ExprKind::Like { .. } => {
                predicate(f, self.kind())
            }
        }
    }
}

fn predicate(f: &mut Formatter<'_>, kind: &ExprKind) -> fmt::Result {
    let not = |negated: &bool| if *negated { "NOT " } else { "" };
    if let ExprKind::Between { negated, operands } = kind {
        let [needle, low, high] = &**operands;
        write!(f, "({needle} {}BETWEEN {low} AND {high})", not(negated))?;
    }
    if let ExprKind::In { negated, needle, list } = kind {
        write!(f, "({needle} {}IN ", not(negated))?;
        bracketed(f, '(', list, ')')?;
        f.write_char(')')?;
    }
    if let ExprKind::Like { negated, operands, escape } = kind {
        let [text, pattern] = &**operands;
        write!(f, "({text} {}LIKE {pattern}", not(negated))?;
        if let Some(escape) = escape {
            f.write_str(" ESCAPE ")?;
            quoted(f, &escape.to_string())?;
        }
        f.write_char(')')?;
    }
    Ok(())
}

/// Prints `((a AND b) AND c)`, the form of two operands each that the service prints.
fn chain(f: &mut Formatter<'_>, word: &str, operands: &[Expr]) -> fmt::Result {
    let Some((first, rest)) = operands.split_first() else { return Ok(()) };
    rest.iter().try_for_each(|_| f.write_char('('))?;
    write!(f, "{first}")?;
    rest.iter().try_for_each(|operand| write!(f, " {word} {operand})"))
}

fn call(f: &mut Formatter<'_>, prefix: &str, name: &str, arguments: &[Expr]) -> fmt::Result {
    write!(f, "{prefix}{name}")?;
    bracketed(f, '(', arguments, ')')
}

fn object(f: &mut Formatter<'_>, members: &[(String, Expr)]) -> fmt::Result {
    f.write_char('{')?;
    for (at, (name, value)) in members.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        quoted(f, name)?;
        write!(f, ": {value}")?;
    }
    f.write_char('}')
}

fn member(f: &mut Formatter<'_>, property: &Property) -> fmt::Result {
    if !property.bracketed && is_plain_name(&property.name) {
        return write!(f, ".{}", property.name);
    }
    f.write_char('[')?;
    quoted(f, &property.name)?;
    f.write_char(']')
}

/// The literal of a string.
pub(crate) fn quote(text: &str) -> String {
    struct Quoted<'t>(&'t str);
    impl Display for Quoted<'_> {
        fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
            quoted(f, self.0)
        }
    }
    Quoted(text).to_string()
}

/// Prints a string as JSON, with escapes in upper case as the clients do.
fn quoted(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\u{8}' => f.write_str("\\b")?,
            '\u{c}' => f.write_str("\\f")?,
            '\n' => f.write_str("\\n")?,
            '\r' => f.write_str("\\r")?,
            '\t' => f.write_str("\\t")?,
            c if c < ' ' => write!(f, "\\u{:04X}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// Prints a number as the clients do: integers in full, all else in the fewest
/// digits, with an exponent of at least two digits where it is long.
fn number(f: &mut Formatter<'_>, number: Numeric) -> fmt::Result {
    const PLAIN: std::ops::Range<f64> = 1e-5..1e15;
    let value = number.as_f64();
    if number.as_i64().is_some() || !value.is_finite() || PLAIN.contains(&value.abs()) {
        return f.write_str(&number.spelling());
    }
    let text = format!("{value:E}");
    let (digits, exponent) = text.split_once('E').unwrap_or((&text, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    write!(f, "{digits}E{sign}{exponent:0>2}")
}

fn bracketed(
    f: &mut Formatter<'_>,
    open: char,
    items: &[impl Display],
    close: char,
) -> fmt::Result {
    f.write_char(open)?;
    list(f, items)?;
    f.write_char(close)
}

fn list(f: &mut Formatter<'_>, items: &[impl Display]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

impl Display for UnaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnaryOp::Minus => "-",
            UnaryOp::Plus => "+",
            UnaryOp::BitNot => "~",
            UnaryOp::Not => "NOT",
        })
    }
}

impl Display for BinaryOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BinaryOp::Equal => "=",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterEqual => ">=",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::ShiftRightUnsigned => ">>>",
            BinaryOp::Concat => "||",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::BitAnd => "&",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
        })
    }
}

impl Display for SubqueryKind {
    /// The word before the bracket; a scalar subquery has none.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubqueryKind::Scalar => "",
            SubqueryKind::Exists => "EXISTS",
            SubqueryKind::Array => "ARRAY",
            SubqueryKind::All => "ALL",
            SubqueryKind::First => "FIRST",
            SubqueryKind::Last => "LAST",
        })
    }
}

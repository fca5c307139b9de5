//! The tree as canonical text, as the service prints it in rewritten queries:
//! every operator in brackets, strings in double quotes, one clause per line,
//! subqueries on lines of their own.

use std::fmt::{self, Display, Formatter, Write};

use super::{
    BinaryOp, Collection, Count, Expr, ExprKind, From, Name, OrderBy, OrderItem, OrderKeys,
    Property, Select, SelectItem, Selection, SortDirection, Source, Step, SubqueryKind, UnaryOp,
};
use crate::lexer::is_plain_name;
use crate::number::Numeric;

/// Blanks by which a subquery is indented.
const INDENT: usize = 4;

/// Writes parts of the tree at a level of indentation.
struct Printer<'p, 'f> {
    f: &'p mut Formatter<'f>,
    indent: usize,
}

macro_rules! displays {
    ($($part:ty => $method:ident),* $(,)?) => {$(
        impl Display for $part {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                Printer { f, indent: 0 }.$method(self)
            }
        }
    )*};
}

displays! {
    Select => select,
    Selection => selection,
    From => from,
    OrderBy => order,
    Expr => expr,
}

impl Printer<'_, '_> {
    fn text(&mut self, text: &str) -> fmt::Result {
        self.f.write_str(text)
    }

    fn line(&mut self) -> fmt::Result {
        write!(self.f, "\n{:indent$}", "", indent = self.indent)
    }

    fn select(&mut self, select: &Select) -> fmt::Result {
        self.text("SELECT ")?;
        if select.distinct {
            self.text("DISTINCT ")?;
        }
        if let Some(top) = &select.top {
            write!(self.f, "TOP {} ", top.count)?;
        }
        self.selection(&select.selection)?;
        if let Some(from) = &select.from {
            self.line()?;
            self.from(from)?;
        }
        self.filter(select.filter.as_ref(), false)?;
        if !select.group_by.is_empty() {
            self.line()?;
            self.text("GROUP BY ")?;
            self.list(&select.group_by, Self::expr)?;
        }
        if let Some(order) = &select.order_by {
            self.line()?;
            self.order(order)?;
        }
        if let Some(page) = &select.page {
            self.line()?;
            write!(self.f, "OFFSET {} LIMIT {}", page.offset, page.limit)?;
        }
        Ok(())
    }

    fn filter(&mut self, filter: Option<&Expr>, negated: bool) -> fmt::Result {
        if filter.is_none() && !negated {
            return Ok(());
        }
        self.line()?;
        self.text(if negated { "WHERE (NOT " } else { "WHERE " })?;
        match filter {
            Some(filter) => self.expr(filter)?,
            None => self.text("true")?,
        }
        if negated { self.text(")") } else { Ok(()) }
    }

    fn selection(&mut self, selection: &Selection) -> fmt::Result {
        match selection {
            Selection::All(_) => self.text("*"),
            Selection::Value(expr) => {
                self.text("VALUE ")?;
                self.expr(expr)
            }
            Selection::List(items) => self.list(items, Self::item),
        }
    }

    fn item(&mut self, item: &SelectItem) -> fmt::Result {
        self.expr(&item.expr)?;
        match &item.alias {
            None => Ok(()),
            Some(alias) if is_plain_name(&alias.text) => write!(self.f, " AS {}", alias.text),
            Some(alias) => {
                self.text(" AS ")?;
                quoted(self.f, &alias.text)
            }
        }
    }

    fn from(&mut self, from: &From) -> fmt::Result {
        self.text("FROM ")?;
        self.source(&from.first)?;
        from.joins.iter().try_for_each(|join| {
            self.line()?;
            self.text("JOIN ")?;
            self.source(join)
        })
    }

    fn source(&mut self, source: &Source) -> fmt::Result {
        match &source.alias {
            Some(alias) if source.iterates => {
                write!(self.f, "{} IN ", alias.text)?;
                self.collection(&source.collection)
            }
            Some(alias) => {
                self.collection(&source.collection)?;
                write!(self.f, " AS {}", alias.text)
            }
            None => self.collection(&source.collection),
        }
    }

    fn collection(&mut self, collection: &Collection) -> fmt::Result {
        match collection {
            Collection::Subquery(select) => self.bracketed_select("", select, 1),
            Collection::Path { root, steps } => {
                self.text(&root.text)?;
                steps.iter().try_for_each(|step| match step {
                    Step::Name(property) => member(self.f, property),
                    Step::Index(index) => {
                        self.f.write_str("[")?;
                        number(self.f, *index)?;
                        self.f.write_str("]")
                    }
                })
            }
        }
    }

    fn order(&mut self, order: &OrderBy) -> fmt::Result {
        match &order.keys {
            OrderKeys::Items(items) => {
                self.text("ORDER BY ")?;
                self.list(items, Self::order_item)
            }
            OrderKeys::Rank(item) => {
                self.text("ORDER BY RANK ")?;
                self.order_item(item)
            }
        }
    }

    fn order_item(&mut self, item: &OrderItem) -> fmt::Result {
        self.expr(&item.expr)?;
        self.text(match item.direction {
            None => "",
            Some(SortDirection::Ascending) => " ASC",
            Some(SortDirection::Descending) => " DESC",
        })
    }

    fn expr(&mut self, expr: &Expr) -> fmt::Result {
        match expr.kind() {
            ExprKind::Undefined => self.text("undefined"),
            ExprKind::Null => self.text("null"),
            ExprKind::Bool(truth) => write!(self.f, "{truth}"),
            ExprKind::Number(number) => self::number(self.f, *number),
            ExprKind::String(text) => quoted(self.f, text),
            ExprKind::Parameter(name) | ExprKind::Identifier(name) => self.text(name),
            ExprKind::Array(items) => self.bracketed('[', items, ']'),
            ExprKind::Object(members) => self.object(members),
            ExprKind::Member(base, property) => self.member(base, property),
            ExprKind::Index(base, index) => {
                self.base(base)?;
                self.bracketed('[', std::slice::from_ref(&**index), ']')
            }
            ExprKind::Unary(op, operand) => {
                write!(self.f, "({op} ")?;
                self.expr(operand)?;
                self.text(")")
            }
            ExprKind::Binary(op, left, right) => self.infix(left, &op.to_string(), right),
            ExprKind::Chain(first, rest) => self.row(first, rest),
            ExprKind::And(operands) => self.chain("AND", operands),
            ExprKind::Or(operands) => self.chain("OR", operands),
            ExprKind::Coalesce(left, right) => self.infix(left, "??", right),
            ExprKind::Conditional(parts) => self.conditional(parts),
            ExprKind::Call { name, arguments } => self.call("", &name.text, arguments),
            ExprKind::Udf { name, arguments } => self.call("udf.", &name.text, arguments),
            ExprKind::Subquery(kind, select) => self.subquery(*kind, select),
            ExprKind::Let { name, parts } => self.definition(name, parts),
            ExprKind::Between { .. } | ExprKind::In { .. } | ExprKind::Like { .. } => {
                self.predicate(expr.kind())
            }
        }
    }

    fn member(&mut self, base: &Expr, property: &Property) -> fmt::Result {
        self.base(base)?;
        member(self.f, property)
    }

    /// The base of a member or element access; literals are in parentheses.
    fn base(&mut self, base: &Expr) -> fmt::Result {
        let literal = matches!(
            base.kind,
            ExprKind::Undefined
                | ExprKind::Null
                | ExprKind::Bool(_)
                | ExprKind::Number(_)
                | ExprKind::String(_)
        );
        if literal { self.bracketed('(', std::slice::from_ref(base), ')') } else { self.expr(base) }
    }

    fn infix(&mut self, left: &Expr, op: &str, right: &Expr) -> fmt::Result {
        self.text("(")?;
        self.expr(left)?;
        write!(self.f, " {op} ")?;
        self.expr(right)?;
        self.text(")")
    }

    fn row(&mut self, first: &Expr, rest: &[(BinaryOp, Expr)]) -> fmt::Result {
        rest.iter().try_for_each(|_| self.text("("))?;
        self.expr(first)?;
        rest.iter().try_for_each(|(op, operand)| {
            write!(self.f, " {op} ")?;
            self.expr(operand)?;
            self.text(")")
        })
    }

    fn conditional(&mut self, [condition, yes, no]: &[Expr; 3]) -> fmt::Result {
        self.text("(")?;
        self.expr(condition)?;
        self.text(" ? ")?;
        self.expr(yes)?;
        self.text(" : ")?;
        self.expr(no)?;
        self.text(")")
    }

    fn definition(&mut self, name: &Name, [value, body]: &[Expr; 2]) -> fmt::Result {
        write!(self.f, "(LET {} = ", name.text)?;
        self.expr(value)?;
        self.text(" IN (")?;
        self.expr(body)?;
        self.text("))")
    }

    /// `a NOT IN` has two blanks, as in the service.
    fn predicate(&mut self, kind: &ExprKind) -> fmt::Result {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        self.text("(")?;
        if let ExprKind::Between { negated, operands } = kind {
            let [needle, low, high] = &**operands;
            self.expr(needle)?;
            write!(self.f, " {}BETWEEN ", not(negated))?;
            self.expr(low)?;
            self.text(" AND ")?;
            self.expr(high)?;
        }
        if let ExprKind::In { negated, needle, list } = kind {
            self.expr(needle)?;
            self.text(if *negated { " NOT  IN " } else { " IN " })?;
            self.bracketed('(', list, ')')?;
        }
        if let ExprKind::Like { negated, operands, escape } = kind {
            let [text, pattern] = &**operands;
            self.expr(text)?;
            write!(self.f, " {}LIKE ", not(negated))?;
            self.expr(pattern)?;
            if let Some(escape) = escape {
                self.text(" ESCAPE ")?;
                quoted(self.f, &escape.to_string())?;
            }
        }
        self.text(")")
    }

    /// ALL is printed as a negation: no row violates the filter.
    fn subquery(&mut self, kind: SubqueryKind, select: &Select) -> fmt::Result {
        match kind {
            SubqueryKind::Scalar => self.bracketed_select("", select, 1),
            SubqueryKind::Exists => self.bracketed_select("EXISTS", select, 1),
            SubqueryKind::First => self.bracketed_select("FIRST", select, 1),
            SubqueryKind::Last => self.bracketed_select("LAST", select, 1),
            SubqueryKind::Array => self.bracketed_select("ARRAY", select, 2),
            SubqueryKind::All => {
                let broken = Select { filter: None, ..select.clone() };
                self.text("(NOT EXISTS(")?;
                self.indent += INDENT;
                self.line()?;
                self.select(&broken)?;
                self.filter(select.filter.as_ref(), true)?;
                self.indent -= INDENT;
                self.line()?;
                self.text("))")
            }
        }
    }

    /// A subquery, indented by `levels` more; its closing bracket, by one less.
    fn bracketed_select(&mut self, word: &str, select: &Select, levels: usize) -> fmt::Result {
        write!(self.f, "{word}(")?;
        self.indent += levels * INDENT;
        self.line()?;
        self.select(select)?;
        self.indent -= INDENT;
        self.line()?;
        self.indent -= (levels - 1) * INDENT;
        self.text(")")
    }

    /// Prints `((a AND b) AND c)`, the binary form that the service prints.
    fn chain(&mut self, word: &str, operands: &[Expr]) -> fmt::Result {
        let Some((first, rest)) = operands.split_first() else { return Ok(()) };
        rest.iter().try_for_each(|_| self.text("("))?;
        self.expr(first)?;
        rest.iter().try_for_each(|operand| {
            write!(self.f, " {word} ")?;
            self.expr(operand)?;
            self.text(")")
        })
    }

    fn call(&mut self, prefix: &str, name: &str, arguments: &[Expr]) -> fmt::Result {
        write!(self.f, "{prefix}{name}")?;
        self.bracketed('(', arguments, ')')
    }

    fn object(&mut self, members: &[(Name, Expr)]) -> fmt::Result {
        self.text("{")?;
        self.list(members, |printer, (name, value)| {
            quoted(printer.f, &name.text)?;
            printer.text(": ")?;
            printer.expr(value)
        })?;
        self.text("}")
    }

    fn bracketed(&mut self, open: char, items: &[Expr], close: char) -> fmt::Result {
        self.f.write_char(open)?;
        self.list(items, Self::expr)?;
        self.f.write_char(close)
    }

    fn list<T>(
        &mut self,
        items: &[T],
        print: impl Fn(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                self.text(", ")?;
            }
            print(self, item)?;
        }
        Ok(())
    }
}

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Count::Number(number, _) => match Count::rows(*number) {
                Some(rows) => write!(f, "{rows}"),
                None => self::number(f, *number),
            },
            Count::Parameter(name) => f.write_str(&name.text),
        }
    }
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

/// Prints a string as JSON.
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
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}

/// Integral doubles below this are printed in full.
const INTEGRAL_MAX: f64 = 1e17;

/// A number as the service prints it.
pub(crate) struct Spelled(pub(crate) Numeric);

impl Display for Spelled {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        number(f, self.0)
    }
}

/// Prints a number as the service does: integers in full, everything else as C prints it
/// with 15 significant digits, or with 17 where fewer would be another number.
fn number(f: &mut Formatter<'_>, number: Numeric) -> fmt::Result {
    let value = match number {
        Numeric::Integer(integer) => return write!(f, "{integer}"),
        Numeric::Double(double) => double,
    };
    if !value.is_finite() {
        return f.write_str(&number.spelling());
    }
    if value.fract() == 0.0 && value.abs() < INTEGRAL_MAX {
        return write!(f, "{value}");
    }
    let short = general(value, 15);
    let is_same = short.parse::<f64>().is_ok_and(|again| again.to_bits() == value.to_bits());
    if is_same { f.write_str(&short) } else { f.write_str(&general(value, 17)) }
}

/// `%.{digits}g` of C.
fn general(value: f64, digits: usize) -> String {
    let scientific = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    let most = i32::try_from(digits).unwrap_or(i32::MAX);
    if (-4..most).contains(&exponent) {
        let decimals = usize::try_from(most - 1 - exponent).unwrap_or(0);
        return trimmed(&format!("{value:.decimals$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs())
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

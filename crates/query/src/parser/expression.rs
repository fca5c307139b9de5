//! Expressions, by precedence climbing.
//!
//! The levels are the service's, and some are unusual: NOT binds like a minus, shifts are
//! on the level of comparisons, `|`, `^`, `&`, `+` and `-` are one level, and BETWEEN is
//! outside the AND and OR chain, so that its result needs brackets to be an operand there.

use super::{ANDS, IN_ITEMS, ORS, PATH_MAX, Parse, Parser};
use crate::error::{Code, QueryError, Span, SyntaxError};
use crate::lexer::{Keyword, Kind, Symbol, Token, decode_number, decode_string};
use crate::number::Numeric;
use crate::syntax::{BinaryOp, Expr, ExprKind, Name, Property, SubqueryKind, UnaryOp};

/// Precedence levels, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Conditional,
    Coalesce,
    Between,
    Or,
    And,
    Membership,
    Comparison,
    Concat,
    Additive,
    Multiplicative,
    /// Prefix operators and everything tighter.
    Operand,
}

/// The digits of the least integer, which are one too many for the greatest.
const LEAST_DIGITS: &str = "9223372036854775808";

/// What can precede an operand: a prefix operator, or an opening bracket.
#[derive(Clone, Copy, Debug)]
struct Lead {
    op: Option<UnaryOp>,
    span: Span,
}

/// What can follow an operand.
#[derive(Clone, Copy, Debug)]
enum Infix {
    Conditional,
    Coalesce,
    Between { negated: bool },
    Or,
    And,
    In { negated: bool },
    Like { negated: bool },
    Binary(BinaryOp, Level),
}

impl Infix {
    /// The level of the result.
    fn level(self) -> Level {
        match self {
            Infix::Conditional => Level::Conditional,
            Infix::Coalesce => Level::Coalesce,
            Infix::Between { .. } => Level::Between,
            Infix::Or => Level::Or,
            Infix::And => Level::And,
            Infix::In { .. } | Infix::Like { .. } => Level::Membership,
            Infix::Binary(_, level) => level,
        }
    }

    /// The loosest level that the left operand may have.
    fn left(self) -> Level {
        match self {
            Infix::Conditional => Level::Coalesce,
            Infix::Coalesce => Level::Between,
            Infix::Between { .. } | Infix::In { .. } | Infix::Like { .. } => Level::Comparison,
            Infix::Or => Level::Or,
            Infix::And => Level::And,
            Infix::Binary(_, level) => level,
        }
    }
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.climb(Level::Conditional)
    }

    fn climb(&mut self, loosest: Level) -> Parse<Expr> {
        self.enter(1)?;
        let mut leads = self.leads()?;
        let operand = self.operand(&mut leads)?;
        let left = self.behind(leads, operand)?;
        let expr = self.infixes(left, Level::Operand, loosest);
        self.leave(1);
        expr
    }

    fn operand(&mut self, leads: &mut Vec<Lead>) -> Parse<Expr> {
        let operand = match self.negative(leads.last().copied()) {
            Some(number) => {
                leads.pop();
                self.pop(1);
                number?
            }
            None => self.primary()?,
        };
        self.postfixes(operand)
    }

    /// Takes what precedes the first operand: brackets that open a plain expression, and
    /// prefix operators.
    fn leads(&mut self) -> Parse<Vec<Lead>> {
        let mut leads = Vec::new();
        loop {
            let opens = self.is_symbol(0, Symbol::OpenParen)
                && !self.is_keyword(1, Keyword::Select)
                && !self.is_let(1);
            let op = prefix(self.peek().kind);
            if !opens && op.is_none() {
                return Ok(leads);
            }
            leads.push(Lead { op, span: self.take().span });
            self.push(1)?;
        }
    }

    /// Closes the brackets before an operand and applies the operators there, innermost
    /// first. What opens first closes last, so generated filters like
    /// `((((a OR b) OR c) OR d)` need no recursion.
    fn behind(&mut self, mut leads: Vec<Lead>, operand: Expr) -> Parse<Expr> {
        let mut left = operand;
        while let Some(Lead { op, span }) = leads.pop() {
            left = match op {
                Some(op) => self.prefixed(op, span, left)?,
                None => {
                    let inside = self.infixes(left, Level::Operand, Level::Conditional)?;
                    let close = self.close(Symbol::CloseParen)?;
                    self.pop(1);
                    self.postfixes(inside.within_brackets(span.to(close.span)))?
                }
            };
        }
        Ok(left)
    }

    fn prefixed(&mut self, op: UnaryOp, lead: Span, operand: Expr) -> Parse<Expr> {
        self.pop(1);
        let span = lead.to(operand.outer());
        self.node(ExprKind::Unary(op, Box::new(operand)), span)
    }

    /// LET is also a name: only a definition after it makes it the keyword.
    fn is_let(&self, ahead: usize) -> bool {
        self.is_keyword(ahead, Keyword::Let) && self.is_name(ahead + 1)
    }

    fn infixes(&mut self, left: Expr, level: Level, loosest: Level) -> Parse<Expr> {
        let (mut left, mut level) = (left, level);
        while let Some(infix) = self.infix(level, loosest)? {
            if infix.level() < loosest || level < infix.left() {
                // An operator that may not follow a chain of ANDs and ORs is noticed after
                // its NOT.
                let chained = matches!(level, Level::And | Level::Or);
                if chained && loosest == Level::Conditional && self.is_keyword(0, Keyword::Not) {
                    return Err(self.unexpected_token(self.peek_at(1)));
                }
                break;
            }
            level = infix.level();
            left = self.apply(infix, left)?;
        }
        Ok(left)
    }

    /// The operator after an operand of a level, in the context of a loosest level.
    fn infix(&self, level: Level, loosest: Level) -> Parse<Option<Infix>> {
        let negated = self.is_keyword(0, Keyword::Not);
        Ok(match self.peek_at(usize::from(negated)).kind {
            Kind::Keyword(Keyword::Between) => Some(Infix::Between { negated }),
            Kind::Keyword(Keyword::In) => Some(Infix::In { negated }),
            Kind::Keyword(Keyword::Like) => Some(Infix::Like { negated }),
            // After an operand, NOT begins such an operator where one is allowed.
            _ if negated && loosest > Level::Comparison => None,
            _ if negated => {
                let open = level != Level::Membership && loosest != Level::Comparison;
                return Err(self.unexpected_token(self.peek_at(usize::from(open))));
            }
            Kind::Keyword(Keyword::And) => Some(Infix::And),
            Kind::Keyword(Keyword::Or) => Some(Infix::Or),
            Kind::Symbol(Symbol::Question) => Some(Infix::Conditional),
            Kind::Symbol(Symbol::Coalesce) => Some(Infix::Coalesce),
            Kind::Symbol(symbol) => binary(symbol).map(|(op, level)| Infix::Binary(op, level)),
            Kind::Identifier
            | Kind::Keyword(_)
            | Kind::Number
            | Kind::String
            | Kind::Parameter
            | Kind::Invalid(_)
            | Kind::End => None,
        })
    }

    /// Takes an infix operator and its right operand.
    fn apply(&mut self, infix: Infix, left: Expr) -> Parse<Expr> {
        self.take();
        match infix {
            Infix::Between { negated } => self.between(left, negated),
            Infix::In { negated } => self.membership(left, negated),
            Infix::Like { negated } => self.like(left, negated),
            Infix::And => {
                self.ands += 1;
                self.count(self.ands, &ANDS);
                self.chain(left, Level::Membership, is_and, ExprKind::And)
            }
            Infix::Or => {
                self.ors += 1;
                self.count(self.ors, &ORS);
                self.chain(left, Level::And, is_or, ExprKind::Or)
            }
            Infix::Conditional => self.conditional(left),
            Infix::Coalesce => self.coalesced(left),
            Infix::Binary(op, level) => self.binary(op, level, left),
        }
    }

    fn conditional(&mut self, condition: Expr) -> Parse<Expr> {
        let start = condition.outer();
        self.push(2)?;
        let yes = self.expression()?;
        self.expect_symbol(Symbol::Colon)?;
        self.push(2)?;
        let no = self.expression()?;
        self.pop(4);
        self.node(ExprKind::Conditional(Box::new([condition, yes, no])), self.span_from(start))
    }

    fn coalesced(&mut self, left: Expr) -> Parse<Expr> {
        let start = left.outer();
        let right = self.right(Level::Coalesce)?;
        self.node(ExprKind::Coalesce(Box::new(left), Box::new(right)), self.span_from(start))
    }

    /// The right operand of an operator that has just been taken.
    fn right(&mut self, loosest: Level) -> Parse<Expr> {
        self.push(2)?;
        let right = self.climb(loosest)?;
        self.pop(2);
        Ok(right)
    }

    fn binary(&mut self, op: BinaryOp, level: Level, left: Expr) -> Parse<Expr> {
        let start = left.outer();
        let right = self.right(tighter(level))?;
        self.operation(op, (left, right), start)
    }

    fn operation(&self, op: BinaryOp, (left, right): (Expr, Expr), start: Span) -> Parse<Expr> {
        if left.chains() {
            let chain = left.chained(op, right).map_err(|_| self.too_complex())?;
            return self.low(chain, self.peek().span);
        }
        self.node(ExprKind::Binary(op, Box::new(left), Box::new(right)), self.span_from(start))
    }

    /// Adds an operand to a chain of ANDs or ORs, or begins one.
    fn chain(
        &mut self,
        left: Expr,
        loosest: Level,
        is_chain: fn(&ExprKind) -> bool,
        begin: fn(Vec<Expr>) -> ExprKind,
    ) -> Parse<Expr> {
        let right = self.right(loosest)?;
        self.linked((left, right), is_chain, begin)
    }

    fn linked(
        &self,
        (mut left, right): (Expr, Expr),
        is_chain: fn(&ExprKind) -> bool,
        begin: fn(Vec<Expr>) -> ExprKind,
    ) -> Parse<Expr> {
        if is_chain(left.kind()) {
            left.extend_chain(right).map_err(|_| self.too_complex())?;
            return self.low(left, self.peek().span);
        }
        let span = left.outer().to(right.outer());
        self.node(begin(vec![left, right]), span)
    }

    fn between(&mut self, needle: Expr, negated: bool) -> Parse<Expr> {
        if negated {
            self.take();
        }
        let (start, words) = (needle.outer(), 2 + usize::from(negated));
        self.push(words)?;
        let low = self.climb(Level::Comparison)?;
        self.expect_keyword(Keyword::And)?;
        let high = self.right(Level::Comparison)?;
        self.pop(words);
        self.ranged(negated, [needle, low, high], start)
    }

    fn ranged(&self, negated: bool, operands: [Expr; 3], start: Span) -> Parse<Expr> {
        let operands = Box::new(operands);
        self.node(ExprKind::Between { negated, operands }, self.span_from(start))
    }

    fn membership(&mut self, needle: Expr, negated: bool) -> Parse<Expr> {
        if negated {
            self.take();
        }
        let (start, words) = (needle.outer(), 3 + usize::from(negated));
        self.expect_symbol(Symbol::OpenParen)?;
        self.push(words)?;
        let list = self.comma_list(Self::expression)?;
        self.close(Symbol::CloseParen)?;
        self.pop(words);
        self.count(list.len(), &IN_ITEMS);
        let needle = Box::new(needle);
        self.node(ExprKind::In { negated, needle, list }, self.span_from(start))
    }

    fn like(&mut self, text: Expr, negated: bool) -> Parse<Expr> {
        if negated {
            self.take();
        }
        let (start, words) = (text.outer(), 2 + usize::from(negated));
        self.push(words)?;
        let pattern = self.climb(Level::Comparison)?;
        let escape = match self.take_keyword(Keyword::Escape) {
            Some(_) => Some(self.escape_character()?),
            None => None,
        };
        self.pop(words);
        let operands = Box::new([text, pattern]);
        self.node(ExprKind::Like { negated, operands, escape }, self.span_from(start))
    }

    fn escape_character(&mut self) -> Parse<char> {
        let literal = self.take_if(Kind::String).ok_or_else(|| self.unexpected())?;
        let text = self.string_of(literal).text;
        let mut chars = text.chars();
        if let (Some(escape), None) = (chars.next(), chars.next()) {
            return Ok(escape);
        }
        let message =
            format!("The invalid escape character '{text}' was specified in a LIKE predicate.");
        let error = SyntaxError::new(Code::ESCAPE_CHARACTER, literal.span, message);
        self.wrong.get_or_insert(error);
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// A number directly after its minus is one number, and so is the least integer, whose
    /// digits would overflow without the sign. With a blank between them, the minus is an
    /// operator.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn negative(&mut self, lead: Option<Lead>) -> Option<Parse<Expr>> {
        let Lead { op: Some(UnaryOp::Minus), span: sign } = lead? else { return None };
        let token = self.peek();
        if sign.range().end != token.span.range().start {
            return None;
        }
        let number = match token.kind {
            Kind::Number if self.text_of(token) == LEAST_DIGITS => Numeric::Integer(i64::MIN),
            Kind::Number => -decode_number(self.text_of(token))?,
            Kind::Keyword(Keyword::Infinity) => f64::NEG_INFINITY.into(),
            Kind::Keyword(Keyword::Nan) => f64::NAN.into(),
            _ => return None,
        };
        self.take();
        Some(self.node(ExprKind::Number(number), sign.to(token.span)))
    }

    fn postfixes(&mut self, base: Expr) -> Parse<Expr> {
        let mut base = base;
        let start = base.outer();
        loop {
            let kind = if self.take_symbol(Symbol::Dot).is_some() {
                self.push(2)?;
                self.fits(1)?;
                ExprKind::Member(Box::new(base), self.dotted()?)
            } else if self.take_symbol(Symbol::OpenBracket).is_some() {
                self.push(2)?;
                self.indexed(base)?
            } else {
                return Ok(base);
            };
            self.pop(2);
            base = self.node(kind, self.span_from(start))?;
            if base.path_is_beyond(PATH_MAX) {
                return Err(self.too_complex());
            }
        }
    }

    fn indexed(&mut self, base: Expr) -> Parse<ExprKind> {
        let index = self.expression()?;
        self.close(Symbol::CloseBracket)?;
        if let ExprKind::String(name) = index.kind() {
            let property = Property { name: name.clone(), bracketed: true, span: index.span() };
            return Ok(ExprKind::Member(Box::new(base), property));
        }
        Ok(ExprKind::Index(Box::new(base), Box::new(index)))
    }

    fn primary(&mut self) -> Parse<Expr> {
        self.fits(1)?;
        let token = self.take();
        match token.kind {
            Kind::Number | Kind::String | Kind::Parameter => self.literal(token),
            Kind::Identifier => self.named(token),
            Kind::Keyword(keyword) => self.keyword_primary(keyword, token),
            Kind::Symbol(Symbol::OpenBracket) => self.array(token),
            Kind::Symbol(Symbol::OpenBrace) => self.object(token),
            Kind::Symbol(Symbol::OpenParen) => self.bracketed(token),
            Kind::Symbol(_) | Kind::Invalid(_) | Kind::End => Err(self.unexpected_token(token)),
        }
    }

    fn literal(&mut self, token: Token) -> Parse<Expr> {
        let text = self.text_of(token);
        let kind = match token.kind {
            Kind::String => ExprKind::String(decode_string(text)),
            Kind::Number => {
                let number = decode_number(text).ok_or_else(|| self.unexpected_token(token))?;
                ExprKind::Number(number)
            }
            Kind::Parameter
            | Kind::Identifier
            | Kind::Keyword(_)
            | Kind::Symbol(_)
            | Kind::Invalid(_)
            | Kind::End => ExprKind::Parameter(text.to_owned()),
        };
        self.node(kind, token.span)
    }

    fn array(&mut self, open: Token) -> Parse<Expr> {
        let items = self.list_behind(1, Symbol::CloseBracket, Self::expression)?;
        self.node(ExprKind::Array(items), self.span_from(open.span))
    }

    fn object(&mut self, open: Token) -> Parse<Expr> {
        let members = self.list_behind(1, Symbol::CloseBrace, Self::member)?;
        self.node(ExprKind::Object(members), self.span_from(open.span))
    }

    /// A list after symbols that have just been taken.
    fn list_behind<T>(
        &mut self,
        symbols: usize,
        close: Symbol,
        item: impl Fn(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        self.push(symbols)?;
        let items = self.closed_list(close, item)?;
        self.pop(symbols);
        Ok(items)
    }

    fn keyword_primary(&mut self, keyword: Keyword, token: Token) -> Parse<Expr> {
        if let Some(constant) = constant(keyword) {
            return self.node(constant, token.span);
        }
        if keyword == Keyword::Exists {
            self.subquery_operator(SubqueryKind::Exists, token)
        } else if keyword == Keyword::Array {
            self.subquery_operator(SubqueryKind::Array, token)
        } else if keyword == Keyword::Udf {
            self.udf_call(token)
        } else if matches!(keyword, Keyword::Left | Keyword::Right) {
            self.side_call(token)
        } else if keyword.is_name() {
            self.named(token)
        } else {
            Err(self.unexpected_token(token))
        }
    }

    /// An identifier, a call, or one of the operators that are keywords only before a
    /// subquery.
    fn named(&mut self, token: Token) -> Parse<Expr> {
        if !self.is_symbol(0, Symbol::OpenParen) {
            let name = self.text_of(token).to_owned();
            return self.node(ExprKind::Identifier(name), token.span);
        }
        if self.is_keyword(1, Keyword::Select) {
            return match subquery_word(self.text_of(token)) {
                Some(kind) => self.subquery_operator(kind, token),
                None => Err(self.no_subquery_operator()),
            };
        }
        self.call(token)
    }

    /// What is wrong with a subquery as the argument of a function: the service notices
    /// where it ends.
    fn no_subquery_operator(&mut self) -> Box<QueryError> {
        self.take();
        match self.select() {
            Ok(_) => self.unexpected(),
            Err(error) => error,
        }
    }

    fn call(&mut self, token: Token) -> Parse<Expr> {
        self.expect_symbol(Symbol::OpenParen)?;
        let arguments = self.list_behind(2, Symbol::CloseParen, Self::expression)?;
        let name = self.name_of(token);
        self.node(ExprKind::Call { name, arguments }, self.span_from(token.span))
    }

    /// LEFT and RIGHT are functions and reserved words, and printed as the latter.
    fn side_call(&mut self, token: Token) -> Parse<Expr> {
        if !self.is_symbol(0, Symbol::OpenParen) {
            return Err(self.unexpected());
        }
        let call = self.call(token)?;
        let (span, ExprKind::Call { name, arguments }) = (call.span(), call.into_kind()) else {
            return Err(self.unexpected_token(token));
        };
        let name = Name { text: name.text.to_ascii_uppercase(), span: name.span };
        self.node(ExprKind::Call { name, arguments }, span)
    }

    fn udf_call(&mut self, token: Token) -> Parse<Expr> {
        self.expect_symbol(Symbol::Dot)?;
        let name = self.expect_name()?;
        self.expect_symbol(Symbol::OpenParen)?;
        let arguments = self.list_behind(4, Symbol::CloseParen, Self::expression)?;
        self.node(ExprKind::Udf { name, arguments }, self.span_from(token.span))
    }

    fn subquery_operator(&mut self, kind: SubqueryKind, token: Token) -> Parse<Expr> {
        self.expect_symbol(Symbol::OpenParen)?;
        self.push(2)?;
        let select = self.select()?;
        self.pop(2);
        self.expect_symbol(Symbol::CloseParen)?;
        self.node(ExprKind::Subquery(kind, Box::new(select)), self.span_from(token.span))
    }

    /// What follows an opening bracket: a subquery, a definition, an expression.
    fn bracketed(&mut self, open: Token) -> Parse<Expr> {
        if self.is_keyword(0, Keyword::Select) {
            self.push(1)?;
            let select = self.select()?;
            self.pop(1);
            self.expect_symbol(Symbol::CloseParen)?;
            // The brackets are not part of the subquery's span.
            let span = select.span;
            let kind = ExprKind::Subquery(SubqueryKind::Scalar, Box::new(select));
            return self
                .node(kind, span)
                .map(|expr| expr.within_brackets(self.span_from(open.span)));
        }
        if self.is_let(0) {
            return self.definition(open);
        }
        self.push(1)?;
        let expr = self.expression()?;
        self.close(Symbol::CloseParen)?;
        self.pop(1);
        Ok(expr.within_brackets(self.span_from(open.span)))
    }

    fn definition(&mut self, open: Token) -> Parse<Expr> {
        let keyword = self.expect_keyword(Keyword::Let)?;
        let Some(name) = self.take_if(Kind::Identifier) else { return Err(self.unexpected()) };
        let name = self.name_of(name);
        self.expect_symbol(Symbol::Equal)?;
        self.push(4)?;
        // The value ends at IN, which would otherwise begin a list; the body is as tight.
        let value = self.climb(Level::Comparison)?;
        self.expect_keyword(Keyword::In)?;
        self.push(2)?;
        let body = self.climb(Level::Comparison)?;
        let span = self.span_from(keyword.span);
        self.close(Symbol::CloseParen)?;
        self.pop(6);
        let parts = Box::new([value, body]);
        let expr = self.node(ExprKind::Let { name, parts }, span)?;
        Ok(expr.within_brackets(self.span_from(open.span)))
    }

    fn member(&mut self) -> Parse<(Name, Expr)> {
        let key = match self.take_if(Kind::String) {
            Some(literal) => self.string_of(literal),
            None => self.expect_name()?,
        };
        self.expect_symbol(Symbol::Colon)?;
        self.push(2)?;
        let value = self.expression()?;
        self.pop(2);
        Ok((key, value))
    }
}

fn is_and(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::And(_))
}

fn is_or(kind: &ExprKind) -> bool {
    matches!(kind, ExprKind::Or(_))
}

/// The level of a right operand, so that operators of one level are left-associative.
fn tighter(level: Level) -> Level {
    match level {
        Level::Comparison => Level::Concat,
        Level::Concat => Level::Additive,
        Level::Additive => Level::Multiplicative,
        Level::Multiplicative
        | Level::Conditional
        | Level::Coalesce
        | Level::Between
        | Level::Or
        | Level::And
        | Level::Membership
        | Level::Operand => Level::Operand,
    }
}

fn constant(keyword: Keyword) -> Option<ExprKind> {
    let constants = [
        (Keyword::True, ExprKind::Bool(true)),
        (Keyword::False, ExprKind::Bool(false)),
        (Keyword::Null, ExprKind::Null),
        (Keyword::Undefined, ExprKind::Undefined),
        (Keyword::Nan, ExprKind::Number(f64::NAN.into())),
        (Keyword::Infinity, ExprKind::Number(f64::INFINITY.into())),
    ];
    constants.into_iter().find(|(own, _)| *own == keyword).map(|(_, constant)| constant)
}

const PREFIXES: &[(Kind, UnaryOp)] = &[
    (Kind::Keyword(Keyword::Not), UnaryOp::Not),
    (Kind::Symbol(Symbol::Minus), UnaryOp::Minus),
    (Kind::Symbol(Symbol::Plus), UnaryOp::Plus),
    (Kind::Symbol(Symbol::Tilde), UnaryOp::BitNot),
];

fn prefix(kind: Kind) -> Option<UnaryOp> {
    PREFIXES.iter().find(|(own, _)| *own == kind).map(|(_, op)| *op)
}

/// Binary operators, which are left-associative.
const BINARIES: &[(Symbol, BinaryOp, Level)] = &[
    (Symbol::Equal, BinaryOp::Equal, Level::Comparison),
    (Symbol::NotEqual, BinaryOp::NotEqual, Level::Comparison),
    (Symbol::LessGreater, BinaryOp::NotEqual, Level::Comparison),
    (Symbol::Less, BinaryOp::Less, Level::Comparison),
    (Symbol::LessEqual, BinaryOp::LessEqual, Level::Comparison),
    (Symbol::Greater, BinaryOp::Greater, Level::Comparison),
    (Symbol::GreaterEqual, BinaryOp::GreaterEqual, Level::Comparison),
    (Symbol::ShiftLeft, BinaryOp::ShiftLeft, Level::Comparison),
    (Symbol::ShiftRight, BinaryOp::ShiftRight, Level::Comparison),
    (Symbol::ShiftRightUnsigned, BinaryOp::ShiftRightUnsigned, Level::Comparison),
    (Symbol::Concat, BinaryOp::Concat, Level::Concat),
    (Symbol::Pipe, BinaryOp::BitOr, Level::Additive),
    (Symbol::Caret, BinaryOp::BitXor, Level::Additive),
    (Symbol::Ampersand, BinaryOp::BitAnd, Level::Additive),
    (Symbol::Plus, BinaryOp::Add, Level::Additive),
    (Symbol::Minus, BinaryOp::Subtract, Level::Additive),
    (Symbol::Star, BinaryOp::Multiply, Level::Multiplicative),
    (Symbol::Slash, BinaryOp::Divide, Level::Multiplicative),
    (Symbol::Percent, BinaryOp::Modulo, Level::Multiplicative),
];

fn binary(symbol: Symbol) -> Option<(BinaryOp, Level)> {
    BINARIES.iter().find(|(own, ..)| *own == symbol).map(|(_, op, level)| (*op, *level))
}

fn subquery_word(word: &str) -> Option<SubqueryKind> {
    let words =
        [("ALL", SubqueryKind::All), ("FIRST", SubqueryKind::First), ("LAST", SubqueryKind::Last)];
    words.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, kind)| kind)
}

//! The parser, from tokens to the syntax tree: recursive descent for clauses, precedence
//! climbing for expressions.
//!
//! Nothing a client sends may exhaust the stack. Recursion is counted against
//! [`NESTING_MAX`], or on threads with a large stack ([`Depth::Service`]) against
//! [`SYMBOLS_MAX`]; brackets that merely open an expression, prefix operators and chains of
//! operators are loops, and the tree itself has a height limit (see [`crate::syntax`]).
//!
//! The service has a table-driven parser, whose stack holds a thousand symbols. So what is
//! too complex for it follows from its grammar: each function here counts the symbols that
//! this stack would hold ([`Parser::push`]).

mod clause;
mod expression;

use crate::error::{Code, QueryError, Span, SyntaxError};
use crate::lexer::{self, Flaw, Keyword, Kind, Symbol, Token, decode_string};
use crate::syntax::{
    DEEP_HEIGHT_MAX, EXPRESSION_HEIGHT_MAX, Expr, ExprKind, Name, Select, Selection, TooHigh,
};

/// Bytes that a query text may have, as in the service.
pub const QUERY_BYTES_MAX: usize = 512 * 1024;

/// Nesting levels of brackets, arguments and subqueries: as many as a document may have
/// levels.
pub const NESTING_MAX: usize = 128;

/// Symbols that the service's parser has on its stack, at most.
pub const SYMBOLS_MAX: usize = 999;

/// Names and indexes of one path, as in the service, its root included.
const PATH_MAX: usize = 1_000;

/// Bytes of stack that suffice for all processing of a query of [`Depth::Service`], also in
/// unoptimised builds.
pub const DEEP_STACK_BYTES: usize = 64 * 1024 * 1024;

/// How deep the parts of a query may be nested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// [`NESTING_MAX`] levels: any thread has stack for them.
    #[default]
    Ordinary,
    /// As deep as in the service: for threads with [`DEEP_STACK_BYTES`] of stack.
    Service,
}

impl Depth {
    fn levels(self) -> usize {
        match self {
            Depth::Ordinary => NESTING_MAX,
            Depth::Service => usize::MAX,
        }
    }

    fn height(self) -> usize {
        match self {
            Depth::Ordinary => EXPRESSION_HEIGHT_MAX,
            Depth::Service => DEEP_HEIGHT_MAX,
        }
    }
}

/// Levels that a subquery counts for: it takes that much more of the stack than
/// a bracket does.
const SUBQUERY_LEVELS: usize = 3;

/// AND operators in one query, as in the service.
pub const AND_MAX: usize = 2000;

/// OR operators in one query, as in the service.
pub const OR_MAX: usize = 2000;

/// Items in one IN list, as in the service.
pub const IN_ITEMS_MAX: usize = 16_000;

/// JOINs in one FROM clause, as in the service.
pub const JOINS_MAX: usize = 10;

/// The limits of an account on one query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// In UTF-16 units, which the service calls characters.
    pub text_units: usize,
    pub joins: usize,
    pub depth: Depth,
}

impl Default for QueryLimits {
    fn default() -> QueryLimits {
        QueryLimits { text_units: QUERY_BYTES_MAX, joins: JOINS_MAX, depth: Depth::default() }
    }
}

impl QueryLimits {
    /// The limits of the service, for threads that have the stack.
    #[must_use]
    pub fn service() -> QueryLimits {
        QueryLimits { depth: Depth::Service, ..QueryLimits::default() }
    }
}

/// Expressions that one query may group by: each of them is searched for in the whole
/// select list.
pub const GROUP_KEYS_MAX: usize = 128;

/// A limit of the service, with its code and what its message calls it.
struct ServiceLimit {
    code: Code,
    what: &'static str,
    most: usize,
}

const ANDS: ServiceLimit =
    ServiceLimit { code: Code::AND_COUNT, what: "logical AND operators", most: AND_MAX };
const ORS: ServiceLimit =
    ServiceLimit { code: Code::OR_COUNT, what: "logical OR operators", most: OR_MAX };
const IN_ITEMS: ServiceLimit = ServiceLimit {
    code: Code::IN_ITEM_COUNT,
    what: "items in an IN expression",
    most: IN_ITEMS_MAX,
};

/// Characters of the text that a message repeats, as in the service. An unterminated string
/// would otherwise put everything that follows into the answer.
const NEAR_CHARS_MAX: usize = 127;

/// Errors are boxed: a result is on the stack several times per level of nesting, and
/// errors are larger than most of what is parsed.
type Parse<T> = Result<T, Box<QueryError>>;

/// A parsed query, and what prevents its execution.
pub(crate) struct Parsed {
    pub(crate) select: Select,
    /// A limit of the service that is checked when a query is executed, not when it is
    /// planned.
    pub(crate) excess: Option<SyntaxError>,
}

/// Parses a whole query that is to be run.
pub(crate) fn parse_query(text: &str) -> Result<Select, QueryError> {
    let Parsed { select, excess } = parse_within(text, QueryLimits::default())?;
    excess.map_or(Ok(select), |excess| Err(excess.into()))
}

/// Parses a whole query.
pub(crate) fn parse_within(text: &str, limits: QueryLimits) -> Result<Parsed, QueryError> {
    let parsed = whole(text, limits, |parser| {
        let select = parser.select()?;
        Ok(Parsed { select, excess: parser.excess.take() })
    })?;
    let Parsed { select, excess } = parsed;
    match &select {
        Select { selection: Selection::All(star), from: None, .. } => {
            let message = "Syntax error, 'SELECT *' is not valid if FROM clause is omitted.";
            Err(SyntaxError::new(Code::STAR_WITHOUT_FROM, *star, message).into())
        }
        _ => Ok(Parsed { select, excess }),
    }
}

/// Parses what follows `SELECT *`, as patch conditions are written.
pub(crate) fn parse_condition(text: &str) -> Result<Select, QueryError> {
    whole(text, QueryLimits::default(), |parser| {
        let start = parser.peek().span;
        let select = parser.clauses(start, Selection::All(start))?;
        parser.excess.take().map_or(Ok(select), |excess| Err(refused(excess)))
    })
}

/// Parses a lone expression.
pub(crate) fn parse_expression(text: &str) -> Result<Expr, QueryError> {
    whole(text, QueryLimits::default(), Parser::expression)
}

/// Parses a part of the grammar that must consume the whole text.
fn whole<'t, T>(
    text: &'t str,
    limits: QueryLimits,
    part: impl FnOnce(&mut Parser<'t>) -> Parse<T>,
) -> Result<T, QueryError> {
    let parsed = Parser::new(text, limits).and_then(|mut parser| {
        let parsed = part(&mut parser)?;
        parser.expect_end()?;
        parser.wrong.take().map_or(Ok(parsed), |wrong| Err(refused(wrong)))
    });
    parsed.map_err(|error| *error)
}

struct Parser<'t> {
    text: &'t str,
    tokens: Vec<Token>,
    at: usize,
    /// Levels of recursion.
    depth: usize,
    /// The symbols that the service's parser would have on its stack.
    symbols: usize,
    ands: usize,
    ors: usize,
    /// An error that is not one of syntax, reported if the syntax is valid.
    wrong: Option<SyntaxError>,
    limits: QueryLimits,
    /// The first limit that the query exceeds and that only matters when it is executed.
    excess: Option<SyntaxError>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str, limits: QueryLimits) -> Parse<Parser<'t>> {
        let most = limits.text_units;
        if text.len() > most && text.encode_utf16().count() > most {
            let message =
                format!("The SQL query text exceeded the maximum limit of {most} characters.");
            let whole = Span::new(0, text.len());
            return Err(refused(SyntaxError::new(Code::TEXT_LENGTH, whole, message)));
        }
        let tokens = lexer::tokens(text);
        let (at, depth, symbols, ands, ors) = (0, 0, 0, 0, 0);
        let (wrong, excess) = (None, None);
        Ok(Parser { text, tokens, at, depth, symbols, ands, ors, wrong, limits, excess })
    }

    fn peek(&self) -> Token {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Token {
        let end = || *self.tokens.last().expect("the end is always there");
        self.tokens.get(self.at + ahead).copied().unwrap_or_else(end)
    }

    /// Takes the next token; the end is not consumed.
    fn take(&mut self) -> Token {
        let token = self.peek();
        if token.kind != Kind::End {
            self.at += 1;
        }
        token
    }

    fn take_if(&mut self, kind: Kind) -> Option<Token> {
        (self.peek().kind == kind).then(|| self.take())
    }

    fn take_keyword(&mut self, keyword: Keyword) -> Option<Token> {
        self.take_if(Kind::Keyword(keyword))
    }

    fn take_symbol(&mut self, symbol: Symbol) -> Option<Token> {
        self.take_if(Kind::Symbol(symbol))
    }

    fn is_keyword(&self, ahead: usize, keyword: Keyword) -> bool {
        self.peek_at(ahead).kind == Kind::Keyword(keyword)
    }

    fn is_symbol(&self, ahead: usize, symbol: Symbol) -> bool {
        self.peek_at(ahead).kind == Kind::Symbol(symbol)
    }

    fn expect_keyword(&mut self, keyword: Keyword) -> Parse<Token> {
        self.take_keyword(keyword).ok_or_else(|| self.unexpected())
    }

    fn expect_symbol(&mut self, symbol: Symbol) -> Parse<Token> {
        self.take_symbol(symbol).ok_or_else(|| self.unexpected())
    }

    fn expect_end(&self) -> Parse<()> {
        if self.peek().kind == Kind::End { Ok(()) } else { Err(self.unexpected()) }
    }

    fn is_name(&self, ahead: usize) -> bool {
        match self.peek_at(ahead).kind {
            Kind::Identifier => true,
            Kind::Keyword(keyword) => keyword.is_name(),
            Kind::Number
            | Kind::String
            | Kind::Parameter
            | Kind::Symbol(_)
            | Kind::Invalid(_)
            | Kind::End => false,
        }
    }

    fn take_name(&mut self) -> Option<Name> {
        self.is_name(0).then(|| {
            let token = self.take();
            self.name_of(token)
        })
    }

    fn expect_name(&mut self) -> Parse<Name> {
        self.take_name().ok_or_else(|| self.unexpected())
    }

    fn name_of(&self, token: Token) -> Name {
        Name { text: self.text_of(token).to_owned(), span: token.span }
    }

    /// The value of a string literal, and its position.
    fn string_of(&self, token: Token) -> Name {
        Name { text: decode_string(self.text_of(token)), span: token.span }
    }

    fn text_of(&self, token: Token) -> &'t str {
        token.span.slice(self.text)
    }

    /// From the start of a construct to the last token taken.
    fn span_from(&self, start: Span) -> Span {
        let last = self.at.checked_sub(1).and_then(|at| self.tokens.get(at));
        last.map_or(start, |token| start.to(token.span))
    }

    fn unexpected(&self) -> Box<QueryError> {
        self.unexpected_token(self.peek())
    }

    fn unexpected_token(&self, token: Token) -> Box<QueryError> {
        let near: String = self.text_of(token).chars().take(NEAR_CHARS_MAX).collect();
        let (code, what) = match token.kind {
            Kind::End => {
                let message = "Syntax error, unexpected end-of-file.";
                return refused(SyntaxError::new(Code::END_OF_TEXT, token.span, message));
            }
            Kind::Invalid(Flaw::Character) => (Code::INVALID_CHARACTER, "invalid token"),
            Kind::Invalid(Flaw::Number) => (Code::INVALID_NUMBER, "invalid numeric value token"),
            Kind::Invalid(Flaw::String) => (Code::INVALID_STRING, "invalid string literal token"),
            Kind::Identifier
            | Kind::Keyword(_)
            | Kind::Number
            | Kind::String
            | Kind::Parameter
            | Kind::Symbol(_) => (Code::SYNTAX, "incorrect syntax near"),
        };
        // The service's texts end at a NUL.
        let near = near.split('\0').next().unwrap_or_default();
        refused(SyntaxError::new(code, token.span, format!("Syntax error, {what} '{near}'.")))
    }

    /// Records a limit that the service checks when it executes a query.
    fn count(&mut self, count: usize, limit: &ServiceLimit) {
        if count > limit.most && self.excess.is_none() {
            self.excess = Some(self.exceeded(limit));
        }
    }

    /// Enforces a limit of the service.
    fn within(&self, count: usize, limit: &ServiceLimit) -> Parse<()> {
        if count <= limit.most { Ok(()) } else { Err(refused(self.exceeded(limit))) }
    }

    fn exceeded(&self, ServiceLimit { code, what, most }: &ServiceLimit) -> SyntaxError {
        let message = format!(
            "The SQL query exceeded the maximum number of {what}. The allowed limit is {most}."
        );
        SyntaxError::new(*code, Span::new(0, self.text.len()), message)
    }

    /// Goes one level deeper into a recursive part of the grammar; the caller comes up
    /// again with [`Parser::leave`], unless it fails.
    fn enter(&mut self, levels: usize) -> Parse<()> {
        self.depth += levels;
        let most = self.limits.depth.levels();
        if self.depth > most { Err(self.too_complex()) } else { Ok(()) }
    }

    /// Pushes symbols that stay on the stack, the last of which have just been taken; the
    /// caller removes them again with [`Parser::pop`], unless it fails.
    fn push(&mut self, symbols: usize) -> Parse<()> {
        self.symbols += symbols;
        match self.symbols.checked_sub(SYMBOLS_MAX) {
            None | Some(0) => Ok(()),
            Some(beyond) => {
                let token = self.at.checked_sub(beyond).and_then(|at| self.tokens.get(at));
                Err(too_complex(token.map_or(self.peek().span, |token| token.span)))
            }
        }
    }

    fn pop(&mut self, symbols: usize) {
        self.symbols -= symbols;
    }

    /// Refuses the next token if the stack has no room for this many symbols, the token
    /// being the last.
    fn fits(&self, symbols: usize) -> Parse<()> {
        if self.symbols + symbols > SYMBOLS_MAX { Err(self.too_complex()) } else { Ok(()) }
    }

    fn node(&self, kind: ExprKind, span: Span) -> Parse<Expr> {
        let made = Expr::new(kind, span).map_err(|_: TooHigh| too_complex(span))?;
        self.low(made, span)
    }

    fn low(&self, expr: Expr, span: Span) -> Parse<Expr> {
        let most = self.limits.depth.height();
        if expr.height() > most { Err(too_complex(span)) } else { Ok(expr) }
    }

    fn too_complex(&self) -> Box<QueryError> {
        too_complex(self.peek().span)
    }

    fn leave(&mut self, levels: usize) {
        self.depth -= levels;
    }

    /// Items between commas, at least one.
    fn comma_list<T>(&mut self, item: impl Fn(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.take_symbol(Symbol::Comma).is_some() {
            self.push(2)?;
            items.push(item(self)?);
            self.pop(2);
        }
        Ok(items)
    }

    /// Items between commas up to a closing symbol, possibly none.
    fn closed_list<T>(
        &mut self,
        close: Symbol,
        item: impl Fn(&mut Self) -> Parse<T>,
    ) -> Parse<Vec<T>> {
        if self.is_symbol(0, close) {
            self.close(close)?;
            return Ok(Vec::new());
        }
        let items = self.comma_list(item)?;
        self.close(close)?;
        Ok(items)
    }

    /// The end of a list, or of an expression in brackets.
    fn close(&mut self, close: Symbol) -> Parse<Token> {
        self.fits(2)?;
        self.expect_symbol(close)
    }
}

fn too_complex(span: Span) -> Box<QueryError> {
    let message = "The query is too complex to be processed. To resolve this issue, please \
                   consider breaking the query into multiple smaller queries, simplifying the \
                   complex expression, and/or using Computed Properties.";
    refused(SyntaxError::new(Code::TOO_COMPLEX, span, message))
}

fn refused(error: SyntaxError) -> Box<QueryError> {
    Box::new(error.into())
}

//! Queries and their clauses.

use super::{GROUP_KEYS_MAX, Parse, Parser, SUBQUERY_LEVELS, ServiceLimit};
use crate::error::{Code, QueryError, Span};
use crate::lexer::{Keyword, Kind, Symbol, decode_number};
use crate::syntax::{
    Collection, Count, Expr, ExprKind, From, Name, OrderBy, OrderItem, OrderKeys, Page, Property,
    Select, SelectItem, Selection, SortDirection, Source, Step, Top,
};

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Parse<Select> {
        self.enter(SUBQUERY_LEVELS)?;
        self.fits(1)?;
        let start = self.expect_keyword(Keyword::Select)?.span;
        let distinct = self.take_keyword(Keyword::Distinct).is_some();
        let top = self.top()?;
        let words = 2 + usize::from(distinct);
        self.push(words)?;
        let selection = self.selection()?;
        self.pop(words);
        let clauses = self.clauses(start, selection)?;
        self.leave(SUBQUERY_LEVELS);
        Ok(Select { distinct, top, ..clauses })
    }

    /// Everything after the select list.
    pub(super) fn clauses(&mut self, start: Span, selection: Selection) -> Parse<Select> {
        let from = self.from()?;
        let filter = self.filter()?;
        let group_by = self.group_by()?;
        let order_by = self.order_by()?;
        let page = self.page()?;
        // Each clause is a symbol, whether or not it is there.
        self.fits(6)?;
        let span = self.span_from(start);
        let (distinct, top) = (false, None);
        Ok(Select { distinct, top, selection, from, filter, group_by, order_by, page, span })
    }

    fn filter(&mut self) -> Parse<Option<Expr>> {
        if self.take_keyword(Keyword::Where).is_none() {
            return Ok(None);
        }
        self.behind_clauses(3, Self::expression).map(Some)
    }

    /// A part of a clause, after clauses and keywords of its own.
    fn behind_clauses<T>(
        &mut self,
        symbols: usize,
        part: impl FnOnce(&mut Self) -> Parse<T>,
    ) -> Parse<T> {
        self.push(symbols)?;
        let part = part(self)?;
        self.pop(symbols);
        Ok(part)
    }

    fn top(&mut self) -> Parse<Option<Top>> {
        let Some(keyword) = self.take_keyword(Keyword::Top) else { return Ok(None) };
        let count = self.row_count(is_any_number)?;
        Ok(Some(Top { count, span: self.span_from(keyword.span) }))
    }

    fn page(&mut self) -> Parse<Option<Page>> {
        let Some(keyword) = self.take_keyword(Keyword::Offset) else { return Ok(None) };
        let offset = self.row_count(is_integer)?;
        self.expect_keyword(Keyword::Limit)?;
        let limit = self.row_count(is_integer)?;
        Ok(Some(Page { offset, limit, span: self.span_from(keyword.span) }))
    }

    /// A number of rows, in one of the spellings that the clause accepts. Whether it is
    /// valid is checked when it is bound.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn row_count(&mut self, is_spelling: fn(&str) -> bool) -> Parse<Count> {
        if let Some(token) = self.take_if(Kind::Parameter) {
            return Ok(Count::Parameter(self.name_of(token)));
        }
        let token = self.peek();
        let number = match token.kind {
            Kind::Number => decode_number(self.text_of(token)),
            Kind::Keyword(Keyword::Nan) => Some(f64::NAN.into()),
            Kind::Keyword(Keyword::Infinity) => Some(f64::INFINITY.into()),
            _ => None,
        };
        match number.filter(|_| is_spelling(self.text_of(token))) {
            Some(number) => {
                self.take();
                Ok(Count::Number(number, token.span))
            }
            None => Err(self.unexpected()),
        }
    }

    fn selection(&mut self) -> Parse<Selection> {
        if let Some(star) = self.take_symbol(Symbol::Star) {
            return Ok(Selection::All(star.span));
        }
        if self.take_keyword(Keyword::Value).is_some() {
            return self.behind_clauses(1, Self::expression).map(Selection::Value);
        }
        self.comma_list(Self::item).map(Selection::List)
    }

    fn item(&mut self) -> Parse<SelectItem> {
        let expr = self.expression()?;
        let explicit = self.take_keyword(Keyword::As).is_some();
        let alias = match self.take_if(Kind::String) {
            Some(literal) => Some(self.string_of(literal)),
            None => self.take_name(),
        };
        if explicit && alias.is_none() {
            Err(self.unexpected())
        } else {
            Ok(SelectItem { expr, alias })
        }
    }

    fn from(&mut self) -> Parse<Option<From>> {
        if self.take_keyword(Keyword::From).is_none() {
            return Ok(None);
        }
        let start = self.peek().span;
        let first = self.behind_clauses(2, Self::source)?;
        let mut joins = Vec::new();
        while self.take_keyword(Keyword::Join).is_some() {
            joins.push(self.behind_clauses(4, Self::source)?);
            let most = self.limits.joins;
            let limit = ServiceLimit { code: Code::JOIN_COUNT, what: "joins", most };
            self.within(joins.len(), &limit)?;
        }
        Ok(Some(From { first, joins, span: self.span_from(start) }))
    }

    fn source(&mut self) -> Parse<Source> {
        let start = self.peek().span;
        let iterates = self.is_name(0) && self.is_keyword(1, Keyword::In);
        let mut alias = None;
        if iterates {
            alias = Some(self.expect_name()?);
            self.expect_keyword(Keyword::In)?;
        }
        let collection_start = self.peek().span;
        let words = if iterates { 2 } else { 0 };
        let collection = self.behind_clauses(words, Self::collection)?;
        let collection_span = self.span_from(collection_start);
        if !iterates {
            let explicit = self.take_keyword(Keyword::As).is_some();
            alias = if explicit { Some(self.expect_name()?) } else { self.take_name() };
        }
        let span = self.span_from(start);
        Ok(Source { collection, alias, iterates, span, collection_span })
    }

    fn collection(&mut self) -> Parse<Collection> {
        if self.take_symbol(Symbol::OpenParen).is_some() {
            let select = self.behind_clauses(1, Self::select)?;
            self.expect_symbol(Symbol::CloseParen)?;
            return Ok(Collection::Subquery(Box::new(select)));
        }
        let root = self.expect_name()?;
        let mut steps = Vec::new();
        loop {
            if self.take_symbol(Symbol::Dot).is_some() {
                steps.push(Step::Name(self.dotted()?));
            } else if self.take_symbol(Symbol::OpenBracket).is_some() {
                steps.push(self.bracket_step()?);
                self.expect_symbol(Symbol::CloseBracket)?;
            } else {
                return Ok(Collection::Path { root, steps });
            }
        }
    }

    /// The name after a dot.
    pub(super) fn dotted(&mut self) -> Parse<Property> {
        let name = self.expect_name()?;
        Ok(Property { name: name.text, bracketed: false, span: name.span })
    }

    fn bracket_step(&mut self) -> Parse<Step> {
        if let Some(literal) = self.take_if(Kind::String) {
            let Name { text, span } = self.string_of(literal);
            return Ok(Step::Name(Property { name: text, bracketed: true, span }));
        }
        let token = self.peek();
        let index = (token.kind == Kind::Number).then(|| decode_number(self.text_of(token)));
        match index.flatten() {
            Some(index) => {
                self.take();
                Ok(Step::Index(index))
            }
            None => Err(self.unexpected()),
        }
    }

    fn group_by(&mut self) -> Parse<Vec<Expr>> {
        if self.take_keyword(Keyword::Group).is_none() {
            return Ok(Vec::new());
        }
        self.expect_keyword(Keyword::By)?;
        let keys = self.behind_clauses(5, |own| own.comma_list(Self::expression))?;
        if keys.len() > GROUP_KEYS_MAX {
            let what = "expressions to group by";
            return Err(Box::new(QueryError::Limit { what, limit: GROUP_KEYS_MAX }));
        }
        Ok(keys)
    }

    fn order_by(&mut self) -> Parse<Option<OrderBy>> {
        let Some(keyword) = self.take_keyword(Keyword::Order) else { return Ok(None) };
        self.expect_keyword(Keyword::By)?;
        // RANK is also a name: only a call after it makes it the clause.
        let rank = self.is_keyword(0, Keyword::Rank)
            && self.is_name(1)
            && self.is_symbol(2, Symbol::OpenParen);
        let keys = if rank {
            self.take();
            OrderKeys::Rank(self.behind_clauses(7, Self::rank_item)?)
        } else {
            OrderKeys::Items(self.behind_clauses(6, |own| own.comma_list(Self::order_item))?)
        };
        Ok(Some(OrderBy { keys, span: self.span_from(keyword.span) }))
    }

    fn rank_item(&mut self) -> Parse<OrderItem> {
        let start = self.peek();
        let item = self.order_item()?;
        let is_call = matches!(item.expr.kind(), ExprKind::Call { .. });
        if is_call { Ok(item) } else { Err(self.unexpected_token(start)) }
    }

    fn order_item(&mut self) -> Parse<OrderItem> {
        let expr = self.expression()?;
        let direction = if self.take_keyword(Keyword::Asc).is_some() {
            Some(SortDirection::Ascending)
        } else if self.take_keyword(Keyword::Desc).is_some() {
            Some(SortDirection::Descending)
        } else {
            None
        };
        Ok(OrderItem { expr, direction })
    }
}

fn is_any_number(_: &str) -> bool {
    true
}

/// Whether a number is written in digits alone, decimal or hexadecimal, and fits 64 bits.
fn is_integer(text: &str) -> bool {
    let hexadecimal = text.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("0x"));
    hexadecimal || text.parse::<i64>().is_ok()
}

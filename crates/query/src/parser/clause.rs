//! Queries and their clauses.

use super::{GROUP_KEYS_MAX, JOINS, Parse, Parser, SUBQUERY_LEVELS, refused};
use crate::error::{Code, QueryError, Span, SyntaxError};
use crate::lexer::{Keyword, Kind, Symbol, Token, decode_string};
use crate::syntax::{
    Collection, Count, Direction, Expr, ExprKind, From, Item, OrderBy, OrderItem, OrderKeys, Page,
    Property, Select, Selection, Source, Step, Top,
};

impl Parser<'_> {
    pub(super) fn select(&mut self) -> Parse<Select> {
        self.enter(SUBQUERY_LEVELS)?;
        let start = self.expect_keyword(Keyword::Select)?.span;
        let distinct = self.take_keyword(Keyword::Distinct).is_some();
        let top = self.top()?;
        let selection = self.selection()?;
        let clauses = self.clauses(start, selection)?;
        self.leave(SUBQUERY_LEVELS);
        Ok(Select { distinct, top, ..clauses })
    }

    /// Everything behind the select list.
    pub(super) fn clauses(&mut self, start: Span, selection: Selection) -> Parse<Select> {
        let from = self.from()?;
        let filter = match self.take_keyword(Keyword::Where) {
            Some(_) => Some(self.expression()?),
            None => None,
        };
        let group_by = self.group_by()?;
        let order_by = self.order_by()?;
        let page = self.page()?;
        let span = self.span_from(start);
        let (distinct, top) = (false, None);
        Ok(Select { distinct, top, selection, from, filter, group_by, order_by, page, span })
    }

    fn top(&mut self) -> Parse<Option<Top>> {
        let Some(keyword) = self.take_keyword(Keyword::Top) else { return Ok(None) };
        let count = self.count(
            Code::TOP_COUNT,
            "The count value provided for a TOP clause must be an integer.",
        )?;
        Ok(Some(Top { count, span: self.span_from(keyword.span) }))
    }

    fn page(&mut self) -> Parse<Option<Page>> {
        let Some(keyword) = self.take_keyword(Keyword::Offset) else { return Ok(None) };
        let offset = self.count(
            Code::OFFSET_COUNT,
            "The OFFSET count value exceeds the maximum allowed value.",
        )?;
        self.expect_keyword(Keyword::Limit)?;
        let limit = self
            .count(Code::LIMIT_COUNT, "The LIMIT count value exceeds the maximum allowed value.")?;
        Ok(Some(Page { offset, limit, span: self.span_from(keyword.span) }))
    }

    /// A number of rows; `code` and `message` refuse numbers that count nothing.
    fn count(&mut self, code: Code, message: &str) -> Parse<Count> {
        if let Some(token) = self.take_if(Kind::Parameter) {
            return Ok(Count::Parameter(self.name_of(token)));
        }
        let Some(token) = self.take_if(Kind::Number) else { return Err(self.unexpected()) };
        let rows = self.text_of(token).parse();
        rows.map(Count::Rows).map_err(|_| refused(SyntaxError::new(code, token.span, message)))
    }

    fn selection(&mut self) -> Parse<Selection> {
        if let Some(star) = self.take_symbol(Symbol::Star) {
            return Ok(Selection::All(star.span));
        }
        if self.take_keyword(Keyword::Value).is_some() {
            return self.expression().map(Selection::Value);
        }
        self.comma_list(Self::item).map(Selection::List)
    }

    fn item(&mut self) -> Parse<Item> {
        let expr = self.expression()?;
        let explicit = self.take_keyword(Keyword::As).is_some();
        let alias = match self.take_if(Kind::String) {
            Some(literal) => Some(decode_string(self.text_of(literal))),
            None => self.take_name().map(|name| name.text),
        };
        if explicit && alias.is_none() { Err(self.unexpected()) } else { Ok(Item { expr, alias }) }
    }

    fn from(&mut self) -> Parse<Option<From>> {
        if self.take_keyword(Keyword::From).is_none() {
            return Ok(None);
        }
        let start = self.peek().span;
        let first = self.source()?;
        let mut joins = Vec::new();
        while self.take_keyword(Keyword::Join).is_some() {
            joins.push(self.source()?);
            self.within(joins.len(), &JOINS)?;
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
        let collection = self.collection()?;
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
            let select = self.select()?;
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

    /// The name behind a point.
    pub(super) fn dotted(&mut self) -> Parse<Property> {
        self.expect_name().map(|name| Property { name: name.text, bracketed: false })
    }

    fn bracket_step(&mut self) -> Parse<Step> {
        if let Some(literal) = self.take_if(Kind::String) {
            let name = decode_string(self.text_of(literal));
            return Ok(Step::Name(Property { name, bracketed: true }));
        }
        let index = |parser: &Self, token: Token| parser.text_of(token).parse().ok();
        let token = self.peek();
        match index(self, token).filter(|_| token.kind == Kind::Number) {
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
        let keys = self.comma_list(Self::expression)?;
        if keys.len() > GROUP_KEYS_MAX {
            let what = "expressions to group by";
            return Err(Box::new(QueryError::Limit { what, limit: GROUP_KEYS_MAX }));
        }
        Ok(keys)
    }

    fn order_by(&mut self) -> Parse<Option<OrderBy>> {
        let Some(keyword) = self.take_keyword(Keyword::Order) else { return Ok(None) };
        self.expect_keyword(Keyword::By)?;
        // RANK is also a name: only a call behind it makes it the clause.
        let rank = self.is_keyword(0, Keyword::Rank)
            && self.is_name(1)
            && self.is_symbol(2, Symbol::OpenParen);
        let keys = if rank {
            self.take();
            OrderKeys::Rank(self.rank_item()?)
        } else {
            OrderKeys::Items(self.comma_list(Self::order_item)?)
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
            Some(Direction::Ascending)
        } else if self.take_keyword(Keyword::Desc).is_some() {
            Some(Direction::Descending)
        } else {
            None
        };
        Ok(OrderItem { expr, direction })
    }
}

//! What a script may ask of the database around it.
//!
//! A [`Host`] is one transaction on one logical partition: it reads a snapshot, keeps
//! writes to itself, and knows the time and how much may still be spent. Scripts reach
//! nothing else. Documents pass as JSON text, which is how they are stored.

/// What every script has around it. Time and randomness come from here, so that a run with
/// the same answers ends the same way.
pub trait Environment {
    /// Milliseconds since 1970, for `Date`.
    fn now_ms(&mut self) -> i64;

    /// Random bits, for `Math.random` and for ids of documents that have none.
    fn random(&mut self) -> u64;

    /// Whether the run must end. Asked every few thousand steps of the script, and before
    /// each operation.
    fn is_out_of_time(&mut self) -> bool;
}

/// What procedures and triggers have: one transaction.
pub trait Host: Environment {
    /// Whether another operation may begin. `false` tells the script to return what it has
    /// and be called again: little time is left, or little of what it may spend.
    fn accepts(&mut self) -> bool;

    /// The document, or that it still has the etag `unless`.
    fn read(&mut self, item: &ItemLink, unless: Option<&str>) -> Result<Read, HostRefusal>;

    /// Creates a document and returns it with its system properties.
    fn create(&mut self, body: &str, index: IndexAction) -> Result<String, HostRefusal>;

    /// Creates or replaces a document and returns it with its system properties.
    fn upsert(&mut self, body: &str, index: IndexAction) -> Result<String, HostRefusal>;

    /// Replaces a document, if it still has the etag `only_if`, and returns the new one.
    fn replace(
        &mut self,
        item: &ItemLink,
        body: &str,
        only_if: Option<&str>,
        index: IndexAction,
    ) -> Result<String, HostRefusal>;

    /// Deletes a document, if it still has the etag `only_if`.
    fn delete(&mut self, item: &ItemLink, only_if: Option<&str>) -> Result<(), HostRefusal>;

    /// One page of a query's results, or of all documents.
    fn query(&mut self, question: &Question<'_>) -> Result<FeedPage, HostRefusal>;
}

/// A document of the script's own container, as a script names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemLink {
    /// By its resource id, out of `_self`.
    Rid(String),
    /// By its id, out of a link of names.
    Id(String),
}

/// The two links of the container that a script belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerLinks {
    /// `dbs/RID/colls/RID/`, with resource ids.
    pub of_rids: String,
    /// `dbs/NAME/colls/NAME`, with names.
    pub of_names: String,
}

/// The answer to a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    Document(String),
    NotModified,
}

/// What a script wishes for the index; the service knows it as `indexAction`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexAction {
    #[default]
    Default,
    Include,
    Exclude,
}

/// A page that a script asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question<'a> {
    pub source: FeedSource<'a>,
    /// Documents on the page at most.
    pub items_max: u32,
    pub continuation: Option<&'a str>,
    /// Whether the script agreed to read what the index does not cover.
    pub scan: bool,
}

/// What a page is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedSource<'a> {
    /// All documents of the logical partition.
    All,
    /// A query: its text, or JSON with the text and its parameters.
    Text(&'a str),
    Json(&'a str),
}

/// A page of results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedPage {
    /// JSON texts.
    pub documents: Vec<String>,
    pub continuation: Option<String>,
}

/// Why the host did not do what a script asked for. The script's callback gets it, or it is
/// thrown where there is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct HostRefusal {
    pub reason: HostReason,
    /// For the script; the host words it as the protocol does.
    pub message: String,
}

/// The reasons that scripts can tell apart; `ErrorCodes` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostReason {
    #[error("bad request")]
    BadRequest,
    #[error("forbidden")]
    Forbidden,
    #[error("not found")]
    NotFound,
    #[error("conflict")]
    Conflict,
    #[error("precondition failed")]
    PreconditionFailed,
    #[error("too large")]
    TooLarge,
    #[error("to be tried again")]
    RetryWith,
    #[error("internal error")]
    Internal,
}

impl HostReason {
    /// The number by which scripts know the reason. They compare it with `ErrorCodes`.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            HostReason::BadRequest => 400,
            HostReason::Forbidden => 403,
            HostReason::NotFound => 404,
            HostReason::Conflict => 409,
            HostReason::PreconditionFailed => 412,
            HostReason::TooLarge => 413,
            HostReason::RetryWith => 449,
            HostReason::Internal => 500,
        }
    }
}

impl ContainerLinks {
    /// Whether a script that names this container means its own.
    pub(crate) fn container(&self, link: &str) -> Linked<()> {
        if !is_container(link) {
            return Linked::Malformed;
        }
        let same = [&self.of_rids, &self.of_names].iter().any(|own| segments_equal(own, link));
        if same { Linked::Own(()) } else { Linked::Outside }
    }

    /// The document of this container that a script names.
    pub(crate) fn item(&self, link: &str) -> Linked<ItemLink> {
        let mut parts = link.split('/');
        let heads: Vec<&str> = parts.by_ref().take(4).collect();
        let (kind, name) = (parts.next(), parts.next());
        let (Some(kind), Some(name)) = (kind, name) else { return Linked::Malformed };
        let container = heads.join("/");
        let well_formed = is_container(&container) && kind.eq_ignore_ascii_case("docs");
        if !well_formed || name.is_empty() || parts.any(|rest| !rest.is_empty()) {
            return Linked::Malformed;
        }
        if segments_equal(&self.of_rids, &container) {
            Linked::Own(ItemLink::Rid(name.to_owned()))
        } else if segments_equal(&self.of_names, &container) {
            Linked::Own(ItemLink::Id(name.to_owned()))
        } else {
            Linked::Outside
        }
    }
}

/// What a link in a script turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Linked<T> {
    Own(T),
    Outside,
    Malformed,
}

fn is_container(link: &str) -> bool {
    let mut parts = link.split('/');
    let mut is = |word: &str| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(word));
    let dbs = is("dbs");
    let database = parts.next().is_some();
    let mut is = |word: &str| parts.next().is_some_and(|part| part.eq_ignore_ascii_case(word));
    let colls = is("colls");
    dbs && database && colls && parts.next().is_some()
}

/// Links are equal whatever the case of their fixed words, with or without a slash at the end.
fn segments_equal(own: &str, link: &str) -> bool {
    let parts = |text: &str| -> Vec<String> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let fold = |(at, part): (usize, &str)| {
            if at % 2 == 0 { part.to_ascii_lowercase() } else { part.to_owned() }
        };
        text.split('/').enumerate().map(fold).collect()
    };
    parts(own) == parts(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links() -> ContainerLinks {
        ContainerLinks {
            of_rids: "dbs/Aa==/colls/AaBb=/".to_owned(),
            of_names: "dbs/shop/colls/orders".to_owned(),
        }
    }

    #[test]
    fn a_container_is_named_by_rids_or_names() {
        for own in ["dbs/Aa==/colls/AaBb=/", "dbs/Aa==/colls/AaBb=", "DBS/shop/Colls/orders"] {
            assert_eq!(links().container(own), Linked::Own(()), "{own}");
        }
        for other in
            ["dbs/shop/colls/orders2", "dbs/shop/colls/ORDERS", "dbs/shop/colls/orders/docs/1"]
        {
            assert_eq!(links().container(other), Linked::Outside, "{other}");
        }
        for malformed in ["", "orders", "dbs/shop", "dbs/shop/docs/orders"] {
            assert_eq!(links().container(malformed), Linked::Malformed, "{malformed}");
        }
    }

    #[test]
    fn a_document_is_named_by_rid_or_id() {
        let rid = Linked::Own(ItemLink::Rid("AaBbCc==".to_owned()));
        assert_eq!(links().item("dbs/Aa==/colls/AaBb=/docs/AaBbCc==/"), rid);
        let id = Linked::Own(ItemLink::Id("o 1".to_owned()));
        assert_eq!(links().item("dbs/shop/colls/orders/docs/o 1"), id);
        // A prefix of another container's name is not that container.
        assert_eq!(links().item("dbs/shop/colls/orders2/docs/1"), Linked::Outside);
        for malformed in ["", "dbs/shop/colls/orders/docs", "dbs/shop/colls/orders/docs/", "1"] {
            assert_eq!(links().item(malformed), Linked::Malformed, "{malformed}");
        }
    }
}

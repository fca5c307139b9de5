//! The kinds of resources and the links that name them.

use std::fmt;

/// A kind of resource in the catalogue. Items are not: they live in containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Database,
    Container,
    User,
    Permission,
    /// A data key of clients that encrypt, wrapped with a key that only they have.
    ClientEncryptionKey,
    StoredProcedure,
    Trigger,
    UserDefinedFunction,
    Offer,
}

impl Kind {
    const ALL: [Kind; 9] = [
        Kind::Database,
        Kind::Container,
        Kind::User,
        Kind::Permission,
        Kind::ClientEncryptionKey,
        Kind::StoredProcedure,
        Kind::Trigger,
        Kind::UserDefinedFunction,
        Kind::Offer,
    ];

    /// The segment in links, and the prefix before the colon in the ids of catalogue items.
    #[must_use]
    pub fn segment(self) -> &'static str {
        match self {
            Kind::Database => "dbs",
            Kind::Container => "colls",
            Kind::User => "users",
            Kind::Permission => "permissions",
            Kind::ClientEncryptionKey => "clientencryptionkeys",
            Kind::StoredProcedure => "sprocs",
            Kind::Trigger => "triggers",
            Kind::UserDefinedFunction => "udfs",
            Kind::Offer => "offers",
        }
    }

    /// The kind of its parent; `None` for the account itself.
    #[must_use]
    pub fn parent(self) -> Option<Kind> {
        match self {
            Kind::Database | Kind::Offer => None,
            Kind::Container | Kind::User | Kind::ClientEncryptionKey => Some(Kind::Database),
            Kind::Permission => Some(Kind::User),
            Kind::StoredProcedure | Kind::Trigger | Kind::UserDefinedFunction => {
                Some(Kind::Container)
            }
        }
    }

    /// The properties that link to what a resource contains.
    pub(crate) fn feeds(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::Database => &[("_colls", "colls/"), ("_users", "users/")],
            Kind::Container => &[
                ("_docs", "docs/"),
                ("_sprocs", "sprocs/"),
                ("_triggers", "triggers/"),
                ("_udfs", "udfs/"),
                ("_conflicts", "conflicts/"),
            ],
            Kind::User => &[("_permissions", "permissions/")],
            Kind::Permission
            | Kind::ClientEncryptionKey
            | Kind::StoredProcedure
            | Kind::Trigger
            | Kind::UserDefinedFunction
            | Kind::Offer => &[],
        }
    }

    /// The kind that a segment of a link stands for.
    #[must_use]
    pub fn from_segment(segment: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.segment() == segment)
    }
}

/// A path of kinds and names, such as `dbs/D/colls/C`; empty for the account.
///
/// Names may also be resource ids: that is decided when the link is resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link(Vec<(Kind, String)>);

/// The deepest link: a permission of a user of a database.
const SEGMENTS_MAX: usize = 3;

/// Slashes inside the link of a container, `dbs/D/colls/C`.
const CONTAINER_SLASHES: usize = 3;

impl Link {
    /// Parses a link. `None` when the kinds cannot follow each other.
    #[must_use]
    pub fn parse(text: &str) -> Option<Link> {
        let text = text.trim_matches('/');
        let mut segments = text.split('/').filter(|_| !text.is_empty());
        let mut link = Link::default();
        while let Some(segment) = segments.next() {
            link = link.child(Kind::from_segment(segment)?, segments.next()?)?;
        }
        Some(link)
    }

    /// Parses the subject of a permission: the link of a resource, or of a container with
    /// the id of one of its items, which are not in the catalogue.
    ///
    /// Where the id begins follows from its position, not from the word before it:
    /// databases and containers may be called `docs`, too.
    #[must_use]
    pub(crate) fn parse_with_item(text: &str) -> Option<(Link, Option<&str>)> {
        let text = text.trim_matches('/');
        let (of_item, item) = match text.match_indices('/').nth(CONTAINER_SLASHES) {
            Some((at, _)) => text.split_at(at),
            None => (text, ""),
        };
        match item.strip_prefix("/docs/") {
            Some(id) => Some((Link::parse(of_item)?, Some(id))),
            None => Some((Link::parse(text)?, None)),
        }
    }

    /// The link of something inside this one.
    #[must_use]
    pub fn child(mut self, kind: Kind, name: &str) -> Option<Link> {
        let fits = kind.parent() == self.kind() && self.0.len() < SEGMENTS_MAX && !name.is_empty();
        fits.then(|| {
            self.0.push((kind, name.to_owned()));
            self
        })
    }

    /// The kind of what is named; none for the account.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        self.0.last().map(|(kind, _)| *kind)
    }

    /// What contains the named resource, and its name in there.
    #[must_use]
    pub fn split(mut self) -> Option<(Link, String)> {
        let (_, name) = self.0.pop()?;
        Some((self, name))
    }

    pub(crate) fn segments(&self) -> &[(Kind, String)] {
        &self.0
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, name)) in self.0.iter().enumerate() {
            write!(f, "{}{}/{name}", if at > 0 { "/" } else { "" }, kind.segment())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_follow_the_tree_of_resources() {
        for text in [
            "",
            "dbs/d",
            "dbs/d/colls/c",
            "dbs/d/colls/c/sprocs/s",
            "dbs/d/users/u/permissions/p",
            "dbs/d/clientencryptionkeys/k",
            "offers/abcD",
        ] {
            assert_eq!(Link::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "colls/c",
            "dbs",
            "dbs/d/sprocs/s",
            "dbs/d/colls/c/colls/c",
            "dbs//colls/c",
            "dbs/d/docs/x",
        ] {
            assert_eq!(Link::parse(text), None, "{text}");
        }
        assert_eq!(Link::parse("/dbs/d/"), Link::parse("dbs/d"));
    }

    #[test]
    fn items_are_told_by_their_place_in_a_link() {
        let read = |text| {
            let (link, item) = Link::parse_with_item(text)?;
            Some((link.to_string(), item.map(str::to_owned)))
        };
        let found =
            |link: &str, item: Option<&str>| Some((link.to_owned(), item.map(str::to_owned)));
        assert_eq!(read("dbs/d/colls/c/docs/1"), found("dbs/d/colls/c", Some("1")));
        assert_eq!(read("/dbs/docs/colls/c/"), found("dbs/docs/colls/c", None));
        assert_eq!(read("dbs/docs/colls/docs"), found("dbs/docs/colls/docs", None));
        assert_eq!(
            read("dbs/docs/colls/docs/docs/docs"),
            found("dbs/docs/colls/docs", Some("docs"))
        );
        assert_eq!(read("dbs/docs/users/docs"), found("dbs/docs/users/docs", None));
        assert_eq!(read("dbs/d/colls/c/sprocs/docs"), found("dbs/d/colls/c/sprocs/docs", None));
        assert_eq!(read("dbs/d/docs/1"), None);
        assert_eq!(read("dbs/d/colls/c/docs"), None);
    }
}

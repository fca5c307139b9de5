//! Queries on the blog of a public modelling example.
//!
//! The example shows the members of its items, not their values: those are made up here. It
//! says that posts have up to 25 comments and 100 likes, and users 5 to 50 posts. Its
//! charges reveal more: names of users beside a list of comments cost 20 RU, beside a list
//! of likes 50 RU, and each name is a point read of 1 RU. So that post has 20 comments and
//! 50 likes, and so has each of ours.

use std::ops::Add as _;

use model::charge::Charge;

use super::{LabeledCharge, Part, labeled, rows};
use crate::lab::Lab;

pub(super) const UNKNOWN_PARTITIONS: &str = "cannot be measured: the example asks all its physical partitions and tells neither their \
     number nor what they hold";

const USERS: u32 = 10;
const POSTS: u32 = 10;
const COMMENTS: u32 = 20;
const LIKES: u32 = 50;
/// The middle between 5 and 50.
const POSTS_OF_USER: u32 = 27;
const FEED_POSTS: u32 = 100;

/// The post, and the user, that is asked for.
const ASKED: u32 = 5;

/// The containers of the example's three versions.
pub(super) struct Blog {
    users: Lab,
    posts: Lab,
    /// With the names of users in each entry.
    named_posts: Lab,
    posts_by_user: Lab,
    feed: Lab,
}

impl Blog {
    pub(super) fn load() -> Blog {
        let loaded = |key: &str, items: Vec<String>| {
            let lab = Lab::with_definition(1, key, "");
            lab.load(&items);
            lab
        };
        let entries =
            |named: bool| (0..POSTS).flat_map(|post| entries_of_post(post, named)).collect();
        Blog {
            users: loaded("/id", (0..USERS).map(user).collect()),
            posts: loaded("/postId", entries(false)),
            named_posts: loaded("/postId", entries(true)),
            posts_by_user: loaded("/userId", (0..USERS).flat_map(entries_of_user).collect()),
            feed: loaded("/type", (0..FEED_POSTS).map(|post| short_post(post, post)).collect()),
        }
    }

    pub(super) fn parts(&self, id: &str) -> Vec<Part> {
        match id {
            "Q17" => vec![Ok(self.post_with_counts())],
            "Q19" => vec![Ok(self.list_with_names("comment", COMMENTS))],
            "Q20" => vec![Ok(self.list_with_names("like", LIKES))],
            "Q22" => vec![Err(UNKNOWN_PARTITIONS), Ok(self.posts_of_user())],
            "Q23" => {
                let list = |kind: &str, count| Ok(list(&self.named_posts, kind, count));
                vec![list("comment", COMMENTS), list("like", LIKES)]
            }
            "Q24" => vec![Err(UNKNOWN_PARTITIONS), Ok(self.newest())],
            other => panic!("{other} is not about the blog"),
        }
    }

    /// The example says: a document, and three more queries.
    fn post_with_counts(&self) -> LabeledCharge {
        let post = guid(ASKED);
        let name = format!("SELECT c.username FROM c WHERE c.id = '{post}'");
        let count = |kind: &str| {
            let text = format!("SELECT VALUE COUNT(1) FROM c WHERE {}", of_post(kind));
            rows(1, &self.posts.query(&text))
        };
        let read = self.posts.read_of(&post, &post) + rows(1, &self.users.query(&name));
        let charge = read + count("comment") + count("like");
        (charge, "a read, a query for a name and two COUNTs, made up".to_owned())
    }

    fn list_with_names(&self, kind: &str, count: u32) -> LabeledCharge {
        let user = guid(ASKED);
        let (listed, of) = list(&self.posts, kind, count);
        let names = (0..count).map(|_| self.users.read_of(&user, &user));
        (names.fold(listed, Charge::add), format!("{count} reads and {of}"))
    }

    fn posts_of_user(&self) -> LabeledCharge {
        let user = guid(ASKED);
        let text = format!("SELECT * FROM c WHERE c.userId = '{user}' AND c.type = 'post'");
        let answer = self.posts_by_user.query(&text);
        labeled(POSTS_OF_USER as usize, &answer, "27 posts of a user, made up")
    }

    fn newest(&self) -> LabeledCharge {
        let text = "SELECT TOP 100 * FROM c WHERE c.type = 'post' ORDER BY c.creationDate DESC";
        labeled(FEED_POSTS as usize, &self.feed.query(text), "the newest 100 of 100 posts, made up")
    }
}

fn list(posts: &Lab, kind: &str, count: u32) -> LabeledCharge {
    let answer = posts.query(&format!("SELECT * FROM c WHERE {}", of_post(kind)));
    labeled(count as usize, &answer, &format!("{count} {kind}s of a post, made up"))
}

/// The filter for what belongs to the post that is asked for.
fn of_post(kind: &str) -> String {
    format!("c.postId = '{}' AND c.type = '{kind}'", guid(ASKED))
}

/// What happens on a blog.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) kind: &'static str,
    pub(crate) number: u32,
    pub(crate) post: u32,
    pub(crate) user: u32,
    /// Whether it has the name of its user; a post then has its counts, too.
    pub(crate) named: bool,
    /// Bytes of what was written.
    pub(crate) content: usize,
}

impl Entry {
    /// The content of posts and comments, and what lists show of it.
    pub(crate) const CONTENT_BYTES: usize = 330;
    const SUMMARY_BYTES: usize = 110;

    pub(crate) fn body(self) -> String {
        let Entry { kind, number, post, user, named, content } = self;
        let (id, post, user_id) = (guid(number), guid(post), guid(user));
        let (minute, second) = (number / 60 % 60, number % 60);
        let mut members = format!(
            r#""id":"{id}","type":"{kind}","postId":"{post}","userId":"{user_id}","creationDate":"2025-01-02T03:{minute:02}:{second:02}Z""#
        );
        if named {
            members.push_str(&format!(r#","userUsername":"{}""#, name(user)));
        }
        if named && kind == "post" {
            members.push_str(&format!(r#","commentCount":{COMMENTS},"likeCount":{LIKES}"#));
        }
        if kind == "post" {
            members.push_str(r#","title":"How things are cut in pieces""#);
        }
        if content > 0 {
            let words: String = "some words ".chars().cycle().take(content).collect();
            members.push_str(&format!(r#","content":"{words}""#));
        }
        format!("{{{members}}}")
    }
}

/// A post with its comments and likes.
fn entries_of_post(post: u32, named: bool) -> Vec<String> {
    let content = Entry::CONTENT_BYTES;
    let first = Entry { kind: "post", number: post, post, user: post, named, content };
    let further = |kind: &'static str, number: u32, content: usize| {
        // After the numbers of all posts.
        let number = (post + 1) * 1_000 + number;
        Entry { kind, number, user: number, content, ..first }
    };
    let comments = (0..COMMENTS).map(|number| further("comment", number, content));
    let likes = (COMMENTS..COMMENTS + LIKES).map(|number| further("like", number, 0));
    [first].into_iter().chain(comments).chain(likes).map(Entry::body).collect()
}

/// A user with his posts, as lists show them.
fn entries_of_user(user: u32) -> Vec<String> {
    let id = guid(user);
    let own =
        format!(r#"{{"id":"{id}","type":"user","userId":"{id}","username":"{}"}}"#, name(user));
    let posts = (0..POSTS_OF_USER).map(|post| short_post((user + 1) * 1_000 + post, user));
    [own].into_iter().chain(posts).collect()
}

fn short_post(post: u32, user: u32) -> String {
    let content = Entry::SUMMARY_BYTES;
    Entry { kind: "post", number: post, post, user, named: true, content }.body()
}

fn user(number: u32) -> String {
    format!(r#"{{"id":"{}","username":"{}"}}"#, guid(number), name(number))
}

fn name(user: u32) -> String {
    format!("ada.lovelace.{user}")
}

fn guid(number: u32) -> String {
    format!("9d2f5b70-21c4-4ab0-9a57-{number:012x}")
}

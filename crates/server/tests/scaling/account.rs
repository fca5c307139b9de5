//! A server and its containers, by the requests that the cases need.

use std::cell::RefCell;
use std::net::TcpStream;
use std::time::Duration;

use runtime::{Clock as _, RealClock};
use serde_json::Value;
use wire_cosmos::EMULATOR_KEY;

use crate::client::{Reply, Signed, connect, create_database, send, send_signed};
use crate::program::Program;

/// Times a client looks whether a change has been carried out, and the time between.
/// Minutes: only a change that is never carried out takes as long.
const LOOKS_MAX: usize = 30_000;
const PAUSE: Duration = Duration::from_millis(10);

pub(crate) struct Account {
    _program: Program,
    stream: RefCell<TcpStream>,
}

pub(crate) struct Container<'a> {
    account: &'a Account,
    link: String,
    offer: String,
}

impl Account {
    pub(crate) fn open(profile: &str, division: &str) -> Account {
        let arguments = ["--in-memory", "--profile", profile, "--storage-splits", division];
        let program = Program::start(&std::env::temp_dir(), &arguments);
        let stream = RefCell::new(connect(program.address()));
        assert_eq!(create_database(&mut *stream.borrow_mut(), "d").status, 201);
        Account { _program: program, stream }
    }

    pub(crate) fn try_create(&self, name: &str, key: Option<&str>, headers: &str) -> Reply {
        let key = key.map(|key| format!(r#","partitionKey":{{"paths":["{key}"],"version":2}}"#));
        let body = format!(r#"{{"id":"{name}"{}}}"#, key.unwrap_or_default());
        let what = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
        self.send(what, headers, &body)
    }

    pub(crate) fn create(&self, name: &str, headers: &str) -> Container<'_> {
        let created = self.try_create(name, Some("/pk"), headers);
        assert_eq!(created.status, 201, "{}", created.body);
        let rid = created.json()["_rid"].clone();
        let what = Signed { method: "GET", path: "/offers", kind: "offers", link: "" };
        let offers = self.send(what, "", "").json();
        let mut offers = offers["Offers"].as_array().unwrap().iter();
        let offer = offers.find(|offer| offer["offerResourceId"] == rid).unwrap();
        let offer = offer["id"].as_str().unwrap().to_owned();
        Container { account: self, link: format!("dbs/d/colls/{name}"), offer }
    }

    fn send(&self, what: Signed<'_>, headers: &str, body: &str) -> Reply {
        send_signed(&mut *self.stream.borrow_mut(), EMULATOR_KEY, what, headers, body)
    }

    /// Asks one of the server's own paths.
    fn order(&self, method: &str, path: &str, body: &str) -> Value {
        let headers = format!("authorization: Bearer {EMULATOR_KEY}\r\n");
        let reply = send(&mut *self.stream.borrow_mut(), method, path, &headers, body);
        assert_eq!(reply.status, 200, "{path}: {}", reply.body);
        reply.json()
    }
}

impl Container<'_> {
    /// Changes the throughput, and returns whether that is pending.
    pub(crate) fn scale(&self, throughput: u32) -> bool {
        let body =
            format!(r#"{{"_rid":"{}","content":{{"offerThroughput":{throughput}}}}}"#, self.offer);
        let replaced = self.offer("PUT", &body);
        assert_eq!(replaced.status, 200, "{}", replaced.body);
        is_pending(&replaced)
    }

    pub(crate) fn wait_until_scaled(&self) {
        for _ in 0..LOOKS_MAX {
            if !is_pending(&self.offer("GET", "")) {
                return;
            }
            RealClock::new().sleep(PAUSE);
        }
        panic!("the change is still pending");
    }

    pub(crate) fn redistribute(&self, targets: &str) {
        let link = &self.link;
        let body = format!(r#"{{"container":"{link}","policy":"custom","targets":{targets}}}"#);
        self.account.order("POST", "/_orrery/throughput", &body);
    }

    pub(crate) fn merge_all(&self) {
        let (link, ranges) = (&self.link, self.ranges());
        let body = format!(r#"{{"container":"{link}","ranges":{ranges:?}}}"#);
        self.account.order("POST", "/_orrery/merge", &body);
    }

    pub(crate) fn split_by_bytes(&self, range: &str) {
        let link = &self.link;
        let body = format!(r#"{{"container":"{link}","range":"{range}","halve":"bytes"}}"#);
        self.account.order("POST", "/_orrery/split", &body);
    }

    pub(crate) fn fill(&self, items: u32) {
        let (path, link) = (format!("/{}/docs", self.link), &self.link);
        for number in 0..items {
            let what = Signed { method: "POST", path: &path, kind: "docs", link };
            let body = format!(r#"{{"id":"i","pk":"{number}"}}"#);
            let headers = format!("x-ms-documentdb-partitionkey: [\"{number}\"]\r\n");
            assert_eq!(self.account.send(what, &headers, &body).status, 201);
        }
    }

    /// The ids of the physical partitions, as clients see them.
    pub(crate) fn ranges(&self) -> Vec<String> {
        let (path, link) = (format!("/{}/pkranges", self.link), &self.link);
        let what = Signed { method: "GET", path: &path, kind: "pkranges", link };
        let capable = "x-ms-cosmos-sdk-supportedcapabilities: 1\r\n";
        let ranges = self.account.send(what, capable, "").json();
        let ranges = ranges["PartitionKeyRanges"].as_array().unwrap();
        let mut ids: Vec<u32> =
            ranges.iter().map(|range| range["id"].as_str().unwrap().parse().unwrap()).collect();
        ids.sort_unstable();
        ids.iter().map(ToString::to_string).collect()
    }

    /// What each physical partition serves.
    pub(crate) fn shares(&self) -> Vec<f64> {
        let path = format!("/_orrery/throughput?container={}", self.link);
        let shown = self.account.order("GET", &path, "");
        let partitions = shown["partitions"].as_array().unwrap();
        partitions.iter().map(|partition| partition["throughput"].as_f64().unwrap()).collect()
    }

    fn offer(&self, method: &str, body: &str) -> Reply {
        let (path, link) = (format!("/offers/{}", self.offer), self.offer.to_lowercase());
        let what = Signed { method, path: &path, kind: "offers", link: &link };
        self.account.send(what, "", body)
    }
}

fn is_pending(offer: &Reply) -> bool {
    offer.header("x-ms-offer-replace-pending").unwrap() == "true"
}

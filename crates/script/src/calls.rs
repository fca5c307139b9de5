//! The functions that our own JavaScript calls, and what the host does for them.
//!
//! They are the only way from a script to the database. Each takes plain values, checks
//! them again, and answers with plain values: our JavaScript makes callbacks and errors of
//! them. Links are checked when an operation is asked for and again when it is done.

use std::rc::Rc;

use rquickjs::{Ctx, Function, Object, Result, String as JsString, Value};

use crate::describe;
use crate::fault::Fault;
use crate::host::{
    ContainerLinks, Environment, FeedPage, FeedSource, Host, HostReason, HostRefusal, IndexAction,
    ItemLink, Linked, Question, Read,
};
use crate::isolate::{Shared, State};
use crate::limits::{PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX};

/// Work that costs as much as some ten thousand steps of a script, after which the engine
/// would ask whether to go on: comparing or copying a megabyte.
const WORK_PER_TICK: f64 = 1e6;

/// What `guard.js` needs.
pub(crate) fn guards<'js, H: Environment + 'static>(
    ctx: &Ctx<'js>,
    state: &Shared<H>,
) -> Result<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let shared = Rc::clone(state);
    add(&native, "now", Function::new(ctx.clone(), move || now(&mut shared.borrow_mut())))?;
    let shared = Rc::clone(state);
    add(&native, "random", Function::new(ctx.clone(), move || random(&mut shared.borrow_mut())))?;
    let shared = Rc::clone(state);
    let mut spent = 0.0;
    let spend = move |ctx: Ctx<'js>, work: f64| {
        spent += work;
        if spent < WORK_PER_TICK {
            return Ok(());
        }
        spent = 0.0;
        let mut state = shared.borrow_mut();
        state.tick();
        go_on(&ctx, &mut state)
    };
    add(&native, "spend", Function::new(ctx.clone(), rquickjs::function::MutFn::new(spend)))?;
    let is_proxy = |value: Value<'js>| value.is_proxy();
    add(&native, "isProxy", Function::new(ctx.clone(), is_proxy))?;
    Ok(native)
}

/// What `context.js` needs.
pub(crate) fn operations<'js, H: Host + 'static>(
    ctx: &Ctx<'js>,
    state: &Shared<H>,
    links: &ContainerLinks,
    file: &str,
) -> Result<Object<'js>> {
    let native = guards(ctx, state)?;
    add_links(ctx, &native, links)?;
    let shared = Rc::clone(state);
    add(&native, "accept", Function::new(ctx.clone(), move || accept(&mut shared.borrow_mut())))?;
    let shared = Rc::clone(state);
    let log = move |text: JsString<'js>| log(&mut shared.borrow_mut(), &text);
    add(&native, "log", Function::new(ctx.clone(), log))?;
    let (shared, file) = (Rc::clone(state), file.to_owned());
    let abort = move |ctx: Ctx<'js>, reason: Value<'js>| {
        let thrown = describe::thrown(&ctx, &reason, &file);
        shared.borrow_mut().stop(Fault::Aborted(Box::new(thrown)));
    };
    add(&native, "abort", Function::new(ctx.clone(), abort))?;
    add_reads(ctx, &native, state, links)?;
    add_writes(ctx, &native, state, links)?;
    Ok(native)
}

fn add<'js>(native: &Object<'js>, name: &str, function: Result<Function<'js>>) -> Result<()> {
    native.set(name, function?)
}

fn add_links<'js>(ctx: &Ctx<'js>, native: &Object<'js>, links: &ContainerLinks) -> Result<()> {
    let own = links.clone();
    let container = move |link: String| kind(&own.container(&link));
    add(native, "containerLink", Function::new(ctx.clone(), container))?;
    let own = links.clone();
    let item = move |link: String| kind(&own.item(&link));
    add(native, "itemLink", Function::new(ctx.clone(), item))
}

/// A link's kind as `context.js` knows it.
fn kind<T>(linked: &Linked<T>) -> i32 {
    match linked {
        Linked::Own(_) => 0,
        Linked::Outside => 1,
        Linked::Malformed => 2,
    }
}

fn add_reads<'js, H: Host + 'static>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    state: &Shared<H>,
    links: &ContainerLinks,
) -> Result<()> {
    let (shared, own) = (Rc::clone(state), links.clone());
    let read = move |ctx: Ctx<'js>, link: String, etag: String| {
        let done = with_host(&ctx, &shared, |state| {
            let item = own_item(&own, &link)?;
            state.ask(|host| host.read(&item, given(&etag)))
        })?;
        read_answer(&ctx, done)
    };
    add(native, "read", Function::new(ctx.clone(), read))?;
    let shared = Rc::clone(state);
    let query = move |ctx: Ctx<'js>, source: String, text: String, size: f64, at: String, scan| {
        let question = Question {
            source: match source.as_str() {
                "text" => FeedSource::Text(&text),
                "json" => FeedSource::Json(&text),
                _ => FeedSource::All,
            },
            items_max: page_size(size),
            continuation: given(&at),
            scan,
        };
        let done = with_host(&ctx, &shared, |state| query(state, &question))?;
        page_answer(&ctx, done)
    };
    add(native, "query", Function::new(ctx.clone(), query))
}

fn add_writes<'js, H: Host + 'static>(
    ctx: &Ctx<'js>,
    native: &Object<'js>,
    state: &Shared<H>,
    links: &ContainerLinks,
) -> Result<()> {
    let (shared, own) = (Rc::clone(state), links.clone());
    let write = move |ctx: Ctx<'js>,
                      action: String,
                      link: String,
                      body: String,
                      etag: String,
                      index: String| {
        let done = with_host(&ctx, &shared, |state| {
            let index = index_action(&index)?;
            let etag = given(&etag);
            match action.as_str() {
                "create" => state.ask(|host| host.create(&body, index)).map(Some),
                "upsert" => state.ask(|host| host.upsert(&body, index)).map(Some),
                "replace" => {
                    let item = own_item(&own, &link)?;
                    state.ask(|host| host.replace(&item, &body, etag, index)).map(Some)
                }
                _ => {
                    let item = own_item(&own, &link)?;
                    state.ask(|host| host.delete(&item, etag)).map(|()| None)
                }
            }
        })?;
        write_answer(&ctx, done)
    };
    add(native, "write", Function::new(ctx.clone(), write))
}

/// Lets the host work, unless the run is over.
fn with_host<H: Host, T>(
    ctx: &Ctx<'_>,
    shared: &Shared<H>,
    work: impl FnOnce(&mut State<H>) -> std::result::Result<T, HostRefusal>,
) -> Result<std::result::Result<T, HostRefusal>> {
    let mut state = shared.borrow_mut();
    go_on(ctx, &mut state)?;
    Ok(work(&mut state))
}

/// An exception if the run is over. The script may catch it, but can do nothing more.
fn go_on<H: Environment>(ctx: &Ctx<'_>, state: &mut State<H>) -> Result<()> {
    if state.is_over() {
        return Err(rquickjs::Exception::throw_internal(ctx, "interrupted"));
    }
    Ok(())
}

fn now<H: Environment>(state: &mut State<H>) -> f64 {
    let now = state.ask(Environment::now_ms);
    #[allow(clippy::cast_precision_loss, reason = "milliseconds of JavaScript are doubles")]
    let millis = now as f64;
    millis
}

/// A number from 0 to below 1, with the 53 bits that fit.
fn random<H: Environment>(state: &mut State<H>) -> f64 {
    let bits = state.ask(Environment::random) >> 11;
    #[allow(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
    let whole = bits as f64;
    whole / (1_u64 << 53) as f64
}

/// Whether another operation may be queued.
fn accept<H: Host>(state: &mut State<H>) -> bool {
    let usage = state.usage;
    let within = usage.calls < state.limits.calls_max && usage.pages < state.limits.pages_max;
    let accepted = within && !state.is_over() && state.ask(Host::accepts);
    state.usage.calls += u32::from(accepted);
    accepted
}

/// Adds a line to the log, as far as it fits.
fn log<H>(state: &mut State<H>, text: &JsString<'_>) {
    let text = text.to_string().unwrap_or_default();
    if !state.log.is_empty() {
        state.log.push('\n');
    }
    let room = state.limits.log_bytes_max.saturating_sub(state.log.len());
    state.log.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
    let bytes_max = state.log.floor_char_boundary(state.limits.log_bytes_max);
    state.log.truncate(bytes_max);
}

fn query<H: Host>(
    state: &mut State<H>,
    question: &Question<'_>,
) -> std::result::Result<FeedPage, HostRefusal> {
    if state.usage.pages >= state.limits.pages_max {
        return Err(refuse(HostReason::Forbidden, "the script has read too many pages"));
    }
    state.usage.pages += 1;
    state.ask(|host| host.query(question))
}

fn own_item(links: &ContainerLinks, link: &str) -> std::result::Result<ItemLink, HostRefusal> {
    match links.item(link) {
        Linked::Own(item) => Ok(item),
        Linked::Outside => Err(refuse(HostReason::Forbidden, "the link leads outside")),
        Linked::Malformed => Err(refuse(HostReason::BadRequest, "the link is malformed")),
    }
}

fn index_action(text: &str) -> std::result::Result<IndexAction, HostRefusal> {
    match text.to_ascii_lowercase().as_str() {
        "" | "default" => Ok(IndexAction::Default),
        "include" => Ok(IndexAction::Include),
        "exclude" => Ok(IndexAction::Exclude),
        _ => Err(refuse(HostReason::BadRequest, "unknown indexAction")),
    }
}

fn refuse(reason: HostReason, message: &str) -> HostRefusal {
    HostRefusal { reason, message: message.to_owned() }
}

/// Our JavaScript says `''` for what a script left out.
fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn page_size(asked: f64) -> u32 {
    if asked < 1.0 {
        return PAGE_ITEMS_DEFAULT;
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast saturates, and the bound is far below its end"
    )]
    (asked as u32).min(PAGE_ITEMS_MAX)
}

fn refused<'js>(ctx: &Ctx<'js>, refusal: &HostRefusal) -> Result<Object<'js>> {
    let answer = Object::new(ctx.clone())?;
    answer.set("number", refusal.reason.number())?;
    answer.set("message", refusal.message.as_str())?;
    Ok(answer)
}

fn read_answer<'js>(
    ctx: &Ctx<'js>,
    done: std::result::Result<Read, HostRefusal>,
) -> Result<Object<'js>> {
    match done {
        Err(refusal) => refused(ctx, &refusal),
        Ok(read) => {
            let answer = Object::new(ctx.clone())?;
            match read {
                Read::Document(text) => answer.set("resource", ctx.json_parse(text)?)?,
                Read::NotModified => answer.set("notModified", true)?,
            }
            Ok(answer)
        }
    }
}

fn write_answer<'js>(
    ctx: &Ctx<'js>,
    done: std::result::Result<Option<String>, HostRefusal>,
) -> Result<Object<'js>> {
    match done {
        Err(refusal) => refused(ctx, &refusal),
        Ok(document) => {
            let answer = Object::new(ctx.clone())?;
            if let Some(text) = document {
                answer.set("resource", ctx.json_parse(text)?)?;
            }
            Ok(answer)
        }
    }
}

fn page_answer<'js>(
    ctx: &Ctx<'js>,
    done: std::result::Result<FeedPage, HostRefusal>,
) -> Result<Object<'js>> {
    match done {
        Err(refusal) => refused(ctx, &refusal),
        Ok(page) => {
            let answer = Object::new(ctx.clone())?;
            let documents = format!("[{}]", page.documents.join(","));
            answer.set("resources", ctx.json_parse(documents)?)?;
            answer.set("continuation", page.continuation)?;
            Ok(answer)
        }
    }
}

//! Exceptions of the engine as faults.
//!
//! What a script throws is the script's: its properties may be getters, its name a
//! megabyte. So it is read once, with errors ignored, and cut to a bounded size.

use rquickjs::{Coerced, Ctx, Error, FromJs, Object, Value};

use crate::fault::{Fault, Frame, LineColumn, Thrown};
use crate::limits::{FRAMES_MAX, MESSAGE_BYTES_MAX};
use crate::script::LINES_BEFORE;

/// What the engine says when memory or stack is used up.
const OUT_OF_MEMORY: (&str, &str) = ("InternalError", "out of memory");
const OUT_OF_STACK: (&str, &str) = ("RangeError", "Maximum call stack size exceeded");

/// The fault that an error of the engine stands for. `file` is the script's.
pub(crate) fn fault(ctx: &Ctx<'_>, error: &Error, file: &str) -> Fault {
    if matches!(error, Error::Allocation) {
        return Fault::OutOfMemory;
    }
    if !error.is_exception() {
        // What our own calls can get wrong: a text that is not one, for example.
        let (name, message) = ("InternalError".to_owned(), cut(&error.to_string()));
        return Fault::Thrown(Box::new(Thrown { name, message, ..Thrown::default() }));
    }
    let value = ctx.catch();
    // The engine throws null where there is no memory for an error either.
    if value.is_null() {
        return Fault::OutOfMemory;
    }
    let thrown = thrown(ctx, &value, file);
    match (thrown.name.as_str(), thrown.message.as_str()) {
        OUT_OF_MEMORY => Fault::OutOfMemory,
        OUT_OF_STACK => Fault::StackOverflow,
        _ => Fault::Thrown(Box::new(thrown)),
    }
}

/// The fault that parsing ended with.
pub(crate) fn syntax(ctx: &Ctx<'_>, error: &Error, file: &str) -> Fault {
    let fault = fault(ctx, error, file);
    if let Fault::Thrown(thrown) = fault {
        let position = thrown.position();
        return Fault::Syntax { message: thrown.message, position };
    }
    fault
}

/// A thrown value in our terms.
pub(crate) fn thrown<'js>(ctx: &Ctx<'js>, value: &Value<'js>, file: &str) -> Thrown {
    let Some(object) = value.as_object() else {
        return Thrown { message: text(ctx, value), ..Thrown::default() };
    };
    let number = property(ctx, object, "number").and_then(|number| whole(&number));
    if !value.is_error() {
        return Thrown { message: json(ctx, value), number, ..Thrown::default() };
    }
    let string = |name: &str| property(ctx, object, name).map(|value| text(ctx, &value));
    Thrown {
        name: string("name").unwrap_or_else(|| "Error".to_owned()),
        message: string("message").unwrap_or_default(),
        number,
        frames: frames(&string("stack").unwrap_or_default(), file),
    }
}

/// A property, unless reading it throws.
fn property<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str) -> Option<Value<'js>> {
    let value = object.get::<_, Value<'js>>(name).map_err(|_| ctx.catch()).ok()?;
    (!value.is_undefined()).then_some(value)
}

/// A number that fits the header in which the service sends it.
fn whole(value: &Value<'_>) -> Option<i32> {
    let number = value.as_number()?;
    #[allow(clippy::cast_possible_truncation, reason = "the next line asks whether it was exact")]
    let whole = number as i32;
    (f64::from(whole).to_bits() == number.to_bits()).then_some(whole)
}

/// A value as a script would print it.
fn text<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let coerced = Coerced::<String>::from_js(ctx, value.clone());
    let read = coerced.map(|text| cut(&text.0)).map_err(|_| ctx.catch());
    // A text with half of a surrogate pair is no text here, but JSON can spell it.
    read.unwrap_or_else(|_| json(ctx, value))
}

/// A value as JSON, or what kind it is.
fn json<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> String {
    let written = ctx.json_stringify(value.clone()).map_err(|_| ctx.catch()).ok().flatten();
    let read = written.and_then(|json| json.to_string().ok());
    read.map_or_else(|| format!("[{}]", value.type_name()), |json| cut(&json))
}

/// The calls inside the script, out of the engine's text: lines of `at NAME (FILE:LINE:COLUMN)`.
fn frames(stack: &str, file: &str) -> Vec<Frame> {
    stack.lines().filter_map(|line| frame(line, file)).take(FRAMES_MAX).collect()
}

fn frame(line: &str, file: &str) -> Option<Frame> {
    let line = line.trim().strip_prefix("at ")?;
    let (function, place) = match line.strip_suffix(')').and_then(|line| line.rsplit_once(" (")) {
        Some((function, place)) => (function, place),
        None => ("", line),
    };
    let (rest, column) = place.rsplit_once(':')?;
    let (name, number) = rest.rsplit_once(':')?;
    if name != file {
        return None;
    }
    let line = number.parse::<u32>().ok()?.checked_sub(LINES_BEFORE)?.max(1);
    let function = if function.starts_with('<') { "" } else { function };
    let position = LineColumn { line, column: column.parse().ok()? };
    Some(Frame { function: function.to_owned(), position })
}

/// At most as much as is kept of a text.
fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(MESSAGE_BYTES_MAX)).unwrap_or_default().to_owned()
}

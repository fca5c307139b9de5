//! Scripts as the engine's bytecode.
//!
//! Every run has a context of its own, into which our functions and the script must be
//! loaded. Reading bytecode takes a fraction of the time that parsing takes
//! (docs/design/scripts.md has the figures), so both are parsed once.
//!
//! Bytecode is trusted by the engine: reading what it did not write is undefined behaviour.
//! So [`Bytecode`] can only be made by [`Bytecode::compile`] of the same process; it is never
//! stored and never received. The engine's own evaluation of a text is the safe twin with
//! which a test compares it.

use std::ffi::CString;
use std::mem::MaybeUninit;

use rquickjs::{Ctx, Error, Value, qjs};

/// A compiled script, not bound to a context.
#[derive(Clone)]
pub(crate) struct Bytecode(Box<[u8]>);

/// Whether functions can show their text, as `toString` of a user's function does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    Source,
    Code,
}

impl std::fmt::Debug for Bytecode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytecode({} bytes)", self.0.len())
    }
}

impl Bytecode {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Parses a script without running it. It is not in strict mode unless it says so.
    pub(crate) fn compile(
        ctx: &Ctx<'_>,
        text: &str,
        file: &str,
        kept: Kept,
    ) -> Result<Self, Error> {
        let length = text.len();
        let (text, file) = (CString::new(text)?, CString::new(file)?);
        let flags = qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY;
        let compiled = evaluate_raw(ctx, &text, length, &file, flags)?;
        write(ctx, &compiled, kept)
    }

    /// Runs the script in a context and returns the value of its last expression.
    #[allow(unsafe_code, reason = "the engine's safe interface has bytecode for modules only")]
    pub(crate) fn evaluate<'js>(&self, ctx: &Ctx<'js>) -> Result<Value<'js>, Error> {
        let context = ctx.as_raw().as_ptr();
        let flags = qjs::JS_READ_OBJ_BYTECODE.cast_signed();
        // SAFETY: the context is alive while `ctx` is, and the bytes were written by the
        // same engine in this process, since `compile` is the only way to make them.
        let read = unsafe {
            qjs::JS_ReadObject(context, self.0.as_ptr(), self.0.len() as qjs::size_t, flags)
        };
        // SAFETY: `read` is an exception, or a value of this context that is ours alone.
        // `JS_EvalFunction` takes it over.
        unsafe {
            if qjs::JS_IsException(read) {
                return Err(Error::Exception);
            }
            owned(ctx, qjs::JS_EvalFunction(context, read))
        }
    }
}

#[allow(unsafe_code, reason = "the engine's safe interface cannot parse without running")]
fn evaluate_raw<'js>(
    ctx: &Ctx<'js>,
    text: &CString,
    length: usize,
    file: &CString,
    flags: u32,
) -> Result<Value<'js>, Error> {
    // SAFETY: the context is alive while `ctx` is; both texts end with a zero byte, and
    // `length` does not count the one of `text`.
    unsafe {
        let context = ctx.as_raw().as_ptr();
        let length = length as qjs::size_t;
        let value =
            qjs::JS_Eval(context, text.as_ptr(), length, file.as_ptr(), flags.cast_signed());
        owned(ctx, value)
    }
}

#[allow(unsafe_code, reason = "the engine's safe interface has bytecode for modules only")]
fn write(ctx: &Ctx<'_>, compiled: &Value<'_>, kept: Kept) -> Result<Bytecode, Error> {
    let context = ctx.as_raw().as_ptr();
    let mut length = MaybeUninit::<qjs::size_t>::uninit();
    let flags = match kept {
        Kept::Source => qjs::JS_WRITE_OBJ_BYTECODE,
        Kept::Code => qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE,
    };
    let flags = flags.cast_signed();
    // SAFETY: the value belongs to the context. The engine returns null, or a buffer with
    // the length that it stored, which is copied before it is given back.
    unsafe {
        let buffer = qjs::JS_WriteObject(context, length.as_mut_ptr(), compiled.as_raw(), flags);
        if buffer.is_null() {
            return Err(Error::Exception);
        }
        let length = usize::try_from(length.assume_init()).unwrap_or_default();
        let bytes = std::slice::from_raw_parts(buffer, length).into();
        qjs::js_free(context, buffer.cast());
        Ok(Bytecode(bytes))
    }
}

/// Takes over a value that the engine returned, or says that it is an exception.
///
/// # Safety
/// The value belongs to the context and is ours.
#[allow(unsafe_code, reason = "values of the engine's C interface become counted references here")]
unsafe fn owned<'js>(ctx: &Ctx<'js>, value: qjs::JSValue) -> Result<Value<'js>, Error> {
    // SAFETY: the caller vouches for the value.
    unsafe {
        if qjs::JS_IsException(value) {
            return Err(Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), value))
    }
}

#[cfg(test)]
mod tests {
    use rquickjs::context::EvalOptions;
    use rquickjs::{Context, Runtime};

    use super::*;

    /// The safe twin: parses and runs a script in one go.
    fn evaluate_text<'js>(ctx: &Ctx<'js>, text: &str) -> Result<Value<'js>, Error> {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some("t.js".to_owned());
        ctx.eval_with_options(text, options)
    }

    fn shown(run: impl for<'js> FnOnce(&Ctx<'js>) -> Result<Value<'js>, Error>) -> String {
        let context = Context::full(&Runtime::new().unwrap()).unwrap();
        context.with(|ctx| match run(&ctx) {
            Ok(value) => match ctx.json_stringify(value) {
                Ok(json) => format!("{:?}", json.map(|json| json.to_string())),
                Err(_) => format!("{:?}", crate::describe::thrown(&ctx, &ctx.catch(), "t.js")),
            },
            Err(_) => format!("{:?}", crate::describe::thrown(&ctx, &ctx.catch(), "t.js")),
        })
    }

    #[test]
    fn a_script_and_its_bytecode_do_the_same() {
        let compiled_elsewhere = |text: &str| {
            let context = Context::full(&Runtime::new().unwrap()).unwrap();
            context.with(|ctx| Bytecode::compile(&ctx, text, "t.js", Kept::Source).map_err(|_| ()))
        };
        for text in [
            "1 + 1",
            "x = 5; [x, this === globalThis, typeof undeclared]",
            "(function (a, ...b) { return { a, b, n: arguments.length }; })(1, 'ü€😀', null)",
            "class A { #p = 1; static s = /a+(b)/giu; get p() { return this.#p; } }; [new A().p, String(A.s)]",
            "[-0, 1e308, 2 ** 53, NaN, 'a\\u0000b', '\\ud800'].map((v) => Object.is(v, -0) ? 'minus' : v)",
            "let { a = 1, ...rest } = { b: 2 }; `${a}${JSON.stringify(rest)}`",
            "(function* () { yield* [1, 2]; })().next()",
            "\n\nthrow new TypeError('here')",
            "null.x",
            "eval('var y = 3'); y",
            "function f() { return f.name + f.toString().length; } f()",
            "var v = 1; { let v = 2; } v",
            "label: for (const i of [1, 2]) { for (;;) { continue label; } } 'end'",
            "try { undeclared } catch ({ message }) { message } finally { }",
            "syntax error",
            "",
        ] {
            let twin = shown(|ctx| evaluate_text(ctx, text));
            let Ok(code) = compiled_elsewhere(text) else {
                assert!(twin.contains("SyntaxError"), "{text}: {twin}");
                continue;
            };
            assert_eq!(shown(|ctx| code.evaluate(ctx)), twin, "{text}");
            assert_eq!(shown(|ctx| code.clone().evaluate(ctx)), twin, "{text}, once more");
        }
    }
}

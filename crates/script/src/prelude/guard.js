// Runs first in every context, before the script. It makes the clock and randomness those of
// the host, gives `Error` the number that the service's engine gives it, and puts a bound on
// built-in functions that loop inside the engine without asking whether to go on.
//
// Everything that is used after the script began is kept in constants: a script may change
// prototypes and globals as it likes and only surprises itself.
(function (native) {
  'use strict';
  const { apply, construct } = Reflect;
  const { defineProperty, setPrototypeOf } = Object;
  const { isArray } = Array;
  const text = String;
  const has = Object.prototype.hasOwnProperty;

  function define(target, name, value) {
    defineProperty(target, name, { value, writable: true, enumerable: false, configurable: true });
  }

  // --- Error -----------------------------------------------------------------------------
  // `new Error(404, 'gone')` has a number and a message, as in the service.
  const NativeError = Error;
  const capture = NativeError.captureStackTrace;
  const NumberedError = function Error(first, second) {
    const numbered = typeof first === 'number' && arguments.length > 1 && typeof second !== 'object';
    const target = new.target === undefined ? NumberedError : new.target;
    const given = numbered ? [second] : arguments;
    const error = construct(NativeError, given, target);
    if (numbered) {
      define(error, 'number', first);
      define(error, 'description', second);
    }
    capture(error, NumberedError);
    return error;
  };
  defineProperty(NumberedError, 'prototype', { value: NativeError.prototype, writable: false });
  define(NumberedError, 'captureStackTrace', capture);
  define(NumberedError, 'length', 1);
  define(NativeError.prototype, 'constructor', NumberedError);
  const kinds = [EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError];
  for (let i = 0; i < kinds.length; i++) setPrototypeOf(kinds[i], NumberedError);
  define(globalThis, 'Error', NumberedError);

  // --- Math and Date ---------------------------------------------------------------------
  define(Math, 'random', function random() { return native.random(); });

  // Local time is UTC, wherever the server stands.
  const NativeDate = Date;
  const time = NativeDate.prototype;
  const { UTC } = NativeDate;
  const parseNative = NativeDate.parse;
  const { getTime, getTimezoneOffset, toUTCString, getUTCFullYear, setUTCFullYear } = time;
  const test = RegExp.prototype.test;
  const zoned = /(?:Z|GMT|UTC|[+-]\d\d:?\d\d)\s*(?:\(.*\))?$/i;

  function parse(given) {
    const read = parseNative(given);
    if (read !== read || offset(read) === 0 || apply(test, zoned, [given])) return read;
    const inUtc = parseNative(given + 'Z');
    return inUtc === inUtc ? inUtc : read;
  }
  function offset(at) {
    return apply(getTimezoneOffset, new NativeDate(at), []);
  }
  const HostDate = function Date(first) {
    const count = arguments.length;
    if (new.target === undefined) return apply(toText, new NativeDate(native.now()), []);
    let given = arguments;
    if (count === 0) given = [native.now()];
    else if (count === 1 && typeof first === 'string') given = [parse(first)];
    else if (count > 1) given = [apply(UTC, undefined, arguments)];
    return construct(NativeDate, given, new.target);
  };
  defineProperty(HostDate, 'prototype', { value: time, writable: false });
  define(HostDate, 'length', 7);
  define(HostDate, 'UTC', UTC);
  define(HostDate, 'now', function now() { return native.now(); });
  define(HostDate, 'parse', function (given) { return parse(text(given)); });
  define(time, 'constructor', HostDate);
  const fields = ['FullYear', 'Month', 'Date', 'Hours', 'Minutes', 'Seconds', 'Milliseconds'];
  for (let i = 0; i < fields.length; i++) {
    define(time, 'get' + fields[i], time['getUTC' + fields[i]]);
    define(time, 'set' + fields[i], time['setUTC' + fields[i]]);
  }
  define(time, 'getDay', time.getUTCDay);
  define(time, 'getYear', function getYear() { return apply(getUTCFullYear, this, []) - 1900; });
  define(time, 'setYear', function setYear(year) {
    year = +year;
    return apply(setUTCFullYear, this, [year >= 0 && year <= 99 ? 1900 + (year | 0) : year]);
  });
  define(time, 'getTimezoneOffset', function getTimezoneOffset() { return apply(getTime, this, []) * 0; });
  // `Wed, 18 Nov 2026 13:10:26 GMT`, or `Invalid Date`.
  function parts(date) {
    const [, name, day, month, year, clock] = /^(\w+), (\d+) (\w+) (-?\d+) (\S+)/.exec(date) || [];
    return name && { day: `${name} ${month} ${day} ${year}`, clock: `${clock} GMT+0000 (UTC)` };
  }
  function toText() {
    const found = parts(apply(toUTCString, this, []));
    return found ? `${found.day} ${found.clock}` : 'Invalid Date';
  }
  define(time, 'toString', function toString() { return apply(toText, this, []); });
  define(time, 'toDateString', function toDateString() {
    const found = parts(apply(toUTCString, this, []));
    return found ? found.day : 'Invalid Date';
  });
  define(time, 'toTimeString', function toTimeString() {
    const found = parts(apply(toUTCString, this, []));
    return found ? found.clock : 'Invalid Date';
  });
  for (const name of ['toLocaleString', 'toLocaleDateString', 'toLocaleTimeString']) {
    const original = time[name];
    define(time, name, function () {
      const at = apply(getTime, this, []);
      return apply(original, new NativeDate(at + offset(at) * 60000), []);
    });
  }
  define(globalThis, 'Date', HostDate);

  // --- Loops inside the engine -----------------------------------------------------------
  // Waiting for another thread makes no sense where there is none.
  delete globalThis.Atomics;
  delete globalThis.SharedArrayBuffer;

  // A longer array than memory could hold has holes, over which some functions walk without
  // asking whether to go on.
  const ELEMENTS_MAX = 1 << 22;
  // Work that is worth telling the host about, in elements or characters.
  const WORTH_TELLING = 1 << 12;

  function spend(work) {
    if (work > WORTH_TELLING) native.spend(work);
  }
  function bounded(length) {
    if (length > ELEMENTS_MAX) throw new RangeError('The array is too long.');
    spend(length);
  }
  function genuine(value) {
    return isArray(value) && !native.isProxy(value);
  }
  // What is like an array could change its length while it is read, so it is read here.
  function copied(value) {
    const source = Object(value);
    const length = Math.min(Math.max(Math.trunc(Number(source.length)) || 0, 0), Number.MAX_SAFE_INTEGER);
    bounded(length);
    const copy = new Array(length);
    for (let i = 0; i < length; i++) {
      if (i in source) defineProperty(copy, i, { value: source[i], writable: true, enumerable: true, configurable: true });
    }
    return copy;
  }
  const list = Array.prototype;

  function guardReader(name) {
    const original = list[name];
    define(list, name, function () {
      let self = this;
      if (genuine(self)) bounded(self.length);
      else self = copied(self);
      return apply(original, self, arguments);
    });
    nameAs(list[name], original);
  }
  function guardWriter(name) {
    const original = list[name];
    define(list, name, function () {
      if (!genuine(this)) throw new TypeError(`Array.prototype.${name} needs an array.`);
      bounded(this.length);
      return apply(original, this, arguments);
    });
    nameAs(list[name], original);
  }
  function nameAs(guarded, original) {
    defineProperty(guarded, 'name', { value: original.name, configurable: true });
    defineProperty(guarded, 'length', { value: original.length, configurable: true });
  }
  for (const name of ['join', 'toLocaleString', 'slice', 'flatMap']) guardReader(name);
  for (const name of ['fill', 'copyWithin', 'reverse', 'splice', 'shift', 'unshift']) guardWriter(name);
  for (const name of ['toReversed', 'toSpliced', 'with']) guardReader(name);

  const concat = list.concat;
  const spreadable = Symbol.isConcatSpreadable;
  define(list, 'concat', function () {
    const self = genuine(this) ? this : [this];
    if (genuine(this)) bounded(this.length);
    const given = [];
    for (let i = 0; i < arguments.length; i++) {
      let value = arguments[i];
      if (genuine(value)) {
        bounded(value.length);
      } else if (value !== null && typeof value === 'object') {
        const spread = value[spreadable];
        value = (spread === undefined ? isArray(value) : spread) ? copied(value) : [value];
      }
      defineProperty(given, i, { value, writable: true, enumerable: true, configurable: true });
    }
    return apply(concat, self, given);
  });
  nameAs(list.concat, concat);

  // Many built-in functions read an iterator to its end; one of an array with holes has an end
  // too far away. Here every step is a call, at which a run can end.
  const nextElement = Object.getPrototypeOf([][Symbol.iterator]());
  const next = nextElement.next;
  const none = [];
  define(nextElement, 'next', function () { return apply(next, this, none); });
  nameAs(nextElement.next, next);

  // In the engine it would visit an array as often as it is reachable.
  const flat = list.flat;
  define(list, 'flat', function (depth) {
    const result = [];
    depth = depth === undefined ? 1 : Math.trunc(Number(depth)) || 0;
    flatten(result, genuine(this) ? this : copied(this), depth);
    return result;
  });
  nameAs(list.flat, flat);
  function flatten(result, source, depth) {
    bounded(source.length);
    for (let i = 0; i < source.length; i++) {
      if (!apply(has, source, [i])) continue;
      const value = source[i];
      if (depth > 0 && isArray(value)) flatten(result, value, depth - 1);
      else defineProperty(result, result.length, { value, writable: true, enumerable: true, configurable: true });
    }
  }

  // Comparing long strings takes long, so each comparison is one the host can end.
  function inOrder(a, b) {
    const x = text(a);
    const y = text(b);
    spend(Math.min(x.length, y.length));
    return x < y ? -1 : x > y ? 1 : 0;
  }
  for (const name of ['sort', 'toSorted']) {
    const original = list[name];
    define(list, name, function (compare) {
      if (!genuine(this)) throw new TypeError(`Array.prototype.${name} needs an array.`);
      bounded(this.length);
      return apply(original, this, [compare === undefined ? inOrder : compare]);
    });
    nameAs(list[name], original);
  }
  const typed = Object.getPrototypeOf(Uint8Array).prototype;
  for (const name of ['sort', 'toSorted']) {
    const original = typed[name];
    define(typed, name, function (compare) {
      bounded(this.length);
      return apply(original, this, [compare]);
    });
    nameAs(typed[name], original);
  }

  // A search compares up to text times pattern characters.
  const COMPARED_MAX = 2 ** 31;
  const strings = String.prototype;

  function searched(self, pattern) {
    if (self.length * pattern.length > COMPARED_MAX) throw new RangeError('The search is too long.');
    spend(self.length);
  }
  for (const name of ['indexOf', 'lastIndexOf', 'includes']) {
    const original = strings[name];
    define(strings, name, function (pattern, from) {
      if (this === undefined || this === null) return apply(original, this, arguments);
      const self = text(this);
      if (name === 'includes' && pattern instanceof RegExp) return apply(original, self, [pattern]);
      const sought = text(pattern);
      searched(self, sought);
      return arguments.length > 1 ? apply(original, self, [sought, from]) : apply(original, self, [sought]);
    });
    nameAs(strings[name], original);
  }
  for (const [name, symbol] of [['split', Symbol.split], ['replace', Symbol.replace], ['replaceAll', Symbol.replace]]) {
    const original = strings[name];
    define(strings, name, function (pattern, second) {
      if (this === undefined || this === null) return apply(original, this, arguments);
      if (pattern === undefined && name === 'split') return apply(original, this, arguments);
      if (pattern !== null && typeof pattern === 'object') {
        if (pattern instanceof RegExp && name === 'replaceAll') return apply(original, this, arguments);
        const method = pattern[symbol];
        if (method !== undefined && method !== null) return apply(method, pattern, [text(this), second]);
      }
      const self = text(this);
      const sought = text(pattern);
      searched(self, sought);
      return apply(original, self, [sought, second]);
    });
    nameAs(strings[name], original);
  }
  for (const name of ['repeat', 'padStart', 'padEnd', 'toUpperCase', 'toLowerCase']) {
    const original = strings[name];
    define(strings, name, function () {
      if (typeof this === 'string') spend(this.length);
      return apply(original, this, arguments);
    });
    nameAs(strings[name], original);
  }

  // Sorting the marks of one character takes the square of their number, so a long text is
  // normalised in pieces. No character of ASCII joins the one before it.
  const PIECE = 1 << 12;
  const { normalize, localeCompare, charCodeAt, slice } = strings;

  function normalized(self, form) {
    if (self.length <= PIECE) return apply(normalize, self, [form]);
    let done = '';
    for (let from = 0, to; from < self.length; from = to) {
      to = from + PIECE;
      while (to < self.length && apply(charCodeAt, self, [to]) > 127) {
        if (++to - from > 4 * PIECE) throw new RangeError('The text is too long.');
      }
      spend(PIECE);
      done += apply(normalize, apply(slice, self, [from, to]), [form]);
    }
    return done;
  }
  define(strings, 'normalize', function (form) {
    if (this === undefined || this === null) return apply(normalize, this, []);
    return normalized(text(this), form === undefined ? 'NFC' : text(form));
  });
  nameAs(strings.normalize, normalize);
  define(strings, 'localeCompare', function (other) {
    if (this === undefined || this === null) return apply(localeCompare, this, [other]);
    const a = text(this);
    const b = text(other);
    if (a.length <= PIECE && b.length <= PIECE) return apply(localeCompare, a, [b]);
    const x = normalized(a, 'NFC');
    const y = normalized(b, 'NFC');
    return x < y ? -1 : x > y ? 1 : 0;
  });
  nameAs(strings.localeCompare, localeCompare);

  // An object can be reachable in very many ways, and is written once for each.
  const VALUES_MAX = 1 << 21;
  const { parse: parseJson, stringify: toJson } = JSON;

  function written(value, replacer, space) {
    if (typeof replacer === 'function' || value === null || (typeof value !== 'object' && typeof value !== 'function')) {
      return toJson(value, replacer, space);
    }
    let count = 0;
    const counting = function (name, member) {
      if (++count > VALUES_MAX) throw new RangeError('The value is too large.');
      return member;
    };
    if (!isArray(replacer)) return toJson(value, counting, space);
    const plain = toJson(value, counting);
    return plain === undefined ? undefined : toJson(parseJson(plain), replacer, space);
  }
  define(JSON, 'stringify', function stringify(value, replacer, space) { return written(value, replacer, space); });
  define(JSON, 'parse', function parse(given, reviver) {
    const json = text(given);
    spend(json.length);
    return parseJson(json, reviver);
  });
  return written;
})

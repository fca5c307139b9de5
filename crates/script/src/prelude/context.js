// The functions that procedures and triggers know: `getContext`, `__`, `ErrorCodes`,
// `console`. Operations on documents are queued and done when the script's own code has
// returned, one at a time, each followed by its callback: so a script may start the next
// operation in a callback as often as it likes without nesting.
//
// `native` has the host's side; `facts` says what is run and with which messages.
(function (native, facts) {
  'use strict';
  const { apply } = Reflect;
  const { create, defineProperty, freeze, keys } = Object;
  const { isArray } = Array;
  const { parse, stringify } = JSON;
  const text = String;
  const { floor, min, trunc } = Math;
  const NumberedError = Error;
  const sort = Array.prototype.sort;
  const { toWellFormed } = String.prototype;

  const codes = freeze({
    BadRequest: 400,
    Forbidden: 403,
    NotFound: 404,
    Conflict: 409,
    PreconditionFailed: 412,
    RequestEntityTooLarge: 413,
    RetryWith: 449,
    InternalServerError: 500,
  });

  function global(name, value) {
    defineProperty(globalThis, name, { value, writable: true, enumerable: true, configurable: true });
  }
  function append(list, value) {
    defineProperty(list, list.length, { value, writable: true, enumerable: true, configurable: true });
  }
  function bad(message) {
    return new NumberedError(codes.BadRequest, message);
  }

  // --- Operations wait in a list ---------------------------------------------------------
  let first = null;
  let last = null;

  function enqueue(run) {
    const entry = { run, next: null };
    if (last === null) first = entry;
    else last.next = entry;
    last = entry;
  }
  // Does one operation and its callback; says whether there was one.
  function step() {
    if (first === null) return false;
    const { run } = first;
    first = first.next;
    if (first === null) last = null;
    run();
    return true;
  }

  // An error that tells what the host refused.
  function refusal(answer) {
    const body = stringify({ Errors: [answer.message] });
    const error = new NumberedError(answer.number, body);
    defineProperty(error, 'body', { value: body, writable: true, enumerable: true, configurable: true });
    return error;
  }
  function queue(callback, ask, deliver) {
    if (!native.accept()) return false;
    enqueue(function () {
      const answer = ask();
      if (answer.number !== undefined) {
        const error = refusal(answer);
        if (callback === undefined) throw error;
        callback(error);
      } else if (callback !== undefined) {
        deliver(callback, answer);
      }
    });
    return true;
  }

  // --- Checks of what a script passes ----------------------------------------------------
  function enough(name, needed, given) {
    if (given < needed) {
      throw bad(`The function "${name}" requires at least ${needed} argument(s) but was called with ${given} argument(s).`);
    }
  }
  function ownContainer(link) {
    const kind = typeof link === 'string' ? native.containerLink(link) : 2;
    if (kind === 2) throw bad(`Invalid collection link: "${link}".`);
    if (kind === 1) throw outside(link);
  }
  function ownItem(link) {
    const kind = typeof link === 'string' ? native.itemLink(link) : 2;
    if (kind === 2) throw bad(`Invalid document link: "${link}".`);
    if (kind === 1) throw outside(link);
  }
  function outside(link) {
    return bad(`Function is not allowed to operate on resources outside current collection. Make sure that the link provided, "${link}", belongs to current collection.`);
  }
  // Options may be left out, so that the callback comes in their place.
  function settle(options, callback) {
    if (callback === undefined && typeof options === 'function') return { options: {}, callback: options };
    if (options === undefined || options === null) options = {};
    if (typeof options !== 'object') {
      throw bad(`The "options" parameter must be of type "object". Actual type is: "${typeof options}".`);
    }
    if (callback === null) callback = undefined;
    if (callback !== undefined && typeof callback !== 'function') {
      throw bad(`The "callback" parameter must be of type "function". Actual type is: "${typeof callback}".`);
    }
    return { options, callback };
  }
  function jsonOf(body) {
    const json = typeof body === 'string' ? body : stringify(body);
    if (typeof json !== 'string') throw bad('The document body must be an object.');
    return json;
  }
  // A document without an id gets one.
  function withId(body, options) {
    if (options.disableAutomaticIdGeneration === true) return jsonOf(body);
    const document = typeof body === 'string' ? parse(body) : body;
    if (document === null || typeof document !== 'object' || document.id) return jsonOf(body);
    const copy = { ...document };
    defineProperty(copy, 'id', { value: newId(), writable: true, enumerable: true, configurable: true });
    return jsonOf(copy);
  }
  function newId() {
    let id = '';
    for (let i = 0; i < 36; i++) {
      if (i === 8 || i === 13 || i === 18 || i === 23) id += '-';
      else id += '0123456789abcdef'[floor(native.random() * 16)];
    }
    return id;
  }
  function etagOf(value) {
    return value === undefined || value === null ? '' : text(value);
  }
  function sizeOf(options) {
    const size = +options.pageSize;
    return size >= 1 ? floor(min(size, 1e6)) : 0;
  }

  // --- Request and response --------------------------------------------------------------
  const TOO_LARGE = 'Cannot set/appendBody because the resulting message would be too large. Return from script with current message and use continuation token to call the script again.';

  // A message is some properties, of which scripts may change those that are writable.
  function message(values, writable) {
    const known = { __proto__: null };
    for (const name of keys(values)) known[name] = { value: values[name], writable: name === writable, changed: false };

    function changeable(name) {
      const property = known[name];
      if (property === undefined) throw bad(`Cannot set new values: ${name}`);
      if (!property.writable) throw new NumberedError(codes.Forbidden, `Not a writable property: ${name}`);
      return property;
    }
    function fits(value) {
      if (value === undefined || value === null) return value;
      const json = typeof value === 'object' ? stringify(value) : text(value);
      if (json !== undefined && json.length > facts.resultMax) throw new NumberedError(codes.RequestEntityTooLarge, TOO_LARGE);
      return value;
    }
    function set(name, value) {
      const property = changeable(name);
      property.value = fits(value);
      property.changed = true;
    }
    function add(name, value) {
      const property = changeable(name);
      const before = property.value;
      property.changed = true;
      property.value = fits(before === undefined || before === null ? value : before + value);
    }
    function get(name) {
      return known[name] === undefined ? undefined : known[name].value;
    }
    const methods = {
      getValue(name) { return get(name); },
      setValue(name, value) { set(name, value); },
      appendValue(name, value) { add(name, value); },
    };
    for (const name of keys(values)) {
      methods['get' + name] = function () { return get(name); };
      if (name !== writable) continue;
      methods['set' + name] = function (value) { set(name, value); };
      methods['append' + name] = function (value) { add(name, value); };
    }
    // What a trigger did not set stays as it is, to the last digit.
    return { methods, body(always) { return always || known.Body.changed ? get('Body') : undefined; } };
  }
  const request = facts.request && message(facts.request, facts.kind === 'pre' ? 'Body' : '');
  const response = facts.response && message(facts.response, 'Body');

  // --- Documents -------------------------------------------------------------------------
  function one(callback, answer) {
    callback(undefined, answer.resource, {});
  }
  function many(callback, answer) {
    callback(undefined, answer.resources, { continuation: answer.continuation });
  }
  const collection = {
    getSelfLink() { return facts.selfLink; },
    getAltLink() { return facts.altLink; },

    createDocument(link, body, options, callback) {
      enough('createDocument', 2, arguments.length);
      ownContainer(link);
      const given = settle(options, callback);
      const json = withId(body, given.options);
      const index = etagOf(given.options.indexAction);
      return queue(given.callback, () => native.write('create', '', json, '', index), one);
    },
    upsertDocument(link, body, options, callback) {
      enough('upsertDocument', 2, arguments.length);
      ownContainer(link);
      const given = settle(options, callback);
      const json = withId(body, given.options);
      const index = etagOf(given.options.indexAction);
      return queue(given.callback, () => native.write('upsert', '', json, '', index), one);
    },
    replaceDocument(link, body, options, callback) {
      enough('replaceDocument', 2, arguments.length);
      ownItem(link);
      const given = settle(options, callback);
      const json = jsonOf(body);
      const { etag, indexAction } = given.options;
      return queue(given.callback, () => native.write('replace', link, json, etagOf(etag), etagOf(indexAction)), one);
    },
    deleteDocument(link, options, callback) {
      enough('deleteDocument', 1, arguments.length);
      ownItem(link);
      const given = settle(options, callback);
      const etag = etagOf(given.options.etag);
      return queue(given.callback, () => native.write('delete', link, '', etag, ''), function (done) { done(undefined, {}); });
    },
    readDocument(link, options, callback) {
      enough('readDocument', 1, arguments.length);
      ownItem(link);
      const given = settle(options, callback);
      const etag = etagOf(given.options.ifNoneMatch);
      return queue(given.callback, () => native.read(link, etag), function (done, answer) {
        if (answer.notModified) done(undefined, undefined, { notModified: true });
        else done(undefined, answer.resource, { notModified: false });
      });
    },
    readDocuments(link, options, callback) {
      enough('readDocuments', 1, arguments.length);
      ownContainer(link);
      const given = settle(options, callback);
      return queue(given.callback, page('all', '', given.options), many);
    },
    queryDocuments(link, query, options, callback) {
      enough('queryDocuments', 2, arguments.length);
      ownContainer(link);
      if (typeof query !== 'string' && (typeof query !== 'object' || query === null)) {
        throw bad(`The "filterQuery" parameter must be of type "string" or "object". Actual type is: "${typeof query}".`);
      }
      const given = settle(options, callback);
      const isText = typeof query === 'string';
      const question = isText ? query : jsonOf(query);
      return queue(given.callback, page(isText ? 'text' : 'json', question, given.options), many);
    },
  };
  function page(source, question, options) {
    const size = sizeOf(options);
    const continuation = etagOf(options.continuation);
    const scan = options.enableScan === true;
    return () => native.query(source, question, size, continuation, scan);
  }
  // The service has no attachments any more.
  for (const action of ['create', 'read', 'replace', 'upsert', 'delete', 'query']) {
    refuse(`${action}Attachment${action === 'query' ? 's' : ''}`);
  }
  refuse('readAttachments');
  function refuse(name) {
    collection[name] = function () {
      throw bad(`The function "${name}" is not allowed in server side scripting.`);
    };
  }

  // --- Queries in JavaScript -------------------------------------------------------------
  // A query is a list of stages, each a function from an array to an array.
  const PREDICATE = 'The predicate/transform function must be provided.';
  const stages = {
    filter(predicate) {
      needsFunction(predicate);
      return (feed) => kept(feed, (value, out) => { if (predicate(value)) append(out, value); });
    },
    map(transform) {
      needsFunction(transform);
      return (feed) => kept(feed, (value, out) => append(out, transform(value)));
    },
    pluck(name) {
      if (typeof name !== 'string' || !name) throw bad('The property name must be a string and cannot be empty.');
      return (feed) => kept(feed, (value, out) => append(out, value === undefined || value === null ? undefined : value[name]));
    },
    flatten(shallow) {
      return (feed) => kept(feed, (value, out) => flatten(value, out, shallow === true ? 1 : 1e9));
    },
    unwind(inner, result) {
      needsFunction(inner);
      return (feed) => kept(feed, function (value, out) {
        const members = inner(value);
        if (!isArray(members)) return;
        for (let i = 0; i < members.length; i++) {
          append(out, typeof result === 'function' ? result(value, members[i]) : [value, members[i]]);
        }
      });
    },
    sortBy(by) { return sorted(by, 1); },
    sortByDescending(by) { return sorted(by, -1); },
  };
  function needsFunction(value) {
    if (typeof value !== 'function') throw bad(PREDICATE);
  }
  function kept(feed, visit) {
    const out = [];
    for (let i = 0; i < feed.length; i++) visit(feed[i], out);
    return out;
  }
  function flatten(value, out, depth) {
    if (depth === 0 || !isArray(value)) {
      append(out, value);
      return;
    }
    for (let i = 0; i < value.length; i++) flatten(value[i], out, depth - 1);
  }
  function sorted(by, direction) {
    needsFunction(by);
    const stage = function (feed) {
      const pairs = kept(feed, (value, out) => append(out, { value, key: by(value) }));
      const known = kept(pairs, (pair, out) => { if (pair.key !== undefined) append(out, pair); });
      apply(sort, known, [(a, b) => direction * compare(a.key, b.key)]);
      return kept(known, (pair, out) => append(out, pair.value));
    };
    stage.needsAll = true;
    return stage;
  }
  // As ORDER BY: null, false, true, numbers, strings, and nothing else in order.
  function compare(a, b) {
    const x = rank(a);
    const y = rank(b);
    if (x !== y) return x - y;
    return a < b ? -1 : a > b ? 1 : 0;
  }
  function rank(key) {
    if (key === null) return 0;
    const type = typeof key;
    return type === 'boolean' ? 1 : type === 'number' ? 2 : type === 'string' ? 3 : 4;
  }

  // Reads pages until there are enough results, or all where the order needs all.
  function evaluate(chain, options) {
    const size = sizeOf(options) || facts.pageDefault;
    const given = etagOf(options.continuation);
    let needsAll = false;
    for (let i = 0; i < chain.length; i++) needsAll = needsAll || chain[i].needsAll === true;
    let feed = [];
    let at = needsAll ? '' : given;
    do {
      const answer = native.query('all', '', size, at, false);
      if (answer.number !== undefined) return answer;
      const part = needsAll ? answer.resources : through(chain, answer.resources);
      for (let i = 0; i < part.length; i++) append(feed, part[i]);
      at = answer.continuation;
    } while (at !== undefined && (needsAll || feed.length < size));
    if (!needsAll) return { resources: feed, continuation: at };
    feed = through(chain, feed);
    const from = given === '' ? 0 : floor(+given) || 0;
    const resources = [];
    for (let i = from; i < feed.length && i < from + size; i++) append(resources, feed[i]);
    return { resources, continuation: from + size < feed.length ? text(from + size) : undefined };
  }
  function through(chain, feed) {
    for (let i = 0; i < chain.length; i++) feed = chain[i](feed);
    return feed;
  }
  // Without a callback the results go to the response body, as text.
  function deliver(error, feed) {
    if (error) throw error;
    response.methods.appendBody(stringify(feed));
  }
  function ask(chain, options, callback) {
    const given = settle(options, callback);
    const done = given.callback === undefined ? deliver : given.callback;
    if (!native.accept()) return { isAccepted: false };
    enqueue(function () {
      let answer;
      try {
        answer = evaluate(chain, given.options);
      } catch (error) {
        done(error);
        return;
      }
      if (answer.number !== undefined) done(refusal(answer));
      else done(undefined, answer.resources, { continuation: answer.continuation });
    });
    return { isAccepted: true };
  }
  // Arguments of a stage come first, then options and callback; the container may precede.
  const arity = { filter: 1, map: 1, pluck: 1, flatten: 1, unwind: 2, sortBy: 1, sortByDescending: 1 };

  function split(name, given) {
    let from = given[0] === collection || given[0] === underscore ? 1 : 0;
    const own = [];
    for (let i = 0; i < arity[name]; i++) {
      const value = given[from];
      const optional = name === 'flatten' ? typeof value !== 'boolean' : i === 1 && !isSelector(given, from);
      if (optional) break;
      append(own, value);
      from++;
    }
    return { stage: stages[name](own[0], own[1]), options: given[from], callback: given[from + 1] };
  }
  // The second function of `unwind` selects results if something follows that can be the
  // callback, or if it takes the pair.
  function isSelector(given, at) {
    return typeof given[at] === 'function' && (given.length > at + 1 || given[at].length === 2);
  }
  function chained(chain) {
    const query = { isAccepted: true };
    for (const name of keys(stages)) {
      query[name] = function () {
        const { stage, options, callback } = split(name, arguments);
        if (typeof options === 'function' || callback !== undefined) {
          throw bad('When using "chain", the callback parameter can only be provided on the "value" function.');
        }
        if (options) throw bad('When using "chain", options can only be provided on the call to the "value" function');
        return chained(longer(chain, stage));
      };
    }
    query.value = function (options, callback) { return ask(chain, options, callback); };
    return query;
  }
  function longer(chain, stage) {
    const copy = kept(chain, (value, out) => append(out, value));
    append(copy, stage);
    return copy;
  }
  for (const name of keys(stages)) {
    collection[name] = function () {
      const { stage, options, callback } = split(name, arguments);
      return ask([stage], options, callback);
    };
  }
  collection.chain = function () { return chained([]); };
  collection.value = function (options, callback) { return ask([], options, callback); };

  // --- Globals ---------------------------------------------------------------------------
  const underscore = create(collection);
  const context = {
    getCollection() { return collection; },
    abort(error) {
      native.abort(error);
      throw error;
    },
  };
  if (request) {
    context.getRequest = function () { return request.methods; };
    underscore.request = request.methods;
  }
  if (response) {
    context.getResponse = function () { return response.methods; };
    underscore.response = response.methods;
  }
  global('getContext', function getContext() { return context; });
  global('__', underscore);
  global('ErrorCodes', codes);

  function shown(value) {
    if (typeof value === 'string') return value;
    if (value instanceof NumberedError) return text(value);
    if (value !== null && typeof value === 'object') {
      const json = stringify(value);
      if (json !== undefined) return json;
    }
    return text(value);
  }
  // `%s`, `%d`, `%i`, `%f`, `%j` and `%o` take an argument each, the rest follow.
  function log() {
    const format = arguments[0];
    let line = '';
    let next = 0;
    if (typeof format === 'string') {
      next = 1;
      for (let i = 0; i < format.length; i++) {
        const kind = format[i] === '%' ? format[i + 1] : undefined;
        if (kind === '%') line += '%';
        else if (isMark(kind) && next < arguments.length) line += marked(kind, arguments[next++]);
        else {
          line += format[i];
          continue;
        }
        i++;
      }
    }
    for (; next < arguments.length; next++) line += (next > 0 ? ' ' : '') + shown(arguments[next]);
    native.log(apply(toWellFormed, line, []));
  }
  function isMark(kind) {
    return kind === 's' || kind === 'd' || kind === 'i' || kind === 'f' || kind === 'j' || kind === 'o' || kind === 'O';
  }
  function marked(kind, value) {
    if (kind === 'd' || kind === 'f') return text(+value);
    return kind === 'i' ? text(trunc(+value)) : shown(value);
  }
  global('console', { log, info: log, warn: log, warning: log, error: log, debug: log });

  return {
    step,
    request() { return stringify(request.body(false)); },
    response() { return stringify(response.body(facts.kind === 'procedure')); },
  };
})

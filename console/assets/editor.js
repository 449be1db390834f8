// The definition editor: CodeMirror in place of the text field of the page, and a check while a document is written.
// Without this the field is there, and the button of the page does the same check.

import {
  autocompletion, bracketMatching, closeCompletion, Compartment, completionStatus, defaultKeymap, drawSelection, EditorState, EditorView, highlightActiveLine,
  highlightActiveLineGutter, highlightSelectionMatches, highlightSpecialChars, HighlightStyle, history, historyKeymap,
  indentOnInput, indentWithTab, json, keymap, lineNumbers, lintGutter, lintKeymap, Prec, search, searchKeymap,
  setDiagnostics, syntaxHighlighting, tags, yaml,
} from './codemirror.js';

const field = document.querySelector('textarea[data-check]');
const label = document.querySelector(`label[for="${field.id}"]`);
const told = document.getElementById('told');
const checked = document.getElementById('checked');
const pictured = document.getElementById('pictured');
const picture = pictured.querySelector('.picture');

// The pause in typing before a check, in milliseconds.
const PAUSE = 500;
let timer;
let underWay = false;
let outdated = false;

function later() {
  clearTimeout(timer);
  timer = setTimeout(check, PAUSE);
}

// One request at a time: what is written meanwhile is checked after it.
async function check() {
  if (underWay) {
    outdated = true;
    return;
  }
  underWay = true;
  outdated = false;
  try {
    const body = new URLSearchParams(new FormData(field.form));
    const answer = await fetch(field.dataset.check, { method: 'POST', body, redirect: 'error' });
    if (answer.ok) show(await answer.text());
    else told.textContent = 'Checking has stopped: reload the page.';
  } catch {
    told.textContent = 'The server cannot be reached. The check is made again when you continue writing.';
  }
  underWay = false;
  if (outdated) later();
}

function show(text) {
  const page = new DOMParser().parseFromString(text, 'text/html');
  // The sentence is read out when it changes, and only then.
  const sentence = page.getElementById('told').textContent;
  if (told.textContent !== sentence) told.textContent = sentence;
  const found = page.getElementById('findings');
  checked.querySelector('#findings')?.remove();
  if (found) checked.append(found);
  document.getElementById('refused')?.remove();
  draw(page.querySelector('#drawn > svg'));
  // What has been written meanwhile has moved the lines: the next check marks them.
  if (!outdated) mark();
  linked();
}

// The last picture stays while the text has errors, and says that it is out of date.
function draw(svg) {
  const last = picture.querySelector('svg');
  const isOutdated = !svg && last !== null && field.value.trim() !== '';
  pictured.classList.toggle('outdated', isOutdated);
  document.getElementById('outdated').hidden = !isOutdated;
  if (svg) picture.replaceChildren(svg);
}

// Marks the lines that findings are about.
function mark() {
  const { doc } = view.state;
  const marks = [...checked.querySelectorAll('#findings > li')].flatMap((one) => {
    const number = Number(one.querySelector('[data-line]')?.dataset.line ?? 0);
    if (number < 1 || number > doc.lines) return [];
    const line = doc.line(number);
    const text = (selector) => one.querySelector(selector)?.textContent ?? '';
    return [{
      from: line.from + (line.text.length - line.text.trimStart().length),
      to: line.to,
      severity: one.className,
      message: [text('.said'), text('span.hint')].filter(Boolean).join(' '),
    }];
  });
  const isInvalid = checked.querySelector('#findings > .error') !== null;
  view.dispatch(setDiagnostics(view.state, marks), { effects: attributes.reconfigure(attributesOf(isInvalid)) });
}

// The place of a finding leads to its line.
function linked() {
  for (const place of checked.querySelectorAll('span[data-line]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.dataset.line = place.dataset.line;
    button.textContent = place.textContent;
    button.addEventListener('click', () => goTo(Number(place.dataset.line)));
    place.replaceWith(button);
  }
}

function goTo(number) {
  const line = view.state.doc.line(Math.min(number, view.state.doc.lines));
  view.focus();
  view.dispatch({
    selection: { anchor: line.from, head: line.to },
    effects: EditorView.scrollIntoView(line.from, { y: 'center' }),
  });
}

// Colours are those of the page, which has light and dark ones; the variant chooses between CodeMirror's own.
function colours(dark) {
  return EditorView.theme({
    '&': { backgroundColor: 'var(--ground)', color: 'var(--text)' },
    '.cm-content': { caretColor: 'var(--text)' },
    '.cm-cursor': { borderLeftColor: 'var(--text)' },
    '.cm-gutters': { backgroundColor: 'var(--card)', color: 'var(--soft)', borderRight: '1px solid var(--line)' },
    '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in srgb, var(--accent) 8%, transparent)' },
    '.cm-panels, .cm-tooltip': { backgroundColor: 'var(--card)', color: 'var(--text)', borderColor: 'var(--line)' },
    '.cm-button': { backgroundImage: 'none' },
  }, { dark });
}

const words = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--blue)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--warn)' },
  { tag: [tags.comment, tags.meta], color: 'var(--soft)' },
]);

// What fits at the cursor, as the language server says it. Nothing is chosen until an arrow key is pressed, so that Enter
// begins a new line as long as nobody looks at the list.
async function offered(context) {
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  if (!context.explicit && before.trim() === '') return null;
  const body = new URLSearchParams(new FormData(field.form));
  body.set('document', context.state.doc.toString());
  body.set('line', line.number - 1);
  body.set('character', before.length);
  const answer = await fetch(field.dataset.complete, { method: 'POST', body, redirect: 'error' }).catch(() => null);
  if (!answer?.ok) return null;
  const all = await answer.json();
  if (all.length === 0) return null;
  return {
    from: line.from + all[0].textEdit.range.start.character,
    options: all.map(({ label, textEdit, detail, documentation }) => ({
      label,
      apply: textEdit.newText,
      detail: detail ?? undefined,
      info: documentation?.replaceAll('`', '') ?? undefined,
    })),
    validFor: /^[\w$-]*$/,
  };
}

// Closes the list if it is open. Otherwise Tab leaves the editor from now on, however long that takes.
function escape(view) {
  if (completionStatus(view.state) !== null) return closeCompletion(view);
  view.setTabFocusMode(true);
  return false;
}

function languageOf(text) {
  return /^\s*[{[]/.test(text) ? 'json' : 'yaml';
}

function attributesOf(isInvalid) {
  return EditorView.contentAttributes.of({
    // It has the focus without this, too; checkers don't know.
    tabindex: '0',
    'aria-labelledby': label.id,
    'aria-describedby': 'keys told',
    ...(isInvalid && { 'aria-invalid': 'true' }),
  });
}

const dark = matchMedia('(prefers-color-scheme: dark)');
const theme = new Compartment();
const language = new Compartment();
const attributes = new Compartment();
let written = languageOf(field.value);

function changed(update) {
  if (!update.docChanged) return;
  // Tab indents again.
  view.setTabFocusMode(false);
  field.value = view.state.doc.toString();
  const now = languageOf(field.value);
  if (now !== written) {
    written = now;
    // Not within an update.
    queueMicrotask(() => view.dispatch({ effects: language.reconfigure(now === 'json' ? json() : yaml()) }));
  }
  later();
}

const view = new EditorView({
  state: EditorState.create({
    doc: field.value,
    extensions: [
      // The policy of the page allows only styles with this.
      EditorView.cspNonce.of(field.dataset.nonce),
      theme.of(colours(dark.matches)),
      language.of(written === 'json' ? json() : yaml()),
      attributes.of(attributesOf(false)),
      Prec.highest(keymap.of([{ key: 'Escape', run: escape }])),
      autocompletion({ override: [offered], selectOnOpen: false, icons: false }),
      EditorView.domEventHandlers({ blur: (_, view) => view.setTabFocusMode(false) }),
      keymap.of([...searchKeymap, ...historyKeymap, ...lintKeymap, ...defaultKeymap, indentWithTab]),
      lineNumbers(), lintGutter(), highlightActiveLine(), highlightActiveLineGutter(), highlightSpecialChars(),
      history(), drawSelection(), indentOnInput(), bracketMatching(), search({ top: true }),
      highlightSelectionMatches(), syntaxHighlighting(words), EditorView.lineWrapping,
      EditorView.updateListener.of(changed),
    ],
  }),
});
dark.addEventListener('change', () => view.dispatch({ effects: theme.reconfigure(colours(dark.matches)) }));

// The field stays in the form, which sends it; the browser also keeps a draft in it.
field.after(view.dom);
field.hidden = true;
field.required = false;
document.getElementById('keys').hidden = false;
label.addEventListener('click', () => view.focus());
field.form.addEventListener('submit', (event) => {
  if (field.value.trim() !== '') return;
  event.preventDefault();
  told.textContent = 'There is nothing to deploy yet: write or paste a definition.';
  view.focus();
});
// Files from this machine fill the fields of files: empty ones first, then new ones.
const pick = document.getElementById('pick');
const files = pick.closest('.files');
pick.hidden = pick.labels[0].hidden = false;

function place() {
  const all = [...files.querySelectorAll('.file')];
  const free = all.find((one) => [...one.querySelectorAll('input, textarea')].every(({ value }) => value.trim() === ''));
  if (free) return free;
  const next = all.at(-1).cloneNode(true);
  const number = all.length + 1;
  for (const one of next.querySelectorAll('input, textarea')) {
    const { labels: [label] } = all.at(-1).querySelector(`[name="${one.name}"]`);
    const copy = next.querySelector(`label[for="${one.id}"]`);
    copy.textContent = label.textContent.replace(/\d+$/, number);
    one.id = copy.htmlFor = one.id.replace(/\d+$/, number);
    one.value = '';
  }
  all.at(-1).after(next);
  return next;
}

pick.addEventListener('change', async () => {
  for (const file of pick.files) {
    const fields = place();
    fields.querySelector('input').value = file.name;
    fields.querySelector('textarea').value = await file.text();
  }
  pick.value = '';
  later();
});
files.addEventListener('input', ({ target }) => { if (target !== pick) later(); });
linked();
mark();
// A draft that the browser has kept.
if (field.value.trim() !== '' && !document.getElementById('refused')) later();

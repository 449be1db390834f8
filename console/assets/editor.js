// Checks a document while it is being written. The button of the page does the same without this.

const field = document.querySelector('textarea[data-check]');
const told = document.getElementById('told');
const checked = document.getElementById('checked');

// How long nothing is written before a check, in milliseconds.
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
    else told.textContent = 'It cannot be checked while you write: load the page again.';
  } catch {
    told.textContent = 'The server cannot be reached. It is asked again when you go on writing.';
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
  if (found?.querySelector('.error')) field.setAttribute('aria-invalid', 'true');
  else field.removeAttribute('aria-invalid');
  document.getElementById('refused')?.remove();
  linked();
}

// The place of a finding leads to its line.
function linked() {
  for (const place of checked.querySelectorAll('span[data-line]')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = place.textContent;
    button.addEventListener('click', () => goTo(Number(place.dataset.line)));
    place.replaceWith(button);
  }
}

function goTo(number) {
  const lines = field.value.split('\n');
  const line = Math.min(number, lines.length);
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
  field.focus();
  field.setSelectionRange(start, start + lines[line - 1].length);
  field.scrollTop = (field.scrollHeight * (line - 1)) / lines.length - field.clientHeight / 3;
}

field.addEventListener('input', later);
linked();
// A draft that the browser has kept.
if (field.value.trim() !== '' && !document.getElementById('refused')) later();

// Pages are complete without this script: it makes instants readable, and looks for changes.

const units = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];
const near = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

function readable(root) {
  for (const time of root.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    const seconds = (at - Date.now()) / 1000;
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? units[3];
    time.textContent = near.format(Math.round(seconds / size), unit);
    time.title = exact.format(at);
  }
}

// Parts of a page that scroll by themselves.
const scrolling = '.picture, .sideways, .changes';

// The parts that the visitor has opened, by their place in the page.
function opened(root) {
  return [...root.querySelectorAll('details')].map((one) => one.open);
}

// A link keeps its focus when the page is replaced, since it is still there; nothing else could. A press that has begun
// ends on the element on which it began. Ticked boxes stay ticked.
function isBusy(main) {
  const at = document.activeElement;
  const isHeld = at !== main && main.contains(at) && !at.matches('a');
  return isHeld || main.querySelector(':active, details.action[open], .tick :checked') || String(getSelection()) !== '';
}

// Returns whether the page is up to date: a hidden or busy one stays as it is. `seen`: the hint that it follows.
async function look(main, seen) {
  if (document.hidden || isBusy(main)) return false;
  const headers = { accept: 'text/html' };
  if (seen) headers['x-swirl-seen'] = seen;
  const answer = await fetch(location.href, { headers, redirect: 'error' });
  if (!answer.ok) return false;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const fresh = page.querySelector('main');
  if (!fresh || isBusy(main)) return false;
  // The result of the last action stays to be read, and isn't read out again.
  const told = main.querySelector(':scope > .notice[role=status]');
  fresh.querySelector(':scope > .notice[role=status]')?.remove();
  const at = document.activeElement;
  const link = main.contains(at) ? at.getAttribute('href') : null;
  const scrolled = [...main.querySelectorAll(scrolling)].map((one) => [one.scrollLeft, one.scrollTop]);
  const before = opened(main);
  for (const one of [...main.childNodes]) if (one !== told) one.remove();
  main.append(...fresh.childNodes);
  const after = [...main.querySelectorAll('details')];
  if (after.length === before.length) after.forEach((one, index) => { one.open = before[index]; });
  main.querySelectorAll(scrolling).forEach((one, index) => {
    [one.scrollLeft, one.scrollTop] = scrolled[index] ?? [0, 0];
  });
  if (link) [...main.querySelectorAll('a')].find((one) => one.getAttribute('href') === link)?.focus({ preventScroll: true });
  if (!fresh.dataset.live) delete main.dataset.live;
  readable(main);
  return true;
}

readable(document);
const main = document.querySelector('main[data-live]');
if (main) {
  const every = Number(main.dataset.live) * 1000;
  // `due`: a hint that the page doesn't follow yet.
  let hints, due, timer, underWay = false;
  const soon = (ms) => {
    clearTimeout(timer);
    timer = setTimeout(again, ms);
  };
  const again = async () => {
    if (underWay) return;
    const seen = due;
    // With hints there is nothing to look for between them.
    let done = hints && !seen;
    if (!done) {
      underWay = true;
      // A server that is away is asked again later.
      try { done = await look(main, seen); } catch { /* the page stays as it is */ }
      underWay = false;
    }
    if (done && due === seen) due = undefined;
    if (main.dataset.live) soon(due ? 500 : every);
    else hints?.close();
  };
  if (main.dataset.hints) {
    hints = new EventSource(main.dataset.hints);
    hints.onmessage = (hint) => {
      due = hint.data;
      // Not all viewers at the same moment.
      soon(Math.random() * 200);
    };
    // Refused for good, such as when there are too many viewers.
    hints.onerror = () => { if (hints?.readyState === EventSource.CLOSED) hints = undefined; };
  }
  soon(every);
} else {
  setInterval(() => readable(document), 30000);
}

// One open at a time, with the focus in it before the next key arrives; Escape closes.
document.addEventListener('click', (event) => {
  const one = event.target.closest?.('details.action > summary')?.parentElement;
  if (!one || one.open) return;
  event.preventDefault();
  document.querySelectorAll('details.action[open]').forEach((other) => { other.open = false; });
  one.open = true;
  one.querySelector('input:not([type=hidden]), textarea, select, button')?.focus();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const one of document.querySelectorAll('details.action[open]')) {
    one.open = false;
    one.querySelector('summary').focus();
  }
});

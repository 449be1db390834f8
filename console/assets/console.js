// Pages are whole without this: it makes instants readable, and looks for news.

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

// The parts that the visitor has opened, by their place in the page.
function opened(root) {
  return [...root.querySelectorAll('details')].map((one) => one.open);
}

// A link keeps its focus when the page is replaced, since it is still there; nothing else could.
function isBusy(main) {
  const at = document.activeElement;
  const isHeld = at !== main && main.contains(at) && !at.matches('a');
  return isHeld || main.querySelector('details.action[open]') || String(getSelection()) !== '';
}

async function look(main) {
  if (document.hidden || isBusy(main)) return;
  const answer = await fetch(location.href, { headers: { accept: 'text/html' }, redirect: 'error' });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const fresh = page.querySelector('main');
  if (!fresh || isBusy(main)) return;
  // The result of the last action stays to be read, and isn't read out again.
  const told = main.querySelector(':scope > .notice[role=status]');
  fresh.querySelector(':scope > .notice[role=status]')?.remove();
  const at = document.activeElement;
  const link = main.contains(at) ? at.getAttribute('href') : null;
  const scrolled = [...main.querySelectorAll('.picture')].map((one) => [one.scrollLeft, one.scrollTop]);
  const before = opened(main);
  for (const one of [...main.childNodes]) if (one !== told) one.remove();
  main.append(...fresh.childNodes);
  const after = [...main.querySelectorAll('details')];
  if (after.length === before.length) after.forEach((one, index) => { one.open = before[index]; });
  main.querySelectorAll('.picture').forEach((one, index) => {
    [one.scrollLeft, one.scrollTop] = scrolled[index] ?? [0, 0];
  });
  if (link) [...main.querySelectorAll('a')].find((one) => one.getAttribute('href') === link)?.focus({ preventScroll: true });
  if (!fresh.dataset.live) delete main.dataset.live;
  readable(main);
}

readable(document);
const main = document.querySelector('main[data-live]');
if (main) {
  const every = Number(main.dataset.live) * 1000;
  const again = async () => {
    // A server that is away is asked again later.
    try { await look(main); } catch { /* the page stays as it is */ }
    if (main.dataset.live) setTimeout(again, every);
  };
  setTimeout(again, every);
} else {
  setInterval(() => readable(document), 30000);
}

// One open at a time; Escape closes.
document.addEventListener('toggle', (event) => {
  const one = event.target;
  if (!one.matches?.('details.action') || !one.open) return;
  document.querySelectorAll('details.action[open]').forEach((other) => { if (other !== one) other.open = false; });
  one.querySelector('input:not([type=hidden]), textarea, select, button')?.focus();
}, true);
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  for (const one of document.querySelectorAll('details.action[open]')) {
    one.open = false;
    one.querySelector('summary').focus();
  }
});

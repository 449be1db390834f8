// Pages are complete without this script: it makes instants readable, and looks for changes.

const units = [['day', 86400], ['hour', 3600], ['minute', 60], ['second', 1]];
const near = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3, hourCycle: 'h23',
});
const dated = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

function readable(root) {
  for (const time of root.querySelectorAll('time')) {
    const at = new Date(time.dateTime);
    if (isNaN(at)) continue;
    if (time.classList.contains('clock')) {
      time.textContent = clock.format(at);
      time.title = exact.format(at);
      continue;
    }
    const seconds = (at - Date.now()) / 1000;
    const [unit, size] = units.find(([, size]) => Math.abs(seconds) >= size) ?? units[3];
    const since = near.format(Math.round(seconds / size), unit);
    // Some instants are looked for on a clock.
    time.textContent = time.dataset.form === 'clock' ? `${dated.format(at)} (${since})` : since;
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
  pictures(main);
  const after = [...main.querySelectorAll('details')];
  if (after.length === before.length) after.forEach((one, index) => { one.open = before[index]; });
  main.querySelectorAll(scrolling).forEach((one, index) => {
    [one.scrollLeft, one.scrollTop] = scrolled[index] ?? [0, 0];
  });
  if (link) [...main.querySelectorAll('a')].find((one) => one.getAttribute('href') === link)?.focus({ preventScroll: true });
  if (!fresh.dataset.live) delete main.dataset.live;
  readable(main);
  ticks(main);
  return true;
}

// The picture of a workflow: it can be enlarged, and begins where the instance is. The size is kept when the page is
// replaced.
let zoom = 1;

function sized(part) {
  const svg = part.querySelector('.picture svg');
  const { width } = svg.viewBox.baseVal;
  part.querySelector('.picture').classList.toggle('zoomed', zoom !== 1);
  // Without a zoom its own size is the upper limit.
  const fits = Math.min(width, part.querySelector('.picture').clientWidth);
  svg.setAttribute('width', Math.round(zoom === 1 ? width : fits * zoom));
  if (zoom === 1) svg.setAttribute('height', svg.viewBox.baseVal.height);
  else svg.removeAttribute('height');
}

function toMark(part) {
  const picture = part.querySelector('.picture');
  const mark = picture.querySelector('.card.failed, .card.here, .group.failed');
  if (!mark || picture.scrollWidth <= picture.clientWidth && picture.scrollHeight <= picture.clientHeight) return;
  const [outer, inner] = [picture.getBoundingClientRect(), mark.getBoundingClientRect()];
  picture.scrollLeft += inner.left + inner.width / 2 - outer.left - outer.width / 2;
  picture.scrollTop += inner.top + inner.height / 2 - outer.top - outer.height / 2;
}

function pictures(root) {
  for (const part of root.querySelectorAll('.path')) {
    const tools = part.querySelector('[data-zoom]');
    if (!tools?.hidden) continue;
    tools.hidden = false;
    if (zoom !== 1) sized(part);
    if (root === document) toMark(part);
  }
}

// A box in the heading of a list ticks all boxes below it.
function ticks(root) {
  for (const all of root.querySelectorAll('input[data-ticks]')) {
    const boxes = [...all.closest('table').querySelectorAll(`input[name="${all.dataset.ticks}"]`)];
    const show = () => {
      const count = boxes.filter((one) => one.checked).length;
      all.checked = count > 0 && count === boxes.length;
      all.indeterminate = count > 0 && count < boxes.length;
    };
    all.hidden = boxes.length === 0;
    all.addEventListener('change', () => boxes.forEach((one) => { one.checked = all.checked; }));
    boxes.forEach((one) => one.addEventListener('change', show));
    show();
  }
}

readable(document);
pictures(document);
ticks(document);
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

document.addEventListener('click', (event) => {
  const button = event.target.closest?.('[data-zoom] button');
  if (!button) return;
  const part = button.closest('.path');
  const picture = part.querySelector('.picture');
  const by = button.dataset.by;
  if (by === 'full') {
    picture.requestFullscreen?.();
    return;
  }
  zoom = by === 'fit' ? 1 : Math.min(8, Math.max(0.25, zoom * (by === 'in' ? 1.5 : 1 / 1.5)));
  if (Math.abs(zoom - 1) < 0.01) zoom = 1;
  sized(part);
  toMark(part);
});

// A picture is moved by dragging it, besides scrolling.
let dragged;
document.addEventListener('pointerdown', (event) => {
  const picture = event.target.closest?.('.path .picture');
  if (!picture || event.button !== 0 || event.pointerType === 'touch') return;
  dragged = { picture, x: event.clientX + picture.scrollLeft, y: event.clientY + picture.scrollTop };
});
document.addEventListener('pointermove', (event) => {
  if (!dragged || !event.buttons) return;
  event.preventDefault();
  dragged.picture.scrollLeft = dragged.x - event.clientX;
  dragged.picture.scrollTop = dragged.y - event.clientY;
});
document.addEventListener('pointerup', () => { dragged = undefined; });

// Looks for what the rules of WCAG forbid and a script can see. Returns sentences, none if all is well.
const found = [];
const shown = (one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true });
const plain = (text) => text.replace(/\s+/g, ' ').trim();
const brief = (one) => one.outerHTML.replace(/\s+/g, ' ').slice(0, 160);

// The text of an element as assistive technology reads it.
function read(one) {
  if (one.nodeType === Node.TEXT_NODE) return one.data;
  if (one.nodeType !== Node.ELEMENT_NODE || one.getAttribute('aria-hidden') === 'true') return '';
  return one.getAttribute('aria-label') ?? one.getAttribute('alt') ?? [...one.childNodes].map(read).join(' ');
}

function name(one) {
  const by = (one.getAttribute('aria-labelledby') ?? '').split(/\s+/).filter(Boolean);
  const parts = [
    by.map((id) => document.getElementById(id)).filter(Boolean).map(read).join(' '),
    one.getAttribute('aria-label') ?? '',
    [...(one.labels ?? [])].map(read).join(' '),
    one.matches('a, button, summary, [role]') ? read(one) : '',
    one.getAttribute('title') ?? '',
  ];
  return plain(parts.find((part) => plain(part) !== '') ?? '');
}

// Names.
const controls = 'a[href], button, input:not([type=hidden]), select, textarea, summary, progress, [contenteditable=true], '
  + '[tabindex]:not([tabindex="-1"])';
for (const one of document.querySelectorAll(controls)) {
  if (!one.closest('svg') && name(one) === '') found.push(`a control has no name: ${brief(one)}`);
}
for (const one of document.querySelectorAll('img:not([alt])')) found.push(`a picture has no text: ${brief(one)}`);
for (const one of document.querySelectorAll('svg')) {
  const hidden = one.closest('[aria-hidden=true]') !== null;
  const told = one.getAttribute('role') === 'img' && (one.getAttribute('aria-label') || one.querySelector('title'));
  if (!hidden && !told) found.push(`a drawing has no text: ${brief(one)}`);
}

// The page.
if (!document.documentElement.lang) found.push('the page has no language');
if (plain(document.title) === '') found.push('the page has no title');
for (const part of ['h1', 'main']) {
  const count = document.querySelectorAll(part).length;
  if (count !== 1) found.push(`there are ${count} elements ${part}`);
}
const ids = new Set();
for (const { id } of document.querySelectorAll('[id]')) {
  if (ids.has(id)) found.push(`the id ${id} is there twice`);
  ids.add(id);
}
for (const one of document.querySelectorAll('th:not([scope])')) found.push(`a heading has no scope: ${brief(one)}`);

// Sizes: 24 pixels each way, for what isn't part of a sentence.
for (const one of document.querySelectorAll('button, .button, input:not([type=hidden]), select, textarea, summary')) {
  const { width, height } = one.getBoundingClientRect();
  if (shown(one) && width > 0 && (width < 24 || height < 24)) {
    found.push(`a control is ${Math.round(width)} by ${Math.round(height)} pixels: ${brief(one)}`);
  }
}

// Contrast.
const canvas = document.createElement('canvas');
canvas.width = canvas.height = 1;
const ink = canvas.getContext('2d', { willReadFrequently: true });
function over(colours) {
  ink.clearRect(0, 0, 1, 1);
  for (const colour of colours) {
    ink.fillStyle = colour;
    ink.fillRect(0, 0, 1, 1);
  }
  return [...ink.getImageData(0, 0, 1, 1).data];
}
function light([red, green, blue]) {
  const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
}
function ratio(one) {
  const grounds = ['Canvas'];
  const above = [];
  for (let at = one; at; at = at.parentElement) above.unshift(getComputedStyle(at).backgroundColor);
  grounds.push(...above);
  const [a, b] = [light(over([...grounds, getComputedStyle(one).color])), light(over(grounds))];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}
const seen = new Set();
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const one = texts.currentNode.parentElement;
  if (plain(texts.currentNode.data) === '' || seen.has(one) || one.closest('svg, script, option') || !shown(one)) continue;
  seen.add(one);
  const { width, height } = one.getBoundingClientRect();
  if (width <= 1 || height <= 1) continue;
  const style = getComputedStyle(one);
  const size = parseFloat(style.fontSize);
  const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
  const has = ratio(one);
  if (has < least) found.push(`a text has a contrast of ${has.toFixed(2)}, not ${least}: ${brief(one)}`);
}
return found;

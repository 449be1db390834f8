// Files that are chosen or dropped are listed at once. Without this, a button of the page does so; only dropping and the
// paths of a folder's files in older browsers need it.

const form = document.getElementById('choose');
const drop = document.getElementById('drop');
const told = document.getElementById('told');
const inputs = [...form.querySelectorAll('input[type=file]')];

// The server leaves out what is beyond.
const FILES_MAX = 200;
const BYTES_MAX = 4 << 20;

// `files`: pairs of a path and a file.
async function list(files) {
  const size = files.reduce((sum, [, file]) => sum + file.size, 0);
  if (files.length === 0) return;
  if (size > BYTES_MAX) {
    told.textContent = `✕ These files have ${Math.ceil(size / 1024)} KiB, and may have ${BYTES_MAX / 1024} KiB together.`;
    return;
  }
  told.textContent = 'Checking…';
  const body = new FormData();
  body.append('csrf', form.elements.csrf.value);
  for (const [path, file] of files) {
    body.append('path', path);
    body.append('file', file);
  }
  try {
    const answer = await fetch(form.action, { method: 'POST', body, redirect: 'error' });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const found = page.getElementById('listed');
    if (!found) throw new Error();
    document.getElementById('listed').replaceWith(found);
    told.textContent = '';
    const sentence = document.getElementById('sentence');
    sentence?.setAttribute('tabindex', '-1');
    sentence?.focus();
  } catch {
    told.textContent = '✕ The files could not be checked: reload the page, and try again.';
  }
}

for (const input of inputs) {
  input.addEventListener('change', () => {
    for (const other of inputs) if (other !== input) other.value = '';
    const chosen = [...input.files].map((file) => [file.webkitRelativePath || file.name, file]);
    // Such as those of Git: the server leaves them out, too.
    list(chosen.filter(([path]) => !path.split('/').some((part) => part.startsWith('.'))));
  });
}

async function walk(entry, found) {
  if (entry.name.startsWith('.') || found.length > FILES_MAX) return;
  if (entry.isFile) {
    found.push([entry.fullPath.replace(/^\//, ''), await new Promise((done, failed) => entry.file(done, failed))]);
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (some.length === 0) return;
    for (const one of some) await walk(one, found);
  }
}

drop.hidden = false;
for (const name of ['dragover', 'dragleave', 'drop']) {
  form.addEventListener(name, (event) => {
    event.preventDefault();
    drop.classList.toggle('over', name === 'dragover');
  });
}
form.addEventListener('drop', async ({ dataTransfer }) => {
  // The list is empty after this event.
  const dropped = [...dataTransfer.items].filter(({ kind }) => kind === 'file');
  const sources = dropped.map((item) => [item.webkitGetAsEntry?.(), item.getAsFile()]);
  const found = [];
  for (const [entry, file] of sources) {
    if (entry) await walk(entry, found);
    else if (file) found.push([file.name, file]);
  }
  list(found);
});

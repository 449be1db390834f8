// “Try it” shows the outcome on the same page, so that the editor stays as it is. Without this the page is loaded again.

const button = document.querySelector('button[data-try]');
const trying = document.getElementById('trying');
const mocks = document.getElementById('try-mocks');

button.addEventListener('click', async (event) => {
  event.preventDefault();
  button.disabled = true;
  trying.textContent = 'Running…';
  const body = new URLSearchParams(new FormData(button.form));
  const address = button.getAttribute('formaction') ?? button.form.getAttribute('action');
  try {
    const answer = await fetch(address, { method: 'POST', body, redirect: 'error' });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const found = page.getElementById('tried');
    if (found) {
      document.getElementById('tried').replaceWith(found);
      if (mocks.value.trim() === '') mocks.value = page.getElementById('try-mocks').value;
      trying.textContent = '';
      const told = document.getElementById('told-tried');
      told?.setAttribute('tabindex', '-1');
      told?.focus();
    } else {
      trying.textContent = `✕ It could not be tried: ${page.querySelector('main p')?.textContent ?? answer.status}`;
    }
  } catch {
    trying.textContent = '✕ The server cannot be reached, or you are no longer signed in: reload the page.';
  }
  button.disabled = false;
});

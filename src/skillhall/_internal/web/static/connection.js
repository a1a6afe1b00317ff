// Connection to the server: a bar while it cannot be reached, and requests that wait for it.

const MAX_PAUSE_MS = 5000;
const bar = document.getElementById("connection");
const liveRegion = document.getElementById("live-region");
const checkedForms = new WeakSet(); // forms whose next submit goes to the server
const waitingForms = new WeakSet();
let reconnection = null; // a promise while the server cannot be reached
let stopPause = () => {};

function announce(text) {
  liveRegion.textContent = "";
  requestAnimationFrame(() => { liveRegion.textContent = text; });
}

function pause(milliseconds) {
  return new Promise((resolve) => {
    stopPause = resolve;
    setTimeout(resolve, milliseconds);
  });
}

async function isReachable() {
  try {
    return (await fetch("/healthz", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

async function pollUntilReachable() {
  for (let attempt = 0; !(await isReachable()); attempt += 1) {
    bar.hidden = false;
    await pause(Math.min(500 * 2 ** attempt, MAX_PAUSE_MS));
  }
  reconnection = null;
  if (bar.hidden) return;
  bar.hidden = true;
  announce(bar.dataset.reconnectedText);
  document.dispatchEvent(new CustomEvent("skillhall:reconnected"));
}

// Resolves at once if the server can be reached; else shows the bar until it can.
function waitForServer() {
  reconnection ??= pollUntilReachable();
  return reconnection;
}

// Sends a request, again and again until the server answers. `build` returns the arguments of
// `fetch`; it is called for each attempt because the page may have changed.
async function send(build) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const response = await fetch(...build());
      // A proxy answers 502 for a stopped server, and this server for a source that failed.
      if (response.status !== 502 || await isReachable()) return response;
    } catch (error) {
      if (error.name === "AbortError") throw error;
    }
    if (attempt) await pause(Math.min(500 * attempt, MAX_PAUSE_MS));
    await waitForServer();
  }
}

bar.querySelector("button").addEventListener("click", () => stopPause());
addEventListener("online", () => stopPause());

// A form is submitted once the server can be reached, so that its values are never lost.
document.addEventListener("submit", async (event) => {
  const { target: form, submitter } = event;
  if (event.defaultPrevented || form.method !== "post" || checkedForms.delete(form)) return;
  event.preventDefault();
  if (waitingForms.has(form)) return;
  waitingForms.add(form);
  await waitForServer();
  waitingForms.delete(form);
  checkedForms.add(form);
  form.requestSubmit(submitter);
});

// Checks of a form that failed are repeated after a reconnection; polls repeat themselves.
document.addEventListener("htmx:error", async (event) => {
  if (event.detail.ctx?.response) return; // the server has answered
  const source = event.detail.ctx?.sourceElement;
  await waitForServer();
  if (source?.isConnected && source.matches("form, .editor")) htmx.trigger(source, "input");
});

globalThis.skillhall = { announce, send, waitForServer };

// Streams the agent's reply. Without this script, the page reloads with the complete reply.

const form = document.querySelector("[data-chat]");
const chat = document.getElementById("chat");
const errorBox = document.getElementById("chat-error");
const message = document.getElementById("message");
const stopButton = form.querySelector("[data-stop]");
const liveRegion = document.getElementById("live-region");
let abortController = null;

async function* readLines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}

function appendPendingTurn(text) {
  const turn = document.getElementById("pending-turn").content.firstElementChild.cloneNode(true);
  turn.querySelector("bdi").textContent = text;
  chat.querySelector(".chat-placeholder")?.remove();
  chat.append(turn);
  turn.scrollIntoView({ block: "nearest" });
  return turn;
}

function applyMessage(turn, line) {
  if (line.kind === "step") turn.querySelector(".trace").insertAdjacentHTML("beforeend", line.html);
  if (line.kind === "text") turn.querySelector(".partial-reply").append(line.text);
  if (line.kind !== "over") return turn; // still pending
  turn.insertAdjacentHTML("afterend", line.html);
  const finished = turn.nextElementSibling;
  turn.remove();
  document.querySelector("[data-new]").hidden = false;
  if (!line.failed) {
    message.value = "";
    skillhall.discardDraft(form);
  }
  liveRegion.textContent = finished.querySelector(".prose, .problem")?.textContent ?? "";
  return null;
}

// The server answers with a page instead of a stream if it rejects the message.
async function showError(response) {
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const problem = page.querySelector(".problem");
  if (problem) errorBox.replaceChildren(document.adoptNode(problem));
  else location.assign(response.url);
}

async function streamReply(turn, signal) {
  const body = new URLSearchParams(new FormData(form));
  const headers = { Accept: "application/x-ndjson" };
  const response = await fetch(form.action, { method: "POST", body, headers, signal });
  if (response.headers.get("content-type") !== "application/x-ndjson") {
    await showError(response);
    return turn;
  }
  let pendingTurn = turn;
  for await (const line of readLines(response.body)) pendingTurn = applyMessage(pendingTurn, line);
  return pendingTurn;
}

// The part of a reply that has arrived stays; the server shows it after a reload, too.
function keepStopped(turn) {
  turn.classList.remove("is-pending");
  turn.ariaBusy = null;
  turn.querySelector(".partial-reply").removeAttribute("aria-hidden");
  turn.querySelector(".stopped-note").hidden = false;
  message.value = "";
  skillhall.discardDraft(form);
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (abortController || !message.value.trim()) return;
  abortController = new AbortController();
  errorBox.replaceChildren();
  stopButton.hidden = false;
  form.ariaBusy = "true";
  liveRegion.textContent = form.dataset.busyText;
  let pendingTurn = appendPendingTurn(message.value.trim());
  try {
    pendingTurn = await streamReply(pendingTurn, abortController.signal);
  } catch (error) {
    if (error.name !== "AbortError") location.reload();
  }
  if (pendingTurn && abortController.signal.aborted) keepStopped(pendingTurn);
  else pendingTurn?.remove();
  abortController = null;
  stopButton.hidden = true;
  form.ariaBusy = null;
  message.focus();
});

stopButton.addEventListener("click", () => abortController?.abort());

message.addEventListener("keydown", (event) => {
  if (choose(event)) event.preventDefault();
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented) abortController?.abort();
});

// Completes `/name` at the start of a message from the skills of the agent.
let completions = null;
let chosen = -1;
let completionRequest = null;
message.setAttribute("aria-autocomplete", "list");

function closeCompletions() {
  completionRequest?.abort();
  completions?.remove();
  completions = null;
  message.removeAttribute("aria-controls");
  message.removeAttribute("aria-activedescendant");
}

function highlight(index) {
  const options = [...completions.children];
  chosen = (index + options.length) % options.length;
  options.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
  options[chosen].scrollIntoView({ block: "nearest" });
  message.setAttribute("aria-activedescendant", options[chosen].id);
}

function insertName(option) {
  message.value = `/${option.dataset.name} `;
  closeCompletions();
  message.focus();
}

// Handles a key while completions are shown; returns whether it did.
function choose(event) {
  if (!completions) return false;
  if (event.key === "ArrowDown") highlight(chosen + 1);
  else if (event.key === "ArrowUp") highlight(chosen - 1);
  else if (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey && !event.metaKey)) insertName(completions.children[chosen]);
  else if (event.key === "Escape") closeCompletions();
  else return false;
  return true;
}

async function complete() {
  const typed = /^\/(\S*)$/.exec(message.value);
  if (!typed) {
    closeCompletions();
    return;
  }
  completionRequest?.abort();
  completionRequest = new AbortController();
  const query = new URLSearchParams({ agent: form.elements.agent.value, q: typed[1] });
  let list;
  try {
    const response = await fetch(`/playground/skills?${query}`, { signal: completionRequest.signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    list = page.getElementById("completions");
  } catch {
    return; // aborted by the next key, or the server cannot be reached
  }
  completions?.remove();
  completions = null;
  if (!list?.children.length) {
    closeCompletions();
    return;
  }
  completions = document.adoptNode(list);
  message.after(completions);
  message.setAttribute("aria-controls", "completions");
  highlight(0);
}

message.addEventListener("input", complete);
message.addEventListener("blur", () => closeCompletions());
// Before `blur`, which would close the list.
message.parentElement.addEventListener("mousedown", (event) => {
  const option = event.target.closest("[role=option]");
  if (!option) return;
  event.preventDefault();
  insertName(option);
});

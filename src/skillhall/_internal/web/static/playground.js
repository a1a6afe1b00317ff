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
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

// The answer as it comes. Without it, the form is sent and the page comes back with the answer.

const form = document.querySelector("[data-talk]");
const talk = document.getElementById("talk");
const trouble = document.getElementById("trouble");
const message = document.getElementById("message");
const stop = form.querySelector("[data-stop]");
const spoken = document.getElementById("spoken");
let underWay = null;

async function* lines(body) {
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

function pending(text) {
  const turn = document.getElementById("pending").content.firstElementChild.cloneNode(true);
  turn.querySelector("bdi").textContent = text;
  talk.querySelector(".quiet-start")?.remove();
  talk.append(turn);
  turn.scrollIntoView({ block: "nearest" });
  return turn;
}

function show(turn, line) {
  if (line.kind === "step") turn.querySelector(".trace").insertAdjacentHTML("beforeend", line.html);
  if (line.kind === "text") turn.querySelector(".coming").append(line.text);
  if (line.kind !== "over") return turn;
  turn.insertAdjacentHTML("afterend", line.html);
  const whole = turn.nextElementSibling;
  turn.remove();
  document.querySelector("[data-new]").hidden = false;
  if (!line.failed) message.value = "";
  spoken.textContent = whole.querySelector(".prose, .problem")?.textContent ?? "";
  return null;
}

// A page in place of an answer says why there is none.
async function tell(answer) {
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const told = page.querySelector(".problem");
  if (told) trouble.replaceChildren(document.adoptNode(told));
  else location.assign(answer.url);
}

async function ask(turn, signal) {
  const body = new URLSearchParams(new FormData(form));
  const headers = { Accept: "application/x-ndjson" };
  const answer = await fetch(form.action, { method: "POST", body, headers, signal });
  if (answer.headers.get("content-type") !== "application/x-ndjson") {
    await tell(answer);
    return turn;
  }
  let left = turn;
  for await (const line of lines(answer.body)) left = show(left, line);
  return left;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  if (underWay || !message.value.trim()) return;
  underWay = new AbortController();
  trouble.replaceChildren();
  stop.hidden = false;
  form.ariaBusy = "true";
  spoken.textContent = form.dataset.busy;
  let left = pending(message.value.trim());
  try {
    left = await ask(left, underWay.signal);
  } catch (error) {
    if (error.name !== "AbortError") location.reload();
  }
  left?.remove();
  underWay = null;
  stop.hidden = true;
  form.ariaBusy = null;
  message.focus();
});

stop.addEventListener("click", () => underWay?.abort());

message.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

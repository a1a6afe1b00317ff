// The board of a session: cards are dragged or moved by keys, edited where they stand, and every
// tab shows what the others do. Without it, the same forms and links lead to pages.

const STEPS = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 };
const waiting = new Set(); // ids of cards whose new place is not told yet
let isDragging = false;
let isSending = false;
let isLoading = false;
let newest = 0; // the revision that was last told of; infinite if there may be any

const board = () => document.getElementById("board");
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

function say(text) {
  const spoken = document.getElementById("spoken");
  spoken.textContent = "";
  requestAnimationFrame(() => { spoken.textContent = text; });
}

// Puts what the server answers into the page; whoever writes at that moment goes on writing.
async function show(text, part) {
  const editors = [...document.querySelectorAll("[data-editor]")];
  const target = document.querySelector(part);
  await htmx.swap({ text, target, select: part, swap: "outerMorph", sourceElement: target, hx: {} });
  for (const editor of editors) if (!editor.isConnected) rescue(editor);
  wire();
}

// The block was deleted elsewhere: its text stays, to be saved as a block of its own.
function rescue(editor) {
  const slot = document.getElementById("adding");
  const told = document.createElement("p");
  told.className = "lost";
  told.role = "alert";
  told.textContent = slot.dataset.lost;
  fill(slot, told, editor);
}

function fill(slot, ...parts) {
  slot.setAttribute("hx-morph-skip", "");
  slot.replaceChildren(...parts);
}

function empty(slot) {
  slot.removeAttribute("hx-morph-skip");
  slot.replaceChildren();
}

const isStale = () => newest > Number(board().dataset.revision);

// Shows what happened elsewhere; what we did ourselves is shown by the answer to it.
async function refresh() {
  if (!isStale() || isDragging || isSending || isLoading) return;
  isLoading = true;
  const told = newest;
  newest = 0;
  const answer = await fetch(board().dataset.address);
  const text = await answer.text();
  isLoading = false;
  if (!answer.ok) {
    location.reload();
  } else if (isDragging || isSending) {
    newest = Math.max(newest, told);
  } else {
    await show(text, "#board");
    refresh();
  }
}

document.addEventListener("htmx:sse:after:message", (event) => {
  const { event: kind, data } = event.detail.message;
  newest = Math.max(newest, kind === "reset" ? Infinity : JSON.parse(data).revision);
  refresh();
});

for (const [name, state] of [["after:connection", "open"], ["error", "closed"], ["close", "closed"]]) {
  document.addEventListener(`htmx:sse:${name}`, () => {
    document.getElementById("live").dataset.state = state;
  });
}

// Where a card stands, as the form of its menu tells it.
function place(card) {
  const { zone } = card.parentElement.dataset;
  const above = card.previousElementSibling;
  return above ? `after,${above.dataset.block},${zone}` : `first,,${zone}`;
}

function learnVersions(page) {
  for (const known of page.querySelectorAll(".block")) {
    const field = document.getElementById(known.id)?.querySelector('[name="version"]');
    if (field) field.value = known.querySelector('[name="version"]').value;
  }
}

async function sendMoves() {
  if (isSending) return;
  isSending = true;
  let text = "";
  let page;
  try {
    for (let [id] = waiting; id !== undefined; [id] = waiting) {
      waiting.delete(id);
      const card = document.getElementById(`block-${id}`);
      if (!card) continue;
      const form = card.querySelector("form.moving");
      const body = new URLSearchParams(new FormData(form));
      body.set("place", place(card));
      const answer = await fetch(form.action, { method: "POST", body });
      text = await answer.text();
      page = parsed(text);
      learnVersions(page);
      if (!answer.ok) waiting.clear();
    }
  } finally {
    isSending = false;
    board().ariaBusy = null;
  }
  if (isDragging) newest = Infinity;
  else if (page) await settle(text, page);
  refresh();
}

function moved(card) {
  const list = card.parentElement;
  const cards = [...list.children];
  const words = { name: card.dataset.name, zone: list.dataset.name };
  words.place = cards.indexOf(card) + 1;
  words.count = cards.length;
  say(board().dataset.moved.replace(/\{(\w+)\}/g, (_, key) => words[key]));
  waiting.add(card.dataset.block);
  board().ariaBusy = "true";
  sendMoves();
}

const blocks = () => [...document.querySelectorAll(".block")];

// Shows the board that came back, or the form if there is something to say about it. `before` are
// the blocks that were there when the form was sent: the stream may have told of a new one since.
async function settle(text, page, form, before) {
  const open = form?.closest("[data-editor]");
  const answered = page.querySelector("[data-editor]");
  if (page.getElementById("board")) {
    if (open) empty(open.closest(".slot"));
    await show(text, "#main");
    const own = open && document.getElementById(`block-${open.dataset.editor}`);
    const added = () => blocks().find((card) => !before.has(card.id));
    (own ?? (open && added()))?.querySelector("h3 a").focus();
  } else if (open && answered) {
    const fresh = document.adoptNode(answered);
    fill(open.closest(".slot"), fresh);
    htmx.process(fresh);
    fresh.querySelector("textarea").focus();
  } else {
    location.reload();
  }
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-live]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  const button = event.submitter;
  const action = button?.hasAttribute("formaction") ? button.formAction : form.action;
  const body = new URLSearchParams(new FormData(form, button));
  const before = new Set(blocks().map((card) => card.id));
  try {
    const answer = await fetch(action, { method: "POST", body });
    const text = await answer.text();
    await settle(text, parsed(text), form, before);
  } finally {
    form.ariaBusy = null;
  }
}, true);

async function openEditor(link, slot) {
  const answer = await fetch(link.href);
  const editor = parsed(await answer.text()).querySelector("[data-editor]");
  if (!editor) {
    location.assign(link.href);
    return;
  }
  const fresh = document.adoptNode(editor);
  fill(slot, fresh);
  htmx.process(fresh);
  fresh.scrollIntoView({ block: "nearest" });
  fresh.querySelector("textarea").focus();
}

function slotOf(link) {
  if (link.matches("[data-add]")) return document.getElementById("adding");
  return link.closest(".slot") ?? link.closest(".block").querySelector(".slot");
}

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest("a, button")) menu.open = false;
  }
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const link = event.target.closest("[data-edit], [data-add]");
  if (link) {
    event.preventDefault();
    openEditor(link, slotOf(link));
  }
  const leave = event.target.closest(".slot [data-leave]");
  if (leave) {
    event.preventDefault();
    const slot = leave.closest(".slot");
    const card = slot.closest(".block");
    empty(slot);
    (card?.querySelector("h3 a") ?? document.querySelector("#add-menu summary")).focus();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = event.target.closest(".menu[open]");
    if (menu) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  }
  const card = event.target.closest(".block");
  const step = STEPS[event.key];
  if (!card || !step || !event.altKey || event.target.closest(".slot")) return;
  event.preventDefault();
  const focused = document.activeElement;
  const list = card.parentElement;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    const beside = step < 0 ? card.previousElementSibling : card.nextElementSibling;
    if (!beside) return;
    if (step < 0) beside.before(card);
    else beside.after(card);
  } else {
    const lists = [...document.querySelectorAll(".cards")];
    const goal = lists[lists.indexOf(list) + step];
    if (!goal) return;
    goal.append(card);
  }
  focused.focus();
  card.scrollIntoView({ block: "nearest" });
  moved(card);
});

function wire() {
  for (const list of document.querySelectorAll(".cards")) {
    if (Sortable.get(list)) continue;
    Sortable.create(list, {
      group: "blocks",
      draggable: ".block",
      handle: ".row",
      filter: ".menu, .slot",
      preventOnFilter: false,
      animation: 150,
      ghostClass: "is-ghost",
      forceFallback: true,
      fallbackOnBody: true,
      fallbackTolerance: 5,
      delay: 250,
      delayOnTouchOnly: true,
      onStart: () => { isDragging = true; },
      onEnd: ({ item, from, to, oldIndex, newIndex }) => {
        isDragging = false;
        if (from !== to || oldIndex !== newIndex) moved(item);
        else refresh();
      },
    });
  }
}

htmx.config.morphIgnore.push("open");
wire();

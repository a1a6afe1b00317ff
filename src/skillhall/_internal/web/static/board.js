// Session board: drag and drop, keyboard moves, inline editing, and live updates from other tabs.
// Without this script, the same forms and links open pages.

const STEPS = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -1, ArrowRight: 1 };
const { announce, discardDraft, isUnsaved, hasDraft, restoreDraft, send, waitForServer } = skillhall;
const pendingMoves = new Set(); // ids of cards whose new position is not sent yet
let isDragging = false;
let isSending = false;
let isLoading = false;
let latestRevision = 0; // latest revision announced by the event stream; Infinity if unknown

const getBoard = () => document.getElementById("board");
const parseHtml = (text) => new DOMParser().parseFromString(text, "text/html");

// Morphs a part of the page into the server's response. Open editors keep their text and focus.
async function swapPart(text, part) {
  const editors = [...document.querySelectorAll("[data-editor]")];
  const target = document.querySelector(part);
  await htmx.swap({ text, target, select: part, swap: "outerMorph", sourceElement: target, hx: {} });
  for (const editor of editors) if (!editor.isConnected) keepOrphanedEditor(editor);
  enableSorting();
}

// The block was deleted elsewhere: keep its unsaved text in the slot for new blocks.
function keepOrphanedEditor(editor) {
  const slot = document.getElementById("new-block-slot");
  const notice = document.createElement("p");
  notice.className = "deleted-notice";
  notice.role = "alert";
  notice.textContent = slot.dataset.deletedText;
  fillSlot(slot, notice, editor);
}

function fillSlot(slot, ...parts) {
  slot.setAttribute("hx-morph-skip", "");
  slot.replaceChildren(...parts);
}

function clearSlot(slot) {
  slot.removeAttribute("hx-morph-skip");
  slot.replaceChildren();
}

const isStale = () => latestRevision > Number(getBoard().dataset.revision);

// Loads changes made elsewhere. Changes of this tab arrive with the response to its request.
async function refresh() {
  if (!isStale() || isDragging || isSending || isLoading) return;
  isLoading = true;
  const revision = latestRevision;
  latestRevision = 0;
  const response = await send(() => [getBoard().dataset.url]);
  const text = await response.text();
  isLoading = false;
  if (!response.ok) {
    location.reload();
  } else if (isDragging || isSending) {
    latestRevision = Math.max(latestRevision, revision);
  } else {
    await swapPart(text, "#board");
    refresh();
  }
}

document.addEventListener("htmx:sse:after:message", (event) => {
  const { event: kind, data } = event.detail.message;
  if (kind === "viewers") {
    showViewers(JSON.parse(data).viewers);
    return;
  }
  latestRevision = Math.max(latestRevision, kind === "reset" ? Infinity : JSON.parse(data).revision);
  refresh();
});

// Who else has this board open; another tab of the same user is not a name.
function showViewers(viewers) {
  const box = document.getElementById("viewers");
  const { user, text, tabText } = box.dataset;
  const names = Object.keys(viewers).filter((name) => name !== user);
  const parts = names.length ? [`${text} ${names.join(", ")}`] : [];
  if (user in viewers) parts.push(tabText);
  box.textContent = parts.join(" · ");
}

for (const [name, state] of [["after:connection", "open"], ["error", "closed"], ["close", "closed"]]) {
  document.addEventListener(`htmx:sse:${name}`, () => {
    document.getElementById("event-stream").dataset.state = state;
    if (state === "closed") waitForServer();
  });
}

// Events may be missed while the server cannot be reached.
document.addEventListener("skillhall:reconnected", () => {
  latestRevision = Infinity;
  refresh();
});

addEventListener("beforeunload", (event) => {
  if (isSending) event.preventDefault();
});

// The position of a card, in the format of the `placement` field.
function formatPlacement(card) {
  const { zone } = card.parentElement.dataset;
  const above = card.previousElementSibling;
  return above ? `after,${above.dataset.block},${zone}` : `first,,${zone}`;
}

function updateVersions(page) {
  for (const block of page.querySelectorAll(".block")) {
    const field = document.getElementById(block.id)?.querySelector('[name="version"]');
    if (field) field.value = block.querySelector('[name="version"]').value;
  }
}

async function sendMoves() {
  if (isSending) return;
  isSending = true;
  let text = "";
  let page;
  try {
    for (let [id] = pendingMoves; id !== undefined; [id] = pendingMoves) {
      pendingMoves.delete(id);
      const card = document.getElementById(`block-${id}`);
      if (!card) continue; // deleted elsewhere
      const response = await send(() => {
        const form = card.querySelector("form.move-form");
        const body = new URLSearchParams(new FormData(form));
        body.set("placement", formatPlacement(card));
        pendingMoves.delete(id);
        return [form.action, { method: "POST", body }];
      });
      text = await response.text();
      page = parseHtml(text);
      updateVersions(page);
      if (!response.ok) pendingMoves.clear();
    }
  } finally {
    isSending = false;
    getBoard().ariaBusy = null;
  }
  if (isDragging) latestRevision = Infinity;
  else if (page) await applyResponse(text, page);
  refresh();
}

function queueMove(card) {
  const list = card.parentElement;
  const cards = [...list.children];
  const values = { name: card.dataset.name, zone: list.dataset.name };
  values.position = cards.indexOf(card) + 1;
  values.count = cards.length;
  announce(getBoard().dataset.movedText.replace(/\{(\w+)\}/g, (_, key) => values[key]));
  pendingMoves.add(card.dataset.block);
  getBoard().ariaBusy = "true";
  sendMoves();
}

const getBlocks = () => [...document.querySelectorAll(".block")];

// Shows the returned board, or the returned form if it has errors. `before` has the ids of the
// blocks when the form was sent: the event stream may have added the new block already.
async function applyResponse(text, page, form, before) {
  const open = form?.closest("[data-editor]");
  const returned = page.querySelector("[data-editor]");
  if (page.getElementById("board")) {
    if (open) clearSlot(open.closest(".editor-slot"));
    await swapPart(text, "#main");
    const own = open && document.getElementById(`block-${open.dataset.editor}`);
    const added = () => getBlocks().find((card) => !before.has(card.id));
    (own ?? (open && added()))?.querySelector("h3 a").focus();
  } else if (open && returned) {
    const fresh = document.adoptNode(returned);
    fillSlot(open.closest(".editor-slot"), fresh);
    htmx.process(fresh);
    restoreDraft(fresh.querySelector("form"));
    fresh.querySelector("textarea").focus();
  } else {
    location.reload();
  }
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("[data-ajax]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  if (form.ariaBusy === "true") return;
  form.ariaBusy = "true";
  const button = event.submitter;
  const action = button?.hasAttribute("formaction") ? button.formAction : form.action;
  const before = new Set(getBlocks().map((card) => card.id));
  try {
    const response = await send(() => {
      const body = new URLSearchParams(new FormData(form, button));
      return [action, { method: "POST", body }];
    });
    const text = await response.text();
    discardDraft(form);
    await applyResponse(text, parseHtml(text), form, before);
  } finally {
    form.ariaBusy = null;
  }
}, true);

async function openEditor(link, slot) {
  const response = await send(() => [link.href]);
  const editor = parseHtml(await response.text()).querySelector("[data-editor]");
  if (!editor) {
    location.assign(link.href);
    return;
  }
  const fresh = document.adoptNode(editor);
  fillSlot(slot, fresh);
  htmx.process(fresh);
  restoreDraft(fresh.querySelector("form"));
  fresh.scrollIntoView({ block: "nearest" });
  fresh.querySelector("textarea").focus();
}

function findSlot(link) {
  if (link.matches("[data-add]")) return document.getElementById("new-block-slot");
  return link.closest(".editor-slot") ?? link.closest(".block").querySelector(".editor-slot");
}

// Unchanged editors close by a click elsewhere, unless it ends a selection of their text.
let pressedPath = [];
document.addEventListener("pointerdown", (event) => { pressedPath = event.composedPath(); });
document.addEventListener("click", (event) => {
  const path = [...event.composedPath(), ...pressedPath];
  for (const slot of document.querySelectorAll('.editor-slot:has(form:not([aria-busy="true"]))')) {
    if (!path.includes(slot) && !isUnsaved(slot.querySelector("form"))) clearSlot(slot);
  }
});

document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll(".menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest("a, button")) menu.open = false;
  }
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const link = event.target.closest("[data-edit], [data-add]");
  if (link) {
    event.preventDefault();
    openEditor(link, findSlot(link));
  }
  const cancel = event.target.closest(".editor-slot [data-cancel]");
  if (cancel) {
    event.preventDefault();
    const slot = cancel.closest(".editor-slot");
    const card = slot.closest(".block");
    clearSlot(slot);
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
    // Text that is not saved is closed only by the button.
    const form = event.target.closest(".editor-slot form");
    if (form && !isUnsaved(form)) form.querySelector("[data-cancel]").click();
  }
  const card = event.target.closest(".block");
  const step = STEPS[event.key];
  if (!card || !step || !event.altKey || event.target.closest(".editor-slot")) return;
  if (getBoard().dataset.sorted !== undefined) return;
  event.preventDefault();
  const focused = document.activeElement;
  const list = card.parentElement;
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    const sibling = step < 0 ? card.previousElementSibling : card.nextElementSibling;
    if (!sibling) return;
    if (step < 0) sibling.before(card);
    else sibling.after(card);
  } else {
    const lists = [...document.querySelectorAll(".cards")];
    const target = lists[lists.indexOf(list) + step];
    if (!target) return;
    target.append(card);
  }
  focused.focus();
  card.scrollIntoView({ block: "nearest" });
  queueMove(card);
});

function enableSorting() {
  for (const list of document.querySelectorAll(".cards")) {
    if (!window.Sortable || Sortable.get(list)) continue; // it is loaded for those who may move
    Sortable.create(list, {
      group: "blocks",
      draggable: ".block",
      disabled: getBoard().dataset.sorted !== undefined,
      handle: ".card-row",
      filter: ".menu, .editor-slot",
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
        if (from !== to || oldIndex !== newIndex) queueMove(item);
        else refresh();
      },
    });
  }
}

// A morph must not close menus and details that the user has opened.
htmx.config.morphIgnore.push("open");
enableSorting();

// Editors with unsaved text are opened again.
document.addEventListener("DOMContentLoaded", () => {
  const links = [...document.querySelectorAll(".block h3 [data-edit]"), document.querySelector("[data-add]")];
  for (const link of links) {
    if (link && hasDraft(new URL(link.href).pathname)) openEditor(link, findSlot(link));
  }
});

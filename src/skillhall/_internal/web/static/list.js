// The list of skills: selection, keyboard and the peek panel. The list works without this script.

const peek = document.getElementById("peek");
let request = null;
let opener = null;

function listRows() {
  return [...document.querySelectorAll("table.skills tbody tr")];
}

function currentRow() {
  return document.activeElement?.closest("table.skills tbody tr");
}

function showSelection() {
  const boxes = [...document.querySelectorAll('table.skills input[name="skill"]')];
  const count = boxes.filter((box) => box.checked).length;
  const bar = document.getElementById("selection");
  if (!bar) return;
  bar.classList.toggle("is-active", count > 0);
  for (const button of bar.querySelectorAll("button")) button.disabled = count === 0;
  const all = document.getElementById("select-all");
  if (all) {
    all.checked = count > 0 && count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
  }
  const output = bar.querySelector("output");
  output.textContent = count ? output.dataset.text.replace("{count}", count) : "";
}

function closePeek() {
  if (peek.hidden) return;
  const hadFocus = peek.contains(document.activeElement);
  request?.abort();
  peek.hidden = true;
  peek.replaceChildren();
  for (const row of listRows()) row.classList.remove("is-peeked");
  if (hadFocus && opener?.isConnected) opener.focus();
}

async function openPeek(row, { focus = true } = {}) {
  const link = row.querySelector("a.peek-link");
  request?.abort();
  request = new AbortController();
  let text;
  try {
    const response = await fetch(link.href, { signal: request.signal });
    text = await response.text();
  } catch (error) {
    if (error.name !== "AbortError") location.assign(link.href);
    return;
  }
  const content = new DOMParser().parseFromString(text, "text/html").getElementById("peek-content");
  if (!content) {
    location.assign(link.href);
    return;
  }
  if (focus) opener = link;
  for (const other of listRows()) other.classList.toggle("is-peeked", other === row);
  peek.replaceChildren(document.adoptNode(content));
  peek.hidden = false;
  const close = peek.querySelector("[data-close-peek]");
  close.hidden = false;
  peek.scrollTop = 0;
  if (focus) close.focus();
}

function moveBy(step) {
  const rows = listRows();
  const index = rows.indexOf(currentRow());
  const row = rows[index < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, index + step))];
  if (!row) return;
  row.querySelector("a.name").focus();
  row.scrollIntoView({ block: "nearest" });
  if (!peek.hidden) openPeek(row, { focus: false });
}

document.addEventListener("change", (event) => {
  if (event.target.id === "select-all") {
    for (const box of document.querySelectorAll('table.skills input[name="skill"]')) {
      box.checked = event.target.checked;
    }
  }
  showSelection();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close-peek]")) closePeek();
  const link = event.target.closest("a.peek-link");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const row = link.closest("tr");
  if (row.classList.contains("is-peeked")) closePeek();
  else openPeek(row);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && !peek.hidden) {
    closePeek();
    return;
  }
  if (event.target.closest('input:not([type="checkbox"]), textarea, select, [contenteditable]')) return;
  const row = currentRow();
  if (event.key === "j") moveBy(1);
  else if (event.key === "k") moveBy(-1);
  else if (event.key === "x" && row) row.querySelector('input[name="skill"]')?.click();
  else if (event.key === "p" && row) {
    if (row.classList.contains("is-peeked")) closePeek();
    else openPeek(row, { focus: false });
  } else return;
  event.preventDefault();
});

document.addEventListener("htmx:after:swap", showSelection);
addEventListener("pageshow", showSelection);
document.getElementById("select-all")?.closest("label, td, th")?.removeAttribute("hidden");
showSelection();

// Progressive enhancement of all pages. Every page works without this script.

const { announce } = skillhall;
const liveRegion = document.getElementById("live-region");

function showCopyButtons(root) {
  for (const button of root.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
}

async function copyText(button) {
  const target = document.querySelector(button.dataset.copy);
  if (!target) return;
  try {
    await navigator.clipboard.writeText(target.textContent);
  } catch {
    getSelection().selectAllChildren(target);
    return;
  }
  announce(liveRegion.dataset.copiedText);
  button.classList.add("is-done");
  setTimeout(() => button.classList.remove("is-done"), 1200);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copyText(button);
  const close = event.target.closest("dialog [data-close]");
  if (close) {
    event.preventDefault();
    close.closest("dialog").close();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector('[data-shortcut="/"]');
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

document.addEventListener("htmx:after:swap", () => {
  const dialog = document.getElementById("dialog");
  if (dialog.querySelector("form") && !dialog.open) {
    dialog.showModal();
    dialog.querySelector("[data-close]")?.focus();
  }
  showCopyButtons(document);
});

document.getElementById("dialog").addEventListener("close", (event) => {
  event.target.firstElementChild.replaceChildren();
});

// Slow forms show a progress label and ignore a second submit.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.busyText || event.defaultPrevented) return;
  if (form.ariaBusy === "true") {
    event.preventDefault();
    return;
  }
  form.ariaBusy = "true";
  const button = event.submitter ?? form.querySelector("button");
  button.dataset.label = button.textContent;
  button.textContent = form.dataset.busyText;
  announce(form.dataset.busyText);
});

// The back/forward cache restores a page with its form still busy.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll('form[aria-busy="true"]')) {
    form.ariaBusy = null;
    const button = form.querySelector("[data-label]");
    if (button) button.textContent = button.dataset.label;
  }
});

showCopyButtons(document);

// The code of a link to set a password is in its fragment, which browsers do not send.
const joinCode = document.getElementById("join-code");
if (joinCode) {
  const field = joinCode.querySelector("input");
  field.value = location.hash.slice(1) || field.value;
  joinCode.hidden = field.value !== "";
  history.replaceState(null, "", location.pathname);
}

// Progressive enhancement of all pages. Every page works without this script.

const { announce } = skillhall;
const liveRegion = document.getElementById("live-region");

document.documentElement.classList.add("has-js");

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

function showSelectedFiles(zone) {
  const files = [...zone.querySelector("input").files];
  const output = zone.querySelector("output");
  const countText = output.dataset.manyText.replace("{count}", files.length);
  output.textContent = files.length > 1 ? countText : files[0]?.name ?? "";
}

// Returns [path, file] of every dropped file, including those in dropped folders.
async function collectFiles(entries) {
  const files = [];
  async function walkEntry(entry, path) {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      files.push([path + entry.name, file]);
      return;
    }
    const reader = entry.createReader();
    // readEntries returns the entries in batches; an empty batch is the end.
    for (;;) {
      const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!batch.length) return;
      for (const child of batch) await walkEntry(child, `${path}${entry.name}/`);
    }
  }
  for (const entry of entries) await walkEntry(entry, "");
  return files;
}

// A file field cannot be assigned a folder, so its files are posted the way the form would.
async function uploadFiles(form, files) {
  const data = new FormData();
  for (const [path, file] of files) data.append("files", file, path);
  form.ariaBusy = "true";
  announce(form.dataset.busyText);
  const response = await fetch(form.action, { method: "POST", body: data });
  if (response.redirected) {
    location.assign(response.url);
    return;
  }
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const problem = page.querySelector(".problem");
  form.querySelector(".problem")?.remove();
  form.ariaBusy = null;
  if (problem) form.querySelector("h2").after(document.adoptNode(problem));
}

for (const zone of document.querySelectorAll("[data-drop]")) {
  const input = zone.querySelector("input");
  input.addEventListener("change", () => showSelectedFiles(zone));
  for (const kind of ["dragover", "dragenter"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.add("is-over");
    });
  }
  zone.addEventListener("dragleave", () => zone.classList.remove("is-over"));
  zone.addEventListener("drop", async (event) => {
    event.preventDefault();
    zone.classList.remove("is-over");
    const items = [...event.dataTransfer.items];
    const entries = items.map((item) => item.webkitGetAsEntry()).filter(Boolean);
    if (entries.some((entry) => entry.isDirectory) || entries.length > 1) {
      await uploadFiles(zone.closest("form"), await collectFiles(entries));
      return;
    }
    input.files = event.dataTransfer.files;
    showSelectedFiles(zone);
  });
}

showCopyButtons(document);

// The code of a link to set a password is in its fragment, which browsers do not send.
const joinCode = document.getElementById("join-code");
if (joinCode) {
  const field = joinCode.querySelector("input");
  field.value = location.hash.slice(1) || field.value;
  joinCode.hidden = field.value !== "";
  history.replaceState(null, "", location.pathname);
}

// What pages do beyond links and forms. Without it, everything still works.

const spoken = document.getElementById("spoken");

document.documentElement.classList.add("with-scripts");

function reveal(root) {
  for (const button of root.querySelectorAll("[data-copy][hidden]")) button.hidden = false;
}

function say(text) {
  spoken.textContent = "";
  requestAnimationFrame(() => { spoken.textContent = text; });
}

async function copy(button) {
  const target = document.querySelector(button.dataset.copy);
  if (!target) return;
  try {
    await navigator.clipboard.writeText(target.textContent);
  } catch {
    getSelection().selectAllChildren(target);
    return;
  }
  say(spoken.dataset.copied);
  button.classList.add("is-done");
  setTimeout(() => button.classList.remove("is-done"), 1200);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) copy(button);
  const close = event.target.closest("dialog [data-close]");
  if (close) {
    event.preventDefault();
    close.closest("dialog").close();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  const field = document.querySelector('[data-key="/"]');
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
  reveal(document);
});

document.getElementById("dialog").addEventListener("close", (event) => {
  event.target.firstElementChild.replaceChildren();
});

// A form that takes a while says so, and is sent once.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.busy || event.defaultPrevented) return;
  if (form.ariaBusy === "true") {
    event.preventDefault();
    return;
  }
  form.ariaBusy = "true";
  const button = event.submitter ?? form.querySelector("button");
  button.dataset.label = button.textContent;
  button.textContent = form.dataset.busy;
  say(form.dataset.busy);
});

// Back to a page that was left in the middle of that.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll('form[aria-busy="true"]')) {
    form.ariaBusy = null;
    const button = form.querySelector("[data-label]");
    if (button) button.textContent = button.dataset.label;
  }
});

function showChosen(zone) {
  const files = [...zone.querySelector("input").files];
  const output = zone.querySelector("output");
  const many = output.dataset.many.replace("{count}", files.length);
  output.textContent = files.length > 1 ? many : files[0]?.name ?? "";
}

// The files of everything that was dropped, folders included, each with its path.
async function filesIn(entries) {
  const found = [];
  async function walk(entry, path) {
    if (entry.isFile) {
      const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
      found.push([path + entry.name, file]);
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) return;
      for (const one of some) await walk(one, `${path}${entry.name}/`);
    }
  }
  for (const entry of entries) await walk(entry, "");
  return found;
}

// A folder cannot be put into a file field: its files are sent as the form would send them.
async function send(form, files) {
  const data = new FormData();
  for (const [path, file] of files) data.append("files", file, path);
  form.ariaBusy = "true";
  say(form.dataset.busy);
  const answer = await fetch(form.action, { method: "POST", body: data });
  if (answer.redirected) {
    location.assign(answer.url);
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const told = page.querySelector(".problem");
  form.querySelector(".problem")?.remove();
  form.ariaBusy = null;
  if (told) form.querySelector("h2").after(document.adoptNode(told));
}

for (const zone of document.querySelectorAll("[data-drop]")) {
  const input = zone.querySelector("input");
  input.addEventListener("change", () => showChosen(zone));
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
      await send(zone.closest("form"), await filesIn(entries));
      return;
    }
    input.files = event.dataTransfer.files;
    showChosen(zone);
  });
}

reveal(document);

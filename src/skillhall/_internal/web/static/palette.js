// The command palette (Ctrl+K) and the list of shortcuts (?), which are also pages of their own.

const dialog = document.createElement("dialog");
dialog.className = "palette-dialog";
document.body.append(dialog);
let request = null;

async function load(url, id) {
  request?.abort();
  request = new AbortController();
  const response = await fetch(url, { signal: request.signal });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  return page.getElementById(id);
}

async function open(url, id) {
  let content;
  try {
    content = await load(url, id);
  } catch (error) {
    if (error.name === "AbortError") return;
  }
  if (!content) {
    location.assign(url); // the page says what is wrong
    return;
  }
  dialog.replaceChildren(document.adoptNode(content));
  dialog.setAttribute("aria-label", content.querySelector("h1").textContent);
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("input")?.focus();
}

async function search(text) {
  try {
    const results = await load(`/palette?q=${encodeURIComponent(text)}`, "palette-results");
    if (results) dialog.querySelector("#palette-results")?.replaceWith(document.adoptNode(results));
  } catch {
    // Aborted by the next key, or the server cannot be reached: the last results stay.
  }
}

dialog.addEventListener("input", (event) => search(event.target.value));

dialog.addEventListener("keydown", (event) => {
  const links = [...dialog.querySelectorAll("#palette-results a")];
  const field = dialog.querySelector("input");
  if (!field) return;
  const index = links.indexOf(document.activeElement);
  if (event.key === "ArrowDown") (links[index + 1] ?? links[0])?.focus();
  else if (event.key === "ArrowUp") (index > 0 ? links[index - 1] : field).focus();
  else if (event.key === "Enter" && document.activeElement === field) links[0]?.click();
  else {
    if (index >= 0 && event.key.length === 1 && !event.ctrlKey && !event.metaKey) field.focus();
    return;
  }
  event.preventDefault();
});

dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});

document.addEventListener("click", (event) => {
  if (!event.target.closest("#open-palette") || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  open("/palette", "palette-content");
});

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    if (dialog.open) dialog.close();
    else open("/palette", "palette-content");
    return;
  }
  if (event.key !== "?" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  if (document.querySelector("dialog[open]")) return;
  event.preventDefault();
  open("/shortcuts", "shortcuts-content");
});

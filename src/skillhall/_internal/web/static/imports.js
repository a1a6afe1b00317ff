// Import pages: dropped files and folders, progress and cancellation, and the selection of a review.

const { announce, waitForServer } = skillhall;

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

// Returns the request once it has ended. Only XMLHttpRequest reports the progress of an upload.
function post(form, data, bar, signal) {
  return new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("X-Skillhall-Script", "1");
    request.upload.onprogress = ({ loaded, total }) => { bar.value = loaded / total; };
    request.upload.onload = () => { bar.removeAttribute("value"); }; // the server has work to do
    request.onloadend = () => resolve(request);
    signal.addEventListener("abort", () => request.abort());
    request.send(data);
  });
}

function showProblem(form, text) {
  const problem = new DOMParser().parseFromString(text, "text/html").querySelector(".problem");
  for (const earlier of document.querySelectorAll("form > .problem")) earlier.remove();
  if (problem) form.querySelector("h2").after(document.adoptNode(problem));
  else location.reload();
}

async function sendForm(form, data) {
  if (form.ariaBusy === "true") return;
  const controller = new AbortController();
  const progress = document.getElementById("form-progress").content.firstElementChild.cloneNode(true);
  const bar = progress.querySelector("progress");
  bar.ariaLabel = form.dataset.busyText;
  progress.querySelector("span").textContent = form.dataset.busyText;
  progress.querySelector("button").addEventListener("click", () => controller.abort());
  form.ariaBusy = "true";
  form.append(progress);
  announce(form.dataset.busyText);
  let request;
  do {
    await waitForServer();
    request = await post(form, data, bar, controller.signal);
  } while (request.status === 0 && !controller.signal.aborted); // the connection was lost
  const next = request.getResponseHeader("location");
  if (next) {
    location.assign(next);
    return;
  }
  progress.remove();
  form.ariaBusy = null;
  if (controller.signal.aborted) announce(progress.dataset.cancelledText);
  else showProblem(form, request.responseText);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.matches("[data-long]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const data = new FormData(form, event.submitter);
  sendForm(form, form.enctype === "multipart/form-data" ? data : new URLSearchParams(data));
}, true);

// The back/forward cache restores a page with its form still busy.
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll('form[data-long][aria-busy="true"]')) {
    form.querySelector(".form-progress")?.remove();
    form.ariaBusy = null;
  }
});

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
      // A file field cannot be assigned a folder, so its files are posted the way the form would.
      const data = new FormData();
      for (const [path, file] of await collectFiles(entries)) data.append("files", file, path);
      await sendForm(zone.closest("form"), data);
      return;
    }
    input.files = event.dataTransfer.files;
    showSelectedFiles(zone);
  });
}

// Selection of a review: counts, all or none of a group, and a filter.
const review = document.querySelector("form[data-review]");

const getBoxes = (root) => [...root.querySelectorAll('[name="chosen"]:not(:disabled)')];
const countChosen = (boxes) => boxes.filter((box) => box.checked).length;

function updateCounts() {
  for (const output of review.querySelectorAll("[data-chosen]")) {
    const boxes = getBoxes(output.closest("[data-group]") ?? review);
    const values = { chosen: countChosen(boxes), total: boxes.length };
    output.textContent = output.dataset.chosen.replace(/\{(\w+)\}/g, (_, key) => values[key]);
  }
}

function filterCandidates(text) {
  const words = text.toLowerCase().split(/\s+/);
  for (const candidate of review.querySelectorAll(".candidate")) {
    const summary = candidate.querySelector(".candidate-head").textContent.toLowerCase();
    candidate.hidden = !words.every((word) => summary.includes(word));
  }
}

if (review) {
  review.addEventListener("change", updateCounts);
  review.addEventListener("click", (event) => {
    const button = event.target.closest('button[name="select"]');
    if (!button) return;
    event.preventDefault();
    for (const box of getBoxes(button.closest("[data-group]"))) {
      if (!box.closest(".candidate").hidden) box.checked = button.value.endsWith("all");
    }
    updateCounts();
  });
  const filter = review.querySelector("[data-filter]");
  filter?.addEventListener("input", () => filterCandidates(filter.value));
  filter?.addEventListener("keydown", (event) => {
    if (event.key === "Enter") event.preventDefault(); // it would import
  });
  updateCounts();
}

// Skills that were selected while a search was in progress stay selected.
const getChoices = () => [...document.querySelectorAll("#skill-options label")];
const getBox = (choice) => choice.querySelector("input");
let earlierChoices = [];

document.addEventListener("htmx:before:swap", () => { earlierChoices = getChoices(); });
document.addEventListener("htmx:after:swap", () => {
  const present = new Map(getChoices().map((choice) => [getBox(choice).value, choice]));
  for (const earlier of earlierChoices) {
    const { value, checked } = getBox(earlier);
    if (present.has(value)) getBox(present.get(value)).checked = checked;
    else if (checked) document.getElementById("skill-options").prepend(earlier);
  }
  earlierChoices = [];
});

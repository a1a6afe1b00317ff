// Unsaved text of forms: asks before it is lost, and restores it when the form is opened again.

const PREFIX = "skillhall-draft:";
const FORMS = 'form[method="post"]:has(textarea)';
const FIELDS = 'input[type="hidden"], input:not([type]), textarea, select';
const unsavedForms = new Set();

function getKey(form) {
  const { pathname, search } = new URL(form.getAttribute("action"), location.href);
  return PREFIX + pathname + search;
}

const getFields = (form) => [...form.querySelectorAll(FIELDS)].filter((field) => field.name);

function readDraft(key) {
  try {
    return JSON.parse(sessionStorage.getItem(key));
  } catch {
    return null;
  }
}

function writeDraft(key, draft) {
  try {
    sessionStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // The storage is full or disabled: the question before leaving is all that is left.
  }
}

function isChanged(field) {
  if (field.type === "hidden") return false;
  if (field.options) return [...field.options].some((one) => one.selected !== one.defaultSelected);
  return field.value !== field.defaultValue;
}

function storeDraft(form, isSent = false) {
  const values = Object.fromEntries(getFields(form).map((field) => [field.name, field.value]));
  writeDraft(getKey(form), { values, isSent });
}

function markUnsaved(form) {
  unsavedForms.add(form);
  storeDraft(form);
}

function discardDraft(form) {
  unsavedForms.delete(form);
  sessionStorage.removeItem(getKey(form));
}

function showRestored(form, originals) {
  const notice = document.getElementById("restored-draft").content.firstElementChild.cloneNode(true);
  notice.querySelector("button").addEventListener("click", () => {
    for (const [field, value] of originals) field.value = value;
    discardDraft(form);
    notice.remove();
    form.dispatchEvent(new Event("input", { bubbles: true }));
    form.querySelector("textarea").focus();
  });
  form.prepend(notice);
}

// Puts the unsaved text of an earlier visit into a form. The version that it was written for comes
// with it, so that a conflict with a change by someone else is detected.
function restoreDraft(form) {
  if (form.matches("[data-unsaved]") || form.querySelector(".problem[role='alert']")) {
    markUnsaved(form); // the server has returned the form with the submitted text
    return;
  }
  const draft = readDraft(getKey(form));
  if (!draft) return;
  const originals = getFields(form).map((field) => [field, field.value]);
  for (const [field] of originals) {
    if (field.name in draft.values) field.value = draft.values[field.name];
  }
  if (originals.some(([field, value]) => field.type !== "hidden" && field.value !== value)) {
    showRestored(form, originals);
    markUnsaved(form);
    form.dispatchEvent(new Event("input", { bubbles: true }));
  } else {
    discardDraft(form);
  }
}

document.addEventListener("input", (event) => {
  const form = event.target.closest(FORMS);
  if (!form) return;
  const isReturned = form.matches("[data-unsaved]") || form.querySelector(".restored");
  if (isReturned || getFields(form).some(isChanged)) {
    markUnsaved(form);
  } else {
    discardDraft(form);
  }
});

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.getAttribute("action") === "/sign-out") sessionStorage.clear();
  if (event.defaultPrevented || !unsavedForms.delete(form)) return;
  storeDraft(form, true);
});

document.addEventListener("click", (event) => {
  const form = event.target.closest("[data-cancel], [data-discard]")?.closest(FORMS);
  if (form) discardDraft(form);
});

addEventListener("beforeunload", (event) => {
  for (const form of unsavedForms) if (!form.isConnected) unsavedForms.delete(form);
  if (unsavedForms.size) event.preventDefault();
});

// A draft that was sent is saved if the next page is another one, or has a notice about it.
function removeSentDrafts(forms) {
  const open = new Set(document.querySelector("#notices .notice") ? [] : forms.map(getKey));
  for (const key of Object.keys(sessionStorage)) {
    const isSent = key.startsWith(PREFIX) && readDraft(key)?.isSent;
    if (isSent && !open.has(key)) sessionStorage.removeItem(key);
  }
}

// htmx begins to check forms at the same event, but earlier.
document.addEventListener("DOMContentLoaded", () => {
  const forms = [...document.querySelectorAll(FORMS)];
  removeSentDrafts(forms);
  for (const form of forms) restoreDraft(form);
});

Object.assign(globalThis.skillhall, {
  discardDraft,
  isUnsaved: (form) => unsavedForms.has(form),
  restoreDraft,
  hasDraft: (path) => readDraft(PREFIX + path) !== null,
});

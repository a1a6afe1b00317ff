// Replaces the text field of a file with an editor: highlighting, line numbers, search, and the
// findings at their lines. The text field stays part of the form and has the same text.

const form = document.getElementById("file-form");
const field = document.getElementById("text");

function start(codemirror) {
  const { EditorState, EditorView } = codemirror;
  // A shadow root has a stylesheet of its own, which the Content-Security-Policy allows.
  const host = document.createElement("div");
  host.className = "editor";
  const root = host.attachShadow({ mode: "open" });
  field.after(host);
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({ doc: field.value, extensions: createExtensions(codemirror) }),
  });
  view.scrollDOM.tabIndex = 0; // it scrolls
  field.hidden = true;
  for (const label of field.labels) label.addEventListener("click", () => view.focus());

  function readField() {
    const text = field.value;
    if (text === view.state.doc.toString()) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
  }

  function showFindings() {
    const lines = view.state.doc.lines;
    const diagnostics = [...document.querySelectorAll("#checks .findings [data-line]")]
      .filter((finding) => finding.dataset.line >= 1 && finding.dataset.line <= lines)
      .map((finding) => {
        const { from, to } = view.state.doc.line(Number(finding.dataset.line));
        return { from, to, severity: finding.matches(".is-reject") ? "error" : "warning", message: finding.dataset.message };
      });
    view.dispatch(codemirror.setDiagnostics(view.state, diagnostics));
  }

  function linkOutline() {
    for (const title of document.querySelectorAll("#checks [data-go-to]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...title.childNodes);
      button.addEventListener("click", () => goTo(Number(title.dataset.goTo)));
      title.replaceChildren(button);
    }
  }

  function goTo(line) {
    if (line > view.state.doc.lines) return;
    const { from } = view.state.doc.line(line);
    const effects = EditorView.scrollIntoView(from, { y: "start", yMargin: 60 });
    view.dispatch({ selection: { anchor: from }, effects });
    view.focus();
  }

  function showChecks() {
    showFindings();
    linkOutline();
  }

  // The script that restores unsaved text sends the event from the form.
  form.addEventListener("input", (event) => event.target === field || readField());
  form.addEventListener("reset", () => setTimeout(readField));
  document.addEventListener("htmx:after:swap", showChecks);
  showChecks();
}

function createExtensions(codemirror) {
  const { EditorView, keymap } = codemirror;
  return [
    codemirror.lineNumbers(),
    codemirror.highlightSpecialChars(),
    codemirror.history(),
    codemirror.drawSelection(),
    codemirror.lintGutter(),
    codemirror.search({ top: true }),
    codemirror.syntaxHighlighting(createStyle(codemirror)),
    createLanguage(codemirror),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": field.labels[0].textContent }),
    EditorView.theme(THEME),
    // Tab leaves the editor, as it leaves a text field.
    keymap.of([
      ...codemirror.defaultKeymap,
      ...codemirror.historyKeymap,
      ...codemirror.searchKeymap,
      ...codemirror.lintKeymap,
      { key: "Mod-s", run: () => form.requestSubmit() ?? true },
    ]),
    EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      const text = update.state.doc.toString();
      if (field.value === text) return;
      field.value = text;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }),
  ];
}

function createLanguage(codemirror) {
  const { GFM, Language, defineLanguageFacet, markdownParser } = codemirror;
  const name = form.dataset.file.toLowerCase();
  const markdown = new Language(defineLanguageFacet(), markdownParser.configure(GFM));
  if (/\.ya?ml$/.test(name)) return codemirror.yaml();
  if (/(^|\/)skill\.md$/.test(name)) return codemirror.yamlFrontmatter({ content: markdown });
  return /\.(md|markdown)$/.test(name) ? markdown : [];
}

function createStyle({ HighlightStyle, tags }) {
  return HighlightStyle.define([
    { tag: tags.heading, fontWeight: "bold", color: "var(--accent)" },
    { tag: tags.strong, fontWeight: "bold" },
    { tag: tags.emphasis, fontStyle: "italic" },
    { tag: [tags.link, tags.url], color: "var(--accent)", textDecoration: "underline" },
    { tag: [tags.monospace, tags.string], color: "var(--violet)" },
    { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--accent)" },
    { tag: [tags.comment, tags.quote, tags.meta, tags.processingInstruction], color: "var(--soft)" },
    { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  ]);
}

// In place of images, which the Content-Security-Policy forbids.
const createMarks = (level, color) => ({
  [`.cm-lint-marker-${level}`]: { content: "none", background: color, borderRadius: "50%" },
  [`.cm-lintRange-${level}`]: {
    backgroundImage: "none",
    textDecoration: `underline wavy ${color}`,
  },
});

const THEME = {
  ...createMarks("warning", "var(--warn)"),
  ...createMarks("error", "var(--bad)"),
  "&": {
    height: "min(70vh, 44rem)", // as the field that it replaces
    border: "1px solid var(--strong-line)",
    borderRadius: "8px",
    background: "var(--paper)",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-scroller": { overflow: "auto", fontFamily: "var(--mono)", fontSize: "0.875rem", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)", color: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": {
    background: "var(--raised)",
    color: "var(--soft)",
    border: "none",
    borderRadius: "8px 0 0 8px",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    { background: "var(--accent-wash)" },
  ".cm-panels, .cm-tooltip": {
    background: "var(--raised)",
    color: "var(--ink)",
    border: "1px solid var(--line)",
  },
  ".cm-textfield, .cm-button": {
    background: "var(--paper)",
    color: "var(--ink)",
    border: "1px solid var(--strong-line)",
    fontSize: "0.875rem",
  },
};

if (form && field) start(await import(form.dataset.editor));

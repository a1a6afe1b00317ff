// Read skills with programs from npm: `node node_readers.mjs CLIENT ROOT PACKAGES WORK`.
//
// Prints JSON: for each folder of ROOT the name and the description that the program has, or null if
// it does not load the skill. PACKAGES is a folder with node_modules; WORK is an empty folder that
// serves as the home folder and the project of the program.
import { spawn, spawnSync } from "node:child_process";
import { closeSync, cpSync, mkdirSync, openSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const client = process.argv[2];
const [root, packages, work] = process.argv.slice(3).map((path) => resolve(path));
const modules = join(packages, "node_modules");
const home = join(work, "home");
const project = join(work, "project");
mkdirSync(home, { recursive: true });
mkdirSync(project, { recursive: true });
const env = { PATH: process.env.PATH, HOME: home, NO_COLOR: "1", CI: "1", DO_NOT_TRACK: "1" };
const folders = readdirSync(root).sort();

function copySkills(folder) {
  cpSync(root, folder, { recursive: true });
}

function run(script, args, cwd = project) {
  // Some programs exit before all of their output is in a pipe.
  const path = join(work, "output");
  const output = openSync(path, "w");
  const command = script.endsWith("js") ? [process.execPath, join(modules, script)] : [join(modules, script)];
  spawnSync(command[0], [...command.slice(1), ...args], { cwd, env, stdio: ["ignore", output, "ignore"] });
  closeSync(output);
  return readFileSync(path, "utf-8");
}

// Later entries win, as in the programs; `location` is the path of a SKILL.md.
function byFolder(entries) {
  const found = Object.fromEntries(folders.map((folder) => [folder, null]));
  for (const { name, description, location } of entries) {
    const folder = basename(dirname(location));
    if (folder in found) found[folder] = [name, description]; // not a skill that the program has itself
  }
  return found;
}

const readers = {
  async pi() {
    const path = join(modules, "@mariozechner/pi-coding-agent/dist/core/skills.js");
    const { loadSkillsFromDir } = await import(pathToFileURL(path));
    const { skills } = loadSkillsFromDir({ dir: root, source: "path" });
    return byFolder(skills.map((skill) => ({ ...skill, location: skill.filePath })));
  },

  skills() {
    const entries = folders.map((folder) => {
      const output = run("skills/dist/cli.mjs", ["add", join(root, folder), "--list"]);
      const lines = output.replace(/\x1b\[[0-9;?]*[a-zA-Z]/g, "").split("\n");
      const texts = lines.map((line) => line.replace(/^[│◇└]/u, "").trim());
      const start = texts.indexOf("Available Skills");
      if (start === -1) return null;
      const rest = texts.slice(start + 1).filter(Boolean);
      const location = join(root, folder, "SKILL.md");
      return { name: rest[0], description: rest.slice(1, -1).join(" "), location };
    });
    return byFolder(entries.filter(Boolean));
  },

  openskills() {
    copySkills(join(project, ".claude/skills"));
    const entries = [];
    const lines = run("openskills/dist/cli.js", ["list"]).split("\n");
    lines.forEach((line, index) => {
      const match = line.match(/^ {2}(\S.*?) +\(project\)$/);
      if (match) {
        const location = join(root, match[1], "SKILL.md");
        entries.push({ name: match[1], description: lines[index + 1].trim(), location });
      }
    });
    return byFolder(entries);
  },

  "gemini-cli"() {
    copySkills(join(project, ".gemini/skills"));
    mkdirSync(join(home, ".gemini"));
    writeFileSync(join(home, ".gemini/trustedFolders.json"), JSON.stringify({ [project]: "TRUST_FOLDER" }));
    const entries = [];
    const output = run("@google/gemini-cli/bundle/gemini.js", ["skills", "list"]);
    const blocks = /^(.*) \[(?:Enabled|Disabled)\]\n {2}Description: ([\s\S]*?)\n {2}Location: +(.*)$/gm;
    for (const [, name, description, location] of output.matchAll(blocks)) {
      entries.push({ name, description, location });
    }
    return byFolder(entries);
  },

  opencode() {
    copySkills(join(project, ".opencode/skills"));
    const output = run(".bin/opencode", ["debug", "skill"]);
    return byFolder(JSON.parse(output).filter((skill) => skill.location.startsWith(project)));
  },

  codex() {
    copySkills(join(home, ".codex/skills"));
    const script = join(modules, "@openai/codex/bin/codex.js");
    const server = spawn(process.execPath, [script, "app-server"], { cwd: project, env });
    const send = (message) => server.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    send({ id: 1, method: "initialize", params: { clientInfo: { name: "t", title: "t", version: "1" } } });
    return new Promise((resolve) => {
      let buffer = "";
      server.stdout.on("data", (data) => {
        buffer += data;
        const lines = buffer.split("\n");
        buffer = lines.pop();
        for (const message of lines.map((line) => JSON.parse(line))) {
          if (message.id === 1) {
            send({ method: "initialized" });
            send({ id: 2, method: "skills/list", params: { cwds: [project] } });
          } else if (message.id === 2) {
            server.kill();
            const skills = message.result.data.flatMap((one) => one.skills);
            resolve(byFolder(skills.map((skill) => ({ ...skill, location: skill.path }))));
          }
        }
      });
    });
  },
};

console.log(JSON.stringify(await readers[client]()));

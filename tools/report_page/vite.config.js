// Builds page.html: one file with script and styles inside, and a policy that lets that script
// alone run.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const here = import.meta.dirname;
const notices = readFileSync(`${here}/THIRD_PARTY.txt`, "utf8");

/** Nothing is loaded from anywhere, and no script runs but the page's own. */
const policy = (script) =>
  `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src ${script}; ` +
  `style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'" />`;

/** Fails if a package is bundled whose licence THIRD_PARTY.txt does not have. */
function onlyNamedPackages() {
  return {
    name: "only-named-packages",
    generateBundle(_options, bundle) {
      const modules = Object.values(bundle).flatMap((chunk) => Object.keys(chunk.modules ?? {}));
      for (const module of modules) {
        const name = module.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1];
        if (name && !notices.includes(`\n${name} `)) {
          this.error(`THIRD_PARTY.txt lacks the licence of ${name}`);
        }
      }
    },
  };
}

/** Writes page.html from what viteSingleFile made: the licences in a comment, the policy filled in. */
function writePage() {
  return {
    name: "write-page",
    enforce: "post",
    writeBundle(options) {
      const html = readFileSync(`${options.dir}/index.html`, "utf8");
      const scripts = [...html.matchAll(/<script type="module"[^>]*>([\s\S]*?)<\/script>/g)];
      if (scripts.length !== 1) this.error(`${scripts.length} scripts, expected one`);
      const digest = createHash("sha256").update(scripts[0][1]).digest("base64");
      const page = html
        .replace("<!-- POLICY -->", () => policy(`'sha256-${digest}'`))
        .replace("THIRD_PARTY", () => notices.trim());
      writeFileSync(`${here}/page.html`, page);
    },
  };
}

// The data are there before the page is, and never change.
const warningFilter = (warning) => warning.code !== "state_referenced_locally";

export default defineConfig({
  root: here,
  logLevel: "warn",
  build: { outDir: `${here}/dist`, emptyOutDir: true, modulePreload: false },
  plugins: [
    svelte({ configFile: false, compilerOptions: { runes: true, warningFilter } }),
    viteSingleFile(),
    onlyNamedPackages(),
    writePage(),
  ],
});

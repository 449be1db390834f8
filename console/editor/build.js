// Bundles CodeMirror: `node build.js FOLDER` writes the bundle and the licences of its packages into the folder.
// Without one they go to `console/assets`, where they are committed, so that `cargo build` needs no Node.js.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.argv[2] ?? join(here, '../assets');
const licences = 'codemirror.licences.txt';

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: ['codemirror.js'],
  outfile: join(folder, 'codemirror.js'),
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  charset: 'ascii',
  legalComments: 'none',
  banner: { js: `/* CodeMirror 6, bundled by console/editor. The licences of its packages are in ${licences}. */` },
  metafile: true,
  logLevel: 'warning',
});

// The folder of a package, from the path of one of its files.
const packageOf = (path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
const used = new Set(Object.keys(metafile.inputs).map(packageOf).filter(Boolean));
const texts = [...used].sort().map((path) => {
  const { name, version, license } = JSON.parse(readFileSync(join(here, path, 'package.json'), 'utf8'));
  if (license !== 'MIT') throw new Error(`${name} has the licence ${license}: look at it, and add it to build.js`);
  const file = readdirSync(join(here, path)).find((one) => /^licen[cs]e/i.test(one));
  if (!file) throw new Error(`${name} has no file with its licence`);
  const text = readFileSync(join(here, path, file), 'utf8').replaceAll('\r', '').replace(/[ \t]+$/gm, '').trim();
  return `${name} ${version} (${license})\n\n${text}\n`;
});
const rule = `\n${'-'.repeat(80)}\n\n`;
writeFileSync(join(folder, licences), texts.join(rule));

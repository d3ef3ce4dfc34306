// Adds the npm packages that the pages embed to an SBOM of the binary.
//
//   cyclonedx-gomod bin -json modelgate | node scripts/sbom.mjs web/package-lock.json
//
// Packages that only build the pages are left out: they do not ship.
import { readFileSync } from 'node:fs';

const bom = JSON.parse(readFileSync(0, 'utf8'));
const lock = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const shipped = Object.entries(lock.packages).filter(([path, p]) => path.startsWith('node_modules/') && !p.dev && !p.optional && !p.peer);
if (shipped.length === 0) throw new Error(`${process.argv[2]} has no package that ships`);

for (const [path, p] of shipped.sort(([a], [b]) => (a < b ? -1 : 1))) {
  const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
  const purl = `pkg:npm/${name.replace('@', '%40')}@${p.version}`;
  const [algorithm, digest] = p.integrity.split('-', 2);
  bom.components.push({
    'bom-ref': purl,
    type: 'library',
    name,
    version: p.version,
    purl,
    hashes: [{ alg: algorithm.replace('sha', 'SHA-'), content: Buffer.from(digest, 'base64').toString('hex') }],
    ...(p.license && { licenses: [{ expression: p.license }] }),
  });
}
process.stdout.write(JSON.stringify(bom, null, 2) + '\n');

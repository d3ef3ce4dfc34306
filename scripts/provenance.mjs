// Writes an in-toto statement with SLSA provenance for the files of a SHA256SUMS.
//
//   node scripts/provenance.mjs dist/SHA256SUMS VERSION COMMIT GO-VERSION NODE-VERSION
//
// It holds no time and no host, so that two builds of a commit give the same
// statement. The workflow of a forge signs it with the forge's identity.
import { readFileSync } from 'node:fs';

const [sums, version, commit, go, node] = process.argv.slice(2);
const { GITHUB_SERVER_URL: forge, GITHUB_REPOSITORY: repository, GITHUB_WORKFLOW_REF: workflow } = process.env;
const subject = readFileSync(sums, 'utf8').trimEnd().split('\n').map((line) => {
  const [sha256, name] = line.split(/\s+/, 2);
  return { name, digest: { sha256 } };
});
const source = { ...(forge && { uri: `git+${forge}/${repository}@${commit}` }), digest: { gitCommit: commit } };
process.stdout.write(JSON.stringify({
  _type: 'https://in-toto.io/Statement/v1',
  subject,
  predicateType: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType: 'urn:modelgate:make-release:v1',
      externalParameters: { version },
      internalParameters: { go, node },
      resolvedDependencies: [source],
    },
    runDetails: { builder: { id: workflow ? `${forge}/${workflow}` : 'urn:modelgate:local' } },
  },
}, null, 2) + '\n');

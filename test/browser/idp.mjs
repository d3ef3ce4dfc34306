// An OpenID provider of a library that is not the gateway's, behind TLS. Everybody
// may sign in with any password; what stands before a dot in the name is the group.
// It writes its address to standard output, and ends with standard input.
import { readFileSync } from "node:fs";
import https from "node:https";
import Provider from "oidc-provider";

const cert = readFileSync(process.env.CERT), key = readFileSync(process.env.KEY);
const server = https.createServer({ cert, key });
await new Promise((then) => server.listen(0, "127.0.0.1", then));
const issuer = `https://localhost:${server.address().port}`;
const gateway = "https://gw.test", operator = process.env.OPERATOR;

const client = {
  client_id: "modelgate", client_secret: "s3cret", redirect_uris: [gateway + "/dashboard/session/callback", operator + "/operator/session/callback"],
  post_logout_redirect_uris: [gateway + "/dashboard", operator + "/operator"],
  backchannel_logout_uri: gateway + "/dashboard/session/back-channel-logout/corp", backchannel_logout_session_required: true,
};

// reach asks the gateway, whose name only browsers of the test know.
function reach(url, { method, headers, body }) {
  const { pathname, host } = new URL(url);
  return new Promise((then, fail) => {
    const asked = https.request({ host: "127.0.0.1", port: process.env.GATEWAY, servername: host, ca: cert, method, path: pathname, headers: { ...Object.fromEntries(new Headers(headers)), host } }, (answer) => {
      answer.resume();
      then(new Response(null, { status: answer.statusCode }));
    });
    asked.on("error", fail);
    asked.end(String(body));
  });
}

const provider = new Provider(issuer, {
  clients: [client],
  pkce: { required: () => true },
  conformIdTokenClaims: false,
  claims: { openid: ["sub", "sid"], email: ["email", "email_verified"], profile: ["name", "groups"] },
  features: { backchannelLogout: { enabled: true } },
  fetch: reach,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@example.com`, email_verified: true, name: id, groups: id.split(".").slice(0, -1) }),
  }),
  loadExistingGrant: async ({ oidc }) => {
    const grant = new oidc.provider.Grant({ clientId: oidc.client.clientId, accountId: oidc.session.accountId });
    grant.addOIDCScope("openid email profile");
    await grant.save();
    return grant;
  },
});
server.on("request", provider.callback());
process.stdin.on("end", () => process.exit()).resume();
console.log(issuer);

// What the console asks of the operator's API.

import { ask, Failure, sessionEnded } from "../shared/api";

export type Role = "admin" | "finance" | "support" | "auditor";

export interface Operator {
  id: string;
  name: string;
  role: Role;
  created_at: string;
  expires_at: string;
}

export interface Organization {
  id: string;
  name: string;
  status: "active" | "suspended";
  billing: "invoiced" | "manual";
  routing_policy: string;
  max_keys: number;
  active_keys: number;
  limits: Record<string, number | null>;
  balance_usd: number | null;
  spend_30d_usd: number;
  requests_30d: number;
  last_call_at: string | null;
  created_at: string;
}

export interface OperatorKey {
  id: string;
  name: string | null;
  key_prefix: string;
  status: "active" | "revoked";
  organization_id: string;
  sub_account_id: string | null;
  scopes: string[];
  created_at: string;
  last_used_at: string | null;
  expires_at: string | null;
}

export interface Balance {
  balance_usd: number;
  credited_usd: number;
  spent_usd: number;
  held_usd: number;
  entries: { id: string; amount_usd: number; note: string; at: string }[];
}

export interface Change {
  id: string;
  at: string;
  organization_id: string;
  action: string;
  actor: Record<string, string>;
  target_type: string;
  target_id: string;
  request_id: string;
}

/** may reports whether a role is among those named; admins may everything. */
export const may = (me: Operator, ...roles: Role[]) => me.role === "admin" || roles.includes(me.role);

/** call makes a request of the operator's API; a 401 ends the session. */
export async function call<T>(method: string, path: string, sent?: object): Promise<T> {
  try {
    return (await ask<T>(method, "/v1" + path, sent)) as T;
  } catch (error) {
    if (error instanceof Failure && error.status === 401) sessionEnded();
    throw error;
  }
}

/** digest is the SHA-256 of a secret, which itself never leaves the browser. */
export async function digest(secret: string): Promise<string> {
  if (!crypto.subtle) throw new Failure(0, "insecure", "Browsers hash secrets on https pages only, and on this machine's own. Use \"modelgate key find\" instead.", "");
  const sum = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return [...new Uint8Array(sum)].map((b) => b.toString(16).padStart(2, "0")).join("");
}

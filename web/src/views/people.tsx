import { useState } from "react";
import { api, session as ask, type Member, type MemberSession, type Role } from "../shared/api";
import { ago, counted, momentUTC } from "../shared/format";
import { Link, useFilter } from "../shared/route";
import { forget, refresh, useAction, useAsked } from "../shared/use";
import { Badge, Button, Card, Choice, Confirm, Dialog, Empty, Field, Menu, Page, Trouble, type MenuItem } from "../ui/kit";
import { Download, Table, type Column } from "../ui/table";
import { useApp } from "./app";
import { NoScope } from "./gate";
import { nameOfKey, useKeys } from "./keys";

/** Pages are rows as far as they were read. */
interface Pages<T> {
  rows: T[];
  next: string | null;
}

type Answer<T> = Promise<{ data?: T[]; response: Response }>;

async function pageOf<T>(answer: Answer<T>): Promise<Pages<T>> {
  const { data, response } = await answer;
  return { rows: data ?? [], next: response.headers.get("X-Next-Cursor") };
}

/** usePages reads a list page by page. */
function usePages<T>(key: string | undefined, read: (cursor?: string) => Answer<T>) {
  const first = useAsked<Pages<T>>(key, () => pageOf(read()));
  const [rest, setRest] = useState<{ of?: Pages<T>; rows: T[]; next: string | null }>();
  const more = useAction();
  const tail = rest && rest.of === first.data ? rest : undefined;
  const rows = first.data && [...first.data.rows, ...(tail?.rows ?? [])];
  const next = tail ? tail.next : first.data?.next;
  const load = () =>
    more.run(async () => {
      const page = await pageOf(read(next ?? undefined));
      setRest({ of: first.data, rows: [...(tail?.rows ?? []), ...page.rows], next: page.next });
    });
  const foot = (noun: string) => rows && rows.length > 0 && <>{more.failure && <Trouble failure={more.failure} />}<span className="note" role="status">{counted(rows.length, noun)}</span>{next && <Button busy={more.busy} onClick={load}>Load more</Button>}</>;
  return { rows, first, foot };
}

function usePeople(when: boolean) {
  return usePages<Member>(when ? "people" : undefined, (cursor) => api.GET("/gw/people", { params: { query: { limit: 200, cursor } } }));
}

/** nameOf is how a member is called. */
export const nameOf = (m: Member) => m.name ?? m.email ?? m.person_id;

const peopleColumns: Column<Member>[] = [
  { title: "Person", cell: (m) => <span className="two"><span className="cut">{nameOf(m)}</span>{m.name && m.email && <small className="cut">{m.email}</small>}</span>, text: (m) => m.email ?? m.name },
  { title: "Role", tight: true, cell: (m) => <Badge tone={m.role === "owner" ? "good" : "plain"}>{m.role}</Badge>, text: (m) => m.role },
  { title: "Comes from", hide: "narrow", cell: (m) => (m.source === "rule" ? "Groups of the provider" : "This page"), text: (m) => m.source },
  { title: "Status", hide: "narrow", tight: true, cell: (m) => <Badge tone={m.status === "active" ? "good" : "warn"}>{m.status}</Badge>, text: (m) => m.status },
  { title: "Keys", hide: "middle", end: true, cell: (m) => m.keys, text: (m) => m.keys },
  { title: "Last sign-in", hide: "narrow", cell: (m) => <span title={momentUTC(m.last_seen_at)}>{ago(m.last_seen_at)}</span>, text: (m) => m.last_seen_at },
];

export function People() {
  const app = useApp();
  const may = app.can("keys:manage");
  const people = usePeople(may);
  const [change, setChange] = useState<{ what: "role" | "remove" | "out"; of: Member }>();
  if (!may) return <Page title="People"><NoScope scope="keys:manage" what="people" /></Page>;
  const items = (of: Member): MenuItem[] => [
    { label: "Sign out everywhere…", danger: true, run: () => setChange({ what: "out", of }) },
    ...(of.source === "manual"
      ? [
          { label: "Change role…", run: () => setChange({ what: "role" as const, of }) },
          { label: "Remove…", danger: true, run: () => setChange({ what: "remove" as const, of }) },
        ]
      : []),
  ];
  return (
    <Page title="People" note="Who signs in with an account of your company. The provider's groups say in which role." actions={<Download name="people" columns={peopleColumns} rows={people.rows} />}>
      <Card flush>
        <Table
          label="People" rows={people.rows} failure={people.first.failure} again={people.first.again} id={(m) => m.person_id} page={0}
          columns={[
            ...peopleColumns,
            { title: "Signed in", quiet: true, tight: true, cell: (m) => <Link to={"/sessions?person=" + m.person_id} aria-label={`Sessions of ${nameOf(m)}`}>Sessions</Link> },
            { title: "Actions", quiet: true, tight: true, cell: (m) => <Menu label={`Actions for ${nameOf(m)}`} items={items(m)} /> },
          ]}
          empty={<Empty icon="customers" title="Nobody has signed in with an account yet">Keys sign in. For people to do so with their company's account, the operator names its OpenID provider under <code>sign_in</code> in the configuration.</Empty>}
          foot={people.foot("person")}
        />
      </Card>
      {change?.what === "role" && <ChangeRole of={change.of} onClose={() => setChange(undefined)} />}
      {change?.what === "remove" && <Remove of={change.of} onClose={() => setChange(undefined)} />}
      {change?.what === "out" && <SignOutPerson of={change.of} onClose={() => setChange(undefined)} />}
    </Page>
  );
}

interface Change {
  of: Member;
  onClose: () => void;
}

const roles: [Role, string][] = [["owner", "Owner"], ["admin", "Admin"], ["billing", "Billing"], ["developer", "Developer"], ["viewer", "Viewer"]];

function ChangeRole({ of, onClose }: Change) {
  const [role, setRole] = useState<Role>(of.role);
  const action = useAction();
  const submit = async () => {
    if (await action.run(async () => void (await api.PATCH("/gw/people/{id}", { params: { path: { id: of.person_id } }, body: { role } })))) {
      refresh("people");
      onClose();
    }
  };
  return (
    <Dialog title={`Role of ${nameOf(of)}`} onClose={onClose}>
      <form className="stack" onSubmit={(e) => { e.preventDefault(); void submit(); }}>
        <Field label="Role" note="It holds from the next request on.">{(ids) => <Choice {...ids} value={role} onChange={(v) => setRole(v as Role)} options={roles} />}</Field>
        {action.failure && <Trouble failure={action.failure} />}
        <div className="row end"><Button onClick={onClose}>Cancel</Button><Button type="submit" look="primary" busy={action.busy} disabled={role === of.role}>Change role</Button></div>
      </form>
    </Dialog>
  );
}

function Remove({ of, onClose }: Change) {
  const action = useAction();
  const yes = async () => {
    if (await action.run(async () => void (await api.DELETE("/gw/people/{id}", { params: { path: { id: of.person_id } } })))) {
      refresh("people", "sessions");
      onClose();
    }
  };
  return (
    <Confirm title={`Remove ${nameOf(of)}?`} action="Remove" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>Their sessions and keys in this organization end now. Keys of the organization stay.</p>
    </Confirm>
  );
}

function SignOutPerson({ of, onClose }: Change) {
  const action = useAction();
  const yes = async () => {
    if (await action.run(async () => void (await api.DELETE("/gw/sessions", { params: { query: { person_id: of.person_id } } })))) {
      refresh("people", "sessions");
      onClose();
    }
  };
  return (
    <Confirm title={`Sign ${nameOf(of)} out everywhere?`} action="Sign out" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>All their browsers are signed out of this organization at once. They can sign in again as long as the provider lets them.</p>
    </Confirm>
  );
}

/** browserOf is what a User-Agent is, as far as people care. */
export function browserOf(agent: string): string {
  const found = (names: [RegExp, string][]) => names.find(([p]) => p.test(agent))?.[1];
  const browser = found([[/Edg\//, "Edge"], [/Firefox\//, "Firefox"], [/Chrom(e|ium)\//, "Chrome"], [/Safari\//, "Safari"]]);
  const system = found([[/Android/, "Android"], [/iPhone|iPad/, "iOS"], [/Windows/, "Windows"], [/Mac OS X/, "macOS"], [/Linux|X11/, "Linux"]]);
  return browser ? browser + (system ? " on " + system : "") : agent || "not said";
}

export function Sessions() {
  const app = useApp();
  const [person, setPerson] = useFilter("person");
  const manages = app.can("keys:manage");
  const people = usePeople(manages);
  const keys = useKeys(manages);
  const sessions = usePages<MemberSession>("sessions:" + person, (cursor) => api.GET("/gw/sessions", { params: { query: { limit: 200, person_id: person || undefined, cursor } } }));
  const [ending, setEnding] = useState<MemberSession | "all">();
  // What names are made of is waited for, so that nothing jumps.
  const known = !manages || ((people.rows || people.first.failure) && (keys.data || keys.failure));
  const rows = known ? sessions.rows : undefined;
  const named = (s: MemberSession) => {
    const who = people.rows?.find((m) => m.person_id === s.person_id);
    if (who) return nameOf(who);
    if (s.person_id && s.person_id === app.session.person?.id) return app.session.person.name || app.session.person.email || "You";
    const key = keys.data?.find((k) => k.id === s.api_key_id);
    return key ? nameOfKey(key) : s.kind === "key" ? "A key" : "A person";
  };
  const columns: Column<MemberSession>[] = [
    { title: "Who", cell: (s) => <span className="two"><span className="cut">{named(s)}</span><small>{s.current ? "this browser" : s.kind === "key" ? "with a key" : "with an account"}</small></span>, text: named },
    { title: "Browser", hide: "narrow", cell: (s) => <span className="cut" title={s.user_agent}>{browserOf(s.user_agent)}</span>, text: (s) => s.user_agent },
    { title: "Signed in", hide: "middle", cell: (s) => <span title={momentUTC(s.created_at)}>{ago(s.created_at)}</span>, text: (s) => s.created_at },
    { title: "Last request", tight: true, cell: (s) => <span title={momentUTC(s.last_seen_at)}>{ago(s.last_seen_at)}</span>, text: (s) => s.last_seen_at },
    { title: "Ends", hide: "narrow", cell: (s) => <span title={momentUTC(s.expires_at)}>{ago(s.expires_at)}</span>, text: (s) => s.expires_at },
  ];
  return (
    <Page
      title="Sessions" note={manages ? "Browsers that are signed in to this dashboard." : "Browsers that you are signed in with."}
      actions={<><Download name="sessions" columns={columns} rows={sessions.rows} /><Button look="danger" onClick={() => setEnding("all")}>Sign out everywhere</Button></>}
    >
      <Card flush>
        {manages && (
          <div className="filters">
            <Choice aria-label="Whose sessions" value={person} onChange={setPerson} options={[["", "Everybody's"], ...(people.rows ?? []).map((m) => [m.person_id, nameOf(m)] as [string, string])]} />
            <span className="grow" />
            <Button icon="refresh" busy={sessions.first.busy && !!sessions.rows} onClick={sessions.first.again}>Refresh</Button>
          </div>
        )}
        <Table
          label="Sessions" rows={rows} failure={sessions.first.failure} again={sessions.first.again} id={(s) => s.id} page={0}
          columns={[...columns, { title: "Actions", quiet: true, tight: true, cell: (s) => <Button look="quiet" icon="out" aria-label={`End the session of ${named(s)}, ${browserOf(s.user_agent)}`} onClick={() => setEnding(s)} /> }]}
          empty={person ? <Empty icon="out" title="Not signed in anywhere" action={<Button onClick={() => setPerson("")}>Everybody's</Button>}>This person has no session in this organization.</Empty> : <Empty icon="out" title="No sessions" />}
          foot={sessions.foot("session")}
        />
      </Card>
      {ending === "all" ? <Everywhere onClose={() => setEnding(undefined)} /> : ending && <End of={ending} name={named(ending)} onClose={() => setEnding(undefined)} />}
    </Page>
  );
}

function End({ of, name, onClose }: { of: MemberSession; name: string; onClose: () => void }) {
  const action = useAction();
  const yes = async () => {
    if (await action.run(async () => void (await api.DELETE("/gw/sessions/{id}", { params: { path: { id: of.id } } })))) {
      refresh("sessions");
      onClose();
    }
  };
  return (
    <Confirm title="End this session?" action="End session" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>{of.current ? "This is your own browser: you will be signed out." : <><strong>{name}</strong> is signed out of {browserOf(of.user_agent)}, on other instances within about a second.</>}</p>
    </Confirm>
  );
}

/** Everywhere ends all sessions of who is signed in here. */
function Everywhere({ onClose }: { onClose: () => void }) {
  const app = useApp();
  const action = useAction();
  const yes = () =>
    action.run(async () => {
      const then = await ask("DELETE", "everywhere");
      forget();
      location.assign(then?.url ?? location.href);
    });
  return (
    <Confirm title="Sign out everywhere?" action="Sign out everywhere" busy={action.busy} failure={action.failure} onYes={yes} onClose={onClose}>
      <p>{app.session.person ? "Every browser that you are signed in with is signed out of this organization, this one too." : "Every browser that signed in with this key is signed out, this one too."}</p>
    </Confirm>
  );
}

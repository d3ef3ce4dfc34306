import { useState } from "react";
import { Choice, Field, Text } from "../ui/kit";

const wellSpelled = /^[A-Za-z0-9_.-]{1,64}$/;

type Kind = "all" | "model" | "tag";

/** MatchFields asks which calls count: it tells the match as the API has it, undefined for all calls, and "" while something is missing. */
export function MatchFields({ onChange }: { onChange: (match: string | undefined) => void }) {
  const [kind, setKind] = useState<Kind>("all");
  const [glob, setGlob] = useState("");
  const [name, setName] = useState("");
  const [value, setValue] = useState("*");
  const tell = (kind: Kind, glob: string, name: string, value: string) => {
    const tag = value === "*" ? "*" : encodeURIComponent(value).replace(/\*/g, "%2A");
    onChange(kind === "all" ? undefined : kind === "model" ? glob && "model:" + glob : wellSpelled.test(name) ? `tag:${name}=${tag}` : "");
  };
  const wrong = name && !wellSpelled.test(name) ? "Only letters, digits, _, . and -." : undefined;
  return (
    <>
      <Field label="Calls that count">{(ids) => <Choice {...ids} value={kind} onChange={(v) => { setKind(v as Kind); tell(v as Kind, glob, name, value); }} options={[["all", "All"], ["model", "Of some models"], ["tag", "With an attribution"]]} />}</Field>
      {kind === "model" && <Text label="Models" required placeholder="openai/*" maxLength={390} value={glob} note="A slug; * stands for any text." onChange={(v) => { setGlob(v); tell(kind, v, name, value); }} />}
      {kind === "tag" && (
        <div className="formgrid">
          <Text label="Attribution" required placeholder="end_user" maxLength={64} value={name} wrong={wrong} onChange={(v) => { setName(v); tell(kind, glob, v, value); }} />
          <Text label="Value" maxLength={256} value={value} note="* limits each value by itself. Empty: calls without it." onChange={(v) => { setValue(v); tell(kind, glob, name, v); }} />
        </div>
      )}
    </>
  );
}

import { useState } from "react";
import { Failure } from "../shared/api";
import { usd } from "../shared/format";
import { useAction } from "../shared/use";
import { Button, Text, Trouble } from "../ui/kit";

/** Pay asks for an amount between two bounds, in dollars, and goes to the page where it is paid, whose address begin answers. */
export function Pay({ label, first, least, most, begin }: { label: string; first: number; least: number; most: number; begin: (amount: number) => Promise<{ checkout_url: string }> }) {
  const [amount, setAmount] = useState(String(Math.min(Math.max(first, least), most)));
  const action = useAction();
  const value = Number(amount);
  const inBounds = value >= least && value <= most && /^\d+(\.\d\d?)?$/.test(amount.trim());
  const pay = () =>
    action.run(async () => {
      const begun = await begin(value);
      if (!/^https?:\/\//.test(begun.checkout_url)) throw new Failure(200, "error", "The address of the payment page is not one.", "");
      location.assign(begun.checkout_url);
    });
  return (
    <form className="stack" onSubmit={(e) => { e.preventDefault(); void pay(); }}>
      <div className="row" style={{ alignItems: "end" }}>
        <Text label={label} lead="$" inputMode="decimal" value={amount} onChange={setAmount} wrong={amount && !inBounds ? `From ${usd(least)} to ${usd(most)}, in whole cents.` : undefined} />
        <Button type="submit" look="primary" busy={action.busy} disabled={!inBounds}>Go to payment</Button>
      </div>
      {action.failure && <Trouble failure={action.failure} />}
    </form>
  );
}

package sqldb

import "modelgate"

// Difference is one way in which the books disagree with the usage rows.
type Difference struct {
	ClientID modelgate.ClientID `json:"client_id"`
	// What names the check: spend (a counter is not the sum of its rows, in
	// nano-USD), held (what is reserved of it is not the sum of what the
	// instances and the pending jobs hold), balance (what was credited is not
	// the sum of the entries), job (a job's cost is not that of its row, or the
	// two are not in the same state; without a row 0 is wanted, without a job 0
	// is there), latency_histogram (by how much a count of calls exceeds its
	// rows, nothing wanted), rollup (a sum of calls by hour or day is not that of its rows,
	// in requests, tokens or nano-USD), export (what is billed to a sub-account is not the exact price
	// of its rows, in micro-USD), export_unknown_row, export_missing and
	// export_forgotten (events without a row, rows without an event, events
	// that nobody will send; counts, none wanted), checkout (a paid order is
	// not an entry of the balance), evidence_calls and evidence_cost (the
	// records of a day are not its rows), evidence_chain (the records do not
	// hold together from the named one on), unknown_client, unknown_key or wrong_sub_account (rows that
	// name a client or key there is not, or not the key's sub-account; a
	// count of rows, none wanted), invoice_rows and invoice_cost (what a provider's bill
	// of a day is compared with is not its rows; of all organizations).
	What string `json:"what"`
	// Key says where: scope/id/period/start for a counter, else an id.
	Key  string `json:"key"`
	Want int64  `json:"want"`
	Have int64  `json:"have"`
}

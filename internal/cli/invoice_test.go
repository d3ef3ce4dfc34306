package cli

import (
	"log/slog"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"modelgate"
	"modelgate/internal/bill"
	cost "modelgate/internal/cli/bill"
	"modelgate/internal/invoice"
	"modelgate/internal/store"
	"modelgate/test/testkit"
)

// A bill from an API and from a file are compared with the rows; a wrong price
// fails, and nothing shows the administrator's key.
func TestInvoiceCheckCommand(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	begin := b.begin()
	end := b.call()
	end.PriceLabel = "input=0.25 output=2"
	db, err := store.Open(t.Context(), store.Options{URL: "sqlite:" + filepath.Join(b.dir, "modelgate.db"), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Record(t.Context(), store.Batch{Instance: "i", Rows: []modelgate.UsageRow{modelgate.Row(begin, end)}}); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	day := begin.At.UTC().Truncate(24 * time.Hour)
	from, to := day.Format(time.DateOnly), day.AddDate(0, 0, 2).Format(time.DateOnly)

	var billed testkit.Bill
	billed.Add(testkit.BillKey{Day: from, Model: "gpt-5-mini", Unit: "input"}, 7, big.NewRat(7*25, 100_000_000))
	billed.Add(testkit.BillKey{Day: from, Model: "gpt-5-mini", Unit: "output"}, 5, big.NewRat(5*3, 1_000_000)) // 3 USD in place of 2
	api := httptest.NewServer(billed.OpenAI("sk-admin-secret"))
	t.Cleanup(api.Close)
	text := "server: {data_dir: .}\ndatabase: {url: \"sqlite:modelgate.db\"}\nproviders:\n" +
		"  - {name: openai, format: openai, base_url: \"https://api.openai.com\", credential: sk-1, invoice: {base_url: \"" + api.URL + "\", credential: sk-admin-secret}}\n"
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var r bill.Report
	on := func(command string, more ...string) []string {
		return append([]string{"invoice", command, "--provider", "openai", "--from", from, "--to", to}, more...)
	}
	b.command(t, exitOpen, &r, on("check")...)
	if len(r.Missing) != 2 || r.Final || r.FetchedAt != nil {
		t.Errorf("before the first reading: %+v", r)
	}
	b.command(t, exitOK, nil, on("fetch")...)
	said := b.command(t, exitError, &r, on("check", "--by", "model")...)
	if r.Invoiced != 16_750 || r.Own != 11_750 || r.Cause(invoice.Price) != 5000 || len(r.Cells) != 1 || r.Cells[0].OwnRate != "2" || r.Cells[0].InvoicedRate != "3" || len(r.Missing) != 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Groups) != 1 || r.Groups[0].Group != "gpt-5-mini" || *r.Groups[0].Own != 11_750 || *r.Groups[0].Invoiced != 16_750 {
		t.Errorf("%+v", r.Groups)
	}
	if strings.Contains(said, "sk-admin-secret") {
		t.Error(said)
	}
	file := filepath.Join(b.dir, "bill.csv")
	right := "date,model,unit,quantity,amount\n" + from + ",gpt-5-mini,input,7,0.00000175\n" + from + ",gpt-5-mini,output,5,0.00001\n"
	if err := os.WriteFile(file, []byte(right), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := b.command(t, exitError, nil, "invoice", "import", "--provider", "openai", file); !strings.Contains(said, "days are already there: "+from+"; use --replace") {
		t.Error(said)
	}
	var read bill.Read
	b.command(t, exitOK, &read, "invoice", "import", "--provider", "openai", file, "--replace")
	if read.Days != 1 || read.Invoiced != 11_750 || len(read.Changed) != 1 || len(read.Digest) != 64 {
		t.Errorf("%+v", read)
	}
	b.command(t, exitOpen, &r, on("check", "--by", "organization")...) // today's bill is not final
	if len(r.Groups) != 1 || *r.Groups[0].Own != 11_750 || r.Groups[0].Invoiced != nil {
		t.Errorf("%+v", r.Groups)
	}
	var list []bill.Status
	b.command(t, exitOK, &list, "invoice", "show")
	if len(list) != 1 || list[0].Provider != "openai" || list[0].SucceededAt == nil || !list[0].Scheduled {
		t.Errorf("%+v", list)
	}
	var days []bill.Day
	b.command(t, exitOK, &days, "invoice", "show", "--provider", "openai", "--from", from, "--to", to)
	if len(days) != 2 || days[0].State != bill.Fetched {
		t.Errorf("%+v", days)
	}
	var audits []auditRow
	b.command(t, exitOK, &audits, "audit", "list")
	if len(audits) < 2 || audits[0].Action != "invoice.import" || !strings.Contains(string(audits[0].Change), read.Digest) || audits[1].Action != "invoice.fetch" {
		t.Errorf("%+v", audits)
	}
	b.command(t, exitUsage, nil, "invoice", "check", "--provider", "nobody", "--from", from, "--to", to)
	b.command(t, exitUsage, nil, "invoice", "check", "--provider", "openai", "--from", to, "--to", from)
	b.command(t, exitUsage, nil, "invoice", "check", "--provider", "openai", "--from", "2020-01-01", "--to", "2021-01-01")
}

// Margins are exact by day, provider and sub-account, with the contract of the day.
func TestMarginCommand(t *testing.T) {
	t.Parallel()
	b := newBooks(t)
	account := b.customer(t, "bakery")
	db := b.open(t)
	twenty, err := modelgate.ParseMarkup("20")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PatchSubAccount(t.Context(), b.client, account.ID, modelgate.SubAccountPatch{Markup: &twenty}, audit("test", "sub_account.update", "", "", nil)); err != nil {
		t.Fatal(err)
	}
	var rows []modelgate.UsageRow
	for i := range 3 {
		begin := b.begin()
		if i == 2 {
			begin.SubAccountID = account.ID
		}
		rows = append(rows, modelgate.Row(begin, b.call()))
	}
	if _, err := db.Record(t.Context(), store.Batch{Instance: "i", Rows: rows}); err != nil {
		t.Fatal(err)
	}
	day := rows[0].At.UTC().Truncate(24 * time.Hour)
	from, to := day.Format(time.DateOnly), day.AddDate(0, 0, 2).Format(time.DateOnly)
	text := "server: {data_dir: .}\ndatabase: {url: \"sqlite:modelgate.db\"}\nproviders:\n" +
		"  - {name: openai, format: openai, base_url: \"https://api.openai.com\", credential: sk-1, contract_factor: [{from: 2026-01-01, factor: 0.9}, {from: 2999-01-01, factor: 0.5}]}\n"
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var list []cost.Margin
	b.command(t, exitOK, &list, "margin", "--from", from, "--to", to)
	if len(list) != 1 || list[0].Group != "openai" || list[0].Requests != 3 || list[0].Cost != 35_250 || list[0].Contract != 31_725 || list[0].Operator != 3_525 {
		t.Errorf("%+v", list)
	}
	if *list[0].Billed != 14_100 || *list[0].Reseller != 2_350 || list[0].Percent.String() != "16.6667" {
		t.Errorf("%+v", list[0])
	}
	for _, by := range cost.By() {
		var parts []cost.Margin
		b.command(t, exitOK, &parts, "margin", "--from", from, "--to", to, "--by", by)
		sum := modelgate.Nano(0)
		for _, m := range parts {
			sum += m.Cost
		}
		if sum != 35_250 {
			t.Errorf("by %s: %+v", by, parts)
		}
	}
	if said := b.command(t, exitOK, nil, "margin", "--from", from, "--to", to, "--csv"); !strings.HasPrefix(said, "group,requests,cost_usd,contract_usd,operator_margin_usd,billed_usd,") {
		t.Error(said)
	}
	b.command(t, exitUsage, nil, "margin", "--from", to, "--to", from)
}

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

	var bill testkit.Bill
	bill.Add(testkit.BillKey{Day: from, Model: "gpt-5-mini", Unit: "input"}, 7, big.NewRat(7*25, 100_000_000))
	bill.Add(testkit.BillKey{Day: from, Model: "gpt-5-mini", Unit: "output"}, 5, big.NewRat(5*3, 1_000_000)) // 3 USD in place of 2
	api := httptest.NewServer(bill.OpenAI("sk-admin-secret"))
	t.Cleanup(api.Close)
	text := "server: {data_dir: .}\ndatabase: {url: \"sqlite:modelgate.db\"}\nproviders:\n" +
		"  - {name: openai, format: openai, base_url: \"https://api.openai.com\", credential: sk-1, invoice: {base_url: \"" + api.URL + "\", credential: sk-admin-secret}}\n"
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var r invoice.Report
	said := b.command(t, exitError, &r, "invoice", "check", "--provider", "openai", "--from", from, "--to", to)
	if r.Invoiced != 16_750 || r.Own != 11_750 || r.Cause(invoice.Price) != 5000 || len(r.Cells) != 1 || r.Cells[0].OwnRate != "2" || r.Cells[0].InvoicedRate != "3" {
		t.Errorf("%+v", r)
	}
	if strings.Contains(said, "sk-admin-secret") {
		t.Error(said)
	}
	file := filepath.Join(b.dir, "bill.csv")
	right := "date,model,unit,quantity,amount\n" + from + ",gpt-5-mini,input,7,0.00000175\n" + from + ",gpt-5-mini,output,5,0.00001\n"
	if err := os.WriteFile(file, []byte(right), 0o600); err != nil {
		t.Fatal(err)
	}
	b.command(t, exitOK, &r, "invoice", "check", "--provider", "openai", "--from", from, "--to", to, "--file", file)
	b.command(t, exitUsage, nil, "invoice", "check", "--provider", "nobody", "--from", from, "--to", to)
	b.command(t, exitUsage, nil, "invoice", "check", "--provider", "openai", "--from", to, "--to", from)
	b.command(t, exitUsage, nil, "invoice", "check", "--provider", "openai", "--from", "2020-01-01", "--to", "2021-01-01")
}

// Package bill reads what a provider has billed, and the usage rows that it is
// compared with.
package bill

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"modelgate"
	"modelgate/internal/cancelctx"
	"modelgate/internal/cli/fetch"
	"modelgate/internal/config"
	"modelgate/internal/invoice"
	"modelgate/internal/store"
)

// maxBill bounds a file with a bill, unpacked, in bytes.
const maxBill = 2 << 30

// Read reads the bill of a provider for the days from one to the other, from its API
// or, where file is not empty, from a file.
func Read(ctx context.Context, p *config.Provider, file string, from, to time.Time) ([]invoice.Line, error) {
	i := &p.Invoice
	if file != "" {
		return readFile(p, file, from, to)
	}
	if i.Source == config.InvoiceFile {
		return nil, errors.New("the bill of " + p.Name + " is read from a file: use --file")
	}
	secret := i.Credential.Reveal()
	if i.CredentialFile != "" {
		text, err := os.ReadFile(i.CredentialFile)
		if err != nil {
			return nil, err
		}
		secret = string(bytes.TrimSpace(text))
	}
	switch {
	case secret == "":
		return nil, errors.New("providers[]." + p.Name + ".invoice has no credential: set an administrator's key, or use --file")
	case !fetch.Secure(i.BaseURL):
		return nil, errors.New("an administrator's key is sent with https only: set invoice.base_url of " + p.Name)
	}
	s := &invoice.Source{
		Base: i.BaseURL, Credential: secret, ByProject: len(i.Projects) > 0, Sleep: cancelctx.Sleep,
		Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	read := s.OpenAI
	if i.Source == config.InvoiceAnthropic {
		read = s.Anthropic
	}
	lines, err := read(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("the bill of %s: %w", p.Name, err)
	}
	return lines, nil
}

func readFile(p *config.Provider, name string, from, to time.Time) ([]invoice.Line, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text := io.Reader(file)
	if strings.HasSuffix(name, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	amount := map[config.InvoiceAmount]string{config.InvoiceEffective: "EffectiveCost", config.InvoiceBilled: "BilledCost", config.InvoiceList: "ListCost"}[p.Invoice.Amount]
	f := invoice.File{Amount: amount, From: from, To: to}
	for _, s := range p.Invoice.SKUs {
		f.SKUs = append(f.SKUs, invoice.SKU(s))
	}
	limited := &io.LimitedReader{R: text, N: maxBill}
	lines, err := f.Read(limited)
	if err == nil && limited.N == 0 {
		err = fmt.Errorf("is larger than %d bytes", int64(maxBill))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return lines, nil
}

// Rows sums the rows of a provider over all organizations.
func Rows(ctx context.Context, db *store.DB, provider string, from, to time.Time) (*invoice.Books, error) {
	books := invoice.NewBooks()
	clients, err := db.Clients(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range clients {
		pruned, _, err := db.UsageBounds(ctx, c.ID)
		if err != nil {
			return nil, err
		}
		if from.Before(pruned) {
			return nil, fmt.Errorf("%s: usage before %s is pruned", c.Name, pruned.Format(time.DateOnly))
		}
		err = db.UsageSpan(ctx, c.ID, "", from, to, func(r *modelgate.UsageRow) error {
			if r.CallBegin.Provider == provider {
				books.Add(r)
			}
			return context.Cause(ctx)
		})
		if err != nil {
			return nil, err
		}
	}
	return books, nil
}

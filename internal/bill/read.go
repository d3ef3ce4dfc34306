package bill

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"modelgate/internal/invoice"
)

// maxFile bounds a file with a bill, unpacked, in bytes.
const maxFile = 2 << 30

// read reads a bill from the provider's API.
func (p *Provider) read(ctx context.Context, sleep func(context.Context, time.Duration) error, from, to time.Time) ([]invoice.Line, error) {
	if p.API == "" {
		return nil, errors.New("the bill of " + p.Name + " is read from files: use modelgate invoice import")
	}
	secret := p.Credential
	if p.CredentialFile != "" {
		text, err := os.ReadFile(p.CredentialFile)
		if err != nil {
			return nil, err
		}
		secret = string(bytes.TrimSpace(text))
	}
	if secret == "" {
		return nil, errors.New("invoice of provider " + p.Name + " has no credential: set an administrator's key, or import files")
	}
	s := &invoice.Source{
		Base: p.BaseURL, Credential: secret, ByProject: len(p.Projects) > 0, Sleep: sleep,
		Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	read := s.OpenAI
	if p.API == Anthropic {
		read = s.Anthropic
	}
	lines, err := read(ctx, from, to)
	if err != nil {
		return nil, fmt.Errorf("the bill of %s: %w", p.Name, err)
	}
	first, end := dateOf(from), dateOf(to)
	for i := range lines {
		if lines[i].Day < first || lines[i].Day >= end {
			return nil, fmt.Errorf("the bill of %s: %s was not asked for", p.Name, lines[i].Day)
		}
	}
	return lines, nil
}

// readFile reads a bill from a file that is unpacked.
func (p *Provider) readFile(file io.Reader) ([]invoice.Line, error) {
	f := invoice.File{Amount: p.Amount, SKUs: p.SKUs}
	limited := &io.LimitedReader{R: file, N: maxFile}
	lines, err := f.Read(limited)
	if err == nil && limited.N == 0 {
		err = fmt.Errorf("it is larger than %d bytes", int64(maxFile))
	}
	return lines, err
}

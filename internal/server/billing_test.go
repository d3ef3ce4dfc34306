package server

import (
	"testing"

	"modelgate/internal/config"
)

// TestReturnURL sends a payer back to where the gateway is.
func TestReturnURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ base, cert, returns, want string }{
		{"", "", "", "http://127.0.0.1:8080/dashboard/billing"},
		{"", "cert.pem", "", "https://127.0.0.1:8080/dashboard/billing"},
		{"https://gate.example", "", "", "https://gate.example/dashboard/billing"},
		{"https://gate.example/", "cert.pem", "", "https://gate.example/dashboard/billing"},
		{"https://gate.example", "", "https://shop.example/thanks", "https://shop.example/thanks"},
	} {
		cfg := config.Default()
		cfg.Server.BaseURL, cfg.Server.TLS.CertFile, cfg.Processor.ReturnURL = c.base, c.cert, c.returns
		if got := newCheckout(cfg).ReturnURL; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestProcessorIsNoMetadataService holds for the processor what holds for
// providers.
func TestProcessorIsNoMetadataService(t *testing.T) {
	t.Parallel()
	client := newProcessor(config.Default())
	for address, refused := range map[string]bool{"169.254.169.254:80": true, "[fd00:ec2::254]:80": true, "127.0.0.1:12111": false, "10.0.0.9:443": false} {
		if err := client.Control("tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}

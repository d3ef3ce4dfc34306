package config

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a value of the configuration that must not be shown: a key, or an
// address with a password in it. It prints as a placeholder everywhere; Reveal
// is the only way out. The zero value is empty.
type Secret struct {
	// text is behind a pointer because fmt does not ask unexported fields of
	// other types for their methods: it then prints an address.
	text *string
}

const redacted = "[redacted]"

// NewSecret hides a text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal is the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// Empty reports whether there is nothing to hide.
func (s Secret) Empty() bool { return s.Reveal() == "" }

// Equal reports whether two secrets hide the same text.
func (s Secret) Equal(other Secret) bool { return s.Reveal() == other.Reveal() }

// Format prints the placeholder for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue is the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText writes the placeholder, in JSON and YAML alike.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Package clients makes the calls of clients.test.mjs and clouds.test.mjs with SDKs
// for Go: a question and a call of a tool whose result is sent back, each whole and
// streamed, and a question with a wrong key. A gateway with simulated providers
// stands behind GATEWAY_URL and takes GATEWAY_KEY.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

const (
	chatModel     = "openai/gpt-5-mini"
	messagesModel = "anthropic/claude-haiku-4.5"

	question = "hello world"
	answer   = "This is a simulated answer to: hello world"
	// The simulated providers call a tool that the prompt names.
	order       = `ask the weather tool [[arguments={"city":"Oslo"}]]`
	description = "Tells the weather."
)

// client answers a prompt with the text at the end, having called the tool where
// the model asks for it.
type client interface {
	ask(ctx context.Context, prompt string) (string, error)
	stream(ctx context.Context, prompt string) (string, error)
	// refusal is the status in an error of the SDK, and its text or kind; 0 where it
	// is another.
	refusal(error) (status int, text string)
}

// schema is that of the arguments of the tool.
func schema() map[string]any {
	return map[string]any{
		"type": "object", "required": []string{"city"}, "additionalProperties": false,
		"properties": map[string]any{"city": map[string]any{"type": "string"}},
	}
}

// weather is the tool. Its result comes back in the answer to it.
func weather(arguments string) (string, error) {
	var a struct{ City string }
	if err := json.Unmarshal([]byte(arguments), &a); err != nil {
		return "", err
	}
	if a.City != "Oslo" {
		return "", errors.New("the tool was called with " + arguments)
	}
	return "rain-in-" + a.City, nil
}

func TestClients(t *testing.T) {
	check(t, map[string]func(url, key string) client{
		"sashabaranov/go-openai":      openGoOpenAI,
		"openai-go, chat":             openChat,
		"openai-go, responses":        openResponses,
		"anthropics/anthropic-sdk-go": openAnthropic,
	})
}

// check makes the calls with each client.
func check(t *testing.T, clients map[string]func(url, key string) client) {
	t.Helper()
	url, key := os.Getenv("GATEWAY_URL"), os.Getenv("GATEWAY_KEY")
	if url == "" || key == "" {
		t.Fatal("set GATEWAY_URL and GATEWAY_KEY")
	}
	for name, open := range clients {
		t.Run(name, func(t *testing.T) {
			c := open(url, key)
			for way, say := range map[string]func(context.Context, string) (string, error){"whole": c.ask, "streamed": c.stream} {
				if text, err := say(t.Context(), question); err != nil || text != answer {
					t.Errorf("%s: %q, %v", way, text, err)
				}
				if text, err := say(t.Context(), order); err != nil || !strings.Contains(text, "rain-in-Oslo") {
					t.Errorf("%s with a tool: %q, %v", way, text, err)
				}
			}
			wrong := open(url, key[:len(key)-1]+"x")
			_, err := wrong.ask(t.Context(), question)
			if status, text := wrong.refusal(err); status != 401 || !strings.Contains(text, "invalid gateway key") && text != "UnrecognizedClientException" {
				t.Errorf("a wrong key: %d %q, %v", status, text, err)
			}
		})
	}
}

package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	anthropic1 "github.com/anthropics/anthropic-sdk-go"
	option1 "github.com/anthropics/anthropic-sdk-go/option"
	anthropic2 "github.com/anthropics/anthropic-sdk-go/v2"
	option2 "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"modelgate/test/testkit"
)

const answer = "This is a simulated answer"

// TestOpenAIForGo drives the gateway with OpenAI's own client.
func TestOpenAIForGo(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	client := openai.NewClient(option.WithBaseURL(b.URL+"/v1"), option.WithAPIKey(b.key), option.WithMaxRetries(0))
	ctx := t.Context()
	chat := openai.ChatCompletionNewParams{
		Model: "openai/gpt-5-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello there")},
	}
	whole, err := client.Chat.Completions.New(ctx, chat)
	if err != nil || !strings.HasPrefix(whole.Choices[0].Message.Content, answer) || whole.Usage.PromptTokens != 2 {
		t.Errorf("chat: %+v, %v", whole, err)
	}
	stream := client.Chat.Completions.NewStreaming(ctx, chat)
	var text strings.Builder
	for stream.Next() {
		text.WriteString(stream.Current().Choices[0].Delta.Content) // the extra usage chunk has no choices
	}
	if stream.Err() != nil || !strings.HasPrefix(text.String(), answer) {
		t.Errorf("chat stream: %q, %v", text.String(), stream.Err())
	}
	request := responses.ResponseNewParams{Model: "openai/gpt-5-mini", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")}}
	response, err := client.Responses.New(ctx, request)
	if err != nil || !strings.HasPrefix(response.OutputText(), answer) {
		t.Errorf("responses: %+v, %v", response, err)
	}
	events := client.Responses.NewStreaming(ctx, request)
	completed := false
	for events.Next() {
		completed = completed || events.Current().Type == "response.completed"
	}
	if events.Err() != nil || !completed {
		t.Errorf("responses stream: completed %v, %v", completed, events.Err())
	}
	embedding, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: "openai/text-embedding-3-small", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("hello")},
	})
	if err != nil || len(embedding.Data) != 1 || len(embedding.Data[0].Embedding) == 0 {
		t.Errorf("embeddings: %v", err)
	}
	image, err := client.Images.Generate(ctx, openai.ImageGenerateParams{Model: "openai/gpt-image-1", Prompt: "a kite"})
	if err != nil || len(image.Data) != 1 {
		t.Errorf("images: %v", err)
	} else if _, err := base64.StdEncoding.DecodeString(image.Data[0].B64JSON); err != nil {
		t.Errorf("images: %v", err)
	}
	speech, err := client.Audio.Speech.New(ctx, openai.AudioSpeechNewParams{Model: "openai/tts-1", Input: "hello", Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")}})
	if err != nil {
		t.Errorf("speech: %v", err)
	} else {
		sound, err := io.ReadAll(speech.Body)
		if speech.Body.Close(); err != nil || len(sound) < 100 || !strings.HasPrefix(speech.Header.Get("Content-Type"), "audio/") {
			t.Errorf("speech: %d bytes of %s, %v", len(sound), speech.Header.Get("Content-Type"), err)
		}
	}
	file := openai.File(strings.NewReader(strings.Repeat("RIFF", 10_000)), "a.wav", "audio/wav")
	transcript, err := client.Audio.Transcriptions.New(ctx, openai.AudioTranscriptionNewParams{Model: "openai/whisper-1", File: file})
	if err != nil || transcript.Text == "" {
		t.Errorf("transcription: %+v, %v", transcript, err)
	}
	models, err := client.Models.List(ctx)
	if err != nil || len(models.Data) < 5 {
		t.Errorf("models: %+v, %v", models, err)
	}
	if model, err := client.Models.Get(ctx, "openai/gpt-5-mini"); err != nil || model.OwnedBy != "openai" {
		t.Errorf("one model: %+v, %v", model, err)
	}
	chat.Model = "openai/gpt-9"
	_, err = client.Chat.Completions.New(ctx, chat)
	if apiErr, ok := errors.AsType[*openai.Error](err); !ok || apiErr.StatusCode != 404 || apiErr.Type != "not_found" {
		t.Errorf("an unknown slug: %v", err)
	}
	b.wantRows(t, 8)
}

// wantRows finds n rows, all exact and all from an SDK.
func (b *bench) wantRows(t *testing.T, n int) {
	t.Helper()
	_, rows := b.get(t, "/gw/usage")
	if got := strings.Count(rows, `"parse_status":"ok","via_sdk":true`); got != n || strings.Count(rows, `"id"`) != n {
		t.Errorf("%d exact rows by SDK of %d, want %d: %s", got, strings.Count(rows, `"id"`), n, rows)
	}
}

// TestAnthropicForGo drives the gateway with both majors of Anthropic's
// client: the older sends x-api-key, the newer Bearer.
func TestAnthropicForGo(t *testing.T) {
	t.Parallel()
	b := newBench(t, testkit.GatewayOptions{})
	ctx := t.Context()
	old := anthropic1.NewClient(option1.WithBaseURL(b.URL), option1.WithAPIKey(b.key), option1.WithMaxRetries(0))
	params1 := anthropic1.MessageNewParams{
		Model: "anthropic/claude-haiku-4.5", MaxTokens: 100,
		Messages: []anthropic1.MessageParam{anthropic1.NewUserMessage(anthropic1.NewTextBlock("hello there"))},
	}
	message1, err := old.Messages.New(ctx, params1)
	if err != nil || !strings.HasPrefix(message1.Content[0].Text, answer) || message1.Usage.InputTokens != 2 {
		t.Errorf("messages, v1: %+v, %v", message1, err)
	}
	stream1 := old.Messages.NewStreaming(ctx, params1)
	var whole1 anthropic1.Message
	for stream1.Next() {
		if err := whole1.Accumulate(stream1.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if stream1.Err() != nil || len(whole1.Content) == 0 || !strings.HasPrefix(whole1.Content[0].Text, answer) {
		t.Errorf("messages stream, v1: %+v, %v", whole1, stream1.Err())
	}
	client := anthropic2.NewClient(option2.WithBaseURL(b.URL), option2.WithAPIKey(b.key), option2.WithMaxRetries(0))
	params2 := anthropic2.MessageNewParams{
		Model: "anthropic/claude-haiku-4.5", MaxTokens: 100,
		Messages: []anthropic2.MessageParam{anthropic2.NewUserMessage(anthropic2.NewTextBlock("hello there"))},
	}
	message2, err := client.Messages.New(ctx, params2)
	if err != nil || !strings.HasPrefix(message2.Content[0].Text, answer) {
		t.Errorf("messages, v2: %+v, %v", message2, err)
	}
	stream2 := client.Messages.NewStreaming(ctx, params2)
	stopped := false
	for stream2.Next() {
		stopped = stopped || stream2.Current().Type == "message_stop"
	}
	if stream2.Err() != nil || !stopped {
		t.Errorf("messages stream, v2: stopped %v, %v", stopped, stream2.Err())
	}
	b.wantRows(t, 4)
	for _, r := range b.Upstream.Ledger.All() {
		if r.Header.Get("X-Api-Key") == b.key || strings.Contains(r.Header.Get("Authorization"), b.key) {
			t.Error("the gateway key reached the provider")
		}
	}
}

// sdks is the folder of the JavaScript SDKs.
var sdks = filepath.Join("..", "..", "test", "sdk")

// installSDKs brings them to what the lock file says.
var installSDKs = sync.OnceValue(func() error {
	if _, err := exec.LookPath("node"); err != nil {
		return fmt.Errorf("the SDK tests need Node.js 20 or later: %w", err)
	}
	wanted, err := os.Stat(filepath.Join(sdks, "package-lock.json"))
	if err != nil {
		return err
	}
	if have, err := os.Stat(filepath.Join(sdks, "node_modules", ".package-lock.json")); err == nil && !have.ModTime().Before(wanted.ModTime()) {
		return nil
	}
	install := exec.Command("npm", "ci")
	install.Dir = sdks
	if out, err := install.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci in %s: %w\n%s", sdks, err, out)
	}
	return nil
})

// nodeModules is a folder in which node finds the SDKs.
func nodeModules(t *testing.T) string {
	t.Helper()
	if err := installSDKs(); err != nil {
		t.Fatal(err)
	}
	return sdks
}

// TestJavaScriptSDKs runs the JavaScript SDKs' own suite against the gateway.
func TestJavaScriptSDKs(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("node", "--test", "sdk.test.mjs")
	cmd.Dir = nodeModules(t)
	b := newBench(t, testkit.GatewayOptions{})
	cmd.Env = append(os.Environ(), "GATEWAY_URL="+b.URL, "GATEWAY_KEY="+b.key)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

package simulator_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

	"modelgate/internal/simulator"
)

func openAI(t *testing.T) (openai.Client, *upstream) {
	t.Helper()
	u := start(t, simulator.Options{Credential: "sk-sim"})
	return openai.NewClient(option.WithBaseURL(u.URL+"/v1"), option.WithAPIKey("sk-sim"), option.WithMaxRetries(0)), u
}

func chatParams(prompt string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "gpt-5-mini", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)}}
}

func TestOpenAIChat(t *testing.T) {
	t.Parallel()
	client, _ := openAI(t)
	params := chatParams("hello world [[cached=2]] [[words=5]]")
	params.N = openai.Int(2)
	got, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if u := got.Usage; u.PromptTokens != 4 || u.PromptTokensDetails.CachedTokens != 2 || u.CompletionTokens != 10 {
		t.Errorf("usage = %+v, want 4 (2 cached) and 10", u)
	}
	if len(got.Choices) != 2 || got.Choices[1].Message.Content != "This is a simulated answer" || got.Choices[0].FinishReason != "stop" {
		t.Errorf("choices = %+v, want two of five words", got.Choices)
	}
	params.MaxCompletionTokens = openai.Int(3)
	cut, err := client.Chat.Completions.New(t.Context(), params)
	if err != nil || cut.Choices[0].FinishReason != "length" || cut.Choices[0].Message.Content != "This is a" {
		t.Errorf("limited answer = %+v, %v, want three words", cut, err)
	}
}

func TestOpenAIChatStream(t *testing.T) {
	t.Parallel()
	client, _ := openAI(t)
	params := chatParams("hello world")
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), params)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatalf("chunk does not belong: %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if got := acc.Choices[0].Message.Content; got != "This is a simulated answer to: hello world" || acc.Usage.TotalTokens != 10 {
		t.Errorf("stream says %q with usage %+v, want 10 tokens", got, acc.Usage)
	}
	broken := client.Chat.Completions.NewStreaming(t.Context(), chatParams("[[error_in_stream]]"))
	for broken.Next() {
	}
	if err := broken.Err(); err == nil || !strings.Contains(err.Error(), "told to fail") {
		t.Errorf("error in the stream = %v, want the simulator's", err)
	}
}

func TestOpenAIError(t *testing.T) {
	t.Parallel()
	client, _ := openAI(t)
	_, err := client.Chat.Completions.New(t.Context(), chatParams("[[status=429]] [[retry_after=1]]"))
	var apiErr *openai.Error
	if !errors.As(err, &apiErr) || apiErr.StatusCode != 429 || apiErr.Code != "rate_limit_exceeded" || apiErr.Response.Header.Get("Retry-After") != "1" {
		t.Errorf("error = %v, want 429 rate_limit_exceeded", err)
	}
	if _, err := client.Models.List(t.Context(), option.WithAPIKey("wrong")); !errors.As(err, &apiErr) || apiErr.StatusCode != 401 {
		t.Errorf("wrong key = %v, want 401", err)
	}
}

func TestOpenAIResponses(t *testing.T) {
	t.Parallel()
	client, _ := openAI(t)
	params := responses.ResponseNewParams{
		Model: "gpt-5-mini", Instructions: openai.String("be brief"),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello world [[reasoning=4]]")},
	}
	got, err := client.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	const text = "This is a simulated answer to: hello world"
	if got.OutputText() != text || got.Status != "completed" || got.Usage.InputTokens != 4 || got.Usage.OutputTokens != 12 || got.Usage.OutputTokensDetails.ReasoningTokens != 4 {
		t.Errorf("response = %s", got.RawJSON())
	}
	stream := client.Responses.NewStreaming(t.Context(), params)
	var said strings.Builder
	var last responses.ResponseStreamEventUnion
	for n := int64(0); stream.Next(); n++ {
		last = stream.Current()
		said.WriteString(last.Delta)
		if last.SequenceNumber != n {
			t.Errorf("event %s has number %d, want %d", last.Type, last.SequenceNumber, n)
		}
	}
	if stream.Err() != nil || last.Type != "response.completed" || said.String() != text || last.Response.Usage.TotalTokens != 16 {
		t.Errorf("stream said %q and ended with %s, %v", said.String(), last.RawJSON(), stream.Err())
	}
	broken := client.Responses.NewStreaming(t.Context(), responses.ResponseNewParams{
		Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("[[error_in_stream]]")}})
	for broken.Next() {
		last = broken.Current()
	}
	if last.Type != "error" && broken.Err() == nil {
		t.Errorf("stream told to fail ended with %s", last.RawJSON())
	}
}

func TestOpenAICompletions(t *testing.T) {
	t.Parallel()
	client, _ := openAI(t)
	params := openai.CompletionNewParams{Model: "m", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("one two [[words=3]]")}}
	got, err := client.Completions.New(t.Context(), params)
	if err != nil || got.Choices[0].Text != "This is a" || got.Usage.TotalTokens != 5 {
		t.Fatalf("completion = %+v, %v", got, err)
	}
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Completions.NewStreaming(t.Context(), params)
	text, total := "", int64(0)
	for stream.Next() {
		for _, c := range stream.Current().Choices {
			text += c.Text
		}
		total = stream.Current().Usage.TotalTokens
	}
	if stream.Err() != nil || text != "This is a" || total != 5 {
		t.Errorf("stream says %q with %d tokens, %v", text, total, stream.Err())
	}
}

func TestOpenAIEmbeddings(t *testing.T) {
	t.Parallel()
	client, _ := openAI(t)
	params := openai.EmbeddingNewParams{Model: "e", Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"one two", "three"}}, Dimensions: openai.Int(16)}
	got, err := client.Embeddings.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || len(got.Data[1].Embedding) != 16 || got.Usage.PromptTokens != 3 || got.Data[0].Embedding[0] == got.Data[1].Embedding[0] {
		t.Errorf("embeddings = %+v", got)
	}
	params.EncodingFormat = "base64"
	if raw, err := client.Embeddings.New(t.Context(), params); err != nil || len(raw.Data[0].JSON.Embedding.Raw()) != 2+88 {
		t.Errorf("base64 = %+v, %v, want 64 bytes in 88 digits", raw, err)
	}
}

func TestOpenAIImages(t *testing.T) {
	t.Parallel()
	client, u := openAI(t)
	got, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Prompt: "a red kite", Model: "gpt-image-1", N: openai.Int(2)})
	if err != nil || len(got.Data) != 2 || got.Usage.InputTokens != 3 || got.Usage.OutputTokens != 200 || got.Usage.InputTokensDetails.TextTokens != 3 {
		t.Fatalf("images = %+v, %v", got, err)
	}
	if got.Data[0].B64JSON[:8] != "iVBORw0K" {
		t.Errorf("picture begins with %q, want a PNG", got.Data[0].B64JSON[:8])
	}
	if _, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Prompt: "x", Model: "gpt-image-1", ResponseFormat: "b64_json"}); err == nil {
		t.Error("response_format accepted for a GPT image model")
	}
	linked, err := client.Images.Generate(t.Context(), openai.ImageGenerateParams{Prompt: "x", Model: "dall-e-3"})
	if err != nil {
		t.Fatal(err)
	}
	if linked.JSON.Usage.Valid() {
		t.Error("dall-e states usage")
	}
	if res, body := u.get(t, strings.TrimPrefix(linked.Data[0].URL, u.URL)); res.Header.Get("Content-Type") != "image/png" || !strings.HasPrefix(body, "\x89PNG") {
		t.Errorf("%s = %q, want a PNG", linked.Data[0].URL, body)
	}
	stream := client.Images.GenerateStreaming(t.Context(), openai.ImageGenerateParams{Prompt: "x", Model: "gpt-image-1", PartialImages: openai.Int(2)})
	var types []string
	var last openai.ImageGenStreamEventUnion
	for stream.Next() {
		last = stream.Current()
		types = append(types, last.Type)
	}
	want := "image_generation.partial_image image_generation.partial_image image_generation.completed"
	if stream.Err() != nil || strings.Join(types, " ") != want || last.Usage.OutputTokens != 300 {
		t.Errorf("events = %v, usage %+v, %v", types, last.Usage, stream.Err())
	}
	edited, err := client.Images.Edit(t.Context(), openai.ImageEditParams{
		Prompt: "make it blue", Model: "gpt-image-1",
		Image: openai.ImageEditParamsImageUnion{OfFile: strings.NewReader("png")},
	})
	if err != nil || edited.Usage.InputTokensDetails.ImageTokens != 100 || edited.Usage.InputTokens != 103 {
		t.Errorf("edit = %+v, %v", edited, err)
	}
}

func TestOpenAIAudio(t *testing.T) {
	t.Parallel()
	client, u := openAI(t)
	for format, head := range map[openai.AudioSpeechNewParamsResponseFormat]string{"mp3": "\xff\xf3", "wav": "RIFF", "pcm": "\x00\x00"} {
		res, err := client.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{
			Model: "tts-1", Input: "say five words [[mark=" + string(format) + "]]", ResponseFormat: format,
			Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")}})
		if err != nil {
			t.Fatal(err)
		}
		sound, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !strings.HasPrefix(string(sound), head) {
			t.Errorf("%s begins with %q, %v", format, sound[:min(len(sound), 4)], err)
		}
		if got := u.last(t, string(format)); got.Characters != len("say five words [[mark=mp3]]") || got.Usage {
			t.Errorf("record = %+v, want the characters and no usage", got)
		}
	}
	for model, want := range map[string]openai.AudioTranscriptionNewResponseUnionUsage{
		"whisper-1":              {Type: "duration", Seconds: 2},
		"gpt-4o-mini-transcribe": {Type: "tokens", InputTokens: 22, OutputTokens: 8, TotalTokens: 30},
	} {
		got, err := client.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{
			File: openai.File(strings.NewReader(strings.Repeat("x", 64000)), "a.wav", "audio/wav"), Model: model, Prompt: openai.String("names: Ada")})
		if err != nil {
			t.Fatal(err)
		}
		u := got.Usage
		if u.Type != want.Type || u.Seconds != want.Seconds || u.InputTokens != want.InputTokens || u.OutputTokens != want.OutputTokens || u.TotalTokens != want.TotalTokens {
			t.Errorf("%s usage = %s", model, got.RawJSON())
		}
		if !strings.HasSuffix(got.Text, "names: Ada") {
			t.Errorf("%s text = %q", model, got.Text)
		}
	}
	got, err := client.Audio.Translations.New(t.Context(), openai.AudioTranslationNewParams{File: openai.File(strings.NewReader("x"), "a.wav", "audio/wav"), Model: "whisper-1"})
	if err != nil || got.Text != "This is a simulated answer to:" {
		t.Errorf("translation = %+v, %v", got, err)
	}
}

func TestOpenAIModerationsAndModels(t *testing.T) {
	t.Parallel()
	client, _ := openAI(t)
	got, err := client.Moderations.New(t.Context(), openai.ModerationNewParams{Input: openai.ModerationNewParamsInputUnion{OfStringArray: []string{"peace", "violence"}}})
	if err != nil || len(got.Results) != 2 || got.Results[0].Flagged || !got.Results[1].Categories.Violence {
		t.Errorf("moderation = %+v, %v", got, err)
	}
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) == 0 || models.Data[0].Object != "model" {
		t.Errorf("models = %+v, %v", models, err)
	}
	model, err := client.Models.Get(t.Context(), "author/name")
	if err != nil || model.ID != "author/name" {
		t.Errorf("model = %+v, %v", model, err)
	}
}

func TestOpenAIVideos(t *testing.T) {
	t.Parallel()
	client, u := openAI(t)
	params := openai.VideoNewParams{Prompt: "a kite [[mark=v]] [[polls=3]]", Model: "sora-2", Seconds: "8", Size: "1280x720"}
	made, err := client.Videos.New(t.Context(), params)
	if err != nil || made.Status != "queued" || made.Seconds != "8" || made.Size != "1280x720" {
		t.Fatalf("video = %+v, %v", made, err)
	}
	twin, err := client.Videos.New(t.Context(), params)
	if err != nil || twin.ID == made.ID {
		t.Errorf("an equal job = %+v, %v, want another id than %s", twin, err, made.ID)
	}
	if _, err := client.Videos.DownloadContent(t.Context(), made.ID, openai.VideoDownloadContentParams{}); err == nil {
		t.Error("content before the end")
	}
	var states []string
	for range 4 {
		v, err := client.Videos.Get(t.Context(), made.ID)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, string(v.Status))
	}
	if got := strings.Join(states, " "); got != "in_progress in_progress completed completed" {
		t.Errorf("states = %s", got)
	}
	res, err := client.Videos.DownloadContent(t.Context(), made.ID, openai.VideoDownloadContentParams{})
	if err != nil {
		t.Fatal(err)
	}
	film, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || string(film[4:8]) != "ftyp" {
		t.Errorf("content = %q, %v, want an MP4", film[:8], err)
	}
	if list, err := client.Videos.List(t.Context(), openai.VideoListParams{}); err != nil || len(list.Data) != 2 {
		t.Errorf("list = %+v, %v, want two", list, err)
	}
	if gone, err := client.Videos.Delete(t.Context(), twin.ID); err != nil || !gone.Deleted {
		t.Errorf("delete = %+v, %v", gone, err)
	}
	var apiErr *openai.Error
	if _, err := client.Videos.Get(t.Context(), twin.ID); !errors.As(err, &apiErr) || apiErr.StatusCode != 404 {
		t.Errorf("deleted job = %v, want 404", err)
	}
	states = nil
	for _, s := range u.ledger.Marked("v") {
		states = append(states, s.JobStatus)
	}
	want := "queued queued queued running running succeeded succeeded succeeded cancelled"
	if got := strings.Join(states, " "); got != want {
		t.Errorf("ledger = %s, want %s", got, want)
	}
}

func claude(t *testing.T) anthropic.Client {
	t.Helper()
	u := start(t, simulator.Options{Credential: "sk-ant"})
	return anthropic.NewClient(anthropicoption.WithBaseURL(u.URL), anthropicoption.WithAPIKey("sk-ant"), anthropicoption.WithMaxRetries(0))
}

func messageParams(prompt string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: "claude-sonnet-4-5", MaxTokens: 100, System: []anthropic.TextBlockParam{{Text: "be brief"}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
	}
}

func TestAnthropicMessages(t *testing.T) {
	t.Parallel()
	client := claude(t)
	params := messageParams("hello world [[cached=5]] [[cache_write=6]] [[cache_write_1h=7]] [[reasoning=8]] [[words=3]]")
	check := func(how string, u anthropic.Usage, text string) {
		t.Helper()
		if u.InputTokens != 4 || u.CacheReadInputTokens != 5 || u.CacheCreationInputTokens != 13 || u.OutputTokens != 11 ||
			u.CacheCreation.Ephemeral5mInputTokens != 6 || u.CacheCreation.Ephemeral1hInputTokens != 7 {
			t.Errorf("%s: usage = %+v", how, u)
		}
		if text != "This is a" {
			t.Errorf("%s: text = %q", how, text)
		}
	}
	got, err := client.Messages.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	check("whole", got.Usage, got.Content[0].Text)

	stream := client.Messages.NewStreaming(t.Context(), params)
	var acc anthropic.Message
	for stream.Next() {
		if err := acc.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	check("stream", acc.Usage, acc.Content[0].Text)

	params.MaxTokens = 2
	if cut, err := client.Messages.New(t.Context(), params); err != nil || cut.StopReason != "max_tokens" {
		t.Errorf("limited = %+v, %v", cut, err)
	}
	tokens, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: params.Model, Messages: params.Messages})
	if err != nil || tokens.InputTokens != 2 {
		t.Errorf("count = %+v, %v, want 2", tokens, err)
	}
	models, err := client.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(models.Data) == 0 || models.Data[0].Type != "model" {
		t.Errorf("models = %+v, %v", models, err)
	}
}

func TestAnthropicErrors(t *testing.T) {
	t.Parallel()
	client := claude(t)
	_, err := client.Messages.New(t.Context(), messageParams("[[status=529]]"))
	var apiErr *anthropic.Error
	if !errors.As(err, &apiErr) || apiErr.StatusCode != 529 || !strings.Contains(apiErr.RawJSON(), `"overloaded_error"`) {
		t.Errorf("error = %v, want 529 overloaded_error", err)
	}
	stream := client.Messages.NewStreaming(t.Context(), messageParams("[[error_in_stream=4]]"))
	events := 0
	for stream.Next() {
		events++
	}
	if err := stream.Err(); err == nil || !strings.Contains(err.Error(), "overloaded_error") || events < 3 {
		t.Errorf("stream ended after %d events with %v, want an overloaded_error", events, err)
	}
}

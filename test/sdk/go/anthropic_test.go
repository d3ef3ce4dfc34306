package clients

import (
	"context"
	"errors"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"
)

// messages talks to a model through Anthropic's API.
type messages struct {
	service anthropic.MessageService
	model   string
}

func openAnthropic(url, key string) client {
	c := anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey(key), option.WithMaxRetries(0))
	return messages{c.Messages, messagesModel}
}

func (messages) refusal(err error) (int, string) {
	if failed, ok := errors.AsType[*anthropic.Error](err); ok {
		return failed.StatusCode, failed.RawJSON()
	}
	return 0, ""
}

func (m messages) ask(ctx context.Context, prompt string) (string, error) {
	return m.converse(prompt, func(p anthropic.MessageNewParams) (*anthropic.Message, error) { return m.service.New(ctx, p) })
}

func (m messages) stream(ctx context.Context, prompt string) (string, error) {
	return m.converse(prompt, func(p anthropic.MessageNewParams) (*anthropic.Message, error) {
		stream := m.service.NewStreaming(ctx, p)
		var whole anthropic.Message
		for stream.Next() {
			if err := whole.Accumulate(stream.Current()); err != nil {
				return nil, err
			}
		}
		return &whole, stream.Err()
	})
}

func (m messages) converse(prompt string, respond func(anthropic.MessageNewParams) (*anthropic.Message, error)) (string, error) {
	params := anthropic.MessageNewParams{
		Model: m.model, MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(prompt))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{
			Name: "weather", Description: anthropic.String(description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: schema()["properties"], Required: []string{"city"}},
		}}},
	}
	for {
		message, err := respond(params)
		if err != nil {
			return "", err
		}
		block := message.Content[0]
		if block.Type != "tool_use" {
			return block.Text, nil
		}
		result, err := weather(string(block.Input))
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, message.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(block.ID, result, false)))
	}
}

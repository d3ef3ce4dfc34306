package clients

import (
	"context"
	"errors"
	"io"

	"github.com/sashabaranov/go-openai"
)

type goOpenAI struct{ *openai.Client }

func openGoOpenAI(url, key string) client {
	config := openai.DefaultConfig(key)
	config.BaseURL = url + "/v1"
	return goOpenAI{openai.NewClientWithConfig(config)}
}

func (c goOpenAI) ask(ctx context.Context, prompt string) (string, error) {
	return c.converse(prompt, func(r openai.ChatCompletionRequest) (openai.ChatCompletionMessage, error) {
		response, err := c.CreateChatCompletion(ctx, r)
		if err != nil {
			return openai.ChatCompletionMessage{}, err
		}
		return response.Choices[0].Message, nil
	})
}

func (c goOpenAI) stream(ctx context.Context, prompt string) (string, error) {
	return c.converse(prompt, func(r openai.ChatCompletionRequest) (openai.ChatCompletionMessage, error) {
		whole := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant}
		stream, err := c.CreateChatCompletionStream(ctx, r)
		if err != nil {
			return whole, err
		}
		defer func() { _ = stream.Close() }()
		for {
			chunk, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return whole, nil
			}
			if err != nil {
				return whole, err
			}
			for _, choice := range chunk.Choices {
				whole.Content += choice.Delta.Content
				for _, piece := range choice.Delta.ToolCalls {
					if piece.ID != "" {
						whole.ToolCalls = append(whole.ToolCalls, piece)
						continue
					}
					whole.ToolCalls[*piece.Index].Function.Arguments += piece.Function.Arguments
				}
			}
		}
	})
}

func (c goOpenAI) converse(prompt string, respond func(openai.ChatCompletionRequest) (openai.ChatCompletionMessage, error)) (string, error) {
	request := openai.ChatCompletionRequest{
		Model:    chatModel,
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: prompt}},
		Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: "weather", Description: description, Parameters: schema(),
		}}},
	}
	for {
		message, err := respond(request)
		if err != nil || len(message.ToolCalls) == 0 {
			return message.Content, err
		}
		call := message.ToolCalls[0]
		result, err := weather(call.Function.Arguments)
		if err != nil {
			return "", err
		}
		request.Messages = append(request.Messages, message,
			openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: call.ID, Content: result})
	}
}

func (goOpenAI) refusal(err error) (int, string) {
	if failed, ok := errors.AsType[*openai.APIError](err); ok {
		return failed.HTTPStatusCode, failed.Message
	}
	return 0, ""
}

package clients

import (
	"context"
	"errors"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

func newOpenAI(url, key string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func refusalOf(err error) (int, string) {
	if failed, ok := errors.AsType[*openai.Error](err); ok {
		return failed.StatusCode, failed.RawJSON()
	}
	return 0, ""
}

// chat talks to a model through chat completions.
type chat struct {
	openai.Client
	model string
}

func openChat(url, key string) client { return chat{newOpenAI(url, key), chatModel} }

func (chat) refusal(err error) (int, string) { return refusalOf(err) }

func (c chat) ask(ctx context.Context, prompt string) (string, error) {
	return c.converse(prompt, func(p openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
		return c.Chat.Completions.New(ctx, p)
	})
}

func (c chat) stream(ctx context.Context, prompt string) (string, error) {
	return c.converse(prompt, func(p openai.ChatCompletionNewParams) (*openai.ChatCompletion, error) {
		stream := c.Chat.Completions.NewStreaming(ctx, p)
		var whole openai.ChatCompletionAccumulator
		for stream.Next() {
			if !whole.AddChunk(stream.Current()) {
				return nil, errors.New("a chunk does not belong to the stream")
			}
		}
		return &whole.ChatCompletion, stream.Err()
	})
}

func (c chat) converse(prompt string, respond func(openai.ChatCompletionNewParams) (*openai.ChatCompletion, error)) (string, error) {
	params := openai.ChatCompletionNewParams{
		Model:    c.model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
			Name: "weather", Description: openai.String(description), Parameters: schema(),
		})},
	}
	for {
		completion, err := respond(params)
		if err != nil {
			return "", err
		}
		message := completion.Choices[0].Message
		if len(message.ToolCalls) == 0 {
			return message.Content, nil
		}
		result, err := weather(message.ToolCalls[0].Function.Arguments)
		if err != nil {
			return "", err
		}
		params.Messages = append(params.Messages, message.ToParam(), openai.ToolMessage(result, message.ToolCalls[0].ID))
	}
}

type response struct{ openai.Client }

func openResponses(url, key string) client { return response{newOpenAI(url, key)} }

func (response) refusal(err error) (int, string) { return refusalOf(err) }

func (r response) ask(ctx context.Context, prompt string) (string, error) {
	return r.converse(prompt, func(p responses.ResponseNewParams) (*responses.Response, error) { return r.Responses.New(ctx, p) })
}

func (r response) stream(ctx context.Context, prompt string) (string, error) {
	return r.converse(prompt, func(p responses.ResponseNewParams) (*responses.Response, error) {
		stream := r.Responses.NewStreaming(ctx, p)
		var whole responses.Response
		for stream.Next() {
			if event := stream.Current(); event.Type == "response.completed" {
				whole = event.Response
			}
		}
		return &whole, stream.Err()
	})
}

func (r response) converse(prompt string, respond func(responses.ResponseNewParams) (*responses.Response, error)) (string, error) {
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage(prompt, responses.EasyInputMessageRoleUser)}
	for {
		answered, err := respond(responses.ResponseNewParams{
			Model: chatModel, Store: openai.Bool(false),
			Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input},
			Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction("weather", schema(), true)},
		})
		if err != nil {
			return "", err
		}
		call := answered.Output[0]
		if call.Type != "function_call" {
			return answered.OutputText(), nil
		}
		arguments := call.AsFunctionCall().Arguments
		result, err := weather(arguments)
		if err != nil {
			return "", err
		}
		input = append(input,
			responses.ResponseInputItemParamOfFunctionCall(arguments, call.CallID, call.Name),
			responses.ResponseInputItemUnionParam{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{
				CallID: openai.String(call.CallID),
				Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String(result)},
			}})
	}
}

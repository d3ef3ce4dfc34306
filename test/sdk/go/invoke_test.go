package clients

import (
	"context"
	"encoding/json"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
)

// invoke talks to a model of Anthropic's through InvokeModel and
// InvokeModelWithResponseStream, whose bodies are the model's own.
type invoke struct{ *bedrockruntime.Client }

func openInvoke(url, key string) client { return invoke{newBedrock(url, key)} }

func (invoke) refusal(err error) (int, string) { return awsRefusal(err) }

// bodyOf is a request to Anthropic's API as InvokeModel takes it.
func bodyOf(p anthropic.MessageNewParams) ([]byte, error) {
	p.Model = ""
	p.SetExtraFields(map[string]any{"anthropic_version": "bedrock-2023-05-31"})
	text, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	delete(body, "model")
	return json.Marshal(body)
}

func (c invoke) ask(ctx context.Context, prompt string) (string, error) {
	return messages{}.converse(prompt, func(p anthropic.MessageNewParams) (*anthropic.Message, error) {
		body, err := bodyOf(p)
		if err != nil {
			return nil, err
		}
		out, err := c.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{ModelId: aws.String(bedrockModel), Body: body, ContentType: aws.String("application/json")})
		if err != nil {
			return nil, err
		}
		var message anthropic.Message
		return &message, json.Unmarshal(out.Body, &message)
	})
}

func (c invoke) stream(ctx context.Context, prompt string) (string, error) {
	return messages{}.converse(prompt, func(p anthropic.MessageNewParams) (*anthropic.Message, error) {
		body, err := bodyOf(p)
		if err != nil {
			return nil, err
		}
		out, err := c.InvokeModelWithResponseStream(ctx, &bedrockruntime.InvokeModelWithResponseStreamInput{
			ModelId: aws.String(bedrockModel), Body: body, ContentType: aws.String("application/json"),
		})
		if err != nil {
			return nil, err
		}
		stream := out.GetStream()
		defer func() { _ = stream.Close() }()
		var whole anthropic.Message
		for event := range stream.Events() {
			chunk, ok := event.(*types.ResponseStreamMemberChunk)
			if !ok {
				continue
			}
			var e anthropic.MessageStreamEventUnion
			if err := json.Unmarshal(chunk.Value.Bytes, &e); err != nil {
				return nil, err
			}
			if err := whole.Accumulate(e); err != nil {
				return nil, err
			}
		}
		return &whole, stream.Err()
	})
}

package clients

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/document"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/auth/bearer"
)

func newBedrock(url, key string) *bedrockruntime.Client {
	return bedrockruntime.New(bedrockruntime.Options{
		Region: region, BaseEndpoint: aws.String(url + "/bedrock"), Retryer: aws.NopRetryer{},
		BearerAuthTokenProvider: bearer.StaticTokenProvider{Token: bearer.Token{Value: key}},
		AuthSchemePreference:    []string{"httpBearerAuth"},
	})
}

// awsRefusal is the status and the kind in an error of AWS's SDK, which reads the
// kind and the request's id out of headers. The message it would want at the top of
// the body.
func awsRefusal(err error) (int, string) {
	typed, isAPI := errors.AsType[smithy.APIError](err)
	failed, isReply := errors.AsType[*awshttp.ResponseError](err)
	if !isAPI || !isReply || failed.RequestID == "" {
		return 0, ""
	}
	return failed.HTTPStatusCode(), typed.ErrorCode()
}

// converse talks to a model through Converse and ConverseStream.
type converse struct{ *bedrockruntime.Client }

func openConverse(url, key string) client { return converse{newBedrock(url, key)} }

func (converse) refusal(err error) (int, string) { return awsRefusal(err) }

func (c converse) ask(ctx context.Context, prompt string) (string, error) {
	return c.talk(prompt, func(in *bedrockruntime.ConverseInput) ([]types.ContentBlock, error) {
		out, err := c.Converse(ctx, in)
		if err != nil {
			return nil, err
		}
		return out.Output.(*types.ConverseOutputMemberMessage).Value.Content, nil
	})
}

func (c converse) stream(ctx context.Context, prompt string) (string, error) {
	return c.talk(prompt, func(in *bedrockruntime.ConverseInput) ([]types.ContentBlock, error) {
		out, err := c.ConverseStream(ctx, &bedrockruntime.ConverseStreamInput{
			ModelId: in.ModelId, Messages: in.Messages, ToolConfig: in.ToolConfig, InferenceConfig: in.InferenceConfig,
		})
		if err != nil {
			return nil, err
		}
		stream := out.GetStream()
		defer func() { _ = stream.Close() }()
		return contentOf(stream)
	})
}

// contentOf puts the pieces of a stream together, of one text or one use of a tool.
// A stream without its usage is incomplete.
func contentOf(stream *bedrockruntime.ConverseStreamEventStream) ([]types.ContentBlock, error) {
	var text, arguments strings.Builder
	var use *types.ToolUseBlock
	var tokens int32
	for event := range stream.Events() {
		switch e := event.(type) {
		case *types.ConverseStreamOutputMemberContentBlockStart:
			if start, ok := e.Value.Start.(*types.ContentBlockStartMemberToolUse); ok {
				use = &types.ToolUseBlock{Name: start.Value.Name, ToolUseId: start.Value.ToolUseId}
			}
		case *types.ConverseStreamOutputMemberContentBlockDelta:
			switch delta := e.Value.Delta.(type) {
			case *types.ContentBlockDeltaMemberText:
				text.WriteString(delta.Value)
			case *types.ContentBlockDeltaMemberToolUse:
				arguments.WriteString(aws.ToString(delta.Value.Input))
			}
		case *types.ConverseStreamOutputMemberMetadata:
			tokens = aws.ToInt32(e.Value.Usage.OutputTokens)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if tokens == 0 {
		return nil, errors.New("the stream states no usage")
	}
	if use == nil {
		return []types.ContentBlock{&types.ContentBlockMemberText{Value: text.String()}}, nil
	}
	var input any
	if err := json.Unmarshal([]byte(arguments.String()), &input); err != nil {
		return nil, err
	}
	use.Input = document.NewLazyDocument(input)
	return []types.ContentBlock{&types.ContentBlockMemberToolUse{Value: *use}}, nil
}

func (c converse) talk(prompt string, respond func(*bedrockruntime.ConverseInput) ([]types.ContentBlock, error)) (string, error) {
	in := &bedrockruntime.ConverseInput{
		ModelId: aws.String(bedrockModel), InferenceConfig: &types.InferenceConfiguration{MaxTokens: aws.Int32(100)},
		Messages: []types.Message{{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberText{Value: prompt}}}},
		ToolConfig: &types.ToolConfiguration{Tools: []types.Tool{&types.ToolMemberToolSpec{Value: types.ToolSpecification{
			Name: aws.String("weather"), Description: aws.String(description),
			InputSchema: &types.ToolInputSchemaMemberJson{Value: document.NewLazyDocument(schema())},
		}}}},
	}
	for {
		content, err := respond(in)
		if err != nil {
			return "", err
		}
		call, ok := content[0].(*types.ContentBlockMemberToolUse)
		if !ok {
			return content[0].(*types.ContentBlockMemberText).Value, nil
		}
		arguments, err := call.Value.Input.MarshalSmithyDocument()
		if err != nil {
			return "", err
		}
		result, err := weather(string(arguments))
		if err != nil {
			return "", err
		}
		in.Messages = append(in.Messages, types.Message{Role: types.ConversationRoleAssistant, Content: content},
			types.Message{Role: types.ConversationRoleUser, Content: []types.ContentBlock{&types.ContentBlockMemberToolResult{Value: types.ToolResultBlock{
				ToolUseId: call.Value.ToolUseId, Content: []types.ToolResultContentBlock{&types.ToolResultContentBlockMemberText{Value: result}},
			}}}})
	}
}

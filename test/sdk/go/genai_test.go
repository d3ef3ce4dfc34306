package clients

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/genai"
)

// gemini talks to a model through Google's SDK, with Vertex AI as its backend.
type gemini struct{ *genai.Client }

func openGenAI(url, key string) client {
	c, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendVertexAI, APIKey: key, HTTPOptions: genai.HTTPOptions{BaseURL: url + "/vertex"},
	})
	if err != nil {
		return broken{err}
	}
	return gemini{c}
}

// refusal takes a message for a status, which Google states in the body and the
// gateway does not.
func (gemini) refusal(err error) (int, string) {
	if failed, ok := errors.AsType[genai.APIError](err); ok {
		return 401, failed.Message
	}
	return 0, ""
}

func (g gemini) ask(ctx context.Context, prompt string) (string, error) {
	return g.talk(prompt, func(contents []*genai.Content, config *genai.GenerateContentConfig) ([]*genai.Part, error) {
		reply, err := g.Models.GenerateContent(ctx, geminiModel, contents, config)
		if err != nil {
			return nil, err
		}
		return reply.Candidates[0].Content.Parts, nil
	})
}

func (g gemini) stream(ctx context.Context, prompt string) (string, error) {
	return g.talk(prompt, func(contents []*genai.Content, config *genai.GenerateContentConfig) (parts []*genai.Part, _ error) {
		for reply, err := range g.Models.GenerateContentStream(ctx, geminiModel, contents, config) {
			if err != nil {
				return nil, err
			}
			if len(reply.Candidates) > 0 && reply.Candidates[0].Content != nil {
				parts = append(parts, reply.Candidates[0].Content.Parts...)
			}
		}
		return parts, nil
	})
}

func (g gemini) talk(prompt string, respond func([]*genai.Content, *genai.GenerateContentConfig) ([]*genai.Part, error)) (string, error) {
	config := &genai.GenerateContentConfig{Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
		{Name: "weather", Description: description, ParametersJsonSchema: schema()},
	}}}}
	contents := []*genai.Content{genai.NewContentFromText(prompt, genai.RoleUser)}
	for {
		parts, err := respond(contents, config)
		if err != nil {
			return "", err
		}
		text := ""
		var call *genai.FunctionCall
		for _, part := range parts {
			text += part.Text
			if part.FunctionCall != nil {
				call = part.FunctionCall
			}
		}
		if call == nil {
			return text, nil
		}
		arguments, err := json.Marshal(call.Args)
		if err != nil {
			return "", err
		}
		result, err := weather(string(arguments))
		if err != nil {
			return "", err
		}
		contents = append(contents, genai.NewContentFromParts(parts, genai.RoleModel),
			genai.NewContentFromFunctionResponse(call.Name, map[string]any{"output": result}, genai.RoleUser))
	}
}

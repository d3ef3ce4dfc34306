package simulator

// models are those that the model lists show. Any model is served.
func models() []string {
	return []string{"gpt-5-mini", "gpt-image-1", "text-embedding-3-small", "claude-sonnet-4-5", "gemini-2.5-flash", "rerank-v3.5"}
}

// model is a model's description. OpenAI and Anthropic share one path, and
// Anthropic's clients say who they are by a header.
func (c *call) model(id string) object {
	switch {
	case c.format == formatGemini:
		return object{
			"name": "models/" + id, "version": "1", "displayName": id, "inputTokenLimit": 1048576, "outputTokenLimit": 65536,
			"supportedGenerationMethods": []string{"generateContent", "countTokens", "embedContent"},
		}
	case c.r.Header.Get("anthropic-version") != "":
		return object{"type": "model", "id": id, "display_name": id, "created_at": "2023-11-14T22:13:20Z"}
	}
	return object{"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "simulated"}
}

func (c *call) oneModel() answer { return jsonAnswer(c.model(c.arg)) }

func (c *call) listModels() answer {
	var list []object
	for _, id := range models() {
		list = append(list, c.model(id))
	}
	switch {
	case c.format == formatGemini:
		return jsonAnswer(object{"models": list})
	case c.r.Header.Get("anthropic-version") != "":
		return jsonAnswer(page(list, object{}))
	}
	return jsonAnswer(object{"object": "list", "data": list})
}

// page adds a list and its ends to a reply.
func page(list []object, reply object) object {
	reply["data"], reply["has_more"], reply["first_id"], reply["last_id"] = list, false, nil, nil
	if len(list) > 0 {
		reply["first_id"], reply["last_id"] = list[0]["id"], list[len(list)-1]["id"]
	}
	return reply
}

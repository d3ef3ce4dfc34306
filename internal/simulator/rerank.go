package simulator

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// ranked is one document and how many of the query's words it holds, as a
// share.
type ranked struct {
	index int
	score float64
	text  string
}

// documentsPerUnit is how many documents one search unit of Cohere covers.
const documentsPerUnit = 100

// rank orders the documents of the call, best first, equal ones as they came.
func (c *call) rank() []ranked {
	query := strings.Fields(strings.ToLower(withoutDirectives(c.fields.text("query"))))
	var list []ranked
	for i, d := range c.fields.list("documents") {
		text := textOf(d)
		words := strings.Fields(strings.ToLower(withoutDirectives(text)))
		hits := 0
		for _, w := range query {
			if slices.Contains(words, w) {
				hits++
			}
		}
		list = append(list, ranked{index: i, score: float64(hits) / float64(max(len(query), 1)), text: text})
	}
	slices.SortStableFunc(list, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	c.served.SearchUnits = (len(list) + documentsPerUnit - 1) / documentsPerUnit
	if top := int(c.fields.number("top_n")); top > 0 && top < len(list) {
		list = list[:top]
	}
	return list
}

func (c *call) rerankRefusal() (answer, bool) {
	if c.fields.text("query") == "" {
		return c.fail(http.StatusBadRequest, "query must not be empty"), true
	}
	if len(c.fields.list("documents")) == 0 {
		return c.fail(http.StatusBadRequest, "documents must not be empty"), true
	}
	return answer{}, false
}

// rerank answers in the shape of Jina and DashScope: usage counts tokens.
func (p *Provider) rerank(c *call) answer {
	if a, refused := c.rerankRefusal(); refused {
		return a
	}
	t := c.plain(c.prompt.words(), 0)
	var results []object
	for _, r := range c.rank() {
		one := object{"index": r.index, "relevance_score": r.score}
		if c.fields.flag("return_documents") {
			one["document"] = object{"text": r.text}
		}
		results = append(results, one)
	}
	reply := object{"id": p.id(c, "rerank-"), "object": "list", "model": c.served.Model, "results": results}
	c.addUsage(reply, object{"total_tokens": t.input})
	return jsonAnswer(reply).withUsage(c)
}

// rerankCohere answers in Cohere's v2 shape: meta counts search units.
func (p *Provider) rerankCohere(c *call) answer {
	if a, refused := c.rerankRefusal(); refused {
		return a
	}
	var results []object
	for _, r := range c.rank() {
		results = append(results, object{"index": r.index, "relevance_score": r.score})
	}
	meta := object{"api_version": object{"version": "2"}}
	if u := c.usageJSON(object{"search_units": c.served.SearchUnits}); u != nil {
		meta["billed_units"] = u
	}
	return jsonAnswer(object{"id": p.id(c, ""), "results": results, "meta": meta}).withUsage(c)
}

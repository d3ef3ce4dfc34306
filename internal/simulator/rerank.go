package simulator

import (
	"cmp"
	"slices"
	"strings"
)

// documentsPerUnit is how many documents one search unit of Cohere covers.
const documentsPerUnit = 100

// rank is the documents of the call, best first, equal ones as they came. A
// document's score is the share of the query's words that it holds.
func (c *call) rank(withDocuments bool) []object {
	query := strings.Fields(strings.ToLower(withoutDirectives(c.fields.text("query"))))
	var list []object
	for i, d := range c.fields.list("documents") {
		text := textOf(d)
		words := strings.Fields(strings.ToLower(withoutDirectives(text)))
		hits := 0
		for _, w := range query {
			if slices.Contains(words, w) {
				hits++
			}
		}
		one := object{"index": i, "relevance_score": float64(hits) / float64(max(len(query), 1))}
		if withDocuments {
			one["document"] = object{"text": text}
		}
		list = append(list, one)
	}
	slices.SortStableFunc(list, func(a, b object) int {
		return cmp.Compare(b["relevance_score"].(float64), a["relevance_score"].(float64))
	})
	c.served.SearchUnits = (len(list) + documentsPerUnit - 1) / documentsPerUnit
	if top := int(c.fields.number("top_n")); top > 0 && top < len(list) {
		list = list[:top]
	}
	return list
}

// rerank answers in the shape of Jina and DashScope: usage counts tokens.
func (c *call) rerank() answer {
	t := c.bill(tokens{input: c.prompt.words()})
	results := c.rank(c.fields.flag("return_documents"))
	reply := object{"id": c.id("rerank-"), "object": "list", "model": c.served.Model, "results": results}
	return c.reply(reply, "usage", object{"total_tokens": t.input})
}

// rerankCohere answers in Cohere's v2 shape: meta counts search units.
func (c *call) rerankCohere() answer {
	results, meta := c.rank(false), object{"api_version": object{"version": "2"}}
	stated := c.addUsage(meta, "billed_units", object{"search_units": c.served.SearchUnits})
	a := jsonAnswer(object{"id": c.id(""), "results": results, "meta": meta})
	if stated {
		a.usage = 1
	}
	return a
}
